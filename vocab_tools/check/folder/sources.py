"""The tokenizers of a model folder: one source for each file, and one for AutoTokenizer."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import bpe_engine
from bpe_engine.hf import Tokenizer, UnsupportedTokenizer
from bpe_engine.read import byte_level
from bpe_engine.read.gpt2_files import pair, read_merges, read_vocab
from bpe_engine.read.sources import Format
from bpe_engine.read.text_files import read_text

from ...convert import gguf_file, gpt2_files, rank_file, tokenizer_json
from ...convert.definition import Definition
from ...convert.encoders import Encoder, encoder
from ...ranks import load_ranks
from . import tables
from .tables import Table

#: Name of the source that transformers loads.
AUTO = "AutoTokenizer"

#: Roles of special tokens.
ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")

#: A probe text, whose ids are located among the ids with special tokens.
_PLAIN = "a"


@dataclass(frozen=True)
class Source:
    """A tokenizer of the folder, with functions and tables to compare."""

    #: File or files, or "AutoTokenizer".
    name: str
    #: Kind, such as "BPE", or the class that AutoTokenizer chose.
    kind: str
    #: Names and ids of special and added tokens.
    special: Mapping[str, int]
    #: Bytes of ordinary tokens.
    tokens: list[bytes]
    #: Largest id plus one.
    size: int
    #: Encodes texts without adding special tokens around a text.
    encode: Encoder
    #: True if names of special tokens in texts become special tokens.
    finds_special: bool = True
    #: Ids added before and after a text; None if the file does not say.
    around: tuple[list[int], list[int]] | None = None
    #: Fingerprint of the tokenizer's behavior; None if the reader computes none.
    fingerprint: str | None = None
    #: Returns the token with an id, for messages.
    token: Callable[[int], str | None] = lambda _: None
    #: The tables of all tokens, merges, scores and settings, for comparisons.
    table: Table = field(default_factory=Table)
    #: Decodes lists of ids; omits special tokens if the last argument is true.
    decode: Callable[[list[list[int]], bool], list[str]] | None = None
    #: Ids of special tokens by role, such as "bos_token", if the file states roles.
    roles: Mapping[str, int] = field(default_factory=dict)

    @property
    def control(self) -> list[str]:
        """Names that users' text should not contain."""
        return [name for name in self.special if self.table.types.get(name) != "not special"]

    def find(self, name: str) -> int | None:
        """Returns the id of a name that is a single token; None if it is several tokens."""
        if name in self.special or not self.finds_special:
            return self.special.get(name)
        (ids,) = self.encode([name])
        return ids[0] if len(ids) == 1 else None

    def has(self, name: str) -> bool:
        """Returns True if a token has this spelling, whether or not text becomes the token."""
        return self.find(name) is not None or name.encode() in self.tokens


class Skipped(Exception):
    """Raised for a source that cannot be compared. The message says why."""


#: The folder's ``tokenizer.json`` if it has a model, and the config's added tokens.
Shell = tuple[Mapping[str, Any] | None, Mapping[str, int]]


def of_tokenizer_json(path: Path, shell: Shell) -> Source:
    """Reads a ``tokenizer.json``. Raises ValueError for a malformed file."""
    return _of_json(path.name, read_text(path))


def of_vocabulary_and_merges(path: Path, shell: Shell) -> Source:
    """Reads ``vocab.json`` and ``merges.txt``. The pattern and added tokens come from the
    ``tokenizer.json``; otherwise they are GPT-2's pattern and the config's tokens.

    Raises ValueError for a malformed file.
    """
    settings, special = shell
    files = pair(path)
    assert files is not None
    vocab, merges = files
    name = f"{vocab.name} and {merges.name}"
    if settings is None:
        definition = gpt2_files.load(vocab, special_tokens=special or None)
        return _of_json(name, tokenizer_json.dump(definition).decode())
    pairs = [list(pair) for pair in read_merges(merges)]
    model = {**settings["model"], "vocab": read_vocab(vocab), "merges": pairs}
    return _of_json(name, json.dumps({**settings, "model": model}))


def of_ranks(path: Path, shell: Shell) -> Source:
    """Reads a rank file. The pattern and added tokens come from the ``tokenizer.json``, or else
    from the published vocabulary with these ranks.

    Raises:
        ValueError: the file is malformed.
        Skipped: there is no pattern.
    """
    settings, special = shell
    try:
        ranks = load_ranks(path)
    except ValueError as error:
        if not path.name.endswith(".model"):
            raise
        raise ValueError(
            f"{path.name} is neither a SentencePiece model nor ranks: {error}"
        ) from error
    if settings is not None:
        if (settings["model"].get("type") or "BPE") != "BPE" or _is_sentencepiece(settings):
            raise Skipped("tokenizer.json is not byte-level BPE, and a rank file has no pattern")
        model = {key: value for key, value in settings["model"].items() if key not in _LARGE}
        added = {str(token["content"]): int(token["id"]) for token in settings["added_tokens"]}
        ordinary = {token: rank for token, rank in ranks.items() if rank not in added.values()}
        definition = Definition(
            ordinary, added, None, settings={**settings, "model": model}, whole_pieces=True
        )
        contents = tokenizer_json.dump(definition).decode()
        return _of_json(path.name, contents, lists_merges=False)
    try:
        definition = rank_file.load(path, special_tokens=special or None)
    except ValueError as error:
        raise Skipped(str(error)) from error
    contents = tokenizer_json.dump(definition).decode()
    return _of_json(path.name, contents, lists_merges=False)


def of_model(path: Path, shell: Shell) -> list[Source]:
    """Reads a SentencePiece model: once per version, if the versions give different ids.

    Raises ValueError for a malformed file.
    """
    new, old = (Tokenizer.from_sentencepiece(path, version) for version in _VERSIONS)
    if new.fingerprint == old.fingerprint:
        return [_of_sentencepiece(path.name, new)]
    return [
        _of_sentencepiece(f"{path.name} by sentencepiece {version}", one)
        for version, one in (("0.2.2 and later", new), (OLDER, old))
    ]


#: Suffix of a model's name if an old version of sentencepiece read the model.
OLDER = "up to 0.2.1"

_VERSIONS: tuple[Literal["0.2.3"], Literal["0.2.1"]] = ("0.2.3", "0.2.1")


def _of_sentencepiece(name: str, tokenizer: Tokenizer) -> Source:
    made = _of_tokenizer(name, tokenizer, tables.of_pieces(json.loads(tokenizer.to_str())))
    kind = f"SentencePiece's {tokenizer.model.algorithm}"
    return dataclasses.replace(made, kind=kind, finds_special=False, around=None)


def of_gguf(path: Path, shell: Shell) -> Source:
    """Reads a GGUF file of byte-level BPE or SentencePiece. Raises Skipped for other models."""
    try:
        is_pieces = gguf_file.is_pieces(path)
        read: Any = gguf_file.load_pieces(path) if is_pieces else gguf_file.load(path)
    except (ValueError, ImportError) as error:
        raise Skipped(str(error).replace(f"{path}: ", "")) from error
    if is_pieces:
        made = _of_sentencepiece(path.name, read)
    else:
        made = _of_json(path.name, tokenizer_json.dump(read).decode())
    roles, around = gguf_file.roles(path)
    return dataclasses.replace(made, roles=roles, around=around)


def of_words(path: Path, shell: Shell) -> Source:
    """Reads a ``vocab.txt`` with the pipeline of the folder's WordPiece ``tokenizer.json``, or else
    with the pipeline of BERT's class. Raises ValueError for a malformed file."""
    contents = json.loads(bpe_engine.open_tokenizer(path).hf.to_str())
    settings, _ = shell
    if settings is not None and "continuing_subword_prefix" in settings["model"]:
        model = {**settings["model"], "vocab": contents["model"]["vocab"]}
        contents = {**settings, "model": model}
    return _of_json(path.name, json.dumps(contents))


def of_tekken(path: Path, shell: Shell) -> Source:
    """Reads a ``tekken.json``. Raises ValueError for a malformed file."""
    encoding = bpe_engine.load_encoding(path)
    special = dict(encoding.special_tokens)

    def encode(texts: list[str]) -> list[list[int]]:
        return encoding.encode_ordinary_batch(texts)

    def decode(rows: list[list[int]], _skip: bool) -> list[str]:
        return encoding.decode_batch(rows)

    ranks = {byte_level.text_of(token): id for token, id in encoding.mergeable_ranks.items()}
    table = Table(
        tokens={**ranks, **special},
        types=dict.fromkeys(special, "special"),
        turns=ranks,
        lists_special=bool(special),
    )
    ordinary, size = list(encoding.mergeable_ranks), encoding.max_token_value + 1
    return Source(
        path.name, "BPE", special, ordinary, size, encode, False, table=table, decode=decode
    )


def of_transformers(folder: Path) -> Source:
    """Loads the folder by AutoTokenizer, as servers do, without running code of the folder.

    Raises Skipped without transformers, and ValueError with transformers' message if loading fails.
    """
    with _quiet():
        try:
            import transformers
        except ImportError:
            raise Skipped("transformers is not installed") from None
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # Loading may raise any exception.
            text = str(error).strip().split("\n")[0]
            raise ValueError(f"transformers {transformers.__version__}: {text}") from error

    def encode(texts: list[str], *, around: bool = False) -> list[list[int]]:
        found: list[list[int]] = tokenizer(texts, add_special_tokens=around)["input_ids"]
        return found

    def decode(rows: list[list[int]], skip: bool) -> list[str]:
        return [str(tokenizer.decode(row, skip_special_tokens=skip)) for row in rows]

    with _quiet():
        vocab = tokenizer.get_vocab()
        added = {str(token): number for number, token in tokenizer.added_tokens_decoder.items()}
        (plain,), (whole,) = encode([_PLAIN]), encode([_PLAIN], around=True)
    kind = f"{type(tokenizer).__name__} of transformers {transformers.__version__}"
    size = max(vocab.values(), default=-1) + 1
    ordinary = [_bytes(token) for token in vocab if token not in added]
    around = _around(plain, whole)

    def token(id: int) -> str | None:
        return str(tokenizer.convert_ids_to_tokens(id))

    special = {str(token): token.special for token in tokenizer.added_tokens_decoder.values()}
    types = {name: "special" if flag else "not special" for name, flag in special.items()}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    table = Table(tokens={**vocab, **added}, types=types)
    if (contents := _contents(backend)) is not None:
        made = tables.of_settings(json.loads(contents), lists_merges=False)
        table = dataclasses.replace(made, tokens=table.tokens, types={**made.types, **types})
    roles = {role: getattr(tokenizer, f"{role}_id", None) for role in ROLES}
    return Source(
        AUTO,
        kind,
        added,
        ordinary,
        size,
        encode,
        True,
        around,
        token=token,
        table=dataclasses.replace(table, settings={}),
        decode=decode,
        roles={role: id for role, id in roles.items() if type(id) is int},
    )


def _contents(backend: Any) -> str | None:
    """Returns a `tokenizers` object as a ``tokenizer.json``; None if a component is in Python."""
    try:
        return None if backend is None else str(backend.to_str())
    except Exception:  # `tokenizers` raises a bare Exception.
        return None


_LARGE = ("vocab", "merges")


def _is_sentencepiece(settings: Mapping[str, Any]) -> bool:
    return bool(settings["model"].get("byte_fallback"))


def _of_json(name: str, contents: str, *, lists_merges: bool = True) -> Source:
    try:
        tokenizer = Tokenizer.from_str(contents)
    except UnsupportedTokenizer as error:
        raise Skipped(str(error)) from error
    table = tables.of_settings(json.loads(contents), lists_merges=lists_merges)
    return _of_tokenizer(name, tokenizer, table)


def _of_tokenizer(name: str, tokenizer: Tokenizer, table: Table) -> Source:
    """Returns a tokenizer as a source."""
    encode = encoder(tokenizer)
    vocab: dict[str, int] = tokenizer.get_vocab(True)
    added = {token.content: id for id, token in tokenizer.get_added_tokens_decoder().items()}
    spelled = [token for token in vocab if token not in added]
    (plain,), whole = encode([_PLAIN]), tokenizer.encode(_PLAIN).ids
    return Source(
        name,
        type(tokenizer.model).__name__,
        added,
        [_bytes(token) for token in spelled],
        max(vocab.values(), default=-1) + 1,
        encode,
        around=_around(plain, whole),
        fingerprint=tokenizer.fingerprint,
        token=tokenizer.id_to_token,
        table=table,
        decode=tokenizer.decode_batch,
    )


def _bytes(token: str) -> bytes:
    found = byte_level.try_bytes_of(token)
    return token.replace("\u2581", " ").encode() if found is None else found


def _around(plain: list[int], whole: list[int]) -> tuple[list[int], list[int]] | None:
    """Returns the ids before and after the ids of a text.

    >>> _around([5, 6], [1, 5, 6, 2])
    ([1], [2])
    """
    for start in range(len(whole) - len(plain) + 1):
        if whole[start : start + len(plain)] == plain:
            return whole[:start], whole[start + len(plain) :]
    return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides the logs of packages, because the findings report the errors."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


#: Functions that read a file of the folder, by format. Files of other formats are ignored.
READERS: dict[Format, Callable[[Path, Shell], Source | list[Source]]] = {
    "tokenizer.json": of_tokenizer_json,
    "tekken": of_tekken,
    "tiktoken": of_ranks,
    "sentencepiece": of_model,
    "gpt2": of_vocabulary_and_merges,
    "gguf": of_gguf,
    "wordpiece": of_words,
}
