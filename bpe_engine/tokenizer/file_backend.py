"""A tokenizer file as what finds the ids of a `Tokenizer`."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from typing import Any

from .._core import EncodedRows, disallowed_special_message, encode_rows
from ..hf.components import AddedToken, Component
from ..hf.tokenizer import Tokenizer as FileTokenizer
from ..prompt.segments import Segment
from .backend import Backend, Defaults, Layout, Names, Token, template_of, token_bytes
from .segments import assistant_mask, encode_segments, without_added_tokens

__all__ = ["FileBackend"]


class FileBackend(Backend):
    """A tokenizer file: a `bpe_engine.hf.Tokenizer`."""

    tokens_come_from_text = True

    def __init__(self, tokenizer: FileTokenizer):
        self.tokenizer = tokenizer
        # Made when it is first needed.
        self._bare: FileTokenizer | None = None

    @property
    def source(self) -> FileTokenizer:
        return self.tokenizer

    def defaults(self) -> Defaults:
        padding, truncation = self.tokenizer.padding, self.tokenizer.truncation
        return Defaults(
            padding["pad_token"] if padding else None,
            padding["direction"] if padding else "right",
            truncation["direction"] if truncation else "right",
        )

    def rows(
        self,
        inputs: Sequence[Any],
        layout: Layout,
        *,
        is_pretokenized: bool,
        add_special_tokens: bool,
        detailed: bool,
        allowed_special: Names,
        disallowed_special: Names,
    ) -> EncodedRows:
        return encode_rows(
            self.tokenizer,
            inputs,
            is_pretokenized=is_pretokenized,
            add_special_tokens=add_special_tokens,
            truncation=layout.truncation,
            padding=layout.padding,
            detailed=detailed,
            overflow=layout.overflow,
            num_threads=layout.num_threads,
            encode_special_tokens=self._refuses(inputs, allowed_special, disallowed_special),
        )

    def _refuses(self, inputs: Iterable[Any], allowed: Names, disallowed: Names) -> bool:
        """Whether no special token may be found in texts.

        Raises:
            ValueError: Only some may, or a text holds a disallowed name.
        """
        if isinstance(allowed, str) and allowed == "all" and not disallowed:
            return False
        special = {token.content for token in self.added_tokens().values() if token.special}
        found = special if isinstance(allowed, str) else special & set(allowed)
        if isinstance(disallowed, str):
            disallowed = special - found
        if disallowed:
            _refuse_names(inputs, disallowed)
        if found and found != special:
            raise ValueError(
                "a tokenizer.json looks for all of its special tokens or for none; pass "
                'allowed_special="all" or set(), not some of them'
            )
        return not found and bool(special)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str) -> str:
        if errors == "replace":
            return self.tokenizer.decode(ids, skip_special_tokens)
        added = self.added_tokens()
        skipped = {id for id, token in added.items() if token.special and skip_special_tokens}
        tokens = [self.tokenizer.id_to_token(id) for id in ids if id not in skipped]
        return self.to_string([token for token in tokens if token is not None], errors)

    def to_string(self, tokens: Sequence[Any], errors: str) -> str:
        decoder = self.tokenizer.decoder
        if errors == "replace":
            return " ".join(tokens) if decoder is None else decoder.decode(tokens)
        if decoder is None or decoder.type != "ByteLevel":
            kind = None if decoder is None else decoder.type
            raise ValueError(
                f"errors={errors!r} is for tokenizer files with the decoder ByteLevel, not {kind}"
            )
        return b"".join(map(token_bytes, tokens)).decode("utf-8", errors)

    def token_to_id(self, token: Any) -> int | None:
        return self.tokenizer.token_to_id(token)

    def id_to_token(self, id: int) -> Token | None:
        return self.tokenizer.id_to_token(id)

    def vocab(self) -> dict[Any, int]:
        return dict(self.tokenizer.get_vocab(True))

    def size(self, with_added_tokens: bool) -> int:
        return self.tokenizer.get_vocab_size(with_added_tokens)

    def added_tokens(self) -> dict[int, AddedToken]:
        return self.tokenizer.get_added_tokens_decoder()

    def add_tokens(self, tokens: Sequence[AddedToken]) -> int:
        return self.tokenizer.add_tokens(tokens)

    def check_token(self, token: AddedToken) -> None:
        """There is nothing that a file cannot do."""

    def num_added(self, is_pair: bool) -> int:
        return self.tokenizer.num_special_tokens_to_add(is_pair)

    def set_template(self, bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> None:
        self.tokenizer.post_processor = Component("post_processor", template_of(bos, eos))

    def encode_segments(
        self, segments: Sequence[Segment], with_mask: bool
    ) -> tuple[list[int], list[int]]:
        placed = encode_segments(self.tokenizer, segments, self._without_added_tokens)
        ids = [token.id for token in placed]
        return ids, assistant_mask(placed, segments) if with_mask else []

    def _without_added_tokens(self) -> FileTokenizer:
        if self._bare is None:
            self._bare = without_added_tokens(self.tokenizer)
        return self._bare

    def copied(self) -> Backend:
        return FileBackend(copy.copy(self.tokenizer))


def _refuse_names(inputs: Iterable[Any], names: Iterable[str]) -> None:
    """Raises ValueError if a text holds one of the names."""
    pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))

    def look(value: Any) -> None:
        if isinstance(value, str):
            if found := pattern.search(value):
                raise ValueError(disallowed_special_message(found[0]))
        elif isinstance(value, (list, tuple)):
            for item in value:
                look(item)

    for value in inputs:
        look(value)
