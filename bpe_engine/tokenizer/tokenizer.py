"""`Tokenizer`: the habits of transformers' tokenizers, without transformers."""

from __future__ import annotations

import codecs
import copy
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core import Encoding
from ..hf.tokenizer import Tokenizer as FileTokenizer
from . import chat
from .backend import Backend
from .calls import checked_side
from .encoding_backend import EncodingBackend
from .file_backend import FileBackend
from .options import NO_LIMIT
from .prompts import Prompts

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Tokenizer"]


class Tokenizer(Prompts):
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
        LookupError: `errors` is no name of an error handler.

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
        self.padding_side = checked_side("padding_side", padding_side or stored.padding_side)
        self.truncation_side = checked_side(
            "truncation_side", truncation_side or stored.truncation_side
        )
        self.model_max_length = NO_LIMIT if model_max_length is None else int(model_max_length)
        if self.model_max_length < 0:
            raise ValueError(f"model_max_length must be at least 0, but is {model_max_length}")
        self.model_input_names = list(model_input_names)
        codecs.lookup_error(errors)
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
        for added in tokens:
            backend.check_token(added)
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
                expression; it need not be given for published files. ``subfolder`` is a folder in
                `folder`. What says in transformers how files are downloaded or which class is made,
                such as ``trust_remote_code``, is of no effect.

        Raises:
            OSError: There is no such folder, or nothing in it is a vocabulary.
            ValueError: A file is malformed, or asks for what cannot be done exactly.
        """
        from .folder import load

        return load(cls, folder, kwargs)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Writes a folder that `from_pretrained` reads as this tokenizer. Returns its files.

        Raises:
            FileExistsError: The folder holds a file that would be read in their place, or along with
                them.
        """
        from .folder import save

        return save(self, folder)

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
