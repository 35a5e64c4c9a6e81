"""`Tokenizer`: the habits of transformers' tokenizers, without transformers."""

from __future__ import annotations

import copy
import logging
import operator
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .._core import EncodedRows
from ..core import Encoding
from ..hf.tokenizer import Tokenizer as FileTokenizer
from . import chat, rows
from .backend import Backend, Layout
from .batch_encoding import BatchEncoding
from .encoding_backend import EncodingBackend
from .file_backend import FileBackend
from .lookup import Lookup
from .options import NO_LIMIT, Strategies, resolve

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Tokenizer"]

_logger = logging.getLogger(__name__)

_Names = Literal["all"] | Collection[str]


class _Call(NamedTuple):
    """What the arguments of a call come to."""

    layout: Layout
    is_pretokenized: bool
    add_special_tokens: bool
    allowed_special: _Names
    disallowed_special: _Names
    fields: list[str]
    return_tensors: str | None
    #: Whether a row that is longer than the model takes is worth a warning.
    warns: bool


class Tokenizer(Lookup):
    """Text to the inputs of a model and back, with the calls that users of transformers know.

    Where transformers' fast tokenizer reads the same files, the same calls give the same. A
    tokenizer can be pickled and copied, and any number of threads may use one at once, as long as
    none changes it.

    Args:
        source: An `Encoding`, or a `bpe_engine.hf.Tokenizer`. It stays as it is: tokens are added
            to a copy.
        pad_token, bos_token, eos_token, unk_token, sep_token, cls_token, mask_token: Special
            tokens by the part they play. Those that the vocabulary does not have are added.
        extra_special_tokens: More special tokens: a list, or a dict with their names, which become
            attributes: ``{"image_token": "<image>"}`` gives ``tokenizer.image_token`` and
            ``tokenizer.image_token_id``.
        padding_side, truncation_side: Where texts are filled up and cut: ``"right"`` or ``"left"``.
        model_max_length: The length for ``truncation=True`` and ``padding="max_length"`` without
            `max_length`.
        model_input_names: The fields of a result, ``input_ids`` first.
        errors: What decoding does with bytes that are not UTF-8, as ``bytes.decode``.
        chat_template: A template in Jinja, or a dict of names and templates.
        add_bos_token, add_eos_token: Whether `bos_token` is added before every text, and
            `eos_token` behind it. None: as the tokenizer file says.
        split_special_tokens: Whether the names of special tokens in texts are ordinary text.
        name_or_path: Where it came from, for people.

    Raises:
        TypeError, ValueError: An argument is not as described; the message names it.

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
        name_or_path: str = "",
        **special_tokens: Any,
    ):
        backend = self._backend_of(source)
        stored = backend.defaults()
        if stored.pad_token is not None:
            special_tokens.setdefault("pad_token", stored.pad_token)
        self._init(backend, special_tokens, extra_special_tokens)
        self.padding_side = _side("padding_side", padding_side or stored.padding_side)
        self.truncation_side = _side("truncation_side", truncation_side or stored.truncation_side)
        self.model_max_length = NO_LIMIT if model_max_length is None else int(model_max_length)
        self.model_input_names = list(model_input_names)
        self.errors = errors
        self.chat_template = chat.named_templates(chat_template)
        self.split_special_tokens = bool(split_special_tokens)
        self.name_or_path = name_or_path
        self._add_bos_token = bool(add_bos_token)
        self._add_eos_token = bool(add_eos_token)
        if add_bos_token is not None or add_eos_token is not None:
            self._update_template()

    def _backend_of(self, source: Any) -> Backend:
        return _backend_of(source)

    def _init(self, backend: Backend, special_tokens: Mapping[str, Any], extra: Any) -> None:
        self._backend = backend
        tokens = self._init_special(special_tokens, extra)
        for name, token in self.special_tokens_map.items():
            self._check_token(name, token)
        known = {token.content for token in backend.added_tokens().values()}
        missing = [token for token in tokens if token.content not in known]
        if missing:
            backend.add_tokens(missing)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **kwargs: Any) -> Tokenizer:
        """A tokenizer out of a folder on this machine.

        The vocabulary is read from ``tokenizer.json``; or from ``*.tiktoken`` or a
        ``tokenizer.model`` in the format of tiktoken; or from ``vocab.json`` and ``merges.txt``.
        What else there is to know comes from ``tokenizer_config.json``, ``special_tokens_map.json``
        and ``chat_template.jinja``. The folder of Qwen-7B gives a `bpe_engine.qwen.QwenTokenizer`.

        Args:
            folder: The folder. Nothing is downloaded.
            kwargs: Arguments of the class, before those of the files. For a file in tiktoken's
                format, ``pattern``: the name of an encoding with the same pattern, or a regular
                expression; it need not be given for published files.

        Raises:
            OSError: There is no such folder, or nothing in it is a vocabulary.
            ValueError: A file is malformed, or asks for what cannot be done exactly.
        """
        from .folder import load

        return load(cls, folder, kwargs)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Writes a folder that `from_pretrained` reads as this tokenizer. Returns its files."""
        from .folder import save

        return save(self, folder)

    # ---- Text to ids ----

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
        allowed_special: _Names | None = None,
        disallowed_special: _Names = (),
        split_special_tokens: bool | None = None,
        num_threads: int | None = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """The inputs of a model for a text, a batch of texts, or pairs.

        Args:
            text: A text, or a list of texts; with `is_split_into_words` lists of words.
            text_pair: The second texts of pairs.
            text_target, text_pair_target: Texts whose ids are returned under ``"labels"``.
            add_special_tokens: Whether the tokens around a text are added.
            padding: True or ``"longest"``: rows are filled up to the longest; ``"max_length"``: to
                `max_length`.
            truncation: True or ``"longest_first"``, ``"only_first"``, ``"only_second"``: rows are
                cut to `max_length`. By default they are if `max_length` is given and `padding` is
                not.
            max_length: By default, `model_max_length`.
            stride: By how many tokens the parts overlap that `return_overflowing_tokens` gives.
            is_split_into_words: Texts are lists of words.
            pad_to_multiple_of: The length of filled up rows is a multiple of it.
            padding_side: As in the class, for this call.
            return_tensors: ``"np"``, ``"pt"`` or ``"tf"``; None for lists.
            return_token_type_ids, return_attention_mask: Whether there is such a field; by default
                as `model_input_names` says.
            return_overflowing_tokens: What is cut off becomes rows of its own;
                ``overflow_to_sample_mapping`` says which text each row is of.
            return_special_tokens_mask: ``special_tokens_mask``: 1 for added tokens and padding.
            return_offsets_mapping: ``offset_mapping``: the characters of each token.
            return_length: ``length``: how many ids each row has.
            allowed_special: The special tokens that are found in texts: ``"all"``, which is the
                default, or their names. A tokenizer file can look for all or none of them.
            disallowed_special: The names that raise an error, ``"all"`` for those that are not
                allowed.
            split_special_tokens: The same as ``allowed_special=set()``.
            num_threads: How many threads may work on a batch, or None for as many as the machine
                runs at once.

        Raises:
            ValueError: The arguments do not fit together, or a text holds a disallowed name.
            TypeError: A text is no ``str``.
            ImportError: The package of the tensors is missing.
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
        call = _Call(
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
            return self._encode(text_target, text_pair_target, call)
        result = self._encode(text, text_pair, call)
        if text_target is not None:
            target = self._encode(text_target, text_pair_target, call)
            result["labels"] = target["input_ids"]
        return result

    def _is_input(self, name: str, is_wanted: bool | None) -> bool:
        return name in self.model_input_names if is_wanted is None else is_wanted

    def _encode(self, text: Any, text_pair: Any, call: _Call) -> BatchEncoding:
        inputs, is_batch = rows.inputs_of(text, text_pair, call.is_pretokenized)

        def make(detailed: bool) -> EncodedRows:
            return self._backend.rows(
                inputs,
                call.layout,
                is_pretokenized=call.is_pretokenized,
                add_special_tokens=call.add_special_tokens,
                detailed=detailed,
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

    def encode(self, text: Any, text_pair: Any = None, **kwargs: Any) -> list[int]:
        """The ids of a text. The arguments are those of a call."""
        return list(self(text, text_pair, **kwargs)["input_ids"])

    def encode_plus(self, text: Any, text_pair: Any = None, **kwargs: Any) -> BatchEncoding:
        """The same as a call."""
        return self(text, text_pair, **kwargs)

    def batch_encode_plus(self, batch: Sequence[Any], **kwargs: Any) -> BatchEncoding:
        """The same as a call with a list of texts, or of pairs."""
        return self(list(batch), **kwargs)

    def tokenize(
        self, text: Any, pair: Any = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[Any]:
        """The tokens of a text. The arguments are those of a call."""
        made = self(text, pair, add_special_tokens=add_special_tokens, **kwargs)
        if self._backend.tokens_come_from_text:
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
        """Fills up rows that a call gave before.

        Args:
            encoded_inputs: What a call returned, for one text or for a batch; or a list of that.
                Fields that are no rows of ids stay as they are.
            padding, max_length, pad_to_multiple_of, padding_side: As in a call.
            return_attention_mask, return_tensors: As in a call.
        """
        strategies = self._strategies(padding, None, max_length, pad_to_multiple_of, verbose)
        # Nothing is cut here.
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
        """How many tokens are added to a text, or to a pair."""
        return self._backend.num_added(pair)

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
            side = _side("truncation_side", self.truncation_side)
            cut = (strategies.max_length, stride, strategies.truncation, side)
        if strategies.padding != "do_not_pad":
            side = _side("padding_side", padding_side or self.padding_side)
            length = strategies.max_length if strategies.padding == "max_length" else None
            pad_id = self.pad_token_id
            if pad_id is None:
                raise ValueError(f"the pad_token {self.pad_token!r} is no token; add it first")
            fill = (length, side, pad_to_multiple_of or None, pad_id, 0, self.pad_token)
        return Layout(cut, fill, overflow, num_threads)

    def _warn_if_too_long(self, rows: EncodedRows) -> None:
        if self.model_max_length >= NO_LIMIT:
            return
        longest = max(rows.lengths(), default=0)
        if longest > self.model_max_length and not self.__dict__.get("_warned"):
            object.__setattr__(self, "_warned", True)
            _logger.warning(
                "Token indices sequence length is longer than the specified maximum sequence length "
                "for this model (%d > %d). Running this sequence through the model will result in "
                "indexing errors",
                longest,
                self.model_max_length,
            )

    @property
    def pad_token_type_id(self) -> int:
        """What ``token_type_ids`` are filled up with."""
        return 0

    @property
    def add_bos_token(self) -> bool:
        """Whether `bos_token` is added before every text. May be set."""
        return self._add_bos_token

    @add_bos_token.setter
    def add_bos_token(self, value: bool) -> None:
        self._add_bos_token = bool(value)
        self._update_template()

    @property
    def add_eos_token(self) -> bool:
        """Whether `eos_token` is added behind every text. May be set."""
        return self._add_eos_token

    @add_eos_token.setter
    def add_eos_token(self, value: bool) -> None:
        self._add_eos_token = bool(value)
        self._update_template()

    def _update_template(self) -> None:
        def token(role: str, is_added: bool) -> tuple[str, int] | None:
            name, id = self._roles[role], getattr(self, f"{role}_id")
            return (name, id) if is_added and name is not None and id is not None else None

        self._backend.set_template(
            token("bos_token", self._add_bos_token), token("eos_token", self._add_eos_token)
        )

    # ---- Prompts ----

    def get_chat_template(self, chat_template: str | None = None, tools: Any = None) -> str:
        """The template for a conversation: `chat_template`, if it is one, that of this name, or the
        tokenizer's own. ValueError if there is none."""
        return chat.choose(self.chat_template, chat_template, tools)

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
        """The prompt of a conversation.

        It is rendered by `bpe_engine.prompt.render_template`: only what the template itself says
        can become a special token. Names of special tokens in messages, tools and documents are
        ordinary text. Where there are none, the ids are those of transformers.

        Args:
            conversation: Messages, or a list of conversations.
            tools: JSON schemas of functions.
            documents: Mappings for the template.
            chat_template: A template, or the name of one of the tokenizer's.
            add_generation_prompt: Whether the prompt ends with the beginning of an answer.
            continue_final_message: Whether the last message is left open; or the name of its part
                that is.
            tokenize: Whether ids are returned. Otherwise the text is.
            padding, truncation, max_length, return_tensors: As in a call.
            return_dict: Whether a `BatchEncoding` is returned. Otherwise the ids are.
            return_assistant_tokens_mask: ``assistant_masks``: 1 for ids inside ``{% generation %}``
                blocks.
            variables: More for the template, by name.

        Raises:
            ValueError: There is no template, or the arguments do not fit together.
            Exception: A ``TemplateError`` of jinja2: the template has errors, or refuses the
                conversation.
            ImportError: jinja2 is missing (the extra ``chat``).
        """
        if return_assistant_tokens_mask and not (return_dict and tokenize):
            raise ValueError(
                "`return_assistant_tokens_mask=True` requires `return_dict=True` and `tokenize=True`"
            )
        prompts, is_batch = chat.render(
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
        encoded = [
            self._backend.encode_segments(prompt, return_assistant_tokens_mask)
            for prompt in prompts
        ]
        fields = {"input_ids": [ids for ids, _ in encoded]}
        if return_assistant_tokens_mask:
            # Cut and filled up as the ids are; 0 is what type ids are filled up with.
            fields["token_type_ids"] = [mask for _, mask in encoded]
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
        from ..prompt.segments import trusted

        return {name: trusted(token) for name, token in self.special_tokens_map.items()}

    # ---- Copies, pickles ----

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        for name, value in self.__dict__.items():
            object.__setattr__(other, name, value)
        object.__setattr__(other, "_backend", self._backend.copied())
        object.__setattr__(other, "_roles", dict(self._roles))
        object.__setattr__(other, "_extra", list(self._extra))
        object.__setattr__(other, "model_input_names", list(self.model_input_names))
        return other

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        limit = self.model_max_length
        return (
            f"{type(self).__name__}(name_or_path={self.name_or_path!r}, tokens={len(self)}, "
            f"model_max_length={'None' if limit >= NO_LIMIT else limit}, "
            f"padding_side={self.padding_side!r}, truncation_side={self.truncation_side!r}, "
            f"special_tokens={self.special_tokens_map})"
        )


def _side(name: str, side: str) -> str:
    if side not in ("left", "right"):
        raise ValueError(f'{name} must be "right" or "left", not {side!r}')
    return side


def _backend_of(source: Any) -> Backend:
    """The backend around an `Encoding` or a `bpe_engine.hf.Tokenizer`, which stay as they are."""
    if isinstance(source, Encoding):
        return EncodingBackend(source)
    if isinstance(source, FileTokenizer):
        return FileBackend(copy.copy(source))
    hint = f'; get it first: bpe_engine.get_encoding("{source}")' if isinstance(source, str) else ""
    raise TypeError(
        "a Tokenizer stands on an Encoding or on a bpe_engine.hf.Tokenizer, not "
        f"{type(source).__name__}{hint}"
    )
