"""`CorpusReader`: the documents of a corpus, in parts or merged, as one sequence."""

from __future__ import annotations

import bisect
import os
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..texts.errors import CorpusError
from .formats import FORMATS
from .formats.base import Documents, Reader
from .manifest import MERGED, missing_units, read_manifest
from .plan import Plan, read_plan

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["CorpusReader"]

#: Maximum number of open files.
_MOST_OPEN = 64


class CorpusReader(Reader):
    """Reads a complete corpus. Id positions run through the whole corpus, part after part.

    Args:
        out: The folder, or its plan.
        as_parts: Read the parts, if they still exist, in the order of the inputs.

    Raises:
        CorpusError: Units are missing, or a file is damaged.
    """

    def __init__(self, out: str | os.PathLike[str] | Plan, *, as_parts: bool = False):
        plan = out if isinstance(out, Plan) else read_plan(out)
        missing = missing_units(plan)
        if missing:
            raise CorpusError(
                f"{plan.out}: {len(missing):,} of {len(plan.units):,} units are missing, unit "
                f"{missing[0]} first; run it first"
            )
        self.plan = plan
        self.is_merged: bool = not as_parts and read_manifest(plan, MERGED) is not None
        if plan.needs_merge and not self.is_merged and not as_parts:
            raise CorpusError(
                f"{plan.out} is in the order of the inputs until it is merged; merge it"
            )
        #: Numbers of documents and ids held out, at the end of the corpus.
        self.held_out: tuple[int, int] = (0, 0)
        units: list[int | str] = [MERGED] if self.is_merged else [*range(len(plan.units))]
        self._documents, self._tokens = [0], [0]
        for unit in units:
            manifest = read_manifest(plan, unit)
            if manifest is None:
                raise CorpusError(
                    f"{plan.out}: the manifest of unit {unit} is missing; run it again"
                )
            if any(manifest.held_out):
                self.held_out = manifest.held_out
                self._documents.append(manifest.written - self.held_out[0])
                self._tokens.append(manifest.tokens - self.held_out[1])
                manifest.written, manifest.tokens = self.held_out
            self._documents.append(self._documents[-1] + manifest.written)
            self._tokens.append(self._tokens[-1] + manifest.tokens)
        self.documents: int = self._documents[-1]
        self.tokens: int = self._tokens[-1]
        self._open: OrderedDict[int, Reader] = OrderedDict()

    @property
    def parts(self) -> int:
        """The number of parts. A merged corpus has 1, or 2 if documents are held out."""
        return len(self._documents) - 1

    def part(self, number: int) -> Reader:
        """Returns the reader of a part."""
        reader = self._open.get(number)
        if reader is not None:
            self._open.move_to_end(number)
            return reader
        try:
            reader = self._opened(number)
        except FileNotFoundError as error:
            raise CorpusError(
                f"{error.filename} is missing; if the corpus was merged meanwhile, open it again"
            ) from error
        if len(self._open) >= _MOST_OPEN:
            self._open.popitem(last=False)
        self._open[number] = reader
        return reader

    def _opened(self, number: int) -> Reader:
        plan, layout = self.plan, self.plan.layout
        if self.is_merged:
            form = FORMATS[plan.options.format]
            stem = form.held_out_stem if number else form.stem(None)
            reader = form.reader(plan.out, stem, layout)
        else:
            form = FORMATS[plan.options.part_format]
            reader = form.reader(plan.parts_folder, form.stem(number), layout)
        expected = (
            self._documents[number + 1] - self._documents[number],
            self._tokens[number + 1] - self._tokens[number],
        )
        if (reader.documents, reader.tokens) != expected:
            raise CorpusError(
                f"{plan.out}: part {number} has {reader.documents:,} documents and "
                f"{reader.tokens:,} ids, and its manifest {expected[0]:,} and {expected[1]:,}"
            )
        return reader

    def _parts(
        self, starts: list[int], first: int, last: int
    ) -> Iterator[tuple[int, Reader, int, int]]:
        """Yields the index, the reader and the subrange of each part that overlaps a range."""
        number = max(bisect.bisect_right(starts, first) - 1, 0)
        while first < last and number < self.parts:
            end = min(last, starts[number + 1])
            if first < end:
                yield number, self.part(number), first - starts[number], end - starts[number]
                first = end
            number += 1

    def ends(self, first: int, last: int) -> npt.NDArray[np.int64]:
        import numpy as np

        found = [np.zeros(0, np.int64)]
        for number, part, begin, end in self._parts(self._documents, first, last):
            found.append(part.ends(begin, end).astype(np.int64) + self._tokens[number])
        return np.concatenate(found)

    def ids(self, first: int, last: int) -> npt.NDArray[Any]:
        import numpy as np

        found = [part.ids(*span) for _, part, *span in self._parts(self._tokens, first, last)]
        return np.concatenate(found) if len(found) > 1 else (found or [np.zeros(0, np.uint32)])[0]

    def loss(self, first: int, last: int) -> npt.NDArray[np.uint8] | None:
        import numpy as np

        if not self.plan.layout.has_loss:
            return None
        found: list[Any] = [np.zeros(0, np.uint8)]
        found += [part.loss(*span) for _, part, *span in self._parts(self._tokens, first, last)]
        return np.concatenate(found)

    def names(self, first: int, last: int) -> Any:
        import pyarrow as pa

        if not self.plan.layout.has_names:
            return None
        parts = self._parts(self._documents, first, last)
        found = [part.names(*span) for _, part, *span in parts]
        return pa.concat_arrays([pa.nulls(0, pa.string()), *found])

    def sources(self, first: int, last: int) -> tuple[npt.NDArray[np.int64], Any] | None:
        import numpy as np
        import pyarrow as pa

        if not FORMATS[self.plan.options.format].needs_lines:
            return None
        lines, uris = [np.zeros(0, np.int64)], [pa.nulls(0, pa.string())]
        for _, part, *span in self._parts(self._documents, first, last):
            found = part.sources(*span)
            assert found is not None  # All parts have the format of the plan.
            lines.append(found[0])
            uris.append(found[1])
        return np.concatenate(lines), pa.concat_arrays(uris)

    def documents_of(self, first: int, last: int) -> Documents:
        """Returns the documents of a range."""
        spans = self.spans(first, last)
        begin, end = int(spans[0]), int(spans[-1])
        lines, uris = self.sources(first, last) or (None, "")
        return Documents(
            self.ids(begin, end),
            spans[1:] - begin,
            self.loss(begin, end),
            self.names(first, last),
            lines,
            uris,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": OrderedDict()}
