"""Rules about the lines of rank files."""

from __future__ import annotations

from ..context import Context
from ..findings import RULES, Outcome


@RULES.rule("error", "lines of a rank file that cannot be read")
def bad_line(context: Context) -> Outcome:
    """A loader fails at such a line, or skips the line and lacks the token.

    Do: Write the file again with the program that made it. A line is a token in base64, a space,
    and its id.
    """
    return [
        f"{file.name}, line {line}: {reason}"
        for file in context.files
        for line, reason in file.bad_lines
    ]


@RULES.rule("error", "single bytes that are not tokens: text with them cannot be encoded")
def missing_byte(context: Context) -> Outcome:
    """Text with this byte cannot be encoded: encoding raises an error.

    Do: Add the 256 single bytes to the vocabulary, usually as its first ids.
    """
    ranks = context.loaded.ranks
    return [f"0x{byte:02x}" for byte in range(256) if bytes([byte]) not in ranks]


@RULES.rule("error", "tokens with two ids: loaders differ in which one they take")
def duplicate_token(context: Context) -> Outcome:
    """Loaders take either id, so two programs may encode the same text differently.

    Do: Keep the id that the model was trained with, and delete the other line.
    """
    return context.loaded.repeated_tokens


@RULES.rule("error", "ids with two tokens: only one can be decoded")
def duplicate_id(context: Context) -> Outcome:
    """Only one of the two tokens can be decoded; text with the other decodes to different text.

    Do: Give either token another id, as the model was trained.
    """
    return context.loaded.repeated_ids
