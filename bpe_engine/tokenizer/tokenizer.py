"""`Tokenizer`: the interface of transformers' tokenizers, without transformers."""

from __future__ import annotations

import codecs
import copy
import json
import logging
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import byte_level
from .._core import EncodedRows, encode_rows
from .._core import Engine as NativeEngine
from .._engine import EngineMethods, Names
from ..core import Encoding
from ..hf.component import Component
from ..hf.components import AddedToken
from ..hf.models import BPE
from ..hf.tokenizers import Tokenizer as FileTokenizer
from ..prompt import apply_template
from ..prompt.segments import trusted
from . import folder as folders
from . import rows
from .batch_encoding import BatchEncoding
from .files import FLAGS, SETTINGS, located, read_config
from .options import (
    LARGEST,
    NO_LIMIT,
    Layout,
    RowPadding,
    RowTruncation,
    Strategies,
    checked_side,
    resolve,
)
from .special import SpecialTokens, content_of, plain_token

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Call", "Tokenizer"]

_logger = logging.getLogger(__name__)

#: How to get the classes that read folders in formats of their own, by the name in the
#: configuration. The package fills it, because they are subclasses of `Tokenizer`.
FOLDER_CLASSES: dict[str, Callable[[], type[Tokenizer]]] = {}

#: How to get the classes for formats of others, with which they do more.
LOADED_CLASSES: dict[str, Callable[[], type[Tokenizer]]] = {}

_CLIP = "CLIPTokenizer"


class Call(NamedTuple):
    """The arguments of a call."""

    layout: Layout
    is_pretokenized: bool
    add_special_tokens: bool
    allowed_special: Names
    disallowed_special: Names
    fields: list[str]
    return_tensors: str | None
    #: Whether a row that is too long for the model causes a warning.
    warns: bool


class Tokenizer(EngineMethods):
    """Converts text to the inputs of a model and back, with the interface of transformers.

    Results are those of transformers' fast tokenizer for the same files. A tokenizer can be pickled
    and copied. Any number of threads may use one at once, unless one of them changes it.

    Args:
        source: An `Encoding` or a `bpe_engine.hf.Tokenizer`. It does not change: tokens are added
            to a copy.
        pad_token, bos_token, eos_token, unk_token, sep_token, cls_token, mask_token: Special
            tokens by their roles. Tokens that are missing in the vocabulary are added.
        extra_special_tokens: More special tokens: a list, or a dict of names and tokens. Names
            become attributes: ``{"image_token": "<image>"}`` adds ``tokenizer.image_token`` and
            ``tokenizer.image_token_id``.
        padding_side, truncation_side: The side on which rows are padded and truncated: ``"right"``
            or ``"left"``.
        model_max_length: The default of `max_length` for ``truncation=True`` and
            ``padding="max_length"``.
        model_input_names: The fields of a result, ``input_ids`` first.
        errors: How to decode bytes that are not UTF-8, as in ``bytes.decode``.
        chat_template: A Jinja template, or a dict of names and templates.
        add_bos_token, add_eos_token: Whether to add `bos_token` before every text and `eos_token`
            after it. By default the tokenizer file decides.
        split_special_tokens: Whether to encode names of special tokens in texts as ordinary text.
        clean_up_tokenization_spaces: The default of `decode`.
        name_or_path: The origin, shown to people.

    Raises:
        TypeError, ValueError: An argument is not as described; the message names it.
        LookupError: `errors` does not name an error handler.

    >>> import bpe_engine
    >>> gpt2 = bpe_engine.get_encoding("gpt2")
    >>> tokenizer = bpe_engine.Tokenizer(gpt2, pad_token="<|endoftext|>", padding_side="left")
    >>> batch = tokenizer(["hello world", "hello"], padding=True)
    >>> batch.input_ids, batch["attention_mask"]
    ([[31373, 995], [50256, 31373]], [[1, 1], [0, 1]])
    >>> tokenizer.decode(batch.input_ids[1], skip_special_tokens=True)
    'hello'
    """

    def __init__(
        self,
        source: Encoding | FileTokenizer,
        *,
        padding_side: str | None = None,
        truncation_side: str | None = None,
        model_max_length: int | None = None,
        model_input_names: Sequence[str] = ("input_ids", "attention_mask"),
        errors: str = "replace",
        chat_template: str | Mapping[str, str] | None = None,
        extra_special_tokens: Any = None,
        add_bos_token: bool | None = None,
        add_eos_token: bool | None = None,
        split_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool = False,
        name_or_path: str = "",
        **special_tokens: Any,
    ):
        # The encoding without and with added tokens; None for a tokenizer file.
        self._base, self._encoding, self._engine = _engine_of(source)
        padding, truncation = self._engine.padding or {}, self._engine.truncation or {}
        if padding:
            special_tokens.setdefault("pad_token", padding["pad_token"])
        self._special = SpecialTokens(
            special_tokens, extra_special_tokens, self._is_reserved, self._check_token
        )
        self._add_missing(self._special.given)
        self.padding_side: str = checked_side(
            "padding_side", padding_side or padding.get("direction", "right")
        )
        self.truncation_side: str = checked_side(
            "truncation_side", truncation_side or truncation.get("direction", "right")
        )
        self.model_max_length: int = NO_LIMIT if model_max_length is None else int(model_max_length)
        if self.model_max_length < 0:
            raise ValueError(f"model_max_length must be at least 0, but is {model_max_length}")
        self.model_input_names: list[str] = list(model_input_names)
        codecs.lookup_error(errors)
        self.errors = errors
        self.chat_template: str | dict[str, str] | None = apply_template.named_templates(
            chat_template
        )
        self.split_special_tokens: bool = bool(split_special_tokens)
        self.clean_up_tokenization_spaces: bool = bool(clean_up_tokenization_spaces)
        self.name_or_path = name_or_path
        # What ends a word in decoded text, where the class makes a space of it.
        self._word_end: str | None = None
        self._warned = False
        self._add_bos_token = bool(add_bos_token)
        self._add_eos_token = bool(add_eos_token)
        if add_bos_token is not None or add_eos_token is not None:
            self._update_template()

    @classmethod
    def _is_reserved(cls, name: str) -> bool:
        return hasattr(cls, name)

    def _add_missing(self, tokens: Sequence[AddedToken]) -> None:
        """Adds the tokens that were not added before."""
        known = set() if self._encoding else {*self.added_tokens_encoder}
        missing = [token for token in tokens if token.content not in known]
        if missing:
            self._add(missing)

    def _add(self, tokens: Sequence[AddedToken]) -> int:
        count = self._engine.add_tokens(tokens)
        core = self._engine._core_bpe()
        if count and core is not None and self._base is not None:
            base = self._base
            self._encoding = Encoding._from_core(
                f"{base.name}+",
                core,
                pat_str=base.pattern,
                special_tokens={**base.special_tokens, **self.added_tokens_encoder},
                normalization=base.normalization,
            )
        return count

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **kwargs: Any) -> Tokenizer:
        """Reads a tokenizer from a local folder.

        The vocabulary comes from ``tokenizer.json``, else from ``*.tiktoken`` or a
        ``tokenizer.model`` in tiktoken's format, else from ``vocab.json`` and ``merges.txt``, else
        from ``vocab.txt``. Everything else comes from ``tokenizer_config.json``,
        ``special_tokens_map.json`` and ``chat_template.jinja``; what they do not say, such as the
        pad token, is as in the class of transformers that they or ``config.json`` name.

        Args:
            folder: The folder. Nothing is downloaded.
            kwargs: Arguments of the class; they override the files. In addition, ``subfolder``
                names a folder in `folder`. ``pattern`` is for files in tiktoken's format that were
                not published with a pattern: a regular expression, or the name of an encoding with
                that pattern. Arguments of transformers that control downloads or the class, such as
                ``trust_remote_code``, are ignored.

        Returns:
            The tokenizer; for the folder of Qwen-7B, a `bpe_engine.qwen.QwenTokenizer`.

        Raises:
            OSError: The folder does not exist, or holds no vocabulary.
            ValueError: A file is malformed, or cannot be reproduced exactly.

        >>> import bpe_engine
        >>> tokenizer = bpe_engine.Tokenizer.from_pretrained("models/gpt2")  # doctest: +SKIP
        """
        path, arguments = located(folder, kwargs)
        config = read_config(path)
        if name := folders.class_of(path, config):
            return FOLDER_CLASSES[name]().from_pretrained(path, **arguments)
        arguments.setdefault("name_or_path", os.fspath(folder))
        source, settings, added, name = folders.load(path, config, arguments)
        if cls is Tokenizer and name in LOADED_CLASSES:
            cls, settings["layout"] = LOADED_CLASSES[name](), name
        tokenizer = cls(source, **settings)
        if added:
            tokenizer._add(added)
        if name == _CLIP:
            tokenizer._word_end = "</w>"
        return tokenizer

    def save_pretrained(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Writes a folder from which `from_pretrained` reads this tokenizer.

        Args:
            folder: The folder. It is created if it does not exist.

        Returns:
            The paths of the files.

        Raises:
            FileExistsError: The folder holds a file of another tokenizer, which would be read too.
        """
        return folders.save(Path(folder), self.backend, self._config(), self.chat_template)

    def _config(self) -> dict[str, Any]:
        """Returns the fields of ``tokenizer_config.json``."""
        config: dict[str, Any] = {
            "added_tokens_decoder": {
                str(id): {
                    "content": token.content,
                    **{flag: getattr(token, flag) for flag in FLAGS},
                }
                for id, token in self.added_tokens_decoder.items()
            },
            **{name: getattr(self, name) for name in SETTINGS},
            **self.special_tokens_map,
            "extra_special_tokens": self.extra_special_tokens,
            "add_bos_token": self.add_bos_token,
            "add_eos_token": self.add_eos_token,
        }
        if self.model_max_length >= NO_LIMIT:
            del config["model_max_length"]
        if self._word_end is not None:
            config["tokenizer_class"] = _CLIP
        return config

    @property
    def add_bos_token(self) -> bool:
        """True if `bos_token` is added before every text. Can be set."""
        return self._add_bos_token

    @add_bos_token.setter
    def add_bos_token(self, value: bool) -> None:
        self._add_bos_token = bool(value)
        self._update_template()

    @property
    def add_eos_token(self) -> bool:
        """True if `eos_token` is added after every text. Can be set."""
        return self._add_eos_token

    @add_eos_token.setter
    def add_eos_token(self, value: bool) -> None:
        self._add_eos_token = bool(value)
        self._update_template()

    def _update_template(self) -> None:
        def token(role: str, is_added: bool) -> tuple[str, int] | None:
            name, id = getattr(self, role), getattr(self, f"{role}_id")
            return (name, id) if is_added and name is not None and id is not None else None

        self._engine.post_processor = _template(
            token("bos_token", self._add_bos_token), token("eos_token", self._add_eos_token)
        )

    # ---- Copies, pickles ----

    def __copy__(self) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._engine = copy.copy(self._engine)
        other.__dict__["_special"] = self._special.copied(other._check_token)
        other.model_input_names = list(self.model_input_names)
        return other

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._base is not None:
            # An encoding from the registry is pickled as its name, even if tokens were added.
            processor = self._engine.post_processor
            state["_encoding"] = None
            state["_engine"] = (list(self.added_tokens_decoder.values()), processor)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._base is not None:
            tokens, processor = state["_engine"]
            _, self._encoding, self._engine = _engine_of(self._base)
            self._add(tokens)
            self._engine.post_processor = processor

    def __repr__(self) -> str:
        limit = self.model_max_length
        return (
            f"{type(self).__name__}(name_or_path={self.name_or_path!r}, tokens={len(self)}, "
            f"model_max_length={'None' if limit >= NO_LIMIT else limit}, "
            f"padding_side={self.padding_side!r}, truncation_side={self.truncation_side!r}, "
            f"special_tokens={self.special_tokens_map}, fingerprint={self.fingerprint[:12]!r})"
        )

    # ---- Special tokens ----

    def __getattr__(self, name: str) -> Any:
        special: SpecialTokens | None = self.__dict__.get("_special")
        if special is not None:
            if name in special.roles:
                return special.roles[name]
            role = name.removesuffix("_id")
            if role != name and role in special.roles:
                token = special.roles[role]
                return None if token is None else self._engine.token_to_id(token)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        special: SpecialTokens | None = self.__dict__.get("_special")
        role = name.removesuffix("_id")
        if special is None or role not in special.roles:
            super().__setattr__(name, value)
        elif role == name or value is None:
            special.set_role(role, value)
        else:
            token = self._id_to_token(value)
            if not isinstance(token, str):
                raise ValueError(f"{value} is not the id of a special token")
            special.set_role(role, token)

    @property
    def extra_special_tokens(self) -> list[str]:
        """The special tokens without a role. Can be set."""
        return list(self._special.extra)

    @extra_special_tokens.setter
    def extra_special_tokens(self, tokens: Any) -> None:
        self._special.set_extra(tokens)

    @property
    def extra_special_tokens_ids(self) -> list[int | None]:
        """The ids of the special tokens without a role."""
        return [self._engine.token_to_id(token) for token in self._special.extra]

    @property
    def SPECIAL_TOKENS_ATTRIBUTES(self) -> list[str]:
        """The names of the special tokens' attributes."""
        return list(self._special.roles)

    @property
    def special_tokens_map(self) -> dict[str, str]:
        """The special tokens that have a role, by its name."""
        return self._special.named()

    @property
    def all_special_tokens(self) -> list[str]:
        """Every special token once, those with a role first."""
        return self._special.all()

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of `all_special_tokens`."""
        ids = [self._engine.token_to_id(token) for token in self._special.all()]
        return [id for id in ids if id is not None]

    def add_special_tokens(
        self, special_tokens_dict: Mapping[str, Any], replace_extra_special_tokens: bool = True
    ) -> int:
        """Sets special tokens, and adds those that are missing in the vocabulary.

        Args:
            special_tokens_dict: Tokens by the names of their attributes, such as ``{"pad_token":
                "<pad>"}``. A new name that ends with ``_token`` becomes an attribute. The key
                ``"extra_special_tokens"`` has a list of tokens, or a dict of names and tokens.
            replace_extra_special_tokens: Whether a list of extra tokens replaces the present ones.

        Returns:
            The number of new tokens. The embeddings of a model need a new row for each.

        Raises:
            ValueError: A name cannot be the name of a special token.
            TypeError: A token is neither a ``str`` nor an ``AddedToken``.
        """
        return self._special.update(special_tokens_dict, replace_extra_special_tokens, self._add)

    def _check_token(self, name: str, token: str) -> None:
        """Raises ValueError if a token may not have a role; for subclasses."""

    # ---- Texts to rows of ids ----

    def __call__(
        self,
        text: Any = None,
        text_pair: Any = None,
        text_target: Any = None,
        text_pair_target: Any = None,
        *,
        add_special_tokens: bool = True,
        padding: bool | str = False,
        truncation: bool | str | None = None,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | None = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        allowed_special: Names | None = None,
        disallowed_special: Names = (),
        split_special_tokens: bool | None = None,
        num_threads: int | None = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Encodes a text, a batch of texts, or pairs of them, as inputs of a model.

        Args:
            text: A text or a list of texts; lists of words with `is_split_into_words`.
            text_pair: The second texts of pairs.
            text_target, text_pair_target: Texts whose ids are returned as ``"labels"``.
            add_special_tokens: Whether to add special tokens around each text.
            padding: True or ``"longest"`` pads rows to the longest, ``"max_length"`` to
                `max_length`.
            truncation: True or ``"longest_first"``, ``"only_first"`` or ``"only_second"`` truncates
                rows to `max_length`. By default, rows are truncated if `max_length` is given
                without `padding`.
            max_length: The length of rows; by default `model_max_length`.
            stride: The overlap, in tokens, of the rows of `return_overflowing_tokens`.
            is_split_into_words: Whether texts are lists of words.
            pad_to_multiple_of: Rounds the length of padded rows up to a multiple.
            padding_side: The side of this call, instead of that of the class.
            return_tensors: ``"np"``, ``"pt"`` or ``"tf"``; None for lists.
            return_token_type_ids, return_attention_mask: Whether to return these fields; by default
                those in `model_input_names`.
            return_overflowing_tokens: Whether to return truncated tokens as further rows; the field
                ``overflow_to_sample_mapping`` has the index of each row's text.
            return_special_tokens_mask: Whether to return ``special_tokens_mask``: 1 for added tokens
                and padding.
            return_offsets_mapping: Whether to return ``offset_mapping``: each token's characters.
            return_length: Whether to return ``length``: the number of ids of each row.
            allowed_special: The special tokens to look for in texts: ``"all"``, the default, or
                names. A tokenizer file supports only ``"all"`` and none.
            disallowed_special: The names that raise an error, or ``"all"`` that are not allowed.
            split_special_tokens: True means ``allowed_special=set()``.
            num_threads: How many threads may work on a batch, or None for as many as the machine
                runs at once.
            verbose: Whether to warn about rows that are too long for the model.

        Returns:
            The fields, as lists or tensors: for a text ``input_ids`` is a row, for a batch a list
            of rows.

        Raises:
            ValueError: The arguments contradict each other, or a text holds a disallowed name.
            TypeError: A text is not a ``str``.
            ImportError: The package of the tensors is missing.

        >>> import bpe_engine
        >>> tokenizer = bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2"))
        >>> tokenizer("hello world").input_ids
        [31373, 995]
        >>> tokenizer(["hello world", "a<|endoftext|>"], allowed_special=set())["input_ids"]
        [[31373, 995], [64, 27, 91, 437, 1659, 5239, 91, 29]]
        """
        if text is None and text_target is None:
            raise ValueError("You need to specify either `text` or `text_target`.")
        strategies = self._strategies(padding, truncation, max_length, pad_to_multiple_of, verbose)
        if split_special_tokens is None:
            split_special_tokens = self.split_special_tokens
        if allowed_special is None:
            allowed_special = set() if split_special_tokens else "all"
        optional = {
            "token_type_ids": self._is_input("token_type_ids", return_token_type_ids),
            "attention_mask": self._is_input("attention_mask", return_attention_mask),
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
            "length": return_length,
            "overflow_to_sample_mapping": return_overflowing_tokens,
        }
        call = Call(
            self._layout(
                strategies,
                stride,
                pad_to_multiple_of,
                padding_side,
                return_overflowing_tokens,
                num_threads,
            ),
            is_split_into_words,
            add_special_tokens,
            allowed_special,
            disallowed_special,
            ["input_ids", *(name for name, is_wanted in optional.items() if is_wanted)],
            return_tensors,
            verbose and strategies.max_length is None,
        )
        if text is None:
            return self._encode_target(text_target, text_pair_target, call)
        result = self._encode(text, text_pair, call)
        if text_target is not None:
            target = self._encode_target(text_target, text_pair_target, call)
            result["labels"] = target["input_ids"]
        return result

    def _is_input(self, name: str, is_wanted: bool | None) -> bool:
        return name in self.model_input_names if is_wanted is None else is_wanted

    def _encode(
        self, text: Any, text_pair: Any, call: Call, engine: FileTokenizer | None = None
    ) -> BatchEncoding:
        inputs, is_batch = rows.inputs_of(text, text_pair, call.is_pretokenized)

        def make(detailed: bool) -> EncodedRows:
            return encode_rows(
                engine or self._engine,
                inputs,
                is_pretokenized=call.is_pretokenized,
                add_special_tokens=call.add_special_tokens,
                truncation=call.layout.truncation,
                padding=call.layout.padding,
                detailed=detailed,
                overflow=call.layout.overflow,
                num_threads=call.layout.num_threads,
                allowed_special=call.allowed_special,
                disallowed_special=call.disallowed_special,
            )

        made = make("offset_mapping" in call.fields)
        if call.warns:
            self._warn_if_too_long(made)
        return rows.result(
            made,
            lambda: make(True).encodings(),
            call.fields,
            call.return_tensors,
            is_batch or call.layout.overflow,
        )

    def _encode_target(self, text: Any, text_pair: Any, call: Call) -> BatchEncoding:
        return self._encode(text, text_pair, call)

    def encode(self, text: Any, text_pair: Any = None, **kwargs: Any) -> list[int]:
        """Returns the ids of a text. The arguments are those of a call."""
        return list(self(text, text_pair, **kwargs)["input_ids"])

    def encode_plus(self, text: Any, text_pair: Any = None, **kwargs: Any) -> BatchEncoding:
        """Calls the tokenizer."""
        return self(text, text_pair, **kwargs)

    def batch_encode_plus(self, batch: Sequence[Any], **kwargs: Any) -> BatchEncoding:
        """Calls the tokenizer with a list of texts, or of pairs."""
        return self(list(batch), **kwargs)

    def tokenize(
        self, text: Any, pair: Any = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Returns the tokens of a text. The arguments are those of a call."""
        made = self(text, pair, add_special_tokens=add_special_tokens, **kwargs)
        if self._encoding is None:
            # The token of a file may take white space of the text along.
            return made.tokens()
        return list(self.convert_ids_to_tokens(made["input_ids"]))

    def pad(
        self,
        encoded_inputs: Any,
        padding: bool | str = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: str | None = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Pads rows that a call returned.

        Args:
            encoded_inputs: The result of a call for one text or a batch, or a list of results.
                Fields that are not rows of ids do not change.
            padding, max_length, pad_to_multiple_of, padding_side: As in a call.
            return_attention_mask, return_tensors, verbose: As in a call.

        Raises:
            ValueError: The arguments contradict each other, or ``input_ids`` is missing.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> tokenizer = bpe_engine.Tokenizer(gpt2, pad_token="<|endoftext|>")
        >>> tokenizer.pad(tokenizer(["hello world", "hello"])).input_ids
        [[31373, 995], [31373, 50256]]
        """
        strategies = self._strategies(padding, None, max_length, pad_to_multiple_of, verbose)
        strategies = strategies._replace(truncation="do_not_truncate")
        if return_attention_mask is None:
            return_attention_mask = "attention_mask" in self.model_input_names
        return rows.padded(
            encoded_inputs,
            self._layout(strategies, 0, pad_to_multiple_of, padding_side),
            return_attention_mask,
            return_tensors,
        )

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Returns the number of special tokens that a call adds to a text, or to a pair."""
        return self._engine.num_special_tokens_to_add(pair)

    @property
    def max_len_single_sentence(self) -> int:
        """The largest number of ids of a text, without added tokens, that fit the model."""
        return self.model_max_length - self.num_special_tokens_to_add(False)

    @property
    def max_len_sentences_pair(self) -> int:
        """The largest number of ids of a pair, without added tokens, that fit the model."""
        return self.model_max_length - self.num_special_tokens_to_add(True)

    def get_special_tokens_mask(
        self,
        token_ids_0: Sequence[int],
        token_ids_1: Sequence[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """Returns 1 for each id of a special token, 0 for others.

        Args:
            token_ids_0: Ids with the special tokens that a call adds.
            token_ids_1: Must be None.
            already_has_special_tokens: Must be True. To get the mask of a text, call the tokenizer
                with ``return_special_tokens_mask=True``.

        Raises:
            ValueError: Another argument is given.
        """
        if token_ids_1 is not None or not already_has_special_tokens:
            raise ValueError(
                "the mask needs ids with special tokens: pass already_has_special_tokens="
                "True, or call the tokenizer with return_special_tokens_mask=True"
            )
        special = set(self.all_special_ids)
        return [int(id in special) for id in token_ids_0]

    def _strategies(
        self, padding: Any, truncation: Any, max_length: Any, multiple: Any, verbose: bool
    ) -> Strategies:
        return resolve(
            padding,
            truncation,
            max_length,
            multiple,
            self.model_max_length,
            self.pad_token,
            verbose,
        )

    def _layout(
        self,
        strategies: Strategies,
        stride: int,
        pad_to_multiple_of: int | None,
        padding_side: str | None,
        overflow: bool = False,
        num_threads: int | None = None,
    ) -> Layout:
        cut = fill = None
        if strategies.truncation != "do_not_truncate" and strategies.max_length is not None:
            if operator.index(stride) < 0:
                raise ValueError(f"stride must be at least 0, but is {stride}")
            stride = min(operator.index(stride), LARGEST)
            side = checked_side("truncation_side", self.truncation_side)
            cut = RowTruncation(strategies.max_length, stride, strategies.truncation, side)
        if strategies.padding != "do_not_pad":
            side = checked_side("padding_side", padding_side or self.padding_side)
            length = strategies.max_length if strategies.padding == "max_length" else None
            pad_id = self.pad_token_id
            if pad_id is None:
                raise ValueError(f"the pad_token {self.pad_token!r} is not a token; add it first")
            fill = RowPadding(
                length,
                side,
                min(pad_to_multiple_of or 0, LARGEST) or None,
                pad_id,
                0,
                self.pad_token,
            )
        return Layout(cut, fill, overflow, num_threads)

    def _warn_if_too_long(self, rows: EncodedRows) -> None:
        if self.model_max_length >= NO_LIMIT:
            return
        longest = max(rows.lengths(), default=0)
        if longest > self.model_max_length and not self._warned:
            self._warned = True
            _logger.warning(
                "Token indices sequence length is longer than the specified maximum sequence length "
                "for this model (%d > %d). Running this sequence through the model will result in "
                "indexing errors",
                longest,
                self.model_max_length,
            )

    @property
    def pad_token_type_id(self) -> int:
        """The padding of ``token_type_ids``: 0."""
        return 0

    # ---- Ids to text ----

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        errors: str | None = None,
    ) -> Any:
        """Decodes ids to text.

        Args:
            token_ids: An int, a list or array of ids, a list of rows, a `TokenBatch`, or the result
                of a call.
            skip_special_tokens: Whether to leave special tokens out.
            clean_up_tokenization_spaces: Whether to remove spaces before punctuation and in
                contractions; by default as in the class. Ignored with BPE, whose tokens contain their
                spaces.
            errors: How to decode bytes that are not UTF-8; by default as in the class.

        Returns:
            The text; a list of texts for several rows.

        Raises:
            KeyError: An id is not a token's. (With a tokenizer file, such ids are left out.)
            UnicodeDecodeError: The bytes are not UTF-8, and `errors` is ``"strict"``.

        >>> import bpe_engine
        >>> tokenizer = bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2"))
        >>> tokenizer.decode([31373, 995]), tokenizer.decode([[31373], [995]])
        ('hello world', ['hello', ' world'])
        """
        ids = rows.plain_ids(token_ids)
        wanted = clean_up_tokenization_spaces
        is_clean = self.clean_up_tokenization_spaces if wanted is None else wanted
        if ids and isinstance(ids[0], (list, tuple)):
            return [self._text(row, skip_special_tokens, is_clean, errors) for row in ids]
        return self._text(ids, skip_special_tokens, is_clean, errors)

    def batch_decode(
        self, sequences: Any, skip_special_tokens: bool = False, **kwargs: Any
    ) -> list[str]:
        """Decodes each row of ids to text. The arguments are those of `decode`."""
        if isinstance(sequences, Mapping):
            sequences = sequences["input_ids"]
        return [self.decode(row, skip_special_tokens, **kwargs) for row in sequences]

    def _text(
        self, ids: Sequence[int], skip_special_tokens: bool, is_clean: bool, errors: str | None
    ) -> str:
        text = self._decode(ids, skip_special_tokens, errors)
        if self._word_end is not None:
            text = text.replace(self._word_end, " ").strip()
        if is_clean and type(self._engine.model) is not BPE:
            text = self.clean_up_tokenization(text)
        return text

    @staticmethod
    def clean_up_tokenization(text: str) -> str:
        """Removes spaces before punctuation and in contractions of a decoded text.

        >>> import bpe_engine
        >>> bpe_engine.Tokenizer.clean_up_tokenization("it 's here , is n't it ?")
        "it's here, isn't it?"
        """
        for end in (" .", " ?", " !", " ,"):
            text = text.replace(end, end[1:])
        text = text.replace(" ' ", "'")
        for end in (" n't", " 'm", " 's", " 've", " 're"):
            text = text.replace(end, end[1:])
        return text

    def _decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str | None) -> str:
        errors = errors or self.errors
        if errors == "replace":
            return self._engine.decode(ids, skip_special_tokens)
        return self._engine._decode_bytes(ids, skip_special_tokens).decode("utf-8", errors)

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Returns the token of an id, or a list of the tokens of several ids."""
        if hasattr(ids, "__index__") and not getattr(ids, "ndim", 0):
            return self._id_to_token(operator.index(ids))
        skipped = set(self.all_special_ids) if skip_special_tokens else set()
        return [self._id_to_token(id) for id in map(operator.index, ids) if id not in skipped]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Returns the id of a token, or a list of ids. Unknown tokens have the id of `unk_token`."""
        if tokens is None:
            return None
        if isinstance(tokens, (str, bytes)):
            id = self._token_to_id(tokens)
            return self.unk_token_id if id is None else id
        return [self.convert_tokens_to_ids(token) for token in tokens]

    def convert_tokens_to_string(self, tokens: Sequence[Any]) -> str:
        """Returns the text of tokens."""
        decoder = self._engine.decoder
        if self._encoding is None and self.errors == "replace":
            return " ".join(tokens) if decoder is None else decoder.decode(tokens)
        if decoder is None or decoder.type != "ByteLevel":
            kind = None if decoder is None else decoder.type
            raise ValueError(
                f"errors={self.errors!r} is for tokenizer files with the decoder ByteLevel, not "
                f"{kind}"
            )
        return b"".join(map(_token_bytes, tokens)).decode("utf-8", self.errors)

    def _token_to_id(self, token: Any) -> int | None:
        if isinstance(token, bytes):
            return None
        return self._engine.token_to_id(token)

    def _id_to_token(self, id: int) -> str | bytes | None:
        return self._engine.id_to_token(id) if 0 <= id < 2**32 else None

    # ---- The vocabulary ----

    @property
    def backend(self) -> Encoding | FileTokenizer:
        """The `Encoding` or `bpe_engine.hf.Tokenizer` that encodes."""
        return self._engine if self._encoding is None else self._encoding

    @property
    def fingerprint(self) -> str:
        """The fingerprint of what encodes: that of `backend` and of the tokens that are added to
        each text. Arguments of calls, and roles of tokens, are not in it.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> bpe_engine.Tokenizer(gpt2).fingerprint == gpt2.fingerprint
        True
        """
        engine = self._engine
        if self.split_special_tokens and not engine.encode_special_tokens:
            engine = copy.copy(engine)
            engine.encode_special_tokens = True
        return engine.fingerprint

    @property
    def is_fast(self) -> bool:
        """True: tokens have offsets."""
        return True

    @property
    def vocab_size(self) -> int:
        """The number of tokens without the added ones."""
        return self._engine.get_vocab_size(False)

    def __len__(self) -> int:
        return self._engine.get_vocab_size(True)

    def __bool__(self) -> bool:
        return True

    def get_vocab(self) -> dict[Any, int]:
        """Returns tokens and ids, including added tokens."""
        return dict(self._engine.get_vocab(True))

    @property
    def vocab(self) -> dict[Any, int]:
        """Tokens and ids; see `get_vocab`."""
        return self.get_vocab()

    @property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by id."""
        return dict(sorted(self._engine.get_added_tokens_decoder().items()))

    @property
    def added_tokens_encoder(self) -> dict[str, int]:
        """The ids of the added tokens."""
        return {token.content: id for id, token in self.added_tokens_decoder.items()}

    def get_added_vocab(self) -> dict[str, int]:
        """Returns `added_tokens_encoder`."""
        return self.added_tokens_encoder

    def add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        """Adds tokens to the vocabulary.

        Args:
            new_tokens: A ``str`` or an ``AddedToken``, or a list of them.
            special_tokens: Whether they are special tokens.

        Returns:
            The number of new tokens. The embeddings of a model need a new row for each.

        >>> import bpe_engine
        >>> tokenizer = bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2"))
        >>> tokenizer.add_tokens(["<tool>"]), tokenizer.encode("a<tool>")
        (1, [64, 50257])
        """
        listed = new_tokens if isinstance(new_tokens, (list, tuple)) else [new_tokens]
        tokens = []
        for token in listed:
            self._check_token("extra_special_tokens", content_of(token))
            tokens.append(plain_token(token, special_tokens))
        return self._add(tokens) if tokens else 0

    # ---- Prompts ----

    @property
    def _allowed_by_default(self) -> Names:
        return () if self.split_special_tokens else self._engine._allowed_by_default

    @property
    def _errors(self) -> str:  # type: ignore[override]
        return self.errors

    @property
    def _label(self) -> str:
        return self.backend._label

    @property
    def _special_ids(self) -> set[int]:
        return self._engine._special_ids

    @property
    def _native_engine(self) -> NativeEngine:
        return self._engine._native_engine

    @property
    def special_tokens_set(self) -> set[str]:
        """The names of the added tokens. Untrusted text never becomes one of them."""
        return set(self.added_tokens_encoder)

    def get_chat_template(self, chat_template: str | None = None, tools: Any = None) -> str:
        """Returns the template for a conversation.

        Args:
            chat_template: A template, or the name of one of the tokenizer's; by default the
                tokenizer's own.
            tools: The tools of the conversation. With tools, a template named "tool_use" is
                preferred to "default".

        Raises:
            ValueError: The tokenizer lacks a template, or has several without a default.
        """
        return apply_template.choose(self.chat_template, chat_template, tools)

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        tokenize: bool = True,
        padding: bool | str = False,
        truncation: bool | str = False,
        max_length: int | None = None,
        return_tensors: str | None = None,
        return_dict: bool = True,
        return_assistant_tokens_mask: bool = False,
        **variables: Any,
    ) -> Any:
        """Encodes a conversation with a chat template.

        `bpe_engine.prompt.render_template` renders it: only text of the template itself can become
        a special token. Names of special tokens in messages, tools and documents are ordinary text.
        Without such names, the ids are those of transformers.

        Args:
            conversation: A list of messages, or a list of conversations.
            tools: JSON schemas of functions.
            documents: Mappings for the template.
            chat_template: A template, or the name of one of the tokenizer's.
            add_generation_prompt: Whether the prompt ends with the beginning of an answer.
            continue_final_message: Whether to leave the last message open, or the name of its field
                that is left open.
            tokenize: Whether to return ids rather than text.
            padding, truncation, max_length, return_tensors: As in a call.
            return_dict: Whether to return a `BatchEncoding` rather than ids.
            return_assistant_tokens_mask: Whether to return ``assistant_masks``: 1 for ids inside
                ``{% generation %}`` blocks, as in transformers. If the template has none, for ids
                of what the assistant's messages say and the end of their turn: see `Audit.mask`.
            variables: More variables of the template.

        Returns:
            A `BatchEncoding`, ids or a text, as the arguments ask; for several conversations, rows
            or a list.

        Raises:
            ValueError: The tokenizer lacks a template, or the arguments contradict each other.
            Exception: A ``TemplateError`` of jinja2: the template has errors, or refuses the
                conversation.
            ImportError: jinja2 is missing (the extra ``chat``).
        """
        if return_assistant_tokens_mask and not (return_dict and tokenize):
            raise ValueError(
                "`return_assistant_tokens_mask=True` requires `return_dict=True` and `tokenize=True`"
            )
        prompts, is_batch = apply_template.render(
            self.get_chat_template(chat_template, tools),
            conversation,
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            variables={**self._trusted_tokens(), **variables},
        )
        if not tokenize:
            texts = ["".join(segment.text for segment in prompt) for prompt in prompts]
            return texts if is_batch else texts[0]
        strategies = self._strategies(padding, truncation, max_length, None, True)
        fields: dict[str, Any] = {}
        if return_assistant_tokens_mask:
            audits = [self.audit_segments(prompt) for prompt in prompts]
            fields["input_ids"] = [audit.ids for audit in audits]
            # Truncated and padded as the ids are; type ids are padded with 0.
            fields["token_type_ids"] = [audit.mask(mixed=audit.has_tags) for audit in audits]
        else:
            fields["input_ids"] = [self.encode_segments(prompt) for prompt in prompts]
        made = rows.arranged(fields, self._layout(strategies, 0, None, None))
        names = [name for name in ("input_ids", "attention_mask") if name in self.model_input_names]
        output = rows.result(made, None, names, return_tensors, is_batch)
        types = rows.result(made, None, ["token_type_ids"], return_tensors, is_batch)
        if return_assistant_tokens_mask:
            output["assistant_masks"] = types["token_type_ids"]
        elif "token_type_ids" in self.model_input_names:
            output["token_type_ids"] = types["token_type_ids"]
        return output if return_dict else output["input_ids"]

    def _trusted_tokens(self) -> dict[str, Any]:
        return {name: trusted(token) for name, token in self.special_tokens_map.items()}


def _engine_of(source: Any) -> tuple[Encoding | None, Encoding | None, FileTokenizer]:
    """Returns the values of `_base`, `_encoding` and `_engine` for a source."""
    if isinstance(source, Encoding):
        return source, source, FileTokenizer(source._core_bpe, dict(source.special_tokens))
    if isinstance(source, FileTokenizer):
        return None, None, copy.copy(source)
    hint = ""
    if isinstance(source, str):
        call = "Tokenizer.from_pretrained" if os.path.isdir(source) else "get_encoding"
        hint = f'; get it first: bpe_engine.{call}("{source}")'
    raise TypeError(
        "a Tokenizer is made of an Encoding or a bpe_engine.hf.Tokenizer, not "
        f"{type(source).__name__}{hint}"
    )


def _template(bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> Component | None:
    """Returns a post-processor that adds these tokens to every text."""

    def around(sequence: str, type_id: int) -> list[dict[str, Any]]:
        pieces: list[dict[str, Any]] = [{"Sequence": {"id": sequence, "type_id": type_id}}]
        if bos:
            pieces.insert(0, {"SpecialToken": {"id": bos[0], "type_id": type_id}})
        if eos:
            pieces.append({"SpecialToken": {"id": eos[0], "type_id": type_id}})
        return pieces

    tokens = {
        name: {"id": name, "ids": [id], "tokens": [name]} for name, id in filter(None, (bos, eos))
    }
    if not tokens:
        return None
    spec = json.dumps(
        {
            "type": "TemplateProcessing",
            "single": around("A", 0),
            "pair": around("A", 0) + around("B", 1),
            "special_tokens": tokens,
        }
    )
    template: Component = Component("post_processor", spec)
    return template


def _token_bytes(token: Any) -> bytes:
    """Returns the bytes of a byte-level token, or the UTF-8 of another token."""
    if isinstance(token, bytes):
        return token
    if not isinstance(token, str):
        raise TypeError(f"a token is a str or bytes, not {type(token).__name__}")
    try:
        return byte_level.bytes_of(token)
    except KeyError:
        return token.encode()
