"""Rules about changes since an earlier version of a folder."""

from __future__ import annotations

import functools

from ....text import few, plural, quoted, shorten
from ...findings import Found, Outcome
from .. import tables
from ..folder_rules import FOLDER_RULES
from ..model_folder import ModelFolder
from ..sources import ROLES, Source
from .files import by_tables, lines_of_difference

#: Maximum number of special tokens to decode.
_SPECIAL = 100


@FOLDER_RULES.rule("error", "tokenizers without an earlier one to compare", needs=("earlier",))
def nothing_compared(folder: ModelFolder) -> Outcome:
    """The comparison is incomplete: ids may have changed.

    Do: Give the earlier version of this folder or file.
    """
    if folder.pairs:
        return []
    sides = (("before", folder.before), ("now", folder))
    return [
        f"{when}: {few([source.name for source in side.sources], 8) or 'no tokenizers'}"
        for when, side in sides
    ]


@FOLDER_RULES.rule("error", "texts that have other ids than before", needs=("earlier",))
def ids_changed(folder: ModelFolder) -> Outcome:
    """Stored ids, and the ids that the model was trained on, no longer match the tokenizer.

    Do: Keep the earlier files and versions of packages, or encode everything again and train with it.
    """
    found = [(old, one) for (old, _), one in zip(folder.pairs, folder.changed) if one.count]
    lines = [line for old, one in found for line in lines_of_difference(old, one)]
    return Found(lines, count=sum(one.count for _, one in found))


@FOLDER_RULES.rule("error", "tokens that have another id than before, or none", needs=("earlier",))
def tokens_changed(folder: ModelFolder) -> Outcome:
    """The model reads a different embedding row for the token, even if the check's texts lack it.

    Do: Keep the earlier file, or train with the new one; move rows with `extend_embeddings` if tokens
    were only added.
    """
    return by_tables(folder.pairs, tables.tokens_differ, tables.tokens_missing)


@FOLDER_RULES.rule(
    "error", "merges, scores or types of tokens other than before", needs=("earlier",)
)
def merges_changed(folder: ModelFolder) -> Outcome:
    """The tokens are the same, but some texts are cut differently, perhaps no text of the check.

    Do: Keep the earlier file, or encode everything again and train with it.
    """
    return by_tables(folder.pairs, functools.partial(tables.merges_differ, exactly=True))


@FOLDER_RULES.rule(
    "error",
    "settings other than before: tokens around a text, roles, truncation",
    needs=("earlier",),
)
def settings_changed(folder: ModelFolder) -> Outcome:
    """The ids of texts are the same, but the ids added around texts or the stop ids differ.

    Do: Set it as before, or train with the new setting.
    """
    lines = []
    for old, new in folder.pairs:
        one, two = _settings(folder.before, old), _settings(folder, new)
        lines += [
            f"{name} is {one.get(name, 'not set')} by {old.name}, "
            f"and {two.get(name, 'not set')} by {new.name}"
            for name in dict.fromkeys([*one, *two])
            if one.get(name) != two.get(name)
        ]
    return lines


def _settings(folder: ModelFolder, source: Source) -> dict[str, str]:
    """Returns settings as text, by name."""
    found = dict(source.table.settings)
    if source.around is not None:
        before, after = source.around
        found |= {"the beginning of a text": str(before), "the end of a text": str(after)}
    for role in ROLES:
        name = folder.role(role)
        id = source.roles.get(role, source.find(name) if name else None)
        if id is not None:
            found[role] = str(id)
    return found


@FOLDER_RULES.rule("error", "ids that become other text than before", needs=("earlier",))
def decoding_changed(folder: ModelFolder) -> Outcome:
    """The same ids of the model's answer are shown as different text.

    Do: Keep the earlier decoder and special tokens, or check every program that reads the text.
    """
    lines, count = [], 0
    for old, new in folder.pairs:
        _, differ, first = folder.decoded(old, new)
        shared = {name: id for name, id in old.special.items() if new.special.get(name) == id}
        rows = [[id] for id in sorted(shared.values())[:_SPECIAL]]
        if old.decode is not None and new.decode is not None:
            texts = zip(rows, old.decode(rows, True), new.decode(rows, True))
            hidden = [(row, one, two) for row, one, two in texts if one != two]
            differ += len(hidden)
            if hidden and not first:
                (id,), one, two = hidden[0]
                shown = [shorten(quoted(text)) for text in (one, two)]
                first = (
                    f"without special tokens, {id} is {shown[0]} by {old.name}, "
                    f"and {shown[1]} by {new.name}"
                )
        if differ:
            lines += [f"{new.name}: {plural(differ, 'difference')}", first]
            count += differ
    return Found(lines, count=count)


@FOLDER_RULES.rule("warning", "tokenizers that the folder no longer has", needs=("earlier",))
def tokenizer_gone(folder: ModelFolder) -> Outcome:
    """A program that reads this file or class finds nothing, or chooses a different tokenizer.

    Do: Copy the file again, or install the package that reads it.
    """
    kept = {old.table.file for old, _ in folder.pairs}
    return [one.name for one in folder.before.sources if one.table.file not in kept]
