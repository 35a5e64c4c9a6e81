"""Drift: the ids that the tokenizers of a folder give, beside those that they gave before.

One side is a folder, a tokenizer file, or the results of an earlier run in a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from ...arguments import checked_path, given_texts
from ...text import parting, quoted, shorten
from ..findings import Found, Outcome, Rules
from .folder_result import CheckedSource, FolderResult
from .model_folder import ModelFolder

__all__ = ["DRIFT_RULES", "Frozen", "check_drift", "freeze", "read_frozen", "thaw"]

#: The first field of a file of results, and its version.
_KIND, _VERSION = "bpe_engine.drift", 1

#: The packages whose versions ids may depend on.
_PACKAGES = ("bpe-engine", "tokenizers", "transformers", "sentencepiece")

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

    def to_json(self) -> str:
        """Returns the contents of a file."""
        fields = {"path": self.path, "packages": self.packages, "texts": self.texts}
        return json.dumps({_KIND: _VERSION, **fields, "ids": self.ids}, ensure_ascii=False)


@dataclass(frozen=True)
class Drift:
    """Two results for the same texts: the input of the rules."""

    before: Frozen
    after: Frozen

    @property
    def has(self) -> frozenset[str]:
        """Nothing: no rule needs input."""
        return frozenset()

    def changed(self) -> dict[str, list[int]]:
        """Returns the places of the texts with other ids, by each tokenizer that both have."""
        return {
            name: [place for place, (a, b) in enumerate(zip(old, self.after.ids[name])) if a != b]
            for name, old in self.before.ids.items()
            if name in self.after.ids
        }


def freeze(path: str | os.PathLike[str], texts: Iterable[str] | None = None) -> Frozen:
    """Encodes texts with each tokenizer of a folder.

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
    sources = [*folder.files, *([folder.transformers] if folder.transformers else [])]
    if not sources or folder.broken:
        problem = folder.broken[0] if folder.broken else "no tokenizer can be read"
        raise ValueError(f"{os.fspath(path)}: {problem}")
    ids = {source.name: source.encode(chosen) for source in sources}
    return Frozen(os.fspath(path), chosen, ids, _packages())


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
    with open(path, "rb") as file:
        start = file.read(64)
    if not start.startswith(f'{{"{_KIND}"'.encode()):
        return None
    try:
        contents = json.loads(Path(path).read_text(encoding="utf-8"))
        return thaw(contents)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{os.fspath(path)} is damaged: {error!r}") from error


def thaw(contents: Mapping[str, Any]) -> Frozen:
    """Returns the results in the contents of a file. Raises ValueError for those of another version."""
    if contents[_KIND] != _VERSION:
        raise ValueError(f"results of version {contents[_KIND]}, not {_VERSION}")
    texts, ids = list(contents["texts"]), dict(contents["ids"])
    if any(len(rows) != len(texts) for rows in ids.values()):
        raise ValueError("another number of ids than of texts")
    return Frozen(str(contents["path"]), texts, ids, dict(contents["packages"]))


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
        texts: texts to compare on, beside those of the check; not for results, which have their own.

    Returns:
        The findings. A tokenizer that both have is compared with itself, and two files alone with
        each other.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: a file is malformed; or two results are of different texts.

    >>> check_drift("models/qwen3", "frozen.json").ok  # doctest: +SKIP
    True
    """
    one, two = _read(before), _read(after)
    stored = next((side for side in (one, two) if isinstance(side, Frozen)), None)
    chosen = stored.texts if stored else [*_probes(one, two), *given_texts(texts)]
    old, new = (side if isinstance(side, Frozen) else freeze(side, chosen) for side in (one, two))
    if old.texts != new.texts:
        raise ValueError("the two results are of different texts, and cannot be compared")
    if len(old.ids) == len(new.ids) == 1:
        # Files may have different names.
        new = Frozen(new.path, new.texts, dict(zip(old.ids, new.ids.values())), new.packages)
    drift = Drift(old, new)
    changed = drift.changed()
    sources = [
        CheckedSource(name, "ids", _size(rows), 0, len(new.texts), len(changed.get(name, [])))
        for name, rows in new.ids.items()
    ]
    title = f"{new.path} beside {old.path}"
    return FolderResult(title, DRIFT_RULES.findings(drift), sources)


def _read(side: str | os.PathLike[str] | Frozen) -> Path | Frozen:
    return side if isinstance(side, Frozen) else read_frozen(side) or Path(side)


def _probes(*sides: Path | Frozen) -> list[str]:
    """Returns the texts of the checks of both folders."""
    blocks = [ModelFolder(side).probes for side in sides if isinstance(side, Path)]
    return list(dict.fromkeys(text for probes in blocks for block in probes for text in block))


def _size(rows: list[list[int]]) -> int:
    return 1 + max((id for row in rows for id in row), default=-1)


@DRIFT_RULES.rule("error", "texts that have other ids than before")
def ids_changed(drift: Drift) -> Outcome:
    """Text that is stored as ids, and what a model has learned, no longer fit the tokenizer.

    Do: Keep the earlier files and versions of packages, or encode everything again and train with it.
    """
    changed = {name: places for name, places in drift.changed().items() if places}
    lines = []
    for name, places in changed.items():
        first = places[0]
        old, new = parting(drift.before.ids[name][first], drift.after.ids[name][first])
        text = shorten(quoted(drift.before.texts[first]))
        lines += [
            f"{name}: {len(places):,} of {len(drift.before.texts):,} texts differ",
            f"{text} was {old}, and is {new}",
        ]
    return Found(lines, count=sum(map(len, changed.values())))


@DRIFT_RULES.rule("warning", "tokenizers that were there before, and are not now")
def tokenizer_gone(drift: Drift) -> Outcome:
    """A program that reads this file, or this class, finds nothing, or chooses another one.

    Do: Copy the file again, or install the package that reads it.
    """
    return [name for name in drift.before.ids if name not in drift.after.ids]


@DRIFT_RULES.rule("info", "tokenizers that were not there before")
def tokenizer_new(drift: Drift) -> Outcome:
    """A program may choose this one now, and nothing says that its ids are the same.

    Do: Run `vocab-tools check` on the folder, which compares it with the others.
    """
    return [name for name in drift.after.ids if name not in drift.before.ids]


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
