"""Verifies the structure, counts, ids, document ends and checksums of a corpus, and a sample."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..abilities.visible import plural
from ..common.atomic_write import sha256
from ..texts.errors import CorpusError
from .coder import Coder
from .corpus_reader import CorpusReader
from .formats import FORMATS
from .manifest import MERGED, Manifest, manifest_path, missing_units, read_manifest
from .pack import index_sum, read_header
from .plan import Plan, read_plan
from .shuffle import Permutation
from .units import encoded, part_blocks, without_bad

__all__ = ["Verification", "verify_corpus"]

#: Maximum numbers of documents and ids that are checked at once.
_DOCUMENTS, _TOKENS = 1 << 16, 1 << 22


@dataclass
class Verification:
    """The checks made, as sentences, and the problems found."""

    checks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if there are no problems."""
        return not self.problems


def verify_corpus(
    out: str | os.PathLike[str] | Plan,
    *,
    sample: int = 64,
    tokenizer: str | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Verification:
    """Checks a complete corpus, in parts or merged.

    Args:
        out: The folder, or its plan.
        sample: Number of documents whose source is encoded again for comparison.
        tokenizer: The tokenizer's path on this machine, if it differs from the plan's.
        progress: Called with the number of documents so far and in total.

    Raises:
        CorpusError: The plan is missing or was changed, or the tokenizer differs from the plan's.
    """
    plan = out if isinstance(out, Plan) else read_plan(out)
    result = Verification()
    missing = missing_units(plan)
    if missing:
        result.problems.append(
            f"{len(missing):,} of {len(plan.units):,} units are missing, unit {missing[0]} first; "
            "run again"
        )
        return result
    is_merged = os.path.exists(manifest_path(plan, MERGED))
    try:
        _check_sums(plan, is_merged, result)
        _check_indexes(plan, result)
        if result.ok:
            as_parts = plan.needs_merge and not is_merged
            reader = CorpusReader(plan, as_parts=as_parts)
            _check_ids(plan, reader, result, progress)
            if sample:
                _check_sample(plan, reader, plan.coder(tokenizer), sample, result)
    except CorpusError as error:
        result.problems.append(str(error))
    return result


def _check_sums(plan: Plan, is_merged: bool, result: Verification) -> None:
    total = Manifest(plan.sha256, MERGED)
    count = 0
    for unit in range(len(plan.units)):
        manifest = read_manifest(plan, unit)
        if manifest is None:
            result.problems.append(f"the manifest of unit {unit} is missing")
            continue
        if manifest.rows != manifest.written + manifest.left_out:
            result.problems.append(
                f"unit {unit} read {manifest.rows:,} rows, wrote {manifest.written:,} and dropped "
                f"{manifest.left_out:,}"
            )
        total.add(manifest)
        if not is_merged:
            way_out = f"delete {manifest_path(plan, unit)} and run again"
            count += _check_files(plan.parts_folder, manifest.files, way_out, result)
        if manifest.refused_file is not None:
            lists = {f"{unit:05d}.jsonl": manifest.refused_file}
            way_out = "it lists what was refused, and no document depends on it; restore it"
            count += _check_files(plan.path("refused"), lists, way_out, result)
    if is_merged:
        merged = read_manifest(plan, MERGED)
        if merged is not None:
            if (merged.written, merged.tokens) != (total.written, total.tokens):
                result.problems.append("the merged files and the units have different counts")
            way_out = "write the corpus again in a new folder"
            count += _check_files(plan.out, merged.files, way_out, result)
    rows = [source.rows for source in plan.inputs]
    if None not in rows and sum(filter(None, rows)) != total.rows:
        result.problems.append(
            f"the inputs have {sum(filter(None, rows)):,} rows; {total.rows:,} were read"
        )
    result.checks.append(f"{count:,} files have the sizes and the SHA-256 of their manifests")
    refused = f"{total.left_out + total.kept_empty:,} refused"
    if total.kept_empty:
        refused += " and kept empty"
    result.checks.append(f"{plural(total.rows, 'row')} read, {total.written:,} written, {refused}")


def _check_files(
    folder: str, files: dict[str, tuple[int, str]], way_out: str, result: Verification
) -> int:
    for name, (size, digest) in files.items():
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            result.problems.append(f"{path} is missing; {way_out}")
        elif os.path.getsize(path) != size:
            result.problems.append(
                f"{path} has {os.path.getsize(path):,} bytes, not {size:,}; {way_out}"
            )
        elif sha256(path) != digest:
            result.problems.append(f"{path} has other bytes than its manifest records; {way_out}")
    return len(files)


def _check_indexes(plan: Plan, result: Verification) -> None:
    names = [name for name in sorted(os.listdir(plan.out)) if name.startswith("packed-")]
    whole = 0
    for path in map(plan.path, names):
        try:
            header = read_header(path)
            is_whole = header["sha256"] == index_sum(header, path)
        except CorpusError:
            is_whole = False
        whole += is_whole
        if not is_whole:
            result.problems.append(f"{path} has other bytes than its header records; pack again")
    if whole:
        result.checks.append(f"{whole:,} of {len(names):,} indexes of rows have their SHA-256")


def _check_ids(
    plan: Plan,
    reader: CorpusReader,
    result: Verification,
    progress: Callable[[int, int], Any] | None,
) -> None:
    import numpy as np

    layout = plan.layout
    eod_first = FORMATS[plan.options.format].eod_first
    may_hold_eod = (
        layout.is_templated
        or plan.options.content != "text"
        or plan.options.eod in plan.options.allow_special
        or layout.bos == layout.eod
    )
    first = eods = 0
    while first < reader.documents:
        last = min(first + _DOCUMENTS, reader.documents)
        spans = reader.spans(first, last)
        last = first + max(int((spans[1:] - spans[0] <= _TOKENS).sum()), 1)
        spans = spans[: last - first + 1]
        ids = reader.ids(int(spans[0]), int(spans[-1]))
        if len(ids) and int(ids.max()) > layout.largest_id:
            result.problems.append(
                f"documents {first:,} and after have ids over {layout.largest_id:,}"
            )
            return
        if layout.eod is not None and not layout.is_templated:
            lengths = np.diff(spans)
            places = (spans[:-1] if eod_first else spans[1:] - 1) - spans[0]
            if (lengths < 1).any() or (ids[places] != layout.eod).any():
                result.problems.append(f"a document among {first:,} to {last - 1:,} lacks EOD")
                return
            eods += int((ids == layout.eod).sum())
            if eods != last and not may_hold_eod:
                result.problems.append(f"a document among {first:,} to {last - 1:,} has EOD inside")
                return
        first = last
        if progress is not None:
            progress(first, reader.documents)
    result.checks.append(
        f"{plural(reader.documents, 'document')} with {reader.tokens:,} ids up to {layout.largest_id:,}"
    )
    if layout.eod is not None and not layout.is_templated:
        where = "begins" if eod_first else "ends"
        result.checks.append(f"every document {where} with EOD ({plan.options.eod})")


def _check_sample(
    plan: Plan, reader: CorpusReader, coder: Coder, sample: int, result: Verification
) -> None:
    import numpy as np

    order = None
    if plan.options.shuffle is not None and reader.is_merged:
        order = Permutation(reader.documents, plan.options.shuffle)
    starts = np.cumsum([0, *(_written(plan, unit) for unit in range(len(plan.units)))])
    compared = 0
    units = _chosen(
        plan, [unit for unit in range(len(plan.units)) if starts[unit + 1] > starts[unit]], 8
    )
    for unit in units:
        part = plan.units[unit][0]
        plan.check_input(plan.inputs[part.input])
        block = next(iter(part_blocks(plan, part, coder)), None)
        if block is None:
            continue
        block = without_bad(plan, block) if block.bad else block
        rows = _chosen(plan, list(range(len(block.texts))), max(1, sample // len(units)))
        # The first part of a split file has the file's first documents.
        documents, _ = encoded(plan, coder, block, plan.inputs[part.input].uri, 1)
        bounds = np.concatenate([[0], documents.ends])
        for row in rows:
            place = int(starts[unit]) + row
            if order is not None:
                place = int(order.inverse(np.array([place]))[0])
            begin, end = reader.spans(place, place + 1).tolist()
            ids = reader.ids(begin, end).astype(np.int64)
            where = f"document {place:,} ({plan.inputs[part.input].uri}, row {block.lines[row]})"
            if ids.tolist() != documents.ids[bounds[row] : bounds[row + 1]].tolist():
                result.problems.append(f"{where} has other ids than its source")
                return
            compared += 1
    result.checks.append(f"{plural(compared, 'document')} with the ids of their sources")


def _written(plan: Plan, unit: int) -> int:
    manifest = read_manifest(plan, unit)
    return 0 if manifest is None else manifest.written


def _chosen(plan: Plan, items: list[int], count: int) -> list[int]:
    """Chooses a sample determined by the plan's SHA-256."""

    def key(item: int) -> bytes:
        return hashlib.blake2b(f"{plan.sha256}/{item}".encode(), digest_size=8).digest()

    return sorted(sorted(items, key=key)[:count])
