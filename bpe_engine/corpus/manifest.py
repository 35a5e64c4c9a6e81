"""`Manifest`: what a unit has written. A unit without a manifest does not exist."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..texts.errors import CorpusError
from ..written import write_at_once

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

#: The name of the manifest of merged files, in place of a unit's number.
MERGED = "merged"

#: Documents that the report shows.
MOST_LONGEST = 5
#: Refused rows that a manifest shows. The folder ``refused`` lists all of them.
MOST_REFUSED = 1_000


@dataclass
class Manifest:
    """Counts and sums of a unit, or of merged files. It is the same however the unit was run."""

    plan: str
    unit: int | str
    #: Rows of the inputs, and the documents that were written, with the empty ones among them.
    rows: int = 0
    written: int = 0
    empty: int = 0
    #: Rows that are not text: how many were left out, and how many became empty documents.
    left_out: int = 0
    kept_empty: int = 0
    #: The first of them: input, line, reason, and whether an empty document was kept.
    refused: list[tuple[str, int, str, bool]] = field(default_factory=list)
    #: Bytes of text, and ids with BOS and EOD.
    bytes: int = 0
    tokens: int = 0
    first_id: int | None = None
    last_id: int | None = None
    #: Control strings in text: how often, and the input and line of the first. In a range of bytes,
    #: `input[first:last]`, lines are counted from its beginning; so they are in `longest`.
    controls: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    #: The longest documents: ids, input, line.
    longest: list[tuple[int, str, int]] = field(default_factory=list)
    #: Documents, bytes of text and ids of each input.
    sources: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    #: Size and SHA-256 of each file.
    files: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, other: Manifest) -> None:
        """Adds the counts of the unit that follows. Files stay as they are."""
        for name in ("rows", "written", "empty", "left_out", "kept_empty", "bytes", "tokens"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
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
        """Shows refused rows, up to `MOST_REFUSED`; their counts stay as they are."""
        self.refused += rows[: MOST_REFUSED - len(self.refused)]

    def add_longest(self, longest: list[tuple[int, str, int]]) -> None:
        """Keeps the longest documents; of equally long ones those that come first."""
        ranked = sorted([*self.longest, *longest], key=lambda document: -document[0])
        self.longest = ranked[:MOST_LONGEST]

    def add_source(self, uri: str, documents: int, size: int, tokens: int) -> None:
        """Adds documents of an input."""
        before = self.sources.get(uri, (0, 0, 0))
        self.sources[uri] = (before[0] + documents, before[1] + size, before[2] + tokens)


def manifest_path(plan: Plan, unit: int | str) -> str:
    """Returns the path of a manifest."""
    name = unit if isinstance(unit, str) else f"{unit:05d}"
    return plan.path("manifests", f"{name}.json")


def write_manifest(plan: Plan, manifest: Manifest, scratch: str) -> None:
    """Writes a manifest in one step."""
    path = manifest_path(plan, manifest.unit)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    contents = json.dumps(asdict(manifest), ensure_ascii=False, indent=1) + "\n"
    write_at_once(path, contents.encode(), scratch)


def read_manifest(plan: Plan, unit: int | str) -> Manifest | None:
    """Reads a manifest; None if the unit does not exist yet.

    Raises:
        CorpusError: The manifest is damaged, or of another plan.
    """
    path = manifest_path(plan, unit)
    try:
        with open(path, encoding="utf-8") as file:
            plain: dict[str, Any] = json.load(file)
        manifest = Manifest(**plain)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, OSError) as error:
        raise CorpusError(f"{path} is damaged: {error}; delete it and run again") from error
    if manifest.plan != plan.sha256:
        raise CorpusError(f"{path} belongs to another plan; delete it and run again")
    manifest.refused = [(*row,) for row in manifest.refused]
    manifest.longest = [(*row,) for row in manifest.longest]
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
