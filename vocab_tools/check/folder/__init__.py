"""Checks a model's folder before it is served.

Compares the tokenizers of all files and AutoTokenizer on texts, and the files with each other.
The rule of each finding is a function in :mod:`vocab_tools.check.folder.rules`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path

from bpe_engine.read.sources import existing_folder

from ...arguments import checked_path, given_texts
from . import rules  # noqa: F401 - fills FOLDER_RULES
from .folder_result import CheckedSource, FolderResult
from .folder_rules import FOLDER_RULES
from .model_folder import Differing, ModelFolder
from .sources import Source


def check_folder(
    folder: str | os.PathLike[str],
    texts: Iterable[str] = (),
    *,
    against: str | os.PathLike[str] | None = None,
) -> FolderResult:
    """Checks a model's folder before it is served.

    Downloads nothing, and runs no code of the folder. If transformers is installed, AutoTokenizer's
    tokenizer is also compared.

    Args:
        folder: a folder for ``AutoTokenizer.from_pretrained``, or a single tokenizer file.
        texts: one or more texts for the comparison, in addition to the check's own texts. Each line
            is compared; if no line differs, the whole text is compared.
        against: an earlier version of the folder or file. Changes in the ids of texts, tokens,
            merges, settings and decoded text are errors.

    Raises:
        FileNotFoundError: a folder does not exist.
        ValueError: a file of the earlier version is malformed.

    >>> result = check_folder("models/qwen3")  # doctest: +SKIP
    >>> result.ok, [finding.code for finding in result.findings]  # doctest: +SKIP
    (True, ['ROWS_UNUSED', 'NO_GENERATION_TAG'])
    """
    path = _existing(folder)
    earlier = None if against is None else ModelFolder(_existing(against))
    if earlier and (earlier.sources, earlier.broken)[1]:
        raise ValueError(f"a file of the earlier version cannot be read: {earlier.broken[0]}")
    model = ModelFolder(path, given_texts(texts), earlier)
    found = FOLDER_RULES.findings(model)
    differing = {one.source.name: one for one in model.differing}
    rows = [_row(source, differing.get(source.name)) for source in model.sources]
    for (old, new), one in zip(model.pairs, model.changed) if earlier else ():
        name = f"{new.name} against {old.name}"
        rows.append(_row(dataclasses.replace(new, name=name), one))
    fingerprint = model.main.fingerprint if model.main else None
    return FolderResult(os.fspath(folder), found, rows, fingerprint)


def _existing(folder: str | os.PathLike[str]) -> Path:
    folder = checked_path(folder, "a folder or a tokenizer file")
    return Path(folder) if os.path.isfile(folder) else existing_folder(folder)


def _row(source: Source, one: Differing | None = None) -> CheckedSource:
    row = CheckedSource(source.name, source.kind, source.size, len(source.special))
    if one is None:
        return row
    return dataclasses.replace(
        row, compared=one.compared, differing=one.count, left_out=one.left_out
    )
