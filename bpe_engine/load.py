"""Reads and writes rank files, and makes encodings from them.

A ``.tiktoken`` file has a line ``base64(token bytes) SPACE rank`` for each token, and may be
compressed with gzip. At most ``max_bytes`` of a file, compressed and decompressed, are read into
memory.
"""

from __future__ import annotations

import base64
import errno
import gzip
import hashlib
import io
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, Union

from . import _core
from ._arguments import check_pattern, copied_special_tokens
from ._tiktoken import CoreBPE
from .common.atomic_write import write_at_once
from .common.suggest import did_you_mean
from .common.system import is_uri, shown_path
from .common.values import checked, describe, with_text
from .core import Encoding
from .read import byte_level
from .read.builtin import BUILTIN
from .read.gpt2_files import parse_vocab
from .read.published_ranks import may_be_published, published_name
from .read.sidecar import beside, read_sidecar
from .read.sources import NOT_RANKS, recognize
from .read.text_files import check_marks, decode_file

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

__all__ = [
    "check_hash",
    "data_gym_to_mergeable_bpe_ranks",
    "dump_tiktoken_bpe",
    "load_encoding",
    "load_tiktoken_bpe",
    "read_file",
    "read_file_cached",
]


# Default size limit of a file: 70 times the largest published file.
MAX_BYTES = 1 << 28

_CHUNK = 1 << 20

# Timeouts in seconds: for the connection and for each chunk.
_TIMEOUT = (10, 60)


def read_file(blobpath: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the bytes of a file.

    Args:
        blobpath: A local path; an ``http(s)://`` address, which needs the package `requests`; or
            another address, which needs the package `blobfile`.
        max_bytes: The largest size to read; 256 MiB by default.

    Raises:
        OSError: The file cannot be read, or the network does not answer.
        ValueError: The file is larger than `max_bytes`.
        ImportError: The package that the address needs is not installed.
    """
    if not is_uri(blobpath):
        with open(blobpath, "rb") as file:
            return _join(_chunks(file), blobpath, max_bytes)
    if blobpath.startswith(("http://", "https://")):
        try:
            import requests
        except ImportError as error:
            raise ImportError(_needs("requests", blobpath)) from error
        with requests.get(blobpath, stream=True, timeout=_TIMEOUT) as response:
            response.raise_for_status()
            return _join(response.iter_content(_CHUNK), blobpath, max_bytes)
    with _blobfile(blobpath).BlobFile(blobpath, "rb") as file:
        return _join(_chunks(file), blobpath, max_bytes)


def _chunks(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _join(chunks: Iterable[bytes], path: str, max_bytes: int) -> bytes:
    contents, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise ValueError(
                f"{path} has more than {max_bytes:,} bytes, too many for a rank file; if that "
                "is right, pass a larger max_bytes"
            )
        contents.append(chunk)
    return b"".join(contents)


def _needs(package: str, path: str) -> str:
    return (
        f"{package} is not installed, and {path} cannot be opened without it. Please install it "
        f"by running `pip install {package}`, or pass the path of a local file."
    )


def _blobfile(path: str) -> Any:
    try:
        import blobfile  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError(_needs("blobfile", path)) from error
    return blobfile


def check_hash(data: bytes, expected_hash: str) -> bool:
    """Returns True if the sha256 of `data` is `expected_hash`, in hexadecimal.

    >>> check_hash(b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    True
    """
    return hashlib.sha256(data).hexdigest() == expected_hash.lower()


def _require_hash(data: bytes, expected_hash: str | None, path: str) -> None:
    if expected_hash and not check_hash(data, expected_hash):
        raise ValueError(
            f"the sha256 of {path} is {hashlib.sha256(data).hexdigest()}, not the expected "
            f"{expected_hash}; the file is damaged or another version: download it again, or "
            "correct the hash"
        )


def read_file_cached(
    blobpath: str, expected_hash: str | None = None, *, max_bytes: int = MAX_BYTES
) -> bytes:
    """Reads a file like `read_file`, with a disk cache for files from the network.

    Copies are kept in ``TIKTOKEN_CACHE_DIR``, else in ``DATA_GYM_CACHE_DIR``, else in
    ``data-gym-cache`` in the directory for temporary files; an empty variable disables the cache. A
    copy is named by the sha1 of its address, and replaced if its hash is wrong.

    Args:
        blobpath: A path or an address, as in `read_file`.
        expected_hash: The sha256 of the contents, in hexadecimal.
        max_bytes: The largest size to read; 256 MiB by default.

    Raises:
        ValueError: The contents have a different hash, or are larger than `max_bytes`.
        OSError: The file cannot be read, or the directory that a variable names cannot be written.
    """
    directory, asked_for = _cache_directory()
    if not is_uri(blobpath) or not directory:
        contents = read_file(blobpath, max_bytes=max_bytes)
        _require_hash(contents, expected_hash, blobpath)
        return contents

    copy = os.path.join(directory, hashlib.sha1(blobpath.encode()).hexdigest())
    if os.path.exists(copy):
        contents = read_file(copy, max_bytes=max_bytes)
        if expected_hash is None or check_hash(contents, expected_hash):
            return contents

    contents = read_file(blobpath, max_bytes=max_bytes)
    _require_hash(contents, expected_hash, blobpath)
    try:
        os.makedirs(directory, exist_ok=True)
        write_at_once(copy, contents)
    except OSError:
        if asked_for:
            raise
    return contents


def _cache_directory() -> tuple[str, bool]:
    """Returns the cache folder ("" for none), and true if a variable names it."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable], True
    return os.path.join(tempfile.gettempdir(), "data-gym-cache"), False


def _unpack(contents: bytes, path: str, max_bytes: int) -> bytes:
    if not contents.startswith(b"\x1f\x8b"):
        return contents
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(contents)) as file:
            return _join(_chunks(file), f"{path}, unpacked,", max_bytes)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(
            f"{path} is a damaged gzip file ({error}); download it again, or unpack it yourself"
        ) from error


def _read_ranks(
    path: str | os.PathLike[str], expected_hash: str | None, max_bytes: int = MAX_BYTES
) -> bytes:
    """Returns the unpacked contents of a rank file. The hash covers the file or, if local and
    packed, the contents."""
    path = os.fspath(path)
    if is_uri(path):
        packed = read_file_cached(path, expected_hash, max_bytes=max_bytes)
        contents = _unpack(packed, path, max_bytes)
    else:
        packed = read_file(path, max_bytes=max_bytes)
        contents = _unpack(packed, path, max_bytes)
        if not (expected_hash and check_hash(contents, expected_hash)):
            _require_hash(packed, expected_hash, path)
    _refuse_other_formats(contents, path)
    return contents


def _refuse_other_formats(contents: bytes, path: str) -> None:
    check_marks(contents, path)
    if re.match(rb"\[\w+\]\s", contents):
        raise ValueError(f"{path} {NOT_RANKS['wordpiece']}")
    if contents[:100].lstrip().startswith((b"{", b"[")):
        raise ValueError(
            f"{path} is JSON, not a rank file with lines of base64(token), a space and the rank; "
            "a tokenizer.json is read by bpe_engine.open_tokenizer, the pair vocab.bpe and encoder.json (also "
            "called merges.txt and vocab.json) by data_gym_to_mergeable_bpe_ranks"
        )


def load_tiktoken_bpe(
    tiktoken_bpe_file: str, expected_hash: str | None = None, *, max_bytes: int = MAX_BYTES
) -> dict[bytes, int]:
    """Reads the ranks in a ``.tiktoken`` file, which may be packed with gzip.

    Args:
        tiktoken_bpe_file: A path, or an address as in `read_file`.
        expected_hash: The sha256 of the file, in hexadecimal.
        max_bytes: The largest size to read, packed and unpacked; 256 MiB by default.

    Returns:
        Token bytes and their ranks, in the order of ranks.

    Raises:
        ValueError: The hash differs, the file is too large or not a rank file, a line is
            malformed, or a token or a rank occurs twice. The message names the line or the token.
        OSError: The file cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/letters.tiktoken"
    ...     dump_tiktoken_bpe({b"a": 0, b"b": 1, b"ab": 2}, file)
    ...     load_tiktoken_bpe(file)
    {b'a': 0, b'b': 1, b'ab': 2}
    """
    path = _file_name("tiktoken_bpe_file", tiktoken_bpe_file)
    return _core.parse_ranks(_read_ranks(path, expected_hash, max_bytes), shown_path(path))


def dump_tiktoken_bpe(bpe_ranks: Mapping[bytes, int], tiktoken_bpe_file: str) -> None:
    """Writes ranks as a ``.tiktoken`` file, in the order of ranks.

    Args:
        bpe_ranks: Token bytes and their ranks.
        tiktoken_bpe_file: A path, or an address that the package `blobfile` writes.

    Raises:
        ImportError: The address needs `blobfile`, which is not installed.
    """
    lines = sorted(checked(bpe_ranks).items(), key=lambda item: item[1])
    contents = b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in lines)
    if not is_uri(tiktoken_bpe_file):
        write_at_once(tiktoken_bpe_file, contents)
    else:
        with _blobfile(tiktoken_bpe_file).BlobFile(tiktoken_bpe_file, "wb") as file:
            file.write(contents)


def data_gym_to_mergeable_bpe_ranks(
    vocab_bpe_file: str,
    encoder_json_file: str,
    vocab_bpe_hash: str | None = None,
    encoder_json_hash: str | None = None,
    clobber_one_byte_tokens: bool = False,
    *,
    max_bytes: int = MAX_BYTES,
) -> dict[bytes, int]:
    """Reads the ranks in GPT-2's pair of files: a list of merges and a JSON object of token ids.

    Args:
        vocab_bpe_file: The merges, one per line after a line with the version.
        encoder_json_file: The ids.
        vocab_bpe_hash: The sha256 of the first file, in hexadecimal.
        encoder_json_hash: The sha256 of the second file.
        clobber_one_byte_tokens: True takes the ids of single bytes from the second file; False
            numbers them in GPT-2's order.
        max_bytes: The largest size to read of each file, packed and unpacked; 256 MiB by default.

    Returns:
        Token bytes and their ranks.

    Raises:
        ValueError: A hash differs, a file is too large or malformed, or the files do not match.
        OSError: A file cannot be read.
    """
    merges = _read_utf8(vocab_bpe_file, vocab_bpe_hash, max_bytes)
    contents = _read_utf8(encoder_json_file, encoder_json_hash, max_bytes)
    encoder = parse_vocab(contents, encoder_json_file)

    def token(written: str, path: str) -> bytes:
        try:
            return byte_level.bytes_of(written)
        except KeyError as error:
            raise ValueError(
                f"{path}: the token {written!r} contains {error.args[0]!r}, which stands for no "
                "byte"
            ) from None

    ranks = {bytes([byte]): rank for rank, byte in enumerate(byte_level.ORDER)}
    for number, line in enumerate(merges.split("\n")[1:-1], start=2):
        pair = line.split()
        if len(pair) != 2:
            raise ValueError(f"{vocab_bpe_file}, line {number}: expected two tokens in {line!r}")
        ranks[token(pair[0], vocab_bpe_file) + token(pair[1], vocab_bpe_file)] = len(ranks)

    ids = {token(name, encoder_json_file): id for name, id in encoder.items()}
    ids.pop(b"<|endoftext|>", None)
    ids.pop(b"<|startoftext|>", None)
    if clobber_one_byte_tokens:
        ranks.update({name: id for name, id in ids.items() if len(name) == 1})
    if ranks != ids:
        differing = next(name for name in {**ranks, **ids} if ranks.get(name) != ids.get(name))
        raise ValueError(
            f"{vocab_bpe_file} and {encoder_json_file} do not match: the token "
            f"{differing!r} is number {ranks.get(differing)} in the first and has the id "
            f"{ids.get(differing)} in the second"
        )
    return ranks


def _read_utf8(path: str, expected_hash: str | None, max_bytes: int) -> str:
    packed = read_file_cached(path, expected_hash, max_bytes=max_bytes)
    return decode_file(_unpack(packed, path, max_bytes), path)


def _file_name(argument: str, path: _Path) -> str:
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(f"{argument} must be the path of a file, not {describe(path)}") from None


def _refuse_misspelt_name(pattern: str, names: Iterable[str]) -> None:
    """Raises ValueError for a misspelt encoding name given as a pattern."""
    if re.fullmatch(r"[\w.-]+", pattern) and (hint := did_you_mean(pattern, names)):
        raise ValueError(
            f"the pattern {pattern!r} is not an encoding's name.{hint} (If it is a regular "
            "expression, put it into a group: (?:...))"
        )


def _blame_files(files: list[tuple[str, bytes]]) -> None:
    """Raises the ValueError that only the rank files cause, with the names of the files."""
    names = " and ".join(name for name, _ in files)
    try:
        CoreBPE(files, {}, r"\w+|\W+")
    except ValueError as error:
        message = str(error)
        # Errors about a line already name the file and line.
        if not any(message.startswith(f"{name}, line ") for name, _ in files):
            message = f"{names}: {message}"
        raise ValueError(message) from None


def _load_json(
    path: str, special: dict[str, int], name: str, expected_hash: str | None, max_bytes: int
) -> Encoding:
    from .hf.tokenizers import Tokenizer

    contents = _read_utf8(path, expected_hash, max_bytes)
    is_tekken = '"token_bytes"' in contents
    if special and not is_tekken:
        raise ValueError(f"{path} defines special tokens; leave special_tokens out")
    try:
        if is_tekken:
            return Encoding._of_tekken(contents, name, special)
        tokenizer = Tokenizer.from_str(contents)
    except ValueError as error:
        raise with_text(error, f"{path}: {error}") from None
    try:
        return Encoding._of_ranks_of(tokenizer, name)
    except ValueError as error:
        raise with_text(
            error, f"{path}: {error}; bpe_engine.open_tokenizer reads this file"
        ) from None


def load_encoding(
    path: _Path,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    extra: _Path | Iterable[_Path] = (),
    name: str | None = None,
    expected_hash: str | None = None,
    *,
    normalization: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Encoding:
    """Makes an encoding from a ``.tiktoken`` file, which may be packed with gzip; from a
    ``tokenizer.json`` or ``tekken.json``; or from a folder with such a file.

    A rank file holds only tokens. If `vocab-tools` wrote the file, ``NAME.encoding.json`` has the
    pattern and special tokens; published files, and files that begin with their tokens, are
    recognized. The arguments replace them.

    Args:
        path: The file, or a folder; `bpe_engine.open_tokenizer` takes more kinds of both.
        pattern: The regular expression that cuts text into pieces, or the name of an encoding in
            this package, whose pattern is used; by default the file's, else cl100k_base's.
        special_tokens: Names and ids; by default the file's. No token in the files may have these
            ids.
        extra: One or more files with the additional tokens of an extended vocabulary.
        name: The name of the encoding; by default the file's name up to its first dot.
        expected_hash: The sha256 of the first file, in hexadecimal; for a packed file, of the
            file or of its contents.
        normalization: "NFC" to normalize text first, as the encodings of Qwen do, or None. Without
            a `pattern`, None follows the file.
        max_bytes: The largest size to read of each file, packed and unpacked; 256 MiB by default.

    Raises:
        TypeError: An argument has the wrong type; the message names it.
        ValueError: The hash differs, a file is too large or not a rank file, a line is malformed,
            a token or a rank occurs twice, the pattern does not compile, or an id is taken. The
            message names the value.
        OSError: A file cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/letters.tiktoken"
    ...     dump_tiktoken_bpe({b"a": 0, b"b": 1, b"ab": 2}, file)
    ...     letters = load_encoding(file, special_tokens={"<|end|>": 3})
    >>> letters.encode("abba<|end|>", allowed_special="all")
    [2, 1, 0, 3]
    """
    if pattern is not None:
        check_pattern("pattern", pattern)
    given = None if special_tokens is None else copied_special_tokens(special_tokens)
    path = _file_name("path", path)
    more = [extra] if isinstance(extra, (str, bytes, os.PathLike)) else extra
    if not isinstance(more, Iterable):
        raise TypeError(f"extra must be a path or several, not {describe(extra)}")
    names = [_file_name("extra", file) for file in checked(more)]
    path, format, _ = recognize(path)
    if format == "encoding":
        reason = f"No such file; get_encoding({path!r}) returns the encoding of this name"
        raise FileNotFoundError(errno.ENOENT, reason, path)
    if name is None:
        name = os.path.basename(path).split(".")[0]
    if format in NOT_RANKS:
        raise ValueError(f"{path} {NOT_RANKS[format]}")
    if format != "tiktoken" and not names:
        for option, value in (("normalization", normalization), ("pattern", pattern)):
            if value is not None:
                raise ValueError(f"{path} defines the {option}; leave {option} out")
        return _load_json(path, given or {}, name, expected_hash, max_bytes)
    contents = _read_ranks(path, expected_hash, max_bytes)
    files = [(shown_path(path), contents)]
    files += [(shown_path(file), _read_ranks(file, None, max_bytes)) for file in names]
    own = _own(path, contents)
    if pattern is None:
        pattern, normalization = own.pattern, normalization or own.normalization
    special = own.special_tokens if given is None else given
    known = BUILTIN.get(pattern)
    if known is None:
        _refuse_misspelt_name(pattern, BUILTIN)
    pat_str = pattern if known is None else known.pattern
    try:
        core_bpe = CoreBPE(files, special, pat_str, normalization)
    except ValueError as error:
        _blame_files(files)
        raise error
    return Encoding._from_core(
        name, core_bpe, pat_str=pat_str, special_tokens=special, normalization=normalization
    )


class _Own(NamedTuple):
    pattern: str = "cl100k_base"
    special_tokens: dict[str, int] = {}
    normalization: str | None = None


def _own(path: str, contents: bytes) -> _Own:
    """Returns the pattern and special tokens of a rank file: from its sidecar, or recognized by its
    tokens."""
    found = read_sidecar(path) if not is_uri(path) else None
    if found is not None:
        if not found.get("pattern"):
            raise ValueError(f"{beside(path)} names no pattern; pass the pattern")
        special = copied_special_tokens(found.get("special_tokens") or {})
        return _Own(found["pattern"], special, found.get("normalization"))
    if not may_be_published(contents):
        return _Own()
    ranks = _core.parse_ranks(contents, shown_path(path))
    published = published_name(ranks)
    if published is None:
        return _Own()
    known, used = BUILTIN[published], set(ranks.values())
    free = {name: id for name, id in known.special_tokens.items() if id not in used}
    return _Own(known.pattern, free, known.normalization)
