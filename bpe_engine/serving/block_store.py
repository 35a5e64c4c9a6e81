"""`BlockStore`: ids of blocks of text in an LMDB environment, which processes share."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._core import StoredBlocks

__all__ = ["BlockStore", "open_store"]

#: The databases: blocks by key, keys in the order in which they came, and the bytes of all blocks.
_DATABASES = (b"bpe_engine blocks 1", b"bpe_engine order 1", b"bpe_engine sizes 1")
_SIZE = b"bytes"

#: LMDB keeps values of more than half a page in pages of their own.
_PAGE = 4096
#: Bytes that wait to be written, at most; further blocks are dropped.
_MOST_WAITING = 128 << 20
#: Bytes of the file of locks, for 1,000 readers.
_LOCK = 1 << 17
#: The smallest store, and the share of the map that blocks may take: LMDB copies pages on writing.
_LEAST, _FILLED = 1 << 20, 0.5
#: A block, and the blocks of a transaction, take at most this part of the limit.
_PARTS = 8
#: Seconds for which blocks are collected before they are written, and that closing waits.
_COLLECTED, _PATIENCE = 0.05, 5.0


#: The stores of this process by folder: LMDB opens a file once. The lock is taken while one is opened.
_stores: dict[str, BlockStore] = {}
_opening = threading.RLock()


def open_store(path: str | os.PathLike[str], max_bytes: int) -> BlockStore:
    """Returns the store of a folder: one for all that ask in a process. Raises as `BlockStore` does."""
    place = os.path.realpath(path)
    with _opening:
        if place not in _stores:
            _stores[place] = BlockStore(path, max_bytes)
        _stores[place].refresh()
        return _stores[place]


def _all_locks() -> list[Any]:
    return [_opening, *(lock for store in list(_stores.values()) for lock in store._locks)]


def _before_fork() -> None:
    """Waits for transactions: one in another thread would keep the files open in the child."""
    for lock in _all_locks():
        lock.acquire(timeout=_PATIENCE)


def _after_fork() -> None:
    for lock in _all_locks():
        with contextlib.suppress(RuntimeError):  # It took too long, or is of a new store.
            lock.release()


def _after_fork_in_child() -> None:
    global _opening
    _opening = threading.RLock()
    for store in list(_stores.values()):
        store._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )


class BlockStore:
    """Blocks and their ids, by key, in files that processes share.

    Blocks are checked before they are used, so that a wrong value counts as missing. They are written
    by a thread, in transactions: a process may be killed at any time. What cannot be written is
    dropped, as is a block of more than an eighth of the limit. The blocks that came first are dropped
    first, to keep the files below their limit. A forked process opens the files again when it first
    needs them. If the files are removed, those that are open are read on, and nothing more is written.

    Args:
        path: A folder, which is made. No other file may be in it.
        max_bytes: The most bytes of its files.

    Raises:
        ImportError: lmdb is missing (the extra ``store``).
        ValueError: The path is that of something else, of another user, or is damaged.
        OSError: The folder cannot be made or read, or its disk is full.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int):
        self.path: str = os.path.abspath(path)
        self._max_bytes = max(max_bytes, _LEAST)
        self._lmdb = _lmdb()
        self._start()
        self._open()
        atexit.register(self.flush)

    def _start(self) -> None:
        """Starts without files: in a fork, LMDB leaves those of the parent as they are."""
        self._environment: Any = None
        self._databases: list[Any] = []
        self._opened_files: list[Any] = []
        #: The reason for which nothing more is written.
        self.error: str | None = None
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
        #: Taken while a transaction reads, and while one writes.
        self._locks = threading.RLock(), threading.RLock()

    def refresh(self) -> None:
        """Opens the files of the folder unless those that are open are there. Raises as `BlockStore` does."""
        if self._is_open():
            return
        reading, writing = self._locks
        with reading, writing:
            if self._environment is not None:
                self._environment.close()
            self._open()

    def _open(self) -> None:
        """Opens the files, and takes back the error. Raises as `BlockStore` does, and keeps why."""
        self._environment, self.error = None, None
        try:
            self._environment, self._databases = self._opened()
        except (OSError, ValueError) as error:
            self.error = str(error)
            raise

    def _is_open(self) -> bool:
        return self._environment is not None and self._files() == self._opened_files

    def _files(self) -> list[Any]:
        """Returns the identities of the files in the folder."""
        found: list[Any] = []
        for name in ("data.mdb", "lock.mdb"):
            with contextlib.suppress(OSError):
                file = os.stat(os.path.join(self.path, name))
                found.append((name, file.st_dev, file.st_ino))
        return found

    # ---- Reading and writing ----

    def encode(
        self, blocks: StoredBlocks, prompt: str | list[Any], is_list: bool
    ) -> tuple[Any, int, int] | None:
        """Encodes a prompt with the blocks of the store, and gives it those that it lacks.

        Returns:
            The ids as a list or a buffer, how many they are, and how many came from the store. None
            if the prompt has no blocks, or the store cannot be read.
        """
        try:
            found = blocks.encode(prompt, self._waiting, self._reading(), is_list)
        except (_Closed, self._lmdb.ReadersFullError):
            # Others may have closed it by the next time.
            return None
        except self._lmdb.Error as error:
            self.error = str(error)
            return None
        if found is None:
            return None
        ids, count, stored, new = found
        if new and self.error is None:
            self._write(dict(new))
        return ids, count, stored

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Callable[[bytes], bytes | None]]:
        with self._locks[0]:
            if self._environment is None:
                try:
                    self._open()
                except (OSError, ValueError) as error:
                    raise _Closed(str(error)) from None
            try:
                transaction = self._environment.begin(db=self._databases[0])
            except self._lmdb.MapResizedError:
                # A process with a larger limit made the files larger.
                with self._locks[1]:
                    self._environment.set_mapsize(0)
                transaction = self._environment.begin(db=self._databases[0])
            except self._lmdb.ReadersFullError:
                self._environment.reader_check()
                transaction = self._environment.begin(db=self._databases[0])
            try:
                yield transaction.get
            finally:
                transaction.abort()
                del transaction  # It keeps the files open, in a fork as well.

    def _write(self, made: dict[bytes, bytes]) -> None:
        """Gives blocks to the thread that writes them, except for those that are too large."""
        most = self._max_bytes // _PARTS
        made = {key: value for key, value in made.items() if _taken(value) <= most}
        size = sum(map(len, made.values()))
        with self._lock:
            if self._waiting_bytes + size > _MOST_WAITING:
                return
            self._waiting_bytes += size - sum(len(self._waiting.get(key, b"")) for key in made)
            self._waiting.update(made)
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, daemon=True)
                self._writer.start()
        self._wake.set()

    def flush(self) -> None:
        """Waits until the blocks so far are written, or a few seconds."""
        deadline = time.monotonic() + _PATIENCE
        while self._waiting and time.monotonic() < deadline:
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
        """Writes blocks in parts: there is room for a small transaction, whatever waits."""
        part: dict[bytes, bytes] = {}
        size = 0
        try:
            for key, value in values.items():
                size += _taken(value)
                if part and size > self._max_bytes // _PARTS:
                    self._put_part(part)
                    part, size = {}, _taken(value)
                part[key] = value
            self._put_part(part)
        except Exception as error:  # Also of numbers that are damaged: the thread must go on.
            self.error = f"the store cannot be written: {error}"

    def _put_part(self, values: dict[bytes, bytes]) -> None:
        """Writes blocks in one transaction, or drops them if no room can be made."""
        reading, writing = self._locks
        for full in range(3):
            with contextlib.suppress(self._lmdb.MapFullError):
                try:
                    with writing:
                        if full == 1:  # Readers that were killed keep pages.
                            self._environment.reader_check()
                        elif full == 2:  # Its free pages are in pieces.
                            self._drop_all()
                        return self._put_and_evict(values)
                except self._lmdb.MapResizedError:
                    with reading, writing:
                        self._environment.set_mapsize(0)
                        return self._put_and_evict(values)

    def _put_and_evict(self, values: dict[bytes, bytes]) -> None:
        if not self._is_open():
            # Without the file of locks, two processes would write at once.
            self.error = f"the files of {self.path} were removed or replaced"
            return
        blocks, order, sizes = self._databases
        with self._environment.begin(write=True) as transaction:
            size = int(transaction.get(_SIZE, b"0", db=sizes))
            cursor = transaction.cursor(order)
            last = int.from_bytes(cursor.key(), "big") if cursor.last() else 0
            for key, value in values.items():
                before = transaction.replace(key, value, db=blocks)
                size += _taken(value)
                if before is None:
                    last += 1
                    transaction.put(last.to_bytes(8, "big"), key, db=order)
                else:  # Another process wrote it at the same time, or it was damaged.
                    size -= _taken(before)
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

    # ---- Opening ----

    def _opened(self) -> tuple[Any, list[Any]]:
        self._check_path()
        environment = None
        try:
            environment = self._at_path()
            environment.reader_check()
            self._check_size(environment)
            is_new = environment.stat()["entries"] == 0 and not environment.flags()["readonly"]
            databases = [environment.open_db(name, create=is_new) for name in _DATABASES]
            self._opened_files = self._files()
            return environment, databases
        except self._lmdb.Error as error:
            if environment is not None:
                environment.close()
            full = os.strerror(errno.ENOSPC)
            if full in str(error):
                raise OSError(errno.ENOSPC, full, self.path) from None
            raise ValueError(
                f"{self.path} is not a store of this version of bpe_engine, or is damaged ({error}); give "
                "another folder, or delete it"
            ) from None

    def _at_path(self) -> Any:
        # A limit that was larger left larger files; to drop blocks takes some pages, too.
        data = os.path.join(self.path, "data.mdb")
        there = os.path.getsize(data) if os.path.exists(data) else 0
        size = self._max_bytes if there <= self._max_bytes else there + _LEAST
        wanted = {"map_size": size, "max_dbs": 3, "mode": 0o600, "metasync": False}
        if os.access(self.path, os.W_OK) and self._may_write():
            # LMDB maps it: a full disk would end the process.
            _allocate(os.path.join(self.path, "lock.mdb"), _LOCK)
            return self._lmdb.open(self.path, max_readers=1024, **wanted)
        self.error = "the store is read-only"
        return self._lmdb.open(self.path, readonly=True, lock=False, create=False, **wanted)

    def _may_write(self) -> bool:
        names = (os.path.join(self.path, name) for name in ("data.mdb", "lock.mdb"))
        return all(os.access(name, os.W_OK) for name in names if os.path.exists(name))

    def _check_path(self) -> None:
        """Makes the folder. Raises ValueError if it or its files are not this user's alone."""
        if os.path.exists(self.path) and not os.path.isdir(self.path):
            raise ValueError(f"{self.path} is not a folder: give one for the store alone")
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        for name in ("", "data.mdb", "lock.mdb"):
            path = os.path.join(self.path, name)
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(path)
                if name and not stat.S_ISREG(found.st_mode):
                    raise ValueError(f"{path} is not a file: give a folder for the store alone")
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
        """Fills a file up that is shorter than its pages: reading behind its end would end the process.

        LMDB leaves out pages that it did not need in the end; in a file that was cut, empty pages are
        found to be damaged. Raises an error for a file that may not be written, and for a number of
        pages that no limit allows: they would fill the disk.
        """
        path = os.path.join(self.path, "data.mdb")
        needed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        found = os.path.getsize(path)
        if found >= needed or not environment.stat()["entries"]:
            return
        most = max(self._max_bytes, found + self._max_bytes // _PARTS)
        if environment.flags()["readonly"] or needed > most or not _allocate(path, needed):
            raise self._lmdb.CorruptedError(f"it has {found:,} of {needed:,} bytes")


def _allocate(path: str, size: int) -> bool:
    """Takes the disk space of the first bytes of a file, which may be longer. Returns false where the
    system cannot. Raises OSError for a full disk."""
    if not hasattr(os, "posix_fallocate"):
        return False
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, size)
        return True
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            return False
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(file)


class _Closed(Exception):
    """A fork cannot open the store that its parent has open."""


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
