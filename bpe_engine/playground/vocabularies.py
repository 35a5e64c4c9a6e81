"""`Vocabularies`: the encodings that the playground shows, and facts about their tokens."""

from __future__ import annotations

import errno
import functools
import os
from typing import Any

from .. import Encoding, encoding_for_model, get_encoding, list_encoding_names, load_encoding
from ..suggest import did_you_mean
from ..vocabulary import audit_tokens

__all__ = ["Vocabularies", "Vocabulary"]


class Vocabulary:
    """An encoding with the facts about its tokens, each computed on first use."""

    def __init__(self, name: str, encoding: Encoding):
        self.name = name
        self.encoding = encoding

    @functools.cached_property
    def ranks(self) -> dict[bytes, int]:
        """The rank of each token, special tokens left out."""
        return dict(self.encoding.mergeable_ranks)

    @functools.cached_property
    def tokens(self) -> dict[int, bytes]:
        """The bytes of each id, special tokens included, in the order of ids."""
        tokens = {id: token for token, id in self.ranks.items()}
        for id in set(self.encoding.special_tokens.values()):
            tokens[id] = self.encoding.decode_single_token_bytes(id)
        return dict(sorted(tokens.items()))

    @functools.cached_property
    def audit(self) -> dict[int, tuple[str, str]]:
        """The round-trip class of each id, and "reached" or the reason why merging misses it: those
        of `vocab-tools check`."""
        specials = {id: name for name, id in reversed([*self.encoding.special_tokens.items()])}
        columns = audit_tokens(
            self.ranks,
            self.encoding.pattern,
            [(name, id) for id, name in specials.items()],
            nfc=self.encoding.normalization == "NFC",
        )
        found = zip(columns["ids"], zip(columns["round_trip"], columns["merging"]))
        return dict.fromkeys(specials, ("OK_SPECIAL", "")) | dict(found)


class Vocabularies:
    """Encodings by name. Those of this package open by themselves, files only by `open`: a link
    that somebody sent cannot read a file."""

    def __init__(self) -> None:
        self._opened: dict[str, Vocabulary] = {}

    @property
    def names(self) -> list[str]:
        """All names: those of this package, then those of files."""
        known = list_encoding_names()
        return [*known, *(name for name in self._opened if name not in known)]

    def get(self, name: str) -> Vocabulary:
        """Returns an encoding of this package, or one that was opened.

        Raises:
            ValueError: The name is unknown; the message suggests another.
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
        """Opens the name of an encoding or model, a file or a folder.

        Args:
            source: A name; a ``.tiktoken`` file, ``tokenizer.json`` or ``tekken.json`` as
                `load_encoding` reads it; or a folder with such a JSON file.

        Raises:
            LookupError: It is unknown.
            ValueError, OSError: It cannot be opened; the message says why.
        """
        source = source.strip()
        if source in self.names:
            return self.get(source)
        if "://" in source:
            raise ValueError(f"{source!r} is an address; download it, and open the file")
        path = os.path.abspath(os.path.expanduser(source))
        if os.path.exists(path):
            return self._add(path, load_encoding(path))
        if os.sep in source or source.endswith((".json", ".tiktoken")):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        try:
            return self.get(encoding_for_model(source).name)
        except KeyError:
            hint = did_you_mean(source, self.names)
            raise LookupError(
                f"{source!r} is not an encoding, a model, a file or a folder.{hint} There are "
                f"{', '.join(list_encoding_names())}"
            ) from None

    def _add(self, path: str, encoding: Encoding) -> Vocabulary:
        """Adds an opened file, under the shortest end of its path that is free."""
        parts = path.split(os.sep)
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[-count:])
            if name not in self.names or getattr(self._opened.get(name), "path", None) == path:
                break
        vocabulary: Any = Vocabulary(name, encoding)
        vocabulary.path = path
        self._opened[name] = vocabulary
        return self._opened[name]
