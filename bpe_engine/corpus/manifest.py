"""`Manifest`: a record of a unit's files. A unit without a manifest does not exist."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..common.atomic_write import write_at_once
from ..texts.errors import CorpusError
from .sealed import read_sealed, sealed

if TYPE_CHECKING:
    from .plan import Plan

__all__ = [
    "MERGED",
    "Manifest",
    "manifest_path",
    "missing_units",
    "read_manifest",
    "write_manifest",
]

#: Name of the merged files' manifest, in place of a unit number.
MERGED = "merged"

#: Maximum number of longest documents in a manifest.
MOST_LONGEST = 5
#: Maximum number of refused rows in a manifest. The folder ``refused`` lists all of them.
MOST_REFUSED = 1_000


@dataclass
class Manifest:
    """Counts and sums for a unit or for merged files, independent of processes and threads."""

    plan: str
    unit: int | str
    #: Numbers of input rows, of written documents, and of empty documents among them.
    rows: int = 0
    written: int = 0
    empty: int = 0
    #: Rows that are not text: how many were dropped, and how many were kept as empty documents.
    left_out: int = 0
    kept_empty: int = 0
    #: The first rows that are not text: input, line, reason, and true if kept as an empty document.
    refused: list[tuple[str, int, str, bool]] = field(default_factory=list)
    #: Bytes of text, and number of ids, including BOS and EOD.
    bytes: int = 0
    tokens: int = 0
    #: Held-out documents and ids, at the end of merged files.
    held_out: tuple[int, int] = (0, 0)
    #: Occurrences of the unknown token.
    unknown: int = 0
    #: Number of rows by remark.
    notes: dict[str, int] = field(default_factory=dict)
    first_id: int | None = None
    last_id: int | None = None
    #: Control strings in text: count, and input and line of the first occurrence. For a byte range,
    #: `input[first:last]`, lines count from the start of the range, also in `longest`.
    controls: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    #: The longest documents: ids, input, line.
    longest: list[tuple[int, str, int]] = field(default_factory=list)
    #: Numbers of documents, bytes of text and ids, by input.
    sources: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    #: Size and SHA-256 of each file, and of the list of refused rows, if any.
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    refused_file: tuple[int, str] | None = None

    def add(self, other: Manifest) -> None:
        """Adds the counts of the next unit, but not its files."""
        for name in (
            "rows",
            "written",
            "empty",
            "left_out",
            "kept_empty",
            "bytes",
            "tokens",
            "unknown",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for note, rows in other.notes.items():
            self.notes[note] = self.notes.get(note, 0) + rows
        self.add_refused(other.refused)
        if self.first_id is None:
            self.first_id = other.first_id
        if other.last_id is not None:
            self.last_id = other.last_id
        for control, (count, uri, line) in other.controls.items():
            before = self.controls.get(control, (0, uri, line))
            self.controls[control] = (before[0] + count, *before[1:])
        self.add_longest(other.longest)
        for uri, (documents, size, tokens) in other.sources.items():
            self.add_source(uri, documents, size, tokens)

    def add_refused(self, rows: list[tuple[str, int, str, bool]]) -> None:
        """Adds refused rows, up to `MOST_REFUSED` in total, without changing the counts."""
        self.refused += rows[: MOST_REFUSED - len(self.refused)]

    def add_longest(self, longest: list[tuple[int, str, int]]) -> None:
        """Adds documents and keeps only the longest; of equally long documents, the first."""
        ranked = sorted([*self.longest, *longest], key=lambda document: -document[0])
        self.longest = ranked[:MOST_LONGEST]

    def add_source(self, uri: str, documents: int, size: int, tokens: int) -> None:
        """Adds to an input's counts."""
        before = self.sources.get(uri, (0, 0, 0))
        self.sources[uri] = (before[0] + documents, before[1] + size, before[2] + tokens)


def manifest_path(plan: Plan, unit: int | str) -> str:
    """Returns the path of a manifest."""
    name = unit if isinstance(unit, str) else f"{unit:05d}"
    return plan.path("manifests", f"{name}.json")


def write_manifest(plan: Plan, manifest: Manifest, scratch: str) -> None:
    """Writes a manifest atomically."""
    path = manifest_path(plan, manifest.unit)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_at_once(path, sealed(asdict(manifest)), scratch)


def read_manifest(plan: Plan, unit: int | str) -> Manifest | None:
    """Reads a manifest; None if the unit does not exist yet.

    Raises:
        CorpusError: The manifest is damaged, or belongs to a different plan.
    """
    path = manifest_path(plan, unit)
    way_out = f"delete it and {'merge' if unit == MERGED else 'run'} again"
    if unit == MERGED and not os.path.isdir(plan.parts_folder):
        way_out = "the parts are gone, so write the corpus again in a new folder"
    try:
        manifest = Manifest(**read_sealed(path, way_out))
    except FileNotFoundError:
        return None
    except TypeError as error:
        raise CorpusError(f"{path} has other fields: {error}; {way_out}") from error
    if (manifest.plan, manifest.unit) != (plan.sha256, unit):
        raise CorpusError(f"{path} belongs to another plan or unit; {way_out}")
    manifest.held_out = (*manifest.held_out,)
    manifest.refused = [(*row,) for row in manifest.refused]
    manifest.longest = [(*row,) for row in manifest.longest]
    if manifest.refused_file is not None:
        manifest.refused_file = (*manifest.refused_file,)
    tables: list[dict[str, Any]] = [manifest.controls, manifest.sources, manifest.files]
    for table in tables:
        table.update({name: tuple(row) for name, row in table.items()})
    return manifest


def missing_units(plan: Plan) -> list[int]:
    """Returns the numbers of units that do not exist yet."""
    try:
        present = set(os.listdir(plan.path("manifests")))
    except FileNotFoundError:
        present = set()
    if f"{MERGED}.json" in present:
        return []
    return [unit for unit in range(len(plan.units)) if f"{unit:05d}.json" not in present]
