"""Rules about the lines of rank files."""

from __future__ import annotations

from ..context import Context
from ..findings import RULES, Outcome


@RULES.rule("BAD_LINE", "error", "lines of a rank file that cannot be read")
def bad_line(context: Context) -> Outcome:
    return [
        f"{file.name}, line {line}: {reason}"
        for file in context.files
        for line, reason in file.bad_lines
    ]


@RULES.rule(
    "MISSING_BYTE", "error", "single bytes that are not tokens: text with them cannot be encoded"
)
def missing_byte(context: Context) -> Outcome:
    ranks = context.loaded.ranks
    return [f"0x{byte:02x}" for byte in range(256) if bytes([byte]) not in ranks]


@RULES.rule(
    "DUPLICATE_TOKEN", "error", "tokens with two ids: loaders differ in which one they take"
)
def duplicate_token(context: Context) -> Outcome:
    return context.loaded.repeated_tokens


@RULES.rule("DUPLICATE_ID", "error", "ids with two tokens: one of them cannot be decoded")
def duplicate_id(context: Context) -> Outcome:
    return context.loaded.repeated_ids
