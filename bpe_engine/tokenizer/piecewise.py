"""`PiecewiseTokenizer`: ids of a vocab.json over models of SentencePiece, called as the tokenizers in
Python of transformers are."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..hf.tokenizers import Tokenizer as FileTokenizer
from ..written import write_at_once
from . import rows
from .batch_encoding import BatchEncoding
from .files import check_stale_files, write_config
from .options import RowTruncation
from .plan import Arguments, Plan
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Around", "PiecewiseTokenizer"]

#: The ids before and after a text.
Around = tuple[list[int], list[int]]


class PiecewiseTokenizer(Tokenizer):
    """A tokenizer over models of SentencePiece, with the ids of a vocab.json.

    Truncation, masks and decoded text are those of the tokenizers in Python of transformers. Tokens
    have no offsets, as there.

    Args:
        source: The model for texts.
        target: The model for ``text_target`` of a call.
        pieces: The pieces of the model that decodes.
        kwargs: As in `bpe_engine.Tokenizer`.
    """

    #: The text after a special token when ids are decoded.
    _after_special = ""
    #: The files of the folder by their names.
    _files: dict[str, bytes]

    def __init__(
        self, source: FileTokenizer, target: FileTokenizer, pieces: frozenset[str], **kwargs: Any
    ):
        self._pieces = pieces
        self._target = copy.copy(target)
        super().__init__(source, **kwargs)

    def __copy__(self) -> Self:
        other = super().__copy__()
        other._target = copy.copy(self._target)
        return other

    def save_pretrained(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Writes a folder from which `from_pretrained` reads this tokenizer. Returns its files.

        Raises:
            FileExistsError: The folder holds a file of another tokenizer, which would be read too.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        check_stale_files(path, self.chat_template, has_tokenizer_file=False)
        for name, contents in self._files.items():
            write_at_once(path / name, contents)
        written = write_config(path, self._config(), self.chat_template)
        return (*written, *(os.fspath(path / name) for name in self._files))

    def _config(self) -> dict[str, Any]:
        config = {**super()._config(), "tokenizer_class": type(self).__name__}
        for name in ("add_bos_token", "add_eos_token"):
            del config[name]
        return config

    def _add(self, tokens: Sequence[Any]) -> int:
        self._target.add_tokens(tokens)
        return super()._add(tokens)

    @property
    def is_fast(self) -> bool:
        """False: tokens have no offsets."""
        return False

    # ---- Texts to ids ----

    def _encode(self, text: Any, text_pair: Any, plan: Plan) -> BatchEncoding:
        return self._by(self._engine, self._around(False), text, text_pair, plan)

    def _encode_target(self, text: Any, text_pair: Any, plan: Plan) -> BatchEncoding:
        return self._by(self._target, self._around(True), text, text_pair, plan)

    def _around(self, is_target: bool) -> Around:
        """Returns the ids that are put before and after a text."""
        return [], [self.eos_token_id]

    def _by(
        self, engine: FileTokenizer, around: Around, text: Any, text_pair: Any, plan: Plan
    ) -> BatchEncoding:
        """Encodes as a tokenizer in Python of transformers does."""
        call = plan.arguments
        if plan.has_offsets or call.has_overflow:
            raise ValueError(
                f"a {type(self).__name__} has no offsets and no overflowing tokens, as in transformers; its "
                "`backend` has them"
            )
        if call.disallowed_special:
            raise ValueError(
                f"a {type(self).__name__} takes no disallowed_special; pass split_special_tokens=True "
                "to encode the names of special tokens as ordinary text"
            )
        inputs, is_batch = rows.inputs_of(text, text_pair, call.is_pretokenized)
        texts: list[list[str]] = []
        pairs: list[bool] = []
        for given in inputs:
            first, second = given if _is_pair(given, call.is_pretokenized) else (given, None)
            texts.append([first] if isinstance(first, str) else list(first))
            pairs.append(second is not None)
            if second is not None:
                texts.append([second] if isinstance(second, str) else list(second))
        found = iter(self._ids_of(engine, texts, call))
        around = around if call.add_special_tokens else ([], [])
        made = [
            self._row(next(found), next(found) if pair else None, around, call) for pair in pairs
        ]
        fields = {name: [row[place] for row in made] for place, name in enumerate(_FIELDS)}
        arranged = rows.arranged(fields, call.layout._replace(truncation=None))
        if plan.limit is not None:
            self._warn_if_too_long(arranged.longest(), plan.limit)
        result = rows.result(arranged, plan.names, plan.module, is_batch)
        if "length" in plan.names and not is_batch and plan.module is None:
            (result.data["length"],) = result.data["length"]
        return result

    def _ids_of(
        self, engine: FileTokenizer, texts: Sequence[Sequence[str]], call: Arguments
    ) -> list[list[int]]:
        """Returns the ids of texts, each of them one or several that are encoded one by one."""
        engine = self._under(engine, call.allowed_special)
        parts = [
            [part for text in several for part in self._parts(engine, text)] for several in texts
        ]
        plain = [part for row in parts for part, is_language in row if not is_language]
        threads = call.num_threads
        made = engine.encode_batch(plain, add_special_tokens=False, num_threads=threads)
        own = self.added_tokens_encoder if engine is not self._engine else {}
        encoded = (
            # The ids of added tokens are those of the vocabulary of texts.
            [own.get(token, id) for token, id in zip(encoding.tokens, encoding.ids)]
            if own
            else encoding.ids
            for encoding in made
        )
        return [
            [
                id
                for part, is_language in row
                for id in ([self._id_of(engine, part)] if is_language else next(encoded))
            ]
            for row in parts
        ]

    def _under(self, engine: FileTokenizer, allowed: Any) -> FileTokenizer:
        """Returns the engine that finds special tokens in texts, or finds none."""
        if allowed == "all" or engine.encode_special_tokens:
            return engine
        engine = copy.copy(engine)
        engine.encode_special_tokens = True
        return engine

    def _parts(self, engine: FileTokenizer, text: str) -> list[tuple[str, bool]]:
        """Cuts out the languages that a text names. Returns each part, and whether it is a language."""
        if not isinstance(text, str):
            raise TypeError(f"a text must be a str, not {type(text).__name__}")
        return [(text, False)]

    def _id_of(self, engine: FileTokenizer, language: str) -> int:
        id = engine.token_to_id(language)
        id = engine.token_to_id(self.unk_token) if id is None else id
        assert id is not None  # The vocabulary was read with it.
        return id

    def _row(
        self, first: list[int], second: list[int] | None, around: Around, call: Arguments
    ) -> tuple[list[int], list[int], list[int]]:
        """Returns the ids, the type ids and the mask of special tokens of a row."""
        before, after = around
        if call.layout.truncation is not None:
            added = len(before) + len(after)
            first, second = _truncated(first, second, added, call.layout.truncation)
        inner = [*first, *(second or ())]
        ids = [*before, *inner, *after]
        if not call.add_special_tokens:
            return ids, [0] * len(ids), [0] * len(ids)
        own = len(before) + len(first) + len(after)
        types = [0] * min(own, len(ids)) + [1] * (len(ids) - own)
        mask = [*([1] * len(before)), *self._mask(inner), *([1] * len(after))]
        return ids, types, mask

    def _mask(self, ids: Sequence[int]) -> list[int]:
        """Returns 1 for the special tokens of a text itself."""
        return [0] * len(ids)

    def tokenize(
        self, text: Any, pair: Any = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Returns the pieces of a text, also those that have no id."""
        if pair is not None or add_special_tokens or not isinstance(text, str):
            made = self(text, pair, add_special_tokens=add_special_tokens, **kwargs)
            return list(self.convert_ids_to_tokens(made["input_ids"]))
        allowed = set() if kwargs.get("split_special_tokens", self.split_special_tokens) else "all"
        engine = self._under(self._engine, allowed)
        tokens: list[Any] = []
        for part, is_language in self._parts(engine, text):
            tokens += (
                [part] if is_language else engine.encode(part, add_special_tokens=False).tokens
            )
        return tokens

    # ---- Ids to text ----

    @property
    def _decoded(self) -> FileTokenizer:
        """The model whose tokens decoded ids are."""
        return self._engine

    def _id_to_token(self, id: int) -> str | bytes | None:
        added = self._engine.get_added_tokens_decoder().get(id)
        if added is not None:
            return str(added.content)
        return self._decoded.id_to_token(id) if 0 <= id < 2**32 else None

    def _decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str | None) -> str:
        return self._text_of(self.convert_ids_to_tokens(ids, skip_special_tokens))

    def convert_tokens_to_string(self, tokens: Sequence[Any]) -> str:
        """Returns the text of tokens."""
        return self._text_of(tokens)

    def _text_of(self, tokens: Sequence[Any]) -> str:
        """Returns the text of pieces between special tokens, and of these."""
        special = {*self.all_special_tokens}
        decoder: Any = self._decoded.decoder
        text: str = ""
        pieces: list[str] = []
        for token in tokens:
            if token in special:
                text += f"{decoder.decode(pieces)}{token}{self._after_special}"
                pieces = []
            elif token is not None:
                # A mark at the beginning stays, but for that of a piece.
                pieces.append(token if token in self._pieces else token.replace("\u2581", " "))
        text += str(decoder.decode(pieces))
        return text.strip()


_FIELDS = ("input_ids", "token_type_ids", "special_tokens_mask")


def _is_pair(given: Any, is_pretokenized: bool) -> bool:
    return isinstance(given, tuple if is_pretokenized else (tuple, list)) and len(given) == 2


def _truncated(
    first: list[int], second: list[int] | None, added: int, truncation: RowTruncation
) -> tuple[list[int], list[int] | None]:
    """Truncates a text or a pair as tokenizers in Python of transformers do."""
    removed = len(first) + len(second or ()) + added - truncation.max_length
    if removed <= 0:
        return first, second
    from_first, from_second = 0, 0
    if truncation.strategy == "only_first" or second is None:
        from_first = 0 if truncation.strategy == "only_second" else removed
    elif truncation.strategy == "only_second":
        from_second = removed
    else:
        longer = min(abs(len(second) - len(first)), removed)
        shared = removed - longer
        from_first, from_second = shared // 2, shared - shared // 2
        if len(first) > len(second):
            from_first += longer
        else:
            from_second += longer
    is_left = truncation.direction == "left"
    return _cut(first, from_first, is_left), second and _cut(second, from_second, is_left)


def _cut(ids: list[int], removed: int, is_left: bool) -> list[int]:
    return ids[removed:] if is_left else ids[: max(len(ids) - removed, 0)]
