"""Rules about special and added tokens in the tokenizer's and the model's files."""

from __future__ import annotations

from ....text import quoted
from ...findings import Outcome
from ..folder_rules import FOLDER_RULES
from ..model_folder import Declared, ModelFolder
from ..sources import ROLES

#: Flags of added tokens that change ids or decoded text.
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")

_DECLARING = ("tokenizer_config.json", "added_tokens.json")


def _declared(folder: ModelFolder) -> list[tuple[str, Declared]]:
    return [(name, token) for name in _DECLARING for token in folder.declared(name)]


@FOLDER_RULES.rule(
    "error", "added tokens to which a config file gives another id", needs=["tokenizer"]
)
def added_token_id(folder: ModelFolder) -> Outcome:
    """Two files give a token different ids; the program decides which id counts.

    Do: Give the config the id of `tokenizer.json`.
    """
    name = folder.tokenizer.name
    by_id = {number: token for token, number in folder.tokenizer.special.items()}
    found = []
    for file, token in _declared(folder):
        number = folder.tokenizer.find(token.content)
        if number is not None and number != token.id:
            found.append(f"{quoted(token.content)} is {number} in {name}, and {token.id} in {file}")
        elif number is None and token.id in by_id:
            other = quoted(by_id[token.id])
            found.append(f"{token.id} is {other} in {name}, and {quoted(token.content)} in {file}")
    return found


@FOLDER_RULES.rule(
    "error", "special tokens of the config that are not in the vocabulary", needs=["tokenizer"]
)
def special_token_unknown(folder: ModelFolder) -> Outcome:
    """The config names a token that the vocabulary lacks, so its name is encoded as several
    ordinary tokens.

    Do: Correct the name, or add the token to the tokenizer and a row to the embedding table.
    """
    known = {token.content for _, token in _declared(folder)}
    return [
        f"{role} {quoted(token)} of {file}"
        for role, files in folder.roles.items()
        for file, token in files.items()
        if token not in known and not folder.tokenizer.has(token)
    ]


@FOLDER_RULES.rule("warning", "added tokens with other flags in tokenizer_config.json")
def added_token_flags(folder: ModelFolder) -> Outcome:
    """Flags such as `lstrip` or `special` change the encoding or decoding of text around the token.

    Do: Give the config the flags of `tokenizer.json`.
    """
    own = {token.content: token.flags for token in folder.declared("tokenizer.json")}
    found = []
    for token in folder.declared("tokenizer_config.json"):
        flags = own.get(token.content)
        differ = [
            f"{flag} is {flags[flag]}, and {token.flags[flag]} in tokenizer_config.json"
            for flag in _FLAGS
            if flags is not None and flag in flags and flag in token.flags
            if flags[flag] != token.flags[flag]
        ]
        if differ:
            found.append(f"{quoted(token.content)}: {'; '.join(differ)}")
    return found


@FOLDER_RULES.rule(
    "warning",
    "added tokens of a config file that the tokenizer's file lacks; transformers adds them",
    needs=["tokenizer"],
)
def added_token_missing(folder: ModelFolder) -> Outcome:
    """transformers adds the token at load time, with the next free id; other programs lack the
    token.

    Do: Add the token to `tokenizer.json`, or delete it from the config.
    """
    taken = set(folder.tokenizer.special.values())
    return [
        f"{quoted(token.content)}, {token.id} in {file}"
        for file, token in _declared(folder)
        if folder.tokenizer.find(token.content) is None and token.id not in taken
    ]


@FOLDER_RULES.rule("warning", "roles for which config files name different tokens")
def special_tokens_disagree(folder: ModelFolder) -> Outcome:
    """The token that ends or begins a text depends on the file that a program reads.

    Do: Name the same token in every file.
    """
    return [
        f"{role} is {' and '.join(f'{quoted(token)} in {file}' for file, token in files.items())}"
        for role, files in folder.roles.items()
        if len(set(files.values())) > 1
    ]


@FOLDER_RULES.rule(
    "warning",
    "ids in the model's config that differ from the tokenizer's special tokens",
    needs=["tokenizer"],
)
def model_id_disagrees(folder: ModelFolder) -> Outcome:
    """Generation stops at, or begins with, the id of a different token.

    Do: Correct the ids in `config.json` and `generation_config.json`.
    """
    by_id = {number: name for name, number in folder.tokenizer.special.items()}
    found = []
    for role in ROLES:
        token = folder.role(role)
        number = None if token is None else folder.tokenizer.find(token)
        if token is None or number is None:
            continue
        for file, ids in folder.model_ids(role).items():
            if number not in ids:
                given = ", ".join(
                    f"{id} ({quoted(by_id[id])})" if id in by_id else str(id) for id in ids
                )
                found.append(f"{role} is {number} ({quoted(token)}), and {given} in {file}")
    return found
