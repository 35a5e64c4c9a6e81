"""Merges the parts of a corpus into one file (or pair of files), in order or shuffled."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from ..common.atomic_write import sha256
from ..texts.errors import CorpusError
from .corpus_reader import CorpusReader
from .formats import FORMATS
from .formats.base import Documents, Reader
from .manifest import MERGED, Manifest, missing_units, read_manifest, write_manifest
from .plan import Plan, read_plan
from .scratch import move, scratch_folder
from .shuffle import Permutation

__all__ = ["merge_parts"]

#: Maximum number of documents, and of ids, to copy at once.
_DOCUMENTS, _TOKENS = 1 << 14, 1 << 22


def merge_parts(
    out: str | os.PathLike[str] | Plan, *, progress: Callable[[int, int], Any] | None = None
) -> Manifest:
    """Merges the parts of a complete corpus, and removes the parts and unfinished files.

    With a seed in the plan, the order of the documents depends only on the seed and the number of
    documents. A merge restarted after a kill writes the same bytes. Only one process may merge.

    Args:
        out: The folder, or its plan.
        progress: Called with the number of documents so far and in total.

    Returns:
        The manifest of the merged files.

    Raises:
        CorpusError: Units are missing, or a file is damaged or cannot be written.
    """
    plan = out if isinstance(out, Plan) else read_plan(out)
    merged = read_manifest(plan, MERGED)
    if merged is None:
        merged = _merged(plan, progress)
    shutil.rmtree(plan.parts_folder, ignore_errors=True)
    shutil.rmtree(plan.path("unfinished"), ignore_errors=True)
    return merged


def _merged(plan: Plan, progress: Callable[[int, int], Any] | None) -> Manifest:
    reader = CorpusReader(plan, as_parts=True)
    manifest = Manifest(plan.sha256, MERGED)
    for unit in range(len(plan.units)):
        part = read_manifest(plan, unit)
        if part is None:
            raise CorpusError(f"{plan.out}: unit {missing_units(plan)[0]} is missing; run it first")
        manifest.add(part)
        _check_files(plan, part)
    form = FORMATS[plan.options.format]
    training = reader.documents - math.ceil(reader.documents * plan.options.held_out)
    ranges = {form.stem(None): (0, training), form.held_out_stem: (training, reader.documents)}
    with scratch_folder(plan.out, MERGED) as folder:
        files = os.path.join(folder, "files")
        os.mkdir(files)
        paths: list[str] = []
        for stem, (first, last) in ranges.items():
            if first == last and paths:
                continue
            writer = form.writer(files, stem, plan.layout, is_merged=True)
            for documents in _in_order(plan, reader, first, last):
                writer.add(documents)
                if progress is not None:
                    progress(first + writer.documents, reader.documents)
            paths += writer.close()
            check = form.reader(files, stem, plan.layout)
            if (check.documents, check.tokens) != (last - first, writer.tokens):
                raise CorpusError(f"{plan.out}: merging lost documents; the disk may be damaged")
            _set_ends(manifest, check, is_first=first == 0)
            if first:
                manifest.held_out = (check.documents, check.tokens)
        for path in sorted(paths):
            manifest.files[os.path.basename(path)] = (os.path.getsize(path), sha256(path))
        del check  # Windows does not move open files.
        move(paths, plan.out)
        write_manifest(plan, manifest, folder)
    return manifest


def _set_ends(manifest: Manifest, reader: Reader, is_first: bool) -> None:
    if reader.tokens:
        if is_first:
            manifest.first_id = int(reader.ids(0, 1)[0])
        manifest.last_id = int(reader.ids(reader.tokens - 1, reader.tokens)[0])


def _check_files(plan: Plan, part: Manifest) -> None:
    for name, (size, _) in part.files.items():
        path = os.path.join(plan.parts_folder, name)
        if not os.path.exists(path) or os.path.getsize(path) != size:
            raise CorpusError(
                f"{path} is missing or not {size:,} bytes; `bpe-engine corpus verify` says what to do"
            )


def _in_order(plan: Plan, reader: CorpusReader, first: int, stop: int) -> Iterator[Documents]:
    if plan.options.shuffle is not None:
        order = Permutation(reader.documents, plan.options.shuffle)
        yield from _shuffled(reader, order, first, stop)
        return
    while first < stop:
        last = min(first + _DOCUMENTS, stop)
        spans = reader.spans(first, last)
        # Takes as many documents as fit into memory, at least one.
        last = first + max(int((spans[1:] - spans[0] <= _TOKENS).sum()), 1)
        yield reader.documents_of(first, last)
        first = last


def _shuffled(
    reader: CorpusReader, order: Permutation, first: int, stop: int
) -> Iterator[Documents]:
    import numpy as np

    while first < stop:
        some: list[Documents] = []
        total = 0
        for number in order.of(np.arange(first, min(first + _DOCUMENTS, stop))).tolist():
            some.append(reader.documents_of(number, number + 1))
            total += len(some[-1].ids)
            if total >= _TOKENS:
                break
        yield _joined(some)
        first += len(some)


def _joined(some: list[Documents]) -> Documents:
    import numpy as np
    import pyarrow as pa

    ids, _, masks, names, lines, uris = (list(column) for column in zip(*some))
    return Documents(
        np.concatenate(ids),
        np.cumsum([len(row) for row in ids], dtype=np.int64),
        None if masks[0] is None else np.concatenate(masks),
        None if names[0] is None else pa.concat_arrays(names),
        None if lines[0] is None else np.concatenate(lines),
        uris[0] if isinstance(uris[0], str) else pa.concat_arrays(uris),
    )
