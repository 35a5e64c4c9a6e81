"""`Tokenizer`: a tokenizer file, with the interface of `tokenizers`."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Collection, Iterable, Literal, Sequence, TypeVar

from .. import _core
from .._core import HfEncoding, Pipeline
from ..common.atomic_write import write_at_once
from ..common.values import describe, with_text
from ..face import Face
from ..read.gpt2_files import read_merges, read_vocab
from ..read.sources import existing_folder
from ..read.text_files import check_marks
from . import decoders, processors
from .component import Component, component_json
from .components import AddedToken
from .decoders import Decoder
from .models import Model, WordPiece, class_of, model_json, restore_scores
from .normalizers import BertNormalizer, Normalizer
from .pre_tokenizers import BertPreTokenizer, PreTokenizer
from .processors import PostProcessor

if TYPE_CHECKING:
    from ..core import Encoding

__all__ = ["Tokenizer", "is_ours"]

#: First byte of a ``.model``: the tag of its list of pieces.
_PIECES = b"\n"
_Made = TypeVar("_Made")


class Tokenizer(Face, _core.Tokenizer):
    """A tokenizer read from a ``tokenizer.json``, with the methods of `tokenizers.Tokenizer`.

    Threads can share and change a tokenizer: each call uses the state at its start.

    Args:
        model: The contents of a ``tokenizer.json``, as text or as bytes; or a model of this package
            or of `tokenizers`, which is copied.

    Raises:
        UnsupportedTokenizer: The file requires an unsupported feature; the message names it with
            its JSON path.
        ValueError: The file is malformed.
    """

    def __new__(cls, model: Any, *args: Any) -> Tokenizer:
        made = super().__new__(cls)
        if type(model).__module__ == "tokenizers.models":
            contents = f'{{"model":{model_json(model)}}}'
            made._read_json(contents)
            restore_scores(made, contents)
            return made
        # Copies the model itself: its JSON would round scores.
        source = model._tokenizer if issubclass(type(model), Model) else model
        if issubclass(type(source), Pipeline):
            made._copy(source, *args)
            return made
        try:
            made._read_json(source)
        except TypeError:
            way_out = (
                "; Tokenizer.from_file takes a path" if isinstance(source, os.PathLike) else ""
            )
            raise TypeError(
                f"expected the contents of a tokenizer.json, or a model, not {describe(source)}{way_out}"
            ) from None
        except ValueError as error:
            start = source[:4].encode() if isinstance(source, str) else bytes(source[:4])
            check_marks(start, "the tokenizer file")
            if isinstance(source, str) and _looks_like_a_path(source):
                hint = "the class takes the contents of a file; Tokenizer.from_file takes its path"
                raise with_text(error, f"{error}: {hint}") from None
            raise
        return made

    # `isinstance` reads this, and also accepts the class of an imported `tokenizers`.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        found: type = getattr(sys.modules.get("tokenizers"), "Tokenizer", type(self))
        return found

    @classmethod
    def _made_from(cls, source: Any) -> Tokenizer:
        return cls(source)

    @classmethod
    def from_str(cls, json: str) -> Tokenizer:
        """Reads the contents of a file. Raises the errors of the constructor."""
        return cls._made_from(json)

    @classmethod
    def from_buffer(cls, buffer: bytes) -> Tokenizer:
        """Reads the contents of a file, as bytes. Raises the errors of the constructor."""
        return cls._made_from(bytes(memoryview(buffer)))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Reads a ``tokenizer.json``, or a ``.model`` as `from_sentencepiece` does.

        Args:
            path: The file; `from_pretrained` takes its folder.

        Raises:
            OSError: The file cannot be read.
            UnsupportedTokenizer: The file requires an unsupported feature; the message names the
                JSON path.
            ValueError: The file is malformed.

        >>> from bpe_engine.hf import Tokenizer
        >>> tokenizer = Tokenizer.from_file("tokenizer.json")  # doctest: +SKIP
        >>> tokenizer.encode("Hello, world!").ids  # doctest: +SKIP
        [15496, 11, 995, 0]
        """
        contents = Path(path).read_bytes()
        if contents[:1] == _PIECES and not contents.lstrip().startswith(b"{"):
            return cls.from_sentencepiece(path)
        check_marks(contents, os.fspath(path))
        try:
            return cls(contents)
        except ValueError as error:
            raise with_text(error, f"{os.fspath(path)}{_reason(error, contents)}") from None

    @classmethod
    def from_sentencepiece(
        cls, path: str | os.PathLike[str] | bytes, version: Literal["0.2.1", "0.2.3"] = "0.2.3"
    ) -> Tokenizer:
        """Reads a SentencePiece ``.model``, with SentencePiece's ids, offsets and decoded text.

        Text never becomes a control piece, such as ``</s>``, unless `encode_special_tokens` is set
        to False. Segments put control pieces into prompts, and a post-processor puts them around
        texts.

        Args:
            path: The file, or its contents as bytes.
            version: ``"0.2.3"`` gives the ids of SentencePiece from 0.2.2 on, ``"0.2.1"`` the ids
                of older versions, which differ for nearly equal path scores of a Unigram model.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is not a SentencePiece model, or the version is unknown.

        >>> tokenizer = Tokenizer.from_sentencepiece("tokenizer.model")  # doctest: +SKIP
        >>> tokenizer.encode("Hello world").tokens  # doctest: +SKIP
        ['▁Hello', '▁world']
        """
        contents = path if isinstance(path, bytes) else Path(path).read_bytes()
        try:
            made = super().__new__(cls)
            made._read_sentencepiece(contents, version)
        except ValueError as error:
            if isinstance(path, bytes):
                raise
            raise with_text(error, f"{os.fspath(path)}: {error}") from None
        return made

    @classmethod
    def from_files(
        cls,
        vocab: str | os.PathLike[str],
        merges: str | os.PathLike[str],
        *,
        add_prefix_space: bool = False,
        special_tokens: Iterable[str | AddedToken] = (),
    ) -> Tokenizer:
        """Reads GPT-2's two files like `tokenizers.ByteLevelBPETokenizer` and transformers:
        GPT-2's pattern splits text, and nothing is added to the text.

        Args:
            vocab: The ``vocab.json``, which maps tokens to ids.
            merges: The ``merges.txt``: a line for each pair, two tokens with a space between them.
            add_prefix_space: Whether to put a space before a text without a leading space.
            special_tokens: Names to find before text is split. The files list none.

        Raises:
            OSError: A file cannot be read.
            ValueError: A file is malformed, or needs an unsupported feature.

        >>> tokenizer = Tokenizer.from_files("vocab.json", "merges.txt")  # doctest: +SKIP
        """
        level = {"type": "ByteLevel", "trim_offsets": True, "add_prefix_space": add_prefix_space}
        contents = {
            "version": "1.0",
            "pre_tokenizer": level,
            "decoder": level,
            "model": {"type": "BPE", "vocab": read_vocab(vocab), "merges": read_merges(merges)},
        }
        tokenizer = cls(json.dumps(contents))
        tokenizer.add_special_tokens(list(special_tokens))
        return tokenizer

    @classmethod
    def from_wordpiece(
        cls,
        vocab: str | os.PathLike[str],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        handle_chinese_chars: bool = True,
        clean_text: bool = True,
        unk_token: str = "[UNK]",
        sep_token: str = "[SEP]",
        pad_token: str = "[PAD]",
        cls_token: str = "[CLS]",
        mask_token: str = "[MASK]",
        wordpieces_prefix: str = "##",
    ) -> Tokenizer:
        """Reads the ``vocab.txt`` of a BERT model like `tokenizers.BertWordPieceTokenizer` and
        transformers.

        Args:
            vocab: The file, a token in each line.
            lowercase: Whether text is lowercased. Not recorded in the file; False for cased models.
            strip_accents: Whether accents are removed; by default if text is lowercased.
            handle_chinese_chars: Treat each Chinese character as a word.
            clean_text: Whether control characters are removed.
            unk_token, sep_token, pad_token, cls_token, mask_token: Special tokens. Tokens missing
                from the file are added.
            wordpieces_prefix: Prefix of tokens inside a word.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is not UTF-8.

        >>> tokenizer = Tokenizer.from_wordpiece("vocab.txt", lowercase=False)  # doctest: +SKIP
        """
        prefix = {"continuing_subword_prefix": wordpieces_prefix}
        tokenizer = cls(WordPiece.from_file(vocab, unk_token=unk_token, **prefix))
        tokenizer.add_special_tokens([unk_token, sep_token, pad_token, cls_token, mask_token])
        tokenizer.normalizer = BertNormalizer(
            clean_text, handle_chinese_chars, strip_accents, lowercase
        )
        tokenizer.pre_tokenizer = BertPreTokenizer()
        ids = {token.content: id for id, token in tokenizer.get_added_tokens_decoder().items()}
        tokenizer.post_processor = processors.BertProcessing(
            (sep_token, ids[sep_token]), (cls_token, ids[cls_token])
        )
        tokenizer.decoder = decoders.WordPiece(wordpieces_prefix)
        return tokenizer

    @classmethod
    def from_pretrained(cls, identifier: str | os.PathLike[str]) -> Tokenizer:
        """Reads the ``tokenizer.json`` of a folder on this machine, or else its ``vocab.json`` and
        ``merges.txt``, or its ``tokenizer.model``.

        Raises:
            OSError: The folder or its file does not exist. Nothing is downloaded.
            ValueError: As in the constructor.
        """
        folder = existing_folder(identifier)
        path, vocab, merges = (
            os.path.join(folder, name) for name in ("tokenizer.json", "vocab.json", "merges.txt")
        )
        if os.path.exists(path):
            return cls.from_file(path)
        if os.path.exists(vocab) and os.path.exists(merges):
            return cls.from_files(vocab, merges)
        model, words = (os.path.join(folder, name) for name in ("tokenizer.model", "vocab.txt"))
        if not os.path.exists(model) and os.path.exists(words):
            # The normalization is in a different file.
            raise FileNotFoundError(
                f"{path} does not exist; bpe_engine.open_tokenizer reads the vocab.txt in that folder"
            )
        return cls.from_file(model if os.path.exists(model) else path)

    async def async_encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> HfEncoding:
        """Runs `encode` on a thread of the running loop's executor."""
        import asyncio

        return await asyncio.to_thread(
            self.encode, sequence, pair, is_pretokenized, add_special_tokens
        )

    async def async_encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[HfEncoding]:
        """Runs `encode_batch` on a thread, like `async_encode`."""
        import asyncio

        return await asyncio.to_thread(
            self.encode_batch, input, is_pretokenized, add_special_tokens
        )

    async_encode_batch_fast = async_encode_batch

    async def async_decode_batch(
        self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """Runs `decode_batch` on a thread, like `async_encode`."""
        import asyncio

        return await asyncio.to_thread(self.decode_batch, sequences, skip_special_tokens)

    def train(self, files: Iterable[str | os.PathLike[str]], trainer: Any = None) -> None:
        """Trains the model on the lines of files, including line ends, as `tokenizers` does.

        Calls in progress are unaffected. If the call raises, the tokenizer is unchanged.

        Args:
            files: The paths of text files, or one path.
            trainer: A trainer of `bpe_engine.hf.trainers` or `tokenizers`. By default the trainer
                for the model, with default arguments.

        Raises:
            OSError: A file cannot be read.
            TypeError: The trainer is for a different type of model.
            ValueError: A file is not UTF-8, or the trainer has a wrong value.
        """
        from .training import texts_of_files, train

        used = train(self, trainer, texts_of_files(files), "kept")
        self.add_special_tokens(used.special_tokens)

    def train_from_iterator(
        self, iterator: Iterable[Any], trainer: Any = None, length: int | None = None
    ) -> None:
        """Trains the model on texts. Raises the errors of `train` and of the iterator.

        Args:
            iterator: Yields texts or lists of texts.
            trainer: As in `train`.
            length: The number of texts; ignored.
        """
        from .training import texts_of_iterator, train

        used = train(self, trainer, texts_of_iterator(iterator), "whole")
        self.add_special_tokens(used.special_tokens)

    def save(self, path: str | os.PathLike[str], pretty: bool = True) -> None:
        """Writes a ``tokenizer.json`` from which `tokenizers` loads the same tokenizer.

        Args:
            path: The file.
            pretty: Indent the JSON.
        """
        write_at_once(path, self.to_str(pretty).encode())

    # ---- The interface that `Face` needs ----

    @property
    def _label(self) -> str:
        is_pieces = type(self.model).__name__ == "SentencePiece"
        kind = "a model of SentencePiece" if is_pieces else "tokenizer.json"
        label: str = vars(self).get("_name", kind)
        return label

    def _set_label(self, name: str) -> None:
        vars(self)["_name"] = name

    @property
    def special_tokens_set(self) -> set[str]:
        """The names of the added tokens, which untrusted text cannot form."""
        return set(self._special_tokens_set)

    @property
    def _special_tokens_set(self) -> frozenset[str]:
        return self._kept("names", lambda: frozenset(row[0] for _, row in self._added_tokens()))

    @property
    def _special_ids(self) -> frozenset[int]:
        rows = self._added_tokens
        return self._kept("ids", lambda: frozenset(id for id, row in rows() if row[-1]))

    def _kept(self, name: str, make: Callable[[], _Made]) -> _Made:
        """Returns the result of `make`, which is kept until the tokenizer changes."""
        version, kept = self._version, vars(self).setdefault("_results", {})
        if name not in kept or kept[name][0] != version:
            kept[name] = version, make()
        return kept[name][1]  # type: ignore[no-any-return]

    def split(
        self, text: str, *, allowed_special: Literal["all"] | Collection[str] = ()
    ) -> list[str]:
        """Returns the pieces of a text after normalization and pre-tokenization. The names of
        special tokens are ordinary text.

        Raises:
            ValueError: The file has no pre-tokenizer and merges the whole text, or an allowed special
                token is in the text.
        """
        names = self.special_tokens_set if allowed_special == "all" else allowed_special
        if found := next((name for name in names if name in text), None):
            raise ValueError(
                f"the text has the special token {found!r}; split the text between them"
            )
        step, normalizer = self.pre_tokenizer, self.normalizer
        if step is None:
            raise ValueError(
                "this tokenizer has no pre-tokenizer: it merges the whole text as it is"
            )
        text = text if normalizer is None else normalizer.normalize_str(text)
        return [text[start:end] for _, (start, end) in step.pre_tokenize_str(text)]

    @property
    def encoding(self) -> Encoding:
        """A snapshot of the tokenizer, with tiktoken's interface and the same vocabulary.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").hf.encoding.encode("hello world")
        [31373, 995]
        """
        from ..core import Encoding

        return Encoding._of_file(self, self._label)

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        """The added tokens by id."""
        return {id: AddedToken(*flags) for id, flags in self._added_tokens()}

    def _get(self, kind: str) -> Any:
        part = self._kept(kind, lambda: self._read(kind))
        return part if part is vars(self).get("_parts", {}).get(kind) else self._read(kind)

    def _read(self, kind: str) -> Any:
        spec = self._component(kind)
        if spec is None:
            return None
        # One shared object, so that all holders see its changes.
        known = vars(self).setdefault("_parts", {}).get(kind)
        if known is None or known._spec != spec:
            known = Component(kind, spec)
            self._know(kind, known)
        return known

    def _put(self, kind: str, value: Any) -> None:
        self._set_component(kind, component_json(value, kind))
        if isinstance(value, Component):
            self._know(kind, value)

    def _know(self, kind: str, part: Component) -> None:
        vars(self).setdefault("_parts", {})[kind] = part
        part._add_owner(self)

    def _part_changed(self, part: Component) -> None:
        if vars(self).setdefault("_parts", {}).get(part._kind) is part:
            self._set_component(part._kind, part._spec)

    @property
    def normalizer(self) -> Normalizer | None:
        """The first step, which normalizes the text."""
        return self._get("normalizer")  # type: ignore[no-any-return]

    @normalizer.setter
    def normalizer(self, value: Any) -> None:
        self._put("normalizer", value)

    @property
    def pre_tokenizer(self) -> PreTokenizer | None:
        """The step that cuts a text into pieces."""
        return self._get("pre_tokenizer")  # type: ignore[no-any-return]

    @pre_tokenizer.setter
    def pre_tokenizer(self, value: Any) -> None:
        self._put("pre_tokenizer", value)

    @property
    def post_processor(self) -> PostProcessor | None:
        """The step that adds special tokens."""
        return self._get("post_processor")  # type: ignore[no-any-return]

    @post_processor.setter
    def post_processor(self, value: Any) -> None:
        self._put("post_processor", value)

    @property
    def decoder(self) -> Decoder | None:
        """The step that turns tokens into text."""
        return self._get("decoder")  # type: ignore[no-any-return]

    @decoder.setter
    def decoder(self, value: Any) -> None:
        self._put("decoder", value)

    @property
    def model(self) -> Model:
        """The vocabulary, and how pieces become tokens: `BPE`, `WordPiece`, `WordLevel`, `Unigram`, or
        `SentencePiece` of a ``.model``."""
        return self._kept("model", lambda: class_of(self))._of(self)

    @model.setter
    def model(self, value: Any) -> None:
        self._set_component("model", model_json(value))
        for name in ("alpha", "nbest_size", "seed"):
            if (number := getattr(value, name, None)) is not None:
                self._set_component(f"model.{name}", json.dumps(number))

    def __reduce__(self) -> tuple[Any, ...]:
        fields = json.loads(self._model_fields())
        random = {
            name: fields[name]
            for name in ("alpha", "nbest_size", "seed")
            if fields.get(name) is not None
        }
        flags = self.encode_special_tokens, self._keeps_out_control
        return _restore, (type(self), self.to_str(), flags, random)

    def __copy__(self) -> Tokenizer:
        return self._made_from(self)

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"Tokenizer({type(self.model).__name__}, {self.get_vocab_size()} tokens, {self.fingerprint[:12]})"


def _reason(error: ValueError, contents: bytes) -> str:
    """Explains why a file cannot be read, and which method reads a file of this kind."""
    start = contents.lstrip()[:1]
    if b'"token_bytes"' in contents and b'"default_vocab_size"' in contents:
        return " is a tekken.json, which bpe_engine.open_tokenizer reads"
    if start == b"{":
        return f": {error}"
    if re.match(rb"\[\w+\]\s", contents):
        return " is a vocab.txt, which Tokenizer.from_wordpiece and bpe_engine.open_tokenizer read"
    return f" is not a tokenizer.json: {str(error).removeprefix('not a tokenizer file: ')}"


def _looks_like_a_path(text: str) -> bool:
    return len(text) < 4096 and re.fullmatch(r"[^\n{\[]*[./\\][^\n]*", text) is not None


def is_ours(tokenizer: object) -> bool:
    """Returns True if a tokenizer encodes with this package.

    Args:
        tokenizer: A tokenizer from transformers, `tokenizers`, this package or any other.

    >>> import bpe_engine
    >>> is_ours(bpe_engine.get_encoding("gpt2")), is_ours(object())
    (True, False)
    """
    inner = getattr(tokenizer, "_tokenizer", None)
    return issubclass(type(tokenizer), Pipeline) or issubclass(type(inner), Pipeline)


def _restore(
    cls: type[Tokenizer], contents: str, flags: tuple[bool, bool], random: dict[str, Any]
) -> Tokenizer:
    tokenizer = cls._made_from(contents)
    restore_scores(tokenizer, contents)
    for name, value in random.items():
        tokenizer._set_component(f"model.{name}", json.dumps(value))
    tokenizer.encode_special_tokens, tokenizer._keeps_out_control = flags
    return tokenizer
