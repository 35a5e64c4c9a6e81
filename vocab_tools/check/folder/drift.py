"""Drift: the ids that the tokenizers of a folder give, beside those that they gave before.

One side is a folder, a tokenizer file, or the results of an earlier run in a file.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from ...arguments import checked_path, given_texts
from ...text import few, parting, plural, quoted, shorten
from ..findings import Found, Outcome, Rules
from . import tables
from .folder_result import CheckedSource, FolderResult
from .model_folder import ModelFolder, lines_of
from .sources import AUTO, ROLES, Source
from .tables import Difference, Table, unpacked

__all__ = ["DRIFT_RULES", "Frozen", "check_drift", "freeze", "read_frozen", "thaw"]

#: The first field of a file of results, and its version.
_KIND, _VERSION = "bpe_engine.drift", 2

#: The packages whose versions ids may depend on.
_PACKAGES = ("bpe-engine", "tokenizers", "transformers", "sentencepiece")

#: The numbers of texts, and of special tokens, whose ids are decoded for a table.
_DECODED, _SPECIAL = 100, 100

#: The rules of `check_drift`.
DRIFT_RULES: Rules[Drift] = Rules()


@dataclass(frozen=True)
class Frozen:
    """The ids of texts, by each tokenizer of a folder."""

    #: The folder or file.
    path: str
    texts: list[str]
    #: By the name of the tokenizer, the ids of each text.
    ids: Mapping[str, list[list[int]]]
    #: The versions of packages.
    packages: Mapping[str, str]
    #: By the name of the tokenizer, all of its tokens and merges, and what else is compared.
    tables: Mapping[str, Table] = field(default_factory=dict)

    def to_json(self) -> str:
        """Returns the contents of a file."""
        fields = {"path": self.path, "packages": self.packages, "texts": self.texts}
        packed = {name: table.packed() for name, table in self.tables.items()}
        contents = {_KIND: _VERSION, **fields, "ids": self.ids, "tables": packed}
        return json.dumps(contents, ensure_ascii=False)

    def table(self, name: str) -> Table:
        """Returns the table of a tokenizer; an empty one if none is known."""
        return self.tables.get(name) or Table(file=name)


@dataclass(frozen=True)
class Drift:
    """Two results for the same texts: the input of the rules."""

    before: Frozen
    after: Frozen

    @property
    def has(self) -> frozenset[str]:
        """Nothing: no rule needs input."""
        return frozenset()

    @functools.cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The tokenizers that are compared, by their names before and after."""
        sides = (self.before, self.after)
        rows = [[(name, side.table(name)) for name in side.ids] for side in sides]
        found: list[tuple[str, str]] = []
        for alike in _ALIKE:
            left = [row for row in rows[0] if row[0] not in {pair[0] for pair in found}]
            right = [row for row in rows[1] if row[0] not in {pair[1] for pair in found}]
            found += [(a, b) for a, one in left for b, two in right if alike(a, one, b, two)]
        files = [{table.file for _, table in row} for row in rows]
        formats = [{table.format for _, table in row} for row in rows]
        for format in sorted(formats[0] & formats[1] - {""}):
            # Files of one format may have different names.
            found += self._only_one(rows, found, format)
        if not found and all(len(names) == 1 for names in files):
            found += self._only_one(rows, found, None)
        places = {name: place for place, name in enumerate(self.after.ids)}
        return sorted(found, key=lambda pair: places[pair[1]])

    def _only_one(
        self,
        rows: Sequence[Sequence[tuple[str, Table]]],
        found: Sequence[tuple[str, str]],
        format: str | None,
    ) -> list[tuple[str, str]]:
        """Pairs the tokenizers of one file of a format, or of any, if each side has one without a pair."""
        left, right = (
            [
                row
                for row in rows[side]
                if format in (None, row[1].format) and row[0] not in {p[side] for p in found}
            ]
            for side in (0, 1)
        )
        if any(len({table.file for _, table in side}) != 1 for side in (left, right)):
            return []
        return [(a, b) for a, one in left for b, two in right if _same_version(one, two)]

    @functools.cached_property
    def changed(self) -> dict[tuple[str, str], list[int]]:
        """Returns the places of the texts with other ids, by each pair of tokenizers."""
        return {
            (a, b): [
                place
                for place, (one, two) in enumerate(zip(self.before.ids[a], self.after.ids[b]))
                if one != two
            ]
            for a, b in self.pairs
        }


def _same_version(one: Table, two: Table) -> bool:
    """Whether the ids of two tables are those of one version; some are of every version."""
    return one.version == two.version or not (one.version and two.version)


#: Tests whether two tokenizers are one before and after, the surest first.
_ALIKE: tuple[Callable[[str, Table, str, Table], bool], ...] = (
    lambda a, one, b, two: a == b,
    lambda a, one, b, two: (
        (one.file, one.format) == (two.file, two.format) and _same_version(one, two)
    ),
)


def freeze(path: str | os.PathLike[str], texts: Iterable[str] | None = None) -> Frozen:
    """Encodes texts with each tokenizer of a folder, and with the installed packages.

    Args:
        path: the folder, or a tokenizer file.
        texts: the texts; by default those of `vocab_tools.check_folder`.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: a file is malformed, or no tokenizer can be read.

    >>> freeze("models/qwen3").ids["tokenizer.json"]  # doctest: +SKIP
    """
    where = Path(checked_path(path, "a folder or a tokenizer file"))
    if not where.exists():
        raise FileNotFoundError(2, os.strerror(2), os.fspath(path))
    folder = ModelFolder(where)
    chosen = (
        [text for block in folder.probes for text in block]
        if texts is None
        else list(given_texts(texts))
    )
    sources = [*folder.sources, *folder.packages]
    if not sources or folder.broken:
        problem = folder.broken[0] if folder.broken else "no tokenizer can be read"
        raise ValueError(f"{os.fspath(path)}: {problem}")
    ids = {source.name: source.encode(chosen) for source in sources}
    made = {source.name: _table(source, folder, chosen, ids[source.name]) for source in sources}
    return Frozen(os.fspath(path), chosen, ids, _packages(), made)


def _table(source: Source, folder: ModelFolder, texts: list[str], ids: list[list[int]]) -> Table:
    """Returns the table of a source, with what the folder and its decoder say."""
    settings = dict(source.table.settings)
    if source.around is not None:
        before, after = source.around
        settings |= {"the beginning of a text": str(before), "the end of a text": str(after)}
    roles = {role: source.find(name) for role in ROLES if (name := folder.role(role))}
    roles |= source.roles
    settings |= {role: str(id) for role, id in roles.items() if id is not None}
    decoded: list[str] = []
    if source.decode is not None:
        special = [[id] for id in sorted(source.special.values())[:_SPECIAL]]
        decoded = source.decode([*ids[:_DECODED], *special], False)
        decoded += source.decode(special, True)
    table = source.table
    if source.name == AUTO:
        table = dataclasses.replace(table, file=AUTO, format=AUTO)
    return dataclasses.replace(table, settings=settings, decoded=decoded)


def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def read_frozen(path: str | os.PathLike[str]) -> Frozen | None:
    """Reads the results of an earlier run; None if the file holds something else.

    Raises ValueError if the results are malformed.
    """
    if not os.path.isfile(checked_path(path, "a folder or a tokenizer file")):
        return None
    raw = Path(path).read_bytes()
    if not raw.lstrip().startswith(b"{") or f'"{_KIND}"'.encode() not in raw:
        return None
    try:
        contents = json.loads(raw)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is damaged: {error}; {_AGAIN}") from error
    if _KIND not in contents:
        return None
    if contents[_KIND] != _VERSION:
        version = f"has results of version {contents[_KIND]}, and this reads {_VERSION}"
        raise ValueError(f"{os.fspath(path)} {version}; {_AGAIN}")
    try:
        return thaw(contents)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is damaged: {error}; {_AGAIN}") from error


#: The way out of results that cannot be used.
_AGAIN = "write it again with `vocab-tools drift FOLDER --freeze FILE`"


def thaw(contents: Mapping[str, Any]) -> Frozen:
    """Returns the results in the contents of a file. Raises ValueError for those of another version,
    and for malformed ones."""
    if contents.get(_KIND) != _VERSION:
        raise ValueError(f"it has results of version {contents.get(_KIND)}, not {_VERSION}")
    path, texts = contents.get("path"), contents.get("texts")
    ids, packages, packed = (contents.get(name) for name in ("ids", "packages", "tables"))
    if not isinstance(path, str):
        raise ValueError("`path` is not a text")
    if not _is_list(texts, str):
        raise ValueError("`texts` is not a list of texts")
    for name, value in (("ids", ids), ("packages", packages), ("tables", packed)):
        if not isinstance(value, dict):
            raise ValueError(f"`{name}` is not an object")
    assert isinstance(texts, list) and isinstance(ids, dict)
    assert isinstance(packages, dict) and isinstance(packed, dict)
    for name, rows in ids.items():
        if not isinstance(rows, list) or not all(_is_list(row, int) for row in rows):
            raise ValueError(f"`ids` of {name} is not a list of lists of ids")
        if len(rows) != len(texts):
            raise ValueError(f"{name} has the ids of {len(rows)} texts, and there are {len(texts)}")
    if not _is_list([*packages.values(), *packed.values()], str):
        raise ValueError("`packages` or `tables` has what is not a text")
    made = {name: unpacked(text) for name, text in packed.items()}
    return Frozen(path, texts, ids, packages, made)


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(one) is kind for one in value)


def check_drift(
    before: str | os.PathLike[str] | Frozen,
    after: str | os.PathLike[str] | Frozen,
    texts: Iterable[str] = (),
) -> FolderResult:
    """Compares the ids of two folders, or those of a folder with its own of an earlier run.

    Args:
        before: a folder, a tokenizer file, or the results of an earlier run: those of `freeze`, or a
            file of them.
        after: the same.
        texts: texts to compare on, beside those of the check, each line and the whole; not for
            results, which have their own.

    Returns:
        The findings. A tokenizer that both have is compared with itself; files of one format with each
        other if there is one on each side.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: a file is malformed; two results are of different texts; or there are texts beside
            results.

    >>> check_drift("models/qwen3", "frozen.json").ok  # doctest: +SKIP
    True
    """
    one, two = _read(before), _read(after)
    stored = next((side for side in (one, two) if isinstance(side, Frozen)), None)
    more = with_lines(given_texts(texts))
    if stored is not None and more:
        raise ValueError(
            "stored results have texts of their own, and no more can be compared; leave the corpus out, "
            "or give it when they are stored"
        )
    chosen = stored.texts if stored else [*_probes(one, two), *more]
    old, new = (side if isinstance(side, Frozen) else freeze(side, chosen) for side in (one, two))
    if old.texts != new.texts:
        raise ValueError("the two results are of different texts, and cannot be compared")
    drift = Drift(old, new)
    sources = []
    for (a, b), places in drift.changed.items():
        table = new.table(b)
        name = b if a == b else f"{b} beside {a}"
        kind = table.kind or "unknown kind"
        row = CheckedSource(name, kind, table.size, table.added, len(new.texts), len(places))
        sources.append(row)
    title = f"{new.path} beside {old.path}"
    return FolderResult(title, DRIFT_RULES.findings(drift), sources)


def with_lines(texts: Iterable[str]) -> list[str]:
    """Returns the lines of each text, and the text as a whole if it has several.

    >>> with_lines(["a", "b\\n\\nc"])
    ['a', 'b', 'c', 'b\\n\\nc']
    """
    found = []
    for text in texts:
        lines = lines_of(text)
        found += lines if len(lines) == 1 else [*lines, text]
    return found


def _read(side: str | os.PathLike[str] | Frozen) -> Path | Frozen:
    return side if isinstance(side, Frozen) else read_frozen(side) or Path(side)


def _probes(*sides: Path | Frozen) -> list[str]:
    """Returns the texts of the checks of both folders."""
    blocks = [ModelFolder(side).probes for side in sides if isinstance(side, Path)]
    return list(dict.fromkeys(text for probes in blocks for block in probes for text in block))


def _named(pair: tuple[str, str]) -> str:
    return pair[1] if pair[0] == pair[1] else f"{pair[1]} beside {pair[0]}"


@DRIFT_RULES.rule("error", "results that have no tokenizer, or no text, in common")
def nothing_compared(drift: Drift) -> Outcome:
    """Nothing says whether ids are the same.

    Do: Give the folder or the file that the results are of, or store results of it.
    """
    if drift.pairs and drift.before.texts:
        return []
    sides = (("before", drift.before), ("after", drift.after))
    return [f"{when}: {few(list(side.ids), 8) or 'no tokenizers'}" for when, side in sides]


@DRIFT_RULES.rule("error", "texts that have other ids than before")
def ids_changed(drift: Drift) -> Outcome:
    """Text that is stored as ids, and what a model has learned, no longer fit the tokenizer.

    Do: Keep the earlier files and versions of packages, or encode everything again and train with it.
    """
    changed = {pair: places for pair, places in drift.changed.items() if places}
    lines = []
    for (a, b), places in changed.items():
        first = places[0]
        old, new = parting(drift.before.ids[a][first], drift.after.ids[b][first])
        text = shorten(quoted(drift.before.texts[first]))
        lines += [
            f"{_named((a, b))}: {len(places):,} of {len(drift.before.texts):,} texts differ",
            f"{text} was {old}, and is {new}",
        ]
    return Found(lines, count=sum(map(len, changed.values())))


#: Compares the tables of two tokenizers, under these names.
_Compare = Callable[[Table, Table, tuple[str, str]], Difference | None]


def _by_tables(drift: Drift, *compares: _Compare) -> Outcome:
    """Compares the tables of every pair of tokenizers."""
    found: dict[Difference, list[str]] = {}
    for a, b in drift.pairs:
        if a not in drift.before.tables or b not in drift.after.tables:
            continue
        for compare in compares:
            one = compare(drift.before.tables[a], drift.after.tables[b], ("before", "now"))
            if one is not None:
                # The versions of one file, and what packages read of it, mostly change together.
                found.setdefault(one, []).append(_named((a, b)))
    lines = []
    for one, names in found.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines += [f"{names[0]}{more}: {plural(one.count, 'difference')}", one.first]
    return Found(lines, count=sum(one.count for one in found))


@DRIFT_RULES.rule("error", "tokens that have another id than before, or none")
def tokens_changed(drift: Drift) -> Outcome:
    """A model reads another row of its table for the token, also where no text of the check holds it.

    Do: Keep the earlier file, or train with the new one; move rows with `extend_embeddings` if tokens
    were only added.
    """
    return _by_tables(drift, tables.tokens_differ, tables.tokens_missing)


@DRIFT_RULES.rule("error", "merges, scores or types of tokens other than before")
def merges_changed(drift: Drift) -> Outcome:
    """The tokens are the same, and some texts are cut in another way, if not those of the check.

    Do: Keep the earlier file, or encode everything again and train with it.
    """
    return _by_tables(drift, functools.partial(tables.merges_differ, exactly=True))


@DRIFT_RULES.rule("error", "settings other than before: what is added to texts, roles, truncation")
def settings_changed(drift: Drift) -> Outcome:
    """The ids of a text alone are the same, and what a model gets or stops at is not.

    Do: Set it as before, or train with the new setting.
    """
    return _by_tables(drift, tables.settings_differ)


@DRIFT_RULES.rule("error", "ids that become other text than before")
def decoding_changed(drift: Drift) -> Outcome:
    """An answer of the model with the ids of before is shown as other text.

    Do: Keep the earlier decoder and special tokens, or look at every program that reads the text.
    """
    lines, count = [], 0
    for a, b in drift.pairs:
        old, new = drift.before.table(a), drift.after.table(b)
        same = old.types.keys() == new.types.keys() and len(old.decoded) == len(new.decoded)
        # The texts come first, and of those only that have the same ids.
        changed = {place for place in drift.changed[a, b] if place < _DECODED}
        rows = zip(itertools.count(), old.decoded, new.decoded) if same else ()
        found = [(one, two) for place, one, two in rows if one != two and place not in changed]
        if found:
            one, two = (shorten(quoted(text)) for text in found[0])
            lines += [
                f"{_named((a, b))}: {plural(len(found), 'difference')}",
                f"{one} before is {two} now",
            ]
            count += len(found)
    return Found(lines, count=count)


@DRIFT_RULES.rule("warning", "tokenizers that were there before, and are not now")
def tokenizer_gone(drift: Drift) -> Outcome:
    """A program that reads this file, or this class, finds nothing, or chooses another one.

    Do: Copy the file again, or install the package that reads it.
    """
    return [name for name in drift.before.ids if name not in {pair[0] for pair in drift.pairs}]


@DRIFT_RULES.rule("info", "tokenizers that were not there before")
def tokenizer_new(drift: Drift) -> Outcome:
    """A program may choose this one now, and nothing says that its ids are the same.

    Do: Run `vocab-tools check` on the folder, which compares it with the others.
    """
    return [name for name in drift.after.ids if name not in {pair[1] for pair in drift.pairs}]


@DRIFT_RULES.rule("info", "packages of other versions than before")
def packages_changed(drift: Drift) -> Outcome:
    """Ids can change with a package: those of SentencePiece's Unigram models did with 0.2.2.

    Do: Nothing if no ids have changed. Otherwise install the earlier version.
    """
    old, new = drift.before.packages, drift.after.packages
    return [
        f"{name} was {old.get(name, 'missing')}, and is {new.get(name, 'missing')}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]
