"""`Vocabularies`: the encodings that the playground shows."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path

from .. import encoding_for_model, get_encoding, list_encoding_names
from .._core import TokenTable
from ..common.suggest import did_you_mean
from ..common.system import has_folder, is_uri
from ..core import Encoding
from ..hf import UnsupportedTokenizer
from ..read.opening import encoding_of_ranks, open_tokenizer
from ..read.sources import format_of_name, not_found
from .templates import template_of

__all__ = ["Vocabularies", "Vocabulary"]


class Vocabulary:
    """A tokenizer with its tokens and ranks."""

    def __init__(self, name: str, tokenizer: Encoding, path: str | None = None):
        self.name = name
        self.tokenizer = tokenizer
        self.path = path
        self._table = TokenTable(tokenizer)

    def bytes_of(self, id: int) -> bytes:
        """Returns the bytes of an id."""
        return self._table[id]

    def is_special(self, id: int) -> bool:
        """Returns True for a special token."""
        return self._table.kind(id) == "special"

    def joined(self, ids: Sequence[int]) -> bytes:
        """Returns the concatenated bytes of ids."""
        return b"".join(self.tokenizer.decode_tokens_bytes(ids))

    @functools.cached_property
    def ranks(self) -> dict[bytes, int] | str:
        """The rank of each ordinary token, or the reason why the tokenizer has no ranks."""
        try:
            tokenizer = self.tokenizer
            is_ranked = tokenizer._unranked is None
            return dict((tokenizer if is_ranked else encoding_of_ranks(tokenizer)).mergeable_ranks)
        except UnsupportedTokenizer as error:
            return f"merges are shown for tokenizers with ranks, and {self.name} has none ({error})"


class Vocabularies:
    """Encodings by name. Built-in encodings open on demand, files only through `open`, so that a
    shared link cannot read a file."""

    def __init__(self) -> None:
        self._opened: dict[str, Vocabulary] = {}
        #: The chat templates of opened folders, by the name of the tokenizer.
        self.templates: dict[str, dict[str, str]] = {}

    @property
    def names(self) -> list[str]:
        """All names: built-in encodings, then files."""
        known = list_encoding_names()
        return [*known, *(name for name in self._opened if name not in known)]

    def get(self, name: str) -> Vocabulary:
        """Returns an encoding of this package, or an encoding opened before.

        Raises:
            ValueError: The name is unknown; the message suggests another name.
        """
        if name not in self._opened:
            if name not in list_encoding_names():
                raise ValueError(
                    f"no encoding {name!r} is open.{did_you_mean(name, self.names)} A file is "
                    "opened in the field File, or with `bpe-engine playground -e FILE`"
                )
            self._opened[name] = Vocabulary(name, get_encoding(name))
        return self._opened[name]

    def open(self, source: str) -> Vocabulary:
        """Opens an encoding by its name or a model's name, or from a file or folder.

        Args:
            source: A name, or any source of `bpe_engine.open_tokenizer`.

        Raises:
            LookupError: The source is unknown.
            ValueError, OSError: The source cannot be opened; the message says why.
        """
        source = source.strip()
        if source in self.names:
            return self.get(source)
        if is_uri(source):
            raise ValueError(f"{source!r} is an address; download it, and open the file")
        path = os.path.abspath(os.path.expanduser(source))
        if os.path.isfile(path) or os.path.isdir(path):
            return self._add(path, open_tokenizer(path))
        if os.path.exists(path):
            raise ValueError(f"{source!r} is a pipe or a device; open a file")
        if has_folder(source) or format_of_name(source):
            raise not_found(source)
        try:
            return self.get(encoding_for_model(source).name)
        except KeyError:
            hint = did_you_mean(source, self.names)
            raise LookupError(
                f"{source!r} is not an encoding, a model, a file or a folder.{hint} There are "
                f"{', '.join(list_encoding_names())}"
            ) from None

    def _add(self, path: str, tokenizer: Encoding) -> Vocabulary:
        """Adds an opened file and its chat template, under the shortest unused end of its path."""
        parts = Path(path).parts
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[-count:])
            if name not in self.names or (name in self._opened and self._opened[name].path == path):
                break
        vocabulary = Vocabulary(name, tokenizer, path)
        self._opened[name] = vocabulary
        if (template := template_of(path)) is not None:
            self.templates[name] = template
        return vocabulary
