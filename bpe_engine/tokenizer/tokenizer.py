"""`Tokenizer`: the interface of transformers' tokenizers, without transformers."""

from __future__ import annotations

import codecs
import copy
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.tensors import framework
from ..common.values import listed
from ..core import Encoding
from ..hf.component import Component
from ..hf.components import AddedToken
from ..hf.tokenizers import Tokenizer as FileTokenizer
from ..prompt import apply_template
from ..prompt.segments import trusted
from . import folder as folders
from . import rows
from .calling import Calling
from .files import FLAGS, SETTINGS, located, read_config
from .options import NO_LIMIT, checked_side
from .special import SpecialTokens

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Tokenizer"]

#: Subclasses for special folder formats, registered by the package.
SUBCLASSES: dict[str, Callable[[], type[Tokenizer]]] = {}

_CLIP = "CLIPTokenizer"


class Tokenizer(Calling):
    """Converts text to the inputs of a model and back, with the interface of transformers.

    Results equal transformers' fast tokenizer's for the same files. A tokenizer can be
    pickled and copied. Any number of threads can use it at once, unless a thread changes it.

    Args:
        source: An `Encoding` or a `bpe_engine.hf.Tokenizer`. The source does not change: tokens are
            added to a copy.
        pad_token, bos_token, eos_token, unk_token, sep_token, cls_token, mask_token: Special
            tokens by their roles. Tokens that the vocabulary lacks are added.
        extra_special_tokens: More special tokens: a list, or a dict of names and tokens. Names
            become attributes: ``{"image_token": "<image>"}`` adds ``tokenizer.image_token`` and
            ``tokenizer.image_token_id``.
        padding_side, truncation_side: The side on which rows are padded and truncated: ``"right"``
            or ``"left"``.
        model_max_length: The default of `max_length` for ``truncation=True`` and
            ``padding="max_length"``.
        model_input_names: The fields of a result, ``input_ids`` first.
        errors: The handler for invalid UTF-8, as in ``bytes.decode``.
        chat_template: A Jinja template, or a dict of names and templates.
        add_bos_token, add_eos_token: Whether to add `bos_token` before every text and `eos_token`
            after it. By default the tokenizer file decides.
        split_special_tokens: Whether to encode names of special tokens in texts as ordinary text.
        clean_up_tokenization_spaces: The default of `decode`.
        name_or_path: The origin, for display.

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
        self._plans = {}
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
        self.model_input_names: list[str] = listed(model_input_names)
        codecs.lookup_error(errors)
        self.errors = errors
        self.chat_template: str | dict[str, str] | None = apply_template.named_templates(
            chat_template
        )
        self.split_special_tokens: bool = bool(split_special_tokens)
        self.clean_up_tokenization_spaces: bool = bool(clean_up_tokenization_spaces)
        self.name_or_path = name_or_path
        self._word_end = None
        self._warned = False
        self._add_bos_token = bool(add_bos_token)
        self._add_eos_token = bool(add_eos_token)
        if add_bos_token is not None or add_eos_token is not None:
            self._update_template()

    @classmethod
    def _is_reserved(cls, name: str) -> bool:
        return hasattr(cls, name)

    def _add_missing(self, tokens: Sequence[AddedToken]) -> None:
        known = () if self._encoding else self._special_tokens_set
        missing = [token for token in tokens if token.content not in known]
        if missing:
            self._add(missing)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **kwargs: Any) -> Tokenizer:
        """Reads a tokenizer from a local folder.

        The vocabulary comes from ``tokenizer.json``, else from ``*.tiktoken`` or a
        ``tokenizer.model`` in tiktoken's format, else from ``vocab.json`` and ``merges.txt``, else
        from ``vocab.txt``. Everything else comes from ``tokenizer_config.json``,
        ``special_tokens_map.json`` and ``chat_template.jinja``; missing settings, such as the pad
        token, default to the settings of the transformers class named there or in ``config.json``.

        Args:
            folder: The folder. Nothing is downloaded.
            kwargs: Arguments of the class; they override the files. In addition, ``subfolder``
                names a folder in `folder`. ``pattern`` gives the pattern for files in tiktoken's
                format that lack a pattern: a regular expression, or the name of an encoding with
                that pattern. Arguments of transformers that control downloads or the class, such as
                ``trust_remote_code``, are ignored.

        Returns:
            The tokenizer; for the folder of Qwen-7B, a `bpe_engine.qwen.QwenTokenizer`.

        Raises:
            OSError: The folder does not exist, or has no vocabulary.
            ValueError: A file is malformed, or the class of the folder does more than its files
                say, as classes for translation do; the message says what to do.

        >>> import bpe_engine
        >>> tokenizer = bpe_engine.Tokenizer.from_pretrained("models/gpt2")  # doctest: +SKIP
        """
        path, arguments = located(folder, kwargs)
        config = read_config(path)
        if folders.is_qwen(path, config):
            return SUBCLASSES["Qwen-7B"]().from_pretrained(path, **arguments)
        arguments.setdefault("name_or_path", os.fspath(folder))
        source, settings, added, name = folders.load(path, config, arguments)
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
            FileExistsError: The folder contains a file of another tokenizer, which would also be
                read.
        """
        return folders.save(Path(folder), self.backend, self._config(), self.chat_template)

    def _config(self) -> dict[str, Any]:
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
        """True if `bos_token` is added before every text. Can be assigned."""
        return self._add_bos_token

    @add_bos_token.setter
    def add_bos_token(self, value: bool) -> None:
        self._add_bos_token = bool(value)
        self._update_template()

    @property
    def add_eos_token(self) -> bool:
        """True if `eos_token` is added after every text. Can be assigned."""
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
        other.__dict__["_plans"] = {}
        other.model_input_names = list(self.model_input_names)
        return other

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_plans"] = {}
        if self._base is not None:
            # An encoding from the registry is pickled by name, even if tokens were added.
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

    # ---- Prompts ----

    def get_chat_template(self, chat_template: str | None = None, tools: Any = None) -> str:
        """Returns the template for a conversation.

        Args:
            chat_template: A template, or the name of a template of the tokenizer; by default the
                tokenizer's own.
            tools: The tools of the conversation. With tools, a template named "tool_use" is
                preferred to "default".

        Raises:
            ValueError: The tokenizer lacks a template, or has several templates and no default.
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
        Without such names, the ids equal transformers'.

        Args:
            conversation: A list of messages, or a list of conversations.
            tools: JSON schemas of functions.
            documents: Mappings for the template.
            chat_template: A template, or the name of a template of the tokenizer.
            add_generation_prompt: End the prompt with the start of an answer.
            continue_final_message: Whether to leave the last message open, or which of its fields
                to leave open.
            tokenize: Whether to return ids rather than text.
            padding, truncation, max_length, return_tensors: As in a call.
            return_dict: Whether to return a `BatchEncoding` rather than ids.
            return_assistant_tokens_mask: Whether to return ``assistant_masks``: 1 for ids inside
                ``{% generation %}`` blocks, as in transformers. Without such blocks, 1 for the whole
                turns of the assistant, from the end of the generation prompt to the end token, as
                in `Audit.mask`.
            variables: More variables of the template.

        Returns:
            A `BatchEncoding`, ids or a text, depending on the arguments; for several conversations,
            rows or a list.

        Raises:
            ValueError: The tokenizer lacks a template, or the arguments contradict each other.
            Exception: A jinja2 ``TemplateError``: the template has errors, or refuses the
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
            # Truncated and padded like the ids; type ids are padded with 0.
            fields["token_type_ids"] = [audit.mask(mixed=audit.has_tags) for audit in audits]
        else:
            fields["input_ids"] = [self.encode_segments(prompt) for prompt in prompts]
        made = rows.arranged(fields, self._layout(strategies, 0, None, None))
        pair = "input_ids", "attention_mask"
        names = tuple(name for name in pair if name in self.model_input_names)
        module = None if return_tensors is None else framework(return_tensors)
        output = rows.result(made, names, module, is_batch)
        types = rows.result(made, ("token_type_ids",), module, is_batch)
        if return_assistant_tokens_mask:
            output["assistant_masks"] = types["token_type_ids"]
        elif "token_type_ids" in self.model_input_names:
            output["token_type_ids"] = types["token_type_ids"]
        return output if return_dict else output["input_ids"]

    def _trusted_tokens(self) -> dict[str, Any]:
        return {name: trusted(token) for name, token in self.special_tokens_map.items()}


def _engine_of(source: Any) -> tuple[Encoding | None, Encoding | None, FileTokenizer]:
    if isinstance(source, Encoding) and source._file is not None:
        source = source._file
    if isinstance(source, Encoding):
        return source, source, FileTokenizer(source, dict(source.special_tokens))
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
