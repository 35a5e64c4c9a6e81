"""`QwenTokenizer`: replaces the tokenizer class that comes with Qwen-7B."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import _core
from .._tiktoken import CoreBPE
from ..core import Encoding
from ..load import dump_tiktoken_bpe, load_tiktoken_bpe, read_file
from ..read import byte_level
from ..read.builtin import RANK_FILE_SHA256
from ..registry import get_encoding
from ..tokenizer.files import check_stale_files, located, read_config, settings_of, write_config
from ..tokenizer.tokenizer import Tokenizer

__all__ = ["QwenTokenizer"]

_QWEN = get_encoding("qwen")
_VOCAB_FILE = "qwen.tiktoken"

_Path = str | os.PathLike[str]


class QwenTokenizer(Tokenizer):
    """The tokenizer of Qwen-7B. Special tokens are ``str``, all other tokens are ``bytes``.

    Text is normalized to NFC before the search for special tokens. Names of special tokens in a
    text become special tokens unless a call forbids this: pass ``allowed_special=set()`` for
    untrusted text.

    Args:
        vocab_file: A ``qwen.tiktoken``; by default the vocabulary inside the package.
        errors: The handler for invalid UTF-8, as in ``bytes.decode``.
        extra_vocab_file: A rank file with more tokens, as ``vocab-tools learn`` writes it. Existing
            tokens are skipped with a warning. Gaps between ids count in ``len(tokenizer)``.
        pad_token, bos_token, eos_token, unk_token, sep_token, cls_token, mask_token: Special
            tokens by their roles: names of `special_tokens`.
        extra_special_tokens: More of Qwen's special tokens.
        kwargs: As in `bpe_engine.Tokenizer`.

    Raises:
        ValueError: A file is malformed, an id of the extra file is taken or occurs twice, or a
            special token is not known to Qwen.
        OSError: A file cannot be read.

    >>> from bpe_engine.qwen import QwenTokenizer
    >>> tokenizer = QwenTokenizer(pad_token="<|endoftext|>")
    >>> tokenizer('print("<|endoftext|>")')["input_ids"]
    [1350, 445, 151643, 899]
    >>> tokenizer('print("<|endoftext|>")', allowed_special=set())["input_ids"]
    [1350, 9639, 91, 8691, 723, 427, 91, 82598]
    >>> tokenizer.tokenize("Pandas<|im_end|>")
    [b'P', b'andas', '<|im_end|>']
    >>> tokenizer.decode([51461]), tokenizer.decode([51461], errors="ignore")
    (' �', ' ')
    """

    def __init__(
        self,
        vocab_file: _Path | None = None,
        errors: str = "replace",
        extra_vocab_file: _Path | None = None,
        pad_token: Any = None,
        *,
        model_input_names: Sequence[str] = ("input_ids", "token_type_ids", "attention_mask"),
        **kwargs: Any,
    ):
        encoding = _encoding(vocab_file)
        if extra_vocab_file is not None:
            encoding = _extended(encoding, extra_vocab_file)
        super().__init__(
            encoding,
            errors=errors,
            pad_token=pad_token,
            model_input_names=model_input_names,
            **kwargs,
        )

    @classmethod
    def from_pretrained(cls, folder: _Path, **kwargs: Any) -> QwenTokenizer:
        """Reads ``qwen.tiktoken`` and ``tokenizer_config.json``, if present, from a local folder.

        Args:
            folder: The folder. Nothing is downloaded.
            kwargs: Arguments of the class, which override the files, and of
                `bpe_engine.Tokenizer.from_pretrained`.

        Raises:
            OSError: The folder does not exist.
            ValueError: A file is malformed, or an argument is wrong, as in the class.
        """
        path, arguments = located(folder, kwargs)
        settings = settings_of(path, read_config(path))
        if (path / _VOCAB_FILE).is_file():
            settings["vocab_file"] = path / _VOCAB_FILE
        return cls(**{**settings, "name_or_path": os.fspath(folder), **arguments})

    def save_vocabulary(self, save_directory: _Path, **kwargs: Any) -> tuple[str]:
        """Writes ``qwen.tiktoken``, including extra tokens. Returns its path."""
        path = os.path.join(save_directory, _VOCAB_FILE)
        dump_tiktoken_bpe(self.mergeable_ranks, path)
        return (path,)

    def save_pretrained(self, folder: _Path) -> tuple[str, ...]:
        """Writes a folder from which `from_pretrained` reads this tokenizer. Returns its files.

        Raises:
            FileExistsError: The folder contains a file of another tokenizer, which would also be
                read.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        check_stale_files(path, self.chat_template, has_tokenizer_file=False)
        config = {"tokenizer_class": "QWenTokenizer", **self._config()}
        return (*write_config(path, config, self.chat_template), *self.save_vocabulary(path))

    def tokenize(  # type: ignore[override]
        self,
        text: Any,
        allowed_special: Any = "all",
        disallowed_special: Any = (),
        **kwargs: Any,
    ) -> list[Any]:
        """Returns the tokens of a text. The other arguments are as in a call."""
        names = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
        return super().tokenize(text, **names, **kwargs)

    # ---- The vocabulary ----

    @property
    def tokenizer(self) -> Encoding:
        """The `Encoding` that does the encoding."""
        return self.backend  # type: ignore[return-value]

    @property
    def mergeable_ranks(self) -> Mapping[bytes, int]:
        """The bytes and ids of all tokens except special tokens, read-only."""
        return self.tokenizer.mergeable_ranks

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens and their ids."""
        return dict(self.tokenizer.special_tokens)

    @property
    def decoder(self) -> dict[int, bytes | str]:
        """The tokens by id, including special tokens."""
        ranks: dict[int, bytes | str] = {id: token for token, id in self.mergeable_ranks.items()}
        return {**ranks, **{id: name for name, id in self.special_tokens.items()}}

    @property
    def eod_id(self) -> int:
        """The id of ``<|endoftext|>``."""
        return self.tokenizer.eot_token

    @property
    def im_start_id(self) -> int:
        """The id of ``<|im_start|>``."""
        return self.special_tokens["<|im_start|>"]

    @property
    def im_end_id(self) -> int:
        """The id of ``<|im_end|>``."""
        return self.special_tokens["<|im_end|>"]

    @property
    def vocab_size(self) -> int:
        """One more than the largest id."""
        return self.tokenizer.n_vocab

    def __len__(self) -> int:
        return self.tokenizer.n_vocab

    def get_vocab(self) -> dict[Any, int]:
        """Returns a copy of `mergeable_ranks`."""
        return dict(self.mergeable_ranks)

    def add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        """Accepts only existing special tokens. Add other tokens with ``extra_vocab_file``.

        Raises:
            ValueError: A token is not a special token of Qwen.
        """
        if not special_tokens and new_tokens:
            raise ValueError(
                "Adding regular tokens is not supported; learn them with vocab-tools, and pass the "
                "file as extra_vocab_file"
            )
        return super().add_tokens(new_tokens, special_tokens)

    def _check_token(self, name: str, token: str) -> None:
        if token not in _QWEN.special_tokens:
            raise ValueError(
                f"Adding unknown special tokens is not supported: {name} cannot be {token!r}; take "
                "one of Qwen's special tokens, such as '<|endoftext|>' or '<|extra_0|>'"
            )

    # ---- Tokens: ``str`` if special, else ``bytes`` ----

    def convert_tokens_to_string(self, tokens: Sequence[Any]) -> str:
        """Returns the text of tokens."""
        text, pending = "", b""
        for token in tokens:
            if isinstance(token, bytes):
                pending += token
            elif isinstance(token, str):
                text += pending.decode("utf-8", self.errors) + token
                pending = b""
            else:
                raise TypeError(f"a token is bytes or str, not {type(token).__name__}")
        return text + pending.decode("utf-8", self.errors)

    def _token_to_id(self, token: Any) -> int | None:
        if not isinstance(token, bytes):
            return self.tokenizer.special_tokens.get(token)
        return self._engine.model.token_to_id(byte_level.text_of(token))

    def _id_to_token(self, id: int) -> str | bytes | None:
        token = super()._id_to_token(id)
        if not isinstance(token, str):
            raise ValueError(f"unknown ids: {id} is not the id of a token")
        is_special = self.tokenizer.is_special_token(id)
        return token if is_special else byte_level.bytes_of(token)


def _encoding(vocab_file: _Path | None) -> Encoding:
    if vocab_file is None:
        return get_encoding("qwen")
    contents = read_file(os.fspath(vocab_file))
    if hashlib.sha256(contents).hexdigest() == RANK_FILE_SHA256["qwen"]:
        return get_encoding("qwen")
    return _of_ranks(load_tiktoken_bpe(os.fspath(vocab_file)))


def _of_ranks(ranks: dict[bytes, int]) -> Encoding:
    core = CoreBPE(ranks, dict(_QWEN.special_tokens), _QWEN.pattern, _QWEN.normalization)
    return Encoding._from_core(
        "qwen, extended",
        core,
        pat_str=_QWEN.pattern,
        special_tokens=dict(_QWEN.special_tokens),
        normalization=_QWEN.normalization,
    )


def _extended(encoding: Encoding, extra_vocab_file: _Path) -> Encoding:
    path = os.fspath(extra_vocab_file)
    entries, problems = _core.parse_rank_lines(read_file(path))
    if problems:
        line, problem = problems[0]
        raise ValueError(f"{path}, line {line}: {problem}")
    ranks = dict(encoding.mergeable_ranks)
    owners: dict[int, object] = {id: token for token, id in ranks.items()}
    owners.update({id: name for name, id in _QWEN.special_tokens.items()})
    known = []
    for token, id, line in entries:
        if token in ranks:
            known.append(token)
            continue
        if id in owners:
            raise ValueError(
                f"{path}, line {line}: the id {id} of {token!r} is taken by {owners[id]!r}; number "
                "new tokens from 151851 on, as vocab-tools learn does"
            )
        ranks[token], owners[id] = id, token
    if known:
        warnings.warn(
            f"{path}: {len(known)} tokens exist already and are skipped: {_shown(known)}",
            stacklevel=4,
        )
    return _of_ranks(ranks)


def _shown(tokens: Collection[bytes]) -> str:
    first = ", ".join(repr(token) for token in list(tokens)[:5])
    return first + (", ..." if len(tokens) > 5 else "")
