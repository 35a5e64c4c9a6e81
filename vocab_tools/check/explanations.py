"""Why each finding matters, and what to do about it: for `vocab-tools explain` and docs/findings.md.

python -m vocab_tools.check.explanations > docs/findings.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .findings import RULES, Rule
from .folder.folder_rules import FOLDER_RULES

__all__ = ["Explanation", "explain", "explanations"]

#: By code: why it matters, and what to do.
_TEXTS: dict[str, tuple[str, str]] = {
    # Vocabularies.
    "BAD_LINE": (
        "A loader stops at such a line or skips it, and then the token is missing.",
        "Write the file again with the program that made it. A line is a token in base64, a space, "
        "and its id.",
    ),
    "MISSING_BYTE": (
        "Text with this byte has no ids at all: encoding it is an error.",
        "Add the 256 single bytes to the vocabulary, usually as its first ids.",
    ),
    "DUPLICATE_TOKEN": (
        "Loaders differ in which id they take, so two programs encode the same text differently.",
        "Keep the id that the model was trained with, and delete the other line.",
    ),
    "DUPLICATE_ID": (
        "Only one of the two tokens can be decoded; text with the other comes back changed.",
        "Give one of them an id of its own, as the model was trained.",
    ),
    "SPECIAL_ID": (
        "The id means a control token to the model and a piece of text to the tokenizer.",
        "Choose a start id after all special tokens; `learn --start-id auto` does.",
    ),
    "SPECIAL_TEXT": (
        "Ordinary text with the name of a special token becomes one token that looks like it.",
        "Remove the token from the ranks; special tokens are kept apart.",
    ),
    "SHADOW": (
        "The base already has these tokens. Loaders keep one of the two ids, and not all the same one.",
        "Delete them from the extension; `learn` and `propose` skip known words.",
    ),
    "BELOW_BASE": (
        "Ids are the order of merging: a new token below the base's last id merges before older ones, "
        "and text without new words changes.",
        "Use ids after the base, as `learn --start-id auto` does.",
    ),
    "ID_GAP": (
        "The embedding table has rows for unused ids. Nothing breaks, but sizes are easily confused.",
        "Leave it where a published vocabulary has it; otherwise number the tokens without gaps.",
    ),
    "EXTRA_GAP": (
        "Ids between the base and the new tokens stay unused, and get rows in the embedding table.",
        "Pass the special tokens of the model (`--special-tokens tokenizer.json`), so that new ids "
        "follow the last used one.",
    ),
    "UNREACHABLE_BY_MERGING": (
        "No sequence of merges makes the token, so it is never produced inside a longer piece; its row "
        "in the embedding table stays untrained.",
        "Learn words with `learn`, which adds the merges on the way, and do not add ranks by hand. In "
        "a published vocabulary, leave it.",
    ),
    "NEVER_WHOLE": (
        "The pattern always cuts the text of the token, so encoding never produces it.",
        "Check that the pattern is the one of the model (`--pattern`); list the pieces instead of "
        "the whole.",
    ),
    "NONSENSE_BYTES": (
        "These bytes occur in no UTF-8 text; a model that samples such a token writes garbage.",
        "Train on text that was checked for UTF-8 first. In a published vocabulary, leave them.",
    ),
    "NOT_NFC": (
        "Where text is normalized first, it never contains these characters, so the token is never used.",
        "Normalize the word list or the training text to form C.",
    ),
    "WORD_SPLIT": (
        "The pattern cuts the word before any token is looked up, so it cannot be one token.",
        "List its pieces, or use a pattern that keeps it whole, if the model is trained with that.",
    ),
    "WORD_NOT_ONE_TOKEN": (
        "The word was to become a token, and is still several.",
        "Learn it again, with the same base and pattern, and without a limit on merges.",
    ),
    "OTHER_TEXT_CHANGES": (
        "Steps on the way to a word are tokens, too. Text that contains them gets ids that the model has "
        "never seen, although it holds no new word.",
        "Continue training on ordinary text as well; `--prune` leaves out tokens that no word needs.",
    ),
    "CORPUS_CHANGES": (
        "Pieces of your text change without a new word in them. The examples show which.",
        "If they are frequent, drop the words that cause them, or train on such text.",
    ),
    "NOT_UTF8": (
        "Byte-level vocabularies have single bytes and parts of characters; alone they are not text.",
        "Nothing. Decode streams with `stream_decoder`, which waits for whole characters.",
    ),
    "INCOMPLETE_CHARACTER": (
        "A character of several tokens is complete only with the last of them.",
        "Nothing in a published vocabulary. `learn --whole-characters` makes no new ones.",
    ),
    "CROSSES_CHARACTER": (
        "A token that joins the end of a character to another one hides where characters begin.",
        "Nothing in a published vocabulary. `learn --whole-characters` makes no new ones.",
    ),
    "ROUND_TRIP": (
        "A token whose text is encoded otherwise was hardly seen in training: a candidate for a glitch.",
        "Do not build prompts from such ids; mask them if a model samples them.",
    ),
    "CORPUS": (
        "The number of tokens of your text before and after, and of the pieces that change.",
        "Nothing; compare it with the gain that you hoped for.",
    ),
    # Folders.
    "BAD_FILE": (
        "A server reads this file and fails, or goes on without it.",
        "Copy the file again from where the model comes from.",
    ),
    "NO_TOKENIZER": (
        "Without a tokenizer the model cannot be served.",
        "Copy `tokenizer.json`, or what the model has in its place, to the folder.",
    ),
    "FILES_DIFFER": (
        "Servers choose different files of the folder, so one model gets different ids.",
        "Keep the file that the model was trained with, and make the others from it with "
        "`vocab-tools convert`.",
    ),
    "TRANSFORMERS_DIFFERS": (
        "AutoTokenizer builds some classes anew instead of reading the file, and then gives other ids.",
        "Set `tokenizer_class` to `PreTrainedTokenizerFast`, or use `bpe_engine.hf.as_transformers`.",
    ),
    "ADDED_TOKEN_ID": (
        "Two files give a token different ids; which one counts depends on the program.",
        "Make the config's id that of `tokenizer.json`.",
    ),
    "SPECIAL_TOKEN_UNKNOWN": (
        "The config names a token that the vocabulary lacks, so it is encoded as several ordinary ones.",
        "Correct the name, or add the token to the tokenizer and a row to the embedding table.",
    ),
    "VOCAB_TOO_LARGE": (
        "An id beyond the embedding table is an error when the model runs, or reads something else.",
        "Extend the table (`extend_embeddings`), or correct `vocab_size`.",
    ),
    "TEMPLATE_BROKEN": (
        "Requests of chats fail, whatever their messages.",
        "Correct the template; the example has the error and its line.",
    ),
    "TEMPLATE_TOKEN_UNKNOWN": (
        "The template writes what should be one control token, and the model sees several ordinary ones.",
        "Add the tokens as special tokens with the ids that the model was trained with, or use the "
        "template of this model.",
    ),
    "TRANSFORMERS_FAILS": (
        "Programs that load the folder with AutoTokenizer end with this error.",
        "Correct `tokenizer_class`, or install the packages that the error names.",
    ),
    "ADDED_TOKEN_FLAGS": (
        "Flags such as `lstrip` or `special` change how text around the token is encoded, or decoded.",
        "Make the config's flags those of `tokenizer.json`.",
    ),
    "ADDED_TOKEN_MISSING": (
        "transformers adds the token at load time, with the next free id; other programs do not know it.",
        "Add it to `tokenizer.json`, or delete it from the config.",
    ),
    "SPECIAL_TOKENS_DISAGREE": (
        "Which token ends or begins a text depends on the file that a program reads.",
        "Name the same token in every file.",
    ),
    "MODEL_ID_DISAGREES": (
        "Generation stops at, or begins with, an id that is another token.",
        "Correct the ids in `config.json` and `generation_config.json`.",
    ),
    "DOUBLE_BOS": (
        "Both the template and the tokenizer write the token, and the model sees it twice.",
        "Encode rendered prompts with `add_special_tokens=False`; `apply_chat_template` does.",
    ),
    "BOS_POLICY": (
        "Whether a text begins with BOS depends on the program, and scores change with it.",
        "Make `add_bos_token` and `add_eos_token` agree with the post-processor of `tokenizer.json`.",
    ),
    "TURN_END_NOT_STOP": (
        "The model ends its turn, and the server lets it write the user's next one.",
        "Add the id to `eos_token_id` in `generation_config.json`.",
    ),
    "TEMPLATES_DIFFER": (
        "Servers read different files, so they render different prompts.",
        "Keep one template; `chat_template.jinja` counts first.",
    ),
    "HALF_A_TAG": (
        "One tag is a token and its partner is text: parsers of reasoning or calls miss one of them.",
        "Add the other tag as a token, if the model was trained so.",
    ),
    "NOT_COMPARED": (
        "A file could not be compared, so what it does is not known.",
        "Install the package that is named, or remove the file.",
    ),
    "ROWS_UNUSED": (
        "Tables are padded for speed. An untrained row can be sampled, and has no text.",
        "Nothing, or mask these ids when sampling.",
    ),
    "TAGS_AS_TEXT": (
        "These tags are several ordinary tokens, so text of users can spell them.",
        "Nothing if the model was trained so. Pass them as `control` to find them in untrusted text.",
    ),
    "NO_GENERATION_TAG": (
        "transformers makes assistant masks from these tags; without them its masks are all zero.",
        "Use the masks of this package, which need no tags: see docs/fine-tuning.md.",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Explanation:
    """A finding's code, severity and message, why it matters, and what to do about it."""

    code: str
    severity: str
    message: str
    why: str
    remedy: str


def explanations() -> list[Explanation]:
    """Returns all explanations: those of vocabularies, then those of folders, as the rules come."""
    rules: list[Rule[Any]] = [*RULES, *FOLDER_RULES]
    return [
        Explanation(rule.code, rule.severity, rule.message, *_TEXTS[rule.code]) for rule in rules
    ]


def explain(code: str) -> Explanation:
    """Returns the explanation of a finding.

    Args:
        code: such as ``"SHADOW"``, in any case.

    Raises:
        KeyError: No finding has the code.

    >>> explain("id_gap").severity
    'warning'
    """
    return {found.code: found for found in explanations()}[code.upper()]


def _page() -> str:
    """Returns docs/findings.md."""
    lines = [
        "# Findings",
        "",
        "Each finding of [`vocab-tools check`](vocab-tools.md#checking-a-vocabulary): why it matters,"
        " and what to do.",
        "`vocab-tools explain CODE` prints the same. (`python -m vocab_tools.check.explanations` writes"
        " this page.)",
    ]
    for title, rules in (("Of a vocabulary", RULES), ("Of a model's folder", FOLDER_RULES)):
        codes = {rule.code for rule in rules}
        lines += ["", f"## {title}"]
        for found in sorted(explanations(), key=lambda one: "ewi".index(one.severity[0])):
            if found.code in codes:
                lines += ["", f"### {found.code}", "", f"*{found.severity}*: {found.message}.", ""]
                lines += [found.why, "", f"**Do:** {found.remedy}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(_page(), end="")
