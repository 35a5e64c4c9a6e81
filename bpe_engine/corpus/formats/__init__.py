"""Formats of token files, each a module with a writer and a reader that checks its files."""

from __future__ import annotations

from .arrow import ARROW, PARQUET
from .base import Format
from .datatrove import FORMAT as DATATROVE
from .llmc import LLMC, NANOGPT
from .megatron import FORMAT as MEGATRON
from .olmo import FORMAT as OLMO

__all__ = ["FORMATS"]

FORMATS: dict[str, Format] = {
    form.name: form for form in (MEGATRON, DATATROVE, OLMO, LLMC, NANOGPT, PARQUET, ARROW)
}
