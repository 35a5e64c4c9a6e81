"""`BlockStore`: ids of blocks of text in an LMDB environment, which processes share."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import stat
import struct
import threading
import time
import zlib
from collections.abc import Iterable
from typing import Any

__all__ = ["BlockStore", "open_store"]

#: The databases: blocks by key, keys in the order in which they came, and the bytes of all blocks.
_DATABASES = (b"bpe_engine blocks 1", b"bpe_engine order 1", b"bpe_engine sizes 1")
_SIZE = b"bytes"

#: The header of a block: a checksum of its ids, and the length of its contents.
_HEADER = struct.Struct("=II")

#: LMDB keeps values of more than half a page in pages of their own.
_PAGE = 4096
#: Bytes that wait to be written, at most; further blocks are dropped.
_MOST_WAITING = 128 << 20
#: The smallest store, and the share of the map that blocks may take: LMDB copies pages on writing.
_LEAST, _FILLED = 1 << 20, 0.5
#: Seconds for which blocks are collected before they are written, and that closing waits.
_COLLECTED, _PATIENCE = 0.05, 5.0


#: The stores of this process by folder: LMDB opens a file once.
_stores: dict[str, BlockStore] = {}


def open_store(path: str | os.PathLike[str], max_bytes: int) -> BlockStore:
    """Returns the store of a folder: one for all that ask in a process. Raises as `BlockStore` does."""
    place = os.path.realpath(path)
    if place not in _stores:
        _stores.setdefault(place, BlockStore(path, max_bytes))
    return _stores[place]


class BlockStore:
    """Contents of blocks and their ids, by key, in files that processes share.

    Reads compare contents and checksums, so that a wrong value counts as missing. Blocks are written
    by a thread, in transactions: a process may be killed at any time. What cannot be written is
    dropped. The blocks that came first are dropped first, to keep the files below their limit.

    Args:
        path: A folder, which is made. No other file may be in it.
        max_bytes: The most bytes of its files.

    Raises:
        ImportError: lmdb is missing (the extra ``store``).
        ValueError: The path is that of something else, of another user, or is damaged.
        OSError: The folder cannot be made or read.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int):
        self.path: str = os.fspath(path)
        self._max_bytes = max(max_bytes, _LEAST)
        #: The reason for which nothing more is written.
        self.error: str | None = None
        self._lmdb = _lmdb()
        self._process = os.getpid()
        self._environment, self._databases = self._opened()
        #: The thread that writes, and the blocks that wait for it.
        self._writer: threading.Thread | None = None
        self._waiting: dict[bytes, bytes] = {}
        self._waiting_bytes = 0
        self._lock, self._wake, self._written = (
            threading.Lock(),
            threading.Event(),
            threading.Event(),
        )
        self._written.set()
        atexit.register(self.flush)

    # ---- Reading ----

    def read(self, data: bytes, key: bytes, size: int) -> tuple[list[bytes], int, bytes]:
        """Reads the blocks at the beginning of a prompt.

        Args:
            data: The prompt.
            key: The key before the first block.
            size: The bytes at the beginning of a block that are its key, behind the key before.

        Returns:
            The ids of each block, as bytes, the end of the last, and its key.
        """
        found: list[bytes] = []
        at = 0
        if self._is_off():
            return found, at, key
        try:
            with self._environment.begin(db=self._databases[0]) as transaction:
                while at + size <= len(data):
                    following = hashlib.sha1(key + data[at : at + size]).digest()
                    value = self._waiting.get(following) or transaction.get(following)
                    block = None if value is None else _block(value, data, at)
                    if block is None:
                        break
                    key, at = following, at + block[0]
                    found.append(block[1])
        except self._lmdb.Error as error:
            self._fail(error)
        return found, at, key

    # ---- Writing ----

    def write(self, blocks: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        """Gives blocks to the thread that writes them: keys, contents and ids."""
        if self._is_off() or self.error is not None:
            return
        made = {
            key: _HEADER.pack(zlib.crc32(ids), len(content)) + content + ids
            for key, content, ids in blocks
        }
        size = sum(map(len, made.values()))
        with self._lock:
            if self._waiting_bytes + size > _MOST_WAITING:
                return
            self._waiting.update(made)
            self._waiting_bytes += size
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, daemon=True)
                self._writer.start()
        self._wake.set()

    def flush(self) -> None:
        """Waits until the blocks so far are written, or a few seconds."""
        deadline = time.monotonic() + _PATIENCE
        while not self._is_off() and self._waiting and time.monotonic() < deadline:
            self._written.clear()
            self._wake.set()
            self._written.wait(_PATIENCE)

    def _write_all(self) -> None:
        while True:
            self._wake.wait()
            if self._written.is_set():
                time.sleep(_COLLECTED)
            self._wake.clear()
            with self._lock:
                some = dict(self._waiting)
            if some:
                self._put(some)
            with self._lock:
                for key in some:
                    self._waiting_bytes -= len(self._waiting.pop(key, b""))
            self._written.set()

    def _put(self, values: dict[bytes, bytes]) -> None:
        try:
            try:
                self._put_and_evict(values)
            except self._lmdb.MapFullError:
                # Its free pages are in pieces, or its limit was larger before.
                self._drop_all()
                self._put_and_evict(values)
        except self._lmdb.Error as error:
            self._fail(error)

    def _put_and_evict(self, values: dict[bytes, bytes]) -> None:
        blocks, order, sizes = self._databases
        with self._environment.begin(write=True) as transaction:
            size = int(transaction.get(_SIZE, b"0", db=sizes))
            cursor = transaction.cursor(order)
            last = int.from_bytes(cursor.key(), "big") if cursor.last() else 0
            for key, value in values.items():
                if transaction.put(key, value, db=blocks, overwrite=True):
                    last += 1
                    transaction.put(last.to_bytes(8, "big"), key, db=order)
                    size += _taken(value)
            most = int(self._max_bytes * _FILLED)
            while size > most and cursor.first():
                value = transaction.pop(cursor.value(), db=blocks)
                cursor.delete()
                size -= 0 if value is None else _taken(value)
            transaction.put(_SIZE, str(max(size, 0)).encode(), db=sizes)

    def _drop_all(self) -> None:
        with self._environment.begin(write=True) as transaction:
            for database in self._databases:
                transaction.drop(database, delete=False)

    def _fail(self, error: Exception) -> None:
        self.error = str(error)

    # ---- Opening ----

    def _is_off(self) -> bool:
        """True in a fork of the process that opened the store: LMDB's files are not the child's to use."""
        if os.getpid() == self._process:
            return False
        self.error = "the process was forked; make the cache in the child only"
        return True

    def _opened(self) -> tuple[Any, list[Any]]:
        self._check_path()
        environment = None
        try:
            environment = self._at_path()
            self._check_size(environment)
            is_new = environment.stat()["entries"] == 0 and not environment.flags()["readonly"]
            databases = [environment.open_db(name, create=is_new) for name in _DATABASES]
            return environment, databases
        except self._lmdb.Error as error:
            if environment is not None:
                environment.close()
            raise ValueError(
                f"{self.path} is not a store of this version of bpe_engine, or is damaged ({error}); give "
                "another folder, or delete it"
            ) from None

    def _at_path(self) -> Any:
        wanted = {"map_size": self._max_bytes, "max_dbs": 3, "mode": 0o600, "metasync": False}
        if os.access(self.path, os.W_OK) and self._may_write():
            return self._lmdb.open(self.path, max_readers=1024, **wanted)
        self.error = "the store is read-only"
        return self._lmdb.open(self.path, readonly=True, lock=False, create=False, **wanted)

    def _may_write(self) -> bool:
        names = (os.path.join(self.path, name) for name in ("data.mdb", "lock.mdb"))
        return all(os.access(name, os.W_OK) for name in names if os.path.exists(name))

    def _check_path(self) -> None:
        """Makes the folder. Raises ValueError if it or its files are not this user's alone."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        for name in ("", "data.mdb", "lock.mdb"):
            path = os.path.join(self.path, name)
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(path)
                if found.st_uid not in (os.geteuid(), 0) or found.st_mode & stat.S_IWOTH:
                    raise ValueError(
                        f"{path} belongs to another user, or every user may write it: its ids cannot be "
                        "trusted; give a folder of your own"
                    )
        others = set(os.listdir(self.path)) - {"data.mdb", "lock.mdb"}
        if others:
            raise ValueError(
                f"{self.path} holds {min(others)!r}: give a folder for the store alone"
            )

    def _check_size(self, environment: Any) -> None:
        """Raises an error for a file that was cut: reading its pages would end the process."""
        needed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        found = os.path.getsize(os.path.join(self.path, "data.mdb"))
        if found < needed and environment.stat()["entries"]:
            raise self._lmdb.CorruptedError(f"it has {found:,} of {needed:,} bytes")


def _block(value: bytes, data: bytes, at: int) -> tuple[int, bytes] | None:
    """Returns the length and the ids of a block that data has at a byte; None if its ids are damaged,
    or its contents are others."""
    if len(value) < _HEADER.size:
        return None
    checksum, length = _HEADER.unpack_from(value)
    end = _HEADER.size + length
    if not length or not data.startswith(value[_HEADER.size : end], at):
        return None
    ids = value[end:]
    is_whole = len(value) > end and len(ids) % 4 == 0 and zlib.crc32(ids) == checksum
    return (length, ids) if is_whole else None


def _taken(value: bytes) -> int:
    """Returns the bytes that a block takes in the files."""
    size = len(value) + 64
    return size if size < _PAGE // 2 else -(-size // _PAGE) * _PAGE + 64


def _lmdb() -> Any:
    try:
        import lmdb
    except ImportError as error:
        raise ImportError(
            "a store needs the package lmdb; install it with: pip install 'bpe-engine[store]'"
        ) from error
    return lmdb
