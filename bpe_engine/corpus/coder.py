"""`Coder`: encodes columns of text for a corpus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .._core import NameCounter
from ..abilities.columns import parts_of
from ..abilities.ordinary_text import AnyTokenizer as Engine
from ..abilities.ordinary_text import for_text, special_ids, unknown_special
from ..core import Encoding
from ..hf.tokenizers import Tokenizer
from ..read.opening import open_tokenizer
from ..texts.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    import numpy.typing as npt

__all__ = ["Coder", "Engine", "load_engine"]


def load_engine(name: str) -> Engine:
    """Loads a tokenizer by an encoding's name, or from a folder or file.

    Raises:
        OSError: The encoding, folder or file does not exist, or cannot be read.
        ValueError: The file is malformed, or needs a feature without an exact implementation.

    >>> load_engine("gpt2").name
    'gpt2'
    """
    opened = open_tokenizer(name)
    return opened if opened._file is None else opened.hf


class Coder:
    """Encodes columns of text without recognizing special tokens.

    Names of special tokens and of added tokens are ordinary text. Added tokens of whitespace only,
    such as the runs of spaces of GPT-NeoX, control nothing and are recognized.

    Args:
        engine: An `Encoding` or a `bpe_engine.hf.Tokenizer`.
        allow_special: Names that are encoded as special tokens, for trusted corpora.

    Raises:
        CorpusError: A name is not a special token.

    >>> coder = Coder(load_engine("gpt2"))
    >>> ids, splits = coder.encode(["hello world", "<|endoftext|>"])
    >>> ids.tolist(), splits.tolist(), coder.id_of("<|endoftext|>")
    ([31373, 995, 27, 91, 437, 1659, 5239, 91, 29], [0, 2, 9], 50256)
    """

    def __init__(self, engine: Engine, allow_special: Collection[str] = ()):
        self.engine = engine
        self._ids = special_ids(engine)
        self.name: str = engine._label
        #: Id of the unknown token, or None.
        self.unknown: int | None = None
        #: True if the tokenizer drops text that has no token.
        self.drops_unknown: bool = False
        self.largest_id: int
        if isinstance(engine, Encoding):
            self.largest_id = engine.max_token_value
            self._allowed: Any = set(allow_special)
        else:
            self.largest_id = max(engine.get_vocab(True).values(), default=0)
            self.unknown = _unknown_id(engine)
            self._core = for_text(_with_text_tokens(engine, allow_special))
            self._allowed = set()
            self.drops_unknown = self.unknown is None and _drops_unknown(self._core)
        for name in allow_special:
            self.id_of(name)
        #: Names counted in text.
        self.controls: list[str] = sorted(
            name for name in self._ids if not name.isspace() and name not in allow_special
        )
        self._counter = NameCounter(self.controls)

    @property
    def text_engine(self) -> Engine:
        """A tokenizer that recognizes the same added tokens as `encode`."""
        return self.engine if isinstance(self.engine, Encoding) else self._core

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the tokenizer: the same for the same ids, on every machine."""
        return self.engine.fingerprint

    def id_of(self, name: str) -> int:
        """Returns the id of a special token. Raises CorpusError if the tokenizer lacks it."""
        if name not in self._ids:
            raise CorpusError(unknown_special(self.engine, name))
        return self._ids[name]

    def end_of_document(self) -> str | None:
        """Returns the name of the token that ends documents by default, or None."""
        return "<|endoftext|>" if "<|endoftext|>" in self._ids else None

    def encode(
        self, texts: Any, num_threads: int | None = 1
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Encodes a list or an Arrow column of texts.

        Returns:
            The ids of all texts, and their ``len(texts) + 1`` row splits.

        Raises:
            ValueError: A text is null or not UTF-8; the message names the row.
        """
        import numpy as np

        buffer: Any
        buffer, splits = self.text_engine._encode_ragged(
            parts_of(texts), num_threads, allowed_special=self._allowed, disallowed_special=()
        )
        return np.frombuffer(buffer, np.uint32), np.frombuffer(splits, np.int64)

    def count_controls(self, column: Any) -> list[tuple[str, int, int]]:
        """Finds control strings in an Arrow column; returns each with its count and first row."""
        return self._counter.count(parts_of(column))


def _unknown_id(engine: Tokenizer) -> int | None:
    model = json.loads(engine._model_fields())
    if model.get("unk_token") is not None:
        return engine.token_to_id(model["unk_token"])
    return model.get("unk_id")  # type: ignore[no-any-return]


def _drops_unknown(engine: Tokenizer) -> bool:
    """Returns True if the tokenizer drops a rune, as an example of characters without a token."""
    try:
        with_rune, without = engine.encode_batch(["a\u16a0", "a"], add_special_tokens=False)
    except ValueError:  # Unknown text raises an error.
        return False
    return with_rune.ids == without.ids


def _with_text_tokens(engine: Tokenizer, allow_special: Collection[str]) -> Tokenizer:
    """Returns a tokenizer that recognizes only allowed tokens and whitespace tokens in text.

    A tokenizer file always finds added tokens that are not "special", so that flag selects the
    tokens to find.
    """

    def is_control(content: str) -> bool:
        return not (content.isspace() or content in allow_special)

    tokens = engine.get_added_tokens_decoder().values()
    if all(token.special == is_control(token.content) for token in tokens):
        return engine
    spec = json.loads(engine.to_str())
    for token in spec["added_tokens"]:
        token["special"] = is_control(token["content"])
    return Tokenizer(json.dumps(spec, ensure_ascii=False))
