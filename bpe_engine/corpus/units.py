"""Writes a unit: a pure function of the plan and the unit's number."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ..common.atomic_write import sha256
from ..common.system import sync
from ..texts.block import Block
from ..texts.errors import CorpusError
from ..texts.inputs import Input, Part, blocks, first_line, row_name
from .coder import Coder
from .formats import FORMATS
from .formats.base import Documents
from .manifest import Manifest, read_manifest, write_manifest
from .objects import empty_row, encode_objects, joined
from .scratch import move, scratch_folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .plan import Plan

__all__ = ["encoded", "part_blocks", "with_ends", "write_unit"]

#: Maximum length of a reason in characters: a template's error may quote a document.
_LONGEST_REASON = 400

_DROPS = "the tokenizer has no token for unknown text, and drops such characters"


def write_unit(plan: Plan, unit: int, coder: Coder, threads: int | None = 1) -> Manifest:
    """Writes a unit unless it exists, and returns its manifest.

    The files are written under temporary names, checked and moved; then the manifest is written.
    Two processes that write the same unit write the same bytes.

    Args:
        plan: The plan.
        unit: The number of the unit.
        coder: The tokenizer of the plan.
        threads: Number of threads that encode; None for one per core.

    Raises:
        CorpusError: An input cannot be read, has a different size than in the plan, or has a row
            that is not text; or a file cannot be written. Partial files are removed.
    """
    present = read_manifest(plan, unit)
    if present is not None:
        return present
    form = FORMATS[plan.options.part_format]
    stem = form.stem(unit)
    manifest = Manifest(plan.sha256, unit)
    for part in plan.units[unit]:
        plan.check_input(plan.inputs[part.input])
    with scratch_folder(plan.out, f"{unit:05d}") as folder:
        files = os.path.join(folder, "files")
        os.mkdir(files)
        writer = form.writer(files, stem, plan.layout)
        for part in plan.units[unit]:
            for documents in _documents(plan, part, coder, manifest, threads, folder):
                writer.add(documents)
        paths = writer.close()
        with ThreadPoolExecutor(1) as disk:
            # Syncing overlaps with the check.
            synced = disk.submit(sync, *paths)
            reader = form.reader(files, stem, plan.layout)
            if (reader.documents, reader.tokens) != (manifest.written, manifest.tokens):
                raise CorpusError(
                    f"unit {unit}: the files have {reader.documents:,} documents and "
                    f"{reader.tokens:,} ids, not {manifest.written:,} and {manifest.tokens:,}; "
                    "the disk may be damaged"
                )
            for path in sorted(paths):
                manifest.files[os.path.basename(path)] = (os.path.getsize(path), sha256(path))
            synced.result()
        del reader  # Windows does not move open files.
        for part in plan.units[unit]:
            plan.check_input(plan.inputs[part.input])
        if manifest.refused:
            refused = _refused_path(folder, unit)
            manifest.refused_file = (os.path.getsize(refused), sha256(refused))
            move([refused], plan.path("refused"))
        move(paths, plan.parts_folder)
        write_manifest(plan, manifest, folder)
    return manifest


def part_blocks(plan: Plan, part: Part, coder: Coder) -> Iterator[Block]:
    """Yields the rows in a part of an input; segments and messages are already encoded."""
    source = plan.inputs[part.input]
    for block in blocks(source, part, plan.options.fields, plan.options.separator):
        yield encode_objects(plan.options, coder, block) if isinstance(block.texts, list) else block


def _documents(
    plan: Plan,
    part: Part,
    coder: Coder,
    manifest: Manifest,
    threads: int | None,
    folder: str,
) -> Iterator[Documents]:
    """Yields the documents of a part, encoded and counted. Lists refused rows in the folder."""
    source = plan.inputs[part.input]
    offset: int | None = None
    for block in part_blocks(plan, part, coder):
        if block.bad and offset is None:
            # The lines before a byte range are counted only if an error names a line.
            offset = first_line(source, part)
        if block.bad:
            block = _settled(plan, source, block, offset or 0, manifest, folder)
        else:
            manifest.rows += len(block.texts)
        documents, size = encoded(plan, coder, block, source.uri, threads)
        _count(plan, coder, manifest, documents, block, size, part)
        yield documents
        del documents, block


def _refused_path(folder: str, unit: int | str) -> str:
    return os.path.join(folder, f"{unit:05d}.jsonl")


def _settled(
    plan: Plan, source: Input, block: Block, offset: int, manifest: Manifest, folder: str
) -> Block:
    """Applies `on_error` to rows that are not text: raises, or drops or empties the rows."""
    policy = plan.options.on_error
    manifest.rows += len(block.texts)
    if policy == "raise":
        row, reason = block.bad[0]
        raise CorpusError(
            f"{source.uri}, {row_name(source.kind)} {block.lines[row] + offset}: "
            f"{_shortened(reason)}; correct it, "
            "or plan with --on-error skip or keep-empty"
        )
    keeps = policy == "keep-empty"
    refused = [
        (source.uri, int(block.lines[row]) + offset, _shortened(reason), keeps)
        for row, reason in block.bad
    ]
    manifest.left_out += 0 if keeps else len(refused)
    manifest.kept_empty += len(refused) if keeps else 0
    manifest.add_refused(refused)
    # Written to a file because the refused rows may not fit into memory.
    with open(_refused_path(folder, manifest.unit), "a", encoding="utf-8", newline="\n") as file:
        for input, row, reason, _ in refused:
            line = {"input": input, "row": row, "reason": reason}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return without_bad(plan, block)


def _shortened(reason: str) -> str:
    """Escapes the lone surrogates in a reason, and truncates it if it quotes a long text."""
    whole = reason.encode("utf-8", "backslashreplace").decode()
    return whole if len(whole) <= _LONGEST_REASON else whole[:_LONGEST_REASON] + "..."


def without_bad(plan: Plan, block: Block) -> Block:
    """Returns a block without bad rows, or with empty rows if the plan keeps them."""
    import numpy as np
    import pyarrow as pa

    keeps_empty = plan.options.on_error == "keep-empty"
    bad = {row for row, _ in block.bad}
    if isinstance(block.texts, list):
        if keeps_empty:
            empty = empty_row(plan.options)
            texts: Any = [empty if row in bad else it for row, it in enumerate(block.texts)]
            return block._replace(texts=texts, bad=[])
        texts = [it for row, it in enumerate(block.texts) if row not in bad]
    elif keeps_empty:
        return block._replace(texts=block.texts.fill_null(""), bad=[])
    else:
        texts = block.texts.drop_null()
    kept = np.ones(len(block.lines), bool)
    kept[list(bad)] = False
    names = None if block.names is None else block.names.filter(pa.array(kept))
    return Block(texts, names, block.lines[kept], [])


def encoded(
    plan: Plan, coder: Coder, block: Block, uri: str, threads: int | None
) -> tuple[Documents, int]:
    """Encodes a block without bad rows. Returns its documents, and the bytes of their text."""
    import pyarrow.compute as compute

    loss = None
    if isinstance(block.texts, list):
        ids, splits, loss, size = joined(block.texts, plan.options)
    else:
        ids, splits = coder.encode(block.texts, threads)
        size = int(compute.sum(compute.binary_length(block.texts)).as_py() or 0)
    if not plan.layout.is_templated:
        first = FORMATS[plan.options.format].eod_first
        ids, splits = with_ends(ids, splits, plan.layout.eod, plan.layout.bos, first)
    return Documents(ids, splits[1:], loss, block.names, block.lines, uri), size


def with_ends(
    ids: npt.NDArray[np.uint32],
    splits: npt.NDArray[np.int64],
    eod: int | None,
    bos: int | None,
    eod_first: bool,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Inserts EOD and BOS into rows of ids.

    >>> import numpy as np
    >>> ids, splits = with_ends(np.array([5, 6, 7], "u4"), np.array([0, 2, 2, 3]), 0, 1, False)
    >>> ids.tolist(), splits.tolist()
    ([1, 5, 6, 0, 1, 0, 1, 7, 0], [0, 4, 6, 9])
    """
    import numpy as np

    before = [id for id in ((eod, bos) if eod_first else (bos,)) if id is not None]
    after = [id for id in (() if eod_first else (eod,)) if id is not None]
    if not before and not after:
        return ids, splits
    moved = splits + np.arange(len(splits)) * (len(before) + len(after))
    result = np.empty(int(moved[-1]), np.uint32)
    is_text = np.ones(len(result), bool)
    for place, id in enumerate(before):
        result[moved[:-1] + place] = id
        is_text[moved[:-1] + place] = False
    for place, id in enumerate(after):
        result[moved[1:] - 1 - place] = id
        is_text[moved[1:] - 1 - place] = False
    result[is_text] = ids
    return result, moved


def _count(
    plan: Plan,
    coder: Coder,
    manifest: Manifest,
    documents: Documents,
    block: Block,
    size: int,
    part: Part,
) -> None:
    import numpy as np

    source = plan.inputs[part.input]
    # Line numbers count from the start of a byte range, which many lines may precede.
    is_range = source.kind == "jsonl" and part.first > 0
    name_of_part = f"{source.uri}[{part.first}:{part.last}]" if is_range else source.uri
    ids, ends = documents.ids, documents.ends
    manifest.written += len(ends)
    manifest.tokens += len(ids)
    manifest.bytes += size
    manifest.add_source(source.uri, len(ends), size, len(ids))
    if coder.drops_unknown:
        manifest.notes[_DROPS] = manifest.notes.get(_DROPS, 0) + len(ends)
    if coder.unknown is not None:
        manifest.unknown += int((ids == coder.unknown).sum())
        if not plan.layout.is_templated:
            around = (plan.layout.eod, plan.layout.bos).count(coder.unknown)
            manifest.unknown -= around * len(ends)
    if len(ids):
        if manifest.first_id is None:
            manifest.first_id = int(ids[0])
        manifest.last_id = int(ids[-1])
    lengths = np.diff(ends, prepend=0)
    is_list = isinstance(block.texts, list)
    if is_list:
        manifest.empty += sum(not len(row.ids) for row in block.texts)
        for note in (note for row in block.texts for note in row.notes):
            manifest.notes[note] = manifest.notes.get(note, 0) + 1
    else:
        offsets = np.frombuffer(block.texts.buffers()[1], np.int64) if len(block.texts) else None
        if offsets is not None:
            some = offsets[block.texts.offset : block.texts.offset + len(block.texts) + 1]
            manifest.empty += int((np.diff(some) == 0).sum())
        for name, count, row in coder.count_controls(block.texts):
            before = manifest.controls.get(name) or (0, name_of_part, int(block.lines[row]))
            manifest.controls[name] = (before[0] + count, before[1], before[2])
    least = manifest.longest[-1][0] if len(manifest.longest) == 5 else -1
    if len(lengths) and int(lengths.max()) > least:
        rows = np.argsort(-lengths, kind="stable")[:5].tolist()
        manifest.add_longest(
            [(int(lengths[row]), name_of_part, int(block.lines[row])) for row in rows]
        )
