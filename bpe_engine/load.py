"""Rank files: reading, writing, and making encodings of them.

A ``.tiktoken`` file has a line ``base64(token bytes) SPACE rank`` for each token. Files packed
with gzip are read as well. Nothing that is larger than ``max_bytes``, as it is or unpacked, gets
into memory.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Union

from . import _core, byte_level
from ._arguments import check_pattern, copied_special_tokens
from ._suggest import did_you_mean

if TYPE_CHECKING:
    from .core import Encoding

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


# How large a file may be unless the caller says otherwise: 70 times the largest published one.
MAX_BYTES = 1 << 28

_CHUNK = 1 << 20

# Seconds to wait for a connection, and for the next bytes over it.
_TIMEOUT = (10, 60)


def read_file(blobpath: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file: a local path, an ``http(s)://`` address (needs the package
    `requests`), or any other address that the package `blobfile` reads.

    Args:
        blobpath: A path or an address.
        max_bytes: How many bytes the file may have; 256 MiB by default.

    Raises:
        OSError: The file cannot be read, or the network does not answer.
        ValueError: The file has more than `max_bytes`.
        ImportError: The package that the address needs is not installed.
    """
    if _is_local(blobpath):
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
    """The chunks of a file as one; ValueError as soon as they are more than `max_bytes`."""
    contents, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise ValueError(
                f"{path} holds more than {max_bytes:,} bytes, too many for a rank file; if that "
                "is right, pass a larger max_bytes"
            )
        contents.append(chunk)
    return b"".join(contents)


def _is_local(path: str | os.PathLike[str]) -> bool:
    return "://" not in os.fspath(path)


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
    """Whether the sha256 of `data`, in hexadecimal, is `expected_hash`.

    >>> check_hash(b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    True
    """
    return hashlib.sha256(data).hexdigest() == expected_hash.lower()


def _require_hash(data: bytes, expected_hash: str | None, path: str) -> None:
    if expected_hash and not check_hash(data, expected_hash):
        raise ValueError(
            f"the sha256 of {path} is {hashlib.sha256(data).hexdigest()}, not the expected "
            f"{expected_hash}; the file is damaged or another version: get it again, or correct "
            "the hash"
        )


def read_file_cached(
    blobpath: str, expected_hash: str | None = None, *, max_bytes: int = MAX_BYTES
) -> bytes:
    """`read_file`, with a copy of what came over the network kept on disk.

    The copy is kept in ``TIKTOKEN_CACHE_DIR``, else in ``DATA_GYM_CACHE_DIR``, else in
    ``data-gym-cache`` in the directory for temporary files; an empty variable turns that off. Its
    name is the sha1 of the address. A copy with the wrong hash is fetched again. Local files are
    read where they are.

    Args:
        blobpath: A path or an address.
        expected_hash: The sha256 of the contents, in hexadecimal.
        max_bytes: How many bytes the file may have; 256 MiB by default.

    Raises:
        ValueError: The contents have another hash, or are more than `max_bytes`.
        OSError: The file cannot be read, or a directory that was asked for cannot be written.
    """
    directory, asked_for = _cache_directory()
    if _is_local(blobpath) or not directory:
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
        _write_at_once(copy, contents)
    except OSError:
        if asked_for:
            raise
    return contents


def _cache_directory() -> tuple[str, bool]:
    """Where copies are kept ("" for nowhere), and whether the user asked for it."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable], True
    return os.path.join(tempfile.gettempdir(), "data-gym-cache"), False


def _write_at_once(path: str, contents: bytes) -> None:
    """Writes a file so that nobody ever sees half of it."""
    unfinished = f"{path}.{os.urandom(8).hex()}.tmp"
    try:
        with open(unfinished, "wb") as file:
            file.write(contents)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise


def _unpack(contents: bytes, path: str, max_bytes: int) -> bytes:
    """`contents`, or what they unpack to if they are packed with gzip."""
    if not contents.startswith(b"\x1f\x8b"):
        return contents
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(contents)) as file:
            return _join(_chunks(file), f"{path}, unpacked,", max_bytes)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(
            f"{path} is a damaged gzip file ({error}); get it again, or unpack it yourself"
        ) from error


def _read_ranks(
    path: str | os.PathLike[str], expected_hash: str | None, max_bytes: int = MAX_BYTES
) -> bytes:
    """The unpacked contents of a rank file. The hash may be that of the file or, if it is local
    and packed, of what is in it."""
    path = os.fspath(path)
    if not _is_local(path):
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
    """Raises ValueError for what people take for a rank file, saying what to do with it."""
    _refuse_byte_order_mark(contents, path)
    if contents[:100].lstrip().startswith((b"{", b"[")):
        raise ValueError(
            f"{path} is JSON, not a rank file with lines of base64(token), a space and the rank; "
            "a tokenizer.json is read by bpe_engine.hf, the pair vocab.bpe and encoder.json (also "
            "called merges.txt and vocab.json) by data_gym_to_mergeable_bpe_ranks"
        )


def _refuse_byte_order_mark(contents: bytes, path: str) -> None:
    start = contents[:4]
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start:
        kind, way_out = "is UTF-16 or UTF-32", f"convert it: iconv -f utf-16 -t utf-8 {path}"
    elif start.startswith(b"\xef\xbb\xbf"):
        kind, way_out = "begins with a byte order mark", "save it as UTF-8 without one"
    else:
        return
    raise ValueError(f"{path} {kind}, which no published file does; {way_out}")


def load_tiktoken_bpe(
    tiktoken_bpe_file: str, expected_hash: str | None = None, *, max_bytes: int = MAX_BYTES
) -> dict[bytes, int]:
    """The ranks in a ``.tiktoken`` file, which may be packed with gzip.

    Args:
        tiktoken_bpe_file: A path, or an address as for `read_file`.
        expected_hash: The sha256 of the file, in hexadecimal.
        max_bytes: How many bytes the file may have, as it is and unpacked; 256 MiB by default.

    Returns:
        Token bytes and their ranks, in the order of ranks.

    Raises:
        ValueError: The hash is another, the file is too large or no rank file, a line is
            malformed, or a token or a rank comes twice. The message names the line or the token.
        OSError: The file cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/letters.tiktoken"
    ...     dump_tiktoken_bpe({b"a": 0, b"b": 1, b"ab": 2}, file)
    ...     load_tiktoken_bpe(file)
    {b'a': 0, b'b': 1, b'ab': 2}
    """
    path = _file_name("tiktoken_bpe_file", tiktoken_bpe_file)
    return _core.parse_ranks(_read_ranks(path, expected_hash, max_bytes), path)


def dump_tiktoken_bpe(bpe_ranks: dict[bytes, int], tiktoken_bpe_file: str) -> None:
    """Writes ranks as a ``.tiktoken`` file, in the order of ranks.

    Args:
        bpe_ranks: Token bytes and their ranks.
        tiktoken_bpe_file: A path, or an address that the package `blobfile` writes.

    Raises:
        ImportError: It is an address, and `blobfile` is not installed.
    """
    lines = sorted(bpe_ranks.items(), key=lambda item: item[1])
    contents = b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in lines)
    if _is_local(tiktoken_bpe_file):
        _write_at_once(os.fspath(tiktoken_bpe_file), contents)
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
    """The ranks of an encoding that is published as the GPT-2 pair of files: a list of merges
    and a JSON object of token ids.

    Args:
        vocab_bpe_file: The merges, one a line after a line with the version.
        encoder_json_file: The ids.
        vocab_bpe_hash: The sha256 of the first, in hexadecimal.
        encoder_json_hash: The sha256 of the second.
        clobber_one_byte_tokens: Take the ids of single bytes from the second file instead of
            numbering them in the usual order.
        max_bytes: How many bytes each file may have, as it is and unpacked; 256 MiB by default.

    Returns:
        Token bytes and their ranks.

    Raises:
        ValueError: A hash is another, a file is too large or malformed, or the two do not fit
            together.
        OSError: A file cannot be read.
    """
    merges = _read_utf8(vocab_bpe_file, vocab_bpe_hash, max_bytes)
    encoder = _read_vocabulary(encoder_json_file, encoder_json_hash, max_bytes)

    def token(written: str, path: str) -> bytes:
        try:
            return byte_level.bytes_of(written)
        except KeyError as error:
            raise ValueError(
                f"{path}: the token {written!r} holds {error.args[0]!r}, which stands for no byte"
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
            f"{vocab_bpe_file} and {encoder_json_file} do not fit together: the token "
            f"{differing!r} is number {ranks.get(differing)} in the first and has the id "
            f"{ids.get(differing)} in the second"
        )
    return ranks


def _read_utf8(path: str, expected_hash: str | None, max_bytes: int) -> str:
    packed = read_file_cached(path, expected_hash, max_bytes=max_bytes)
    contents = _unpack(packed, path, max_bytes)
    _refuse_byte_order_mark(contents, path)
    try:
        return contents.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 at byte {error.start}") from None


def _read_vocabulary(path: str, expected_hash: str | None, max_bytes: int) -> dict[str, int]:
    """The tokens and ids of an ``encoder.json``."""
    try:
        ids = json.loads(_read_utf8(path, expected_hash, max_bytes))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON object of tokens and ids: {error}") from None
    if not isinstance(ids, dict) or not all(type(id) is int for id in ids.values()):
        raise ValueError(
            f"{path} is no JSON object of tokens and ids, such as {{'a': 64}}; a tokenizer.json "
            "is read by bpe_engine.hf"
        )
    return ids


def _file_name(argument: str, path: _Path) -> str:
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(
            f"{argument} must be the path of a file, not {type(path).__name__}: {path!r}"
        ) from None


def _refuse_misspelt_name(pattern: str, names: Iterable[str]) -> None:
    """Raises ValueError for a regular expression that was meant to be the name of an encoding:
    it would match that name only, and all other text would be dropped."""
    if re.fullmatch(r"[\w.-]+", pattern) and (hint := did_you_mean(pattern, names)):
        raise ValueError(
            f"the pattern {pattern!r} is no encoding's name.{hint} (If it is a regular "
            "expression, put it into a group: (?:...))"
        )


def _blame_files(files: list[tuple[str, bytes]]) -> None:
    """Raises the ValueError that rank files cause by themselves, with their names in it."""
    names = " and ".join(name for name, _ in files)
    try:
        _core.CoreBPE.from_rank_files(files, {}, r"\w+|\W+")
    except ValueError as error:
        message = str(error)
        # What is wrong with one line comes with the file and the number of the line.
        if not any(message.startswith(f"{name}, line ") for name, _ in files):
            message = f"{names}: {message}"
        raise ValueError(message) from None


def _load_json(
    path: str, special: dict[str, int], name: str | None, expected_hash: str | None, max_bytes: int
) -> Encoding:
    """`load_encoding` for a ``tokenizer.json`` or ``tekken.json``."""
    from .hf.as_encoding import encoding_of_tekken, encoding_of_tokenizer

    contents = _read_utf8(path, expected_hash, max_bytes)
    name = os.path.basename(path).split(".")[0] if name is None else name
    if special and '"token_bytes"' not in contents:
        raise ValueError(f"{path} brings its own special tokens; leave special_tokens out")
    try:
        if '"token_bytes"' in contents:
            return encoding_of_tekken(contents, name, special)
        return encoding_of_tokenizer(contents, name)
    except ValueError as error:
        raise type(error)(f"{path}: {error}") from None


def load_encoding(
    path: _Path,
    pattern: str = "cl100k_base",
    special_tokens: Mapping[str, int] | None = None,
    extra: _Path | Iterable[_Path] = (),
    name: str | None = None,
    expected_hash: str | None = None,
    *,
    normalization: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Encoding:
    """An encoding out of a ``.tiktoken`` file, which may be packed with gzip, or out of a
    ``tokenizer.json`` or ``tekken.json``, which bring their pattern and their special tokens along.

    Args:
        path: The file.
        pattern: The pattern that cuts text into pieces: the name of an encoding of this package,
            to take its pattern, or a regular expression.
        special_tokens: Names and ids. Ids must not be taken by tokens of the files.
        extra: A file, or several, whose tokens come after those of the first: an extended
            vocabulary.
        name: The name of the encoding; by default the file's, without what follows the first dot.
        expected_hash: The sha256 of the first file, in hexadecimal; for a packed file, of the
            file or of its contents.
        normalization: "NFC" to bring text into this Unicode normalization form first, as the
            encodings of Qwen do; None not to.
        max_bytes: How many bytes each file may have, as it is and unpacked; 256 MiB by default.

    Raises:
        TypeError: An argument has another type; the message names it.
        ValueError: The hash is another, a file is too large or no rank file, a line is malformed,
            a token or a rank comes twice, the pattern does not compile, or an id is taken. The
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
    from .builtin import BUILTIN
    from .core import Encoding

    check_pattern("pattern", pattern)
    special = copied_special_tokens({} if special_tokens is None else special_tokens)
    path = _file_name("path", path)
    more = [extra] if isinstance(extra, (str, bytes, os.PathLike)) else extra
    if not isinstance(more, Iterable):
        raise TypeError(f"extra must be a path or several, not {type(extra).__name__}: {extra!r}")
    names = [_file_name("extra", file) for file in more]
    if path.endswith(".json") and not names:
        if normalization is not None:
            raise ValueError(f"{path} brings its own normalization; leave normalization out")
        return _load_json(path, special, name, expected_hash, max_bytes)
    files = [(path, _read_ranks(path, expected_hash, max_bytes))]
    files += [(file, _read_ranks(file, None, max_bytes)) for file in names]
    known = BUILTIN.get(pattern)
    if known is None:
        _refuse_misspelt_name(pattern, BUILTIN)
    pat_str = pattern if known is None else known.pattern
    try:
        core_bpe = _core.CoreBPE.from_rank_files(files, special, pat_str, normalization)
    except ValueError as error:
        _blame_files(files)
        raise error
    if name is None:
        name = os.path.basename(path).split(".")[0]
    return Encoding._from_core(
        name, core_bpe, pat_str=pat_str, special_tokens=special, normalization=normalization
    )
