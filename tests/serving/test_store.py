"""The store of `ConversationCache`: exact ids, whatever happens to processes and files."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from seeds import seeded

import bpe_engine
from bpe_engine import hf
from bpe_engine.prompt import special, trusted, untrusted
from bpe_engine.serving import ConversationCache
from bpe_engine.serving.block_store import open_store

lmdb = pytest.importorskip("lmdb")

SHARED = pathlib.Path(__file__).parents[3] / "shared" / "tokenizers"
WORDS = [
    "the ",
    "sea",
    " naïve",
    "東京",
    "\n",
    "  ",
    "12",
    "e\u0301",
    "<|im",
    "_end|>",
    "🦜",
    " A",
    ".",
]


def text(chance: random.Random, size: int) -> str:
    return "".join(chance.choice(WORDS) for _ in range(size))


def chat(names: list[str], turns: int, chance: random.Random) -> str:
    """Messages that end with special tokens, some at once, some with marks behind them."""
    made = []
    for _ in range(turns):
        made += [text(chance, chance.choice([3, 300, 1500])), chance.choice(names)]
        made += chance.choice(["", "\n", " ", "\u0338", names[0]])
    return "".join(made)


def segments(names: list[str], turns: int, chance: random.Random) -> list[object]:
    made: list[object] = []
    for _ in range(turns):
        name = chance.choice(names)
        made += [special(name), trusted(f"user\n{name} x "), untrusted(text(chance, 700))]
        made += [chance.choice([special(name), trusted(f"{name}\n{name}"), (name, {name})])]
        made += [untrusted(""), ("x", False)]
    return made


def opened(tokenizer: object, store: pathlib.Path, **more: object) -> ConversationCache:
    return ConversationCache(
        tokenizer,  # type: ignore[arg-type]
        allowed_special="all",
        disallowed_special=(),
        store=store,
        **more,  # type: ignore[arg-type]
    )


def shared_file(name: str) -> hf.Tokenizer:
    path = SHARED / f"{name}.json"
    if not path.exists():
        pytest.skip("../shared/tokenizers is missing")
    return hf.Tokenizer.from_file(str(path))


FILES = [
    "deepseek",
    "mistral-7b-v0.3",
    "phi-3-mini.sentencepiece-like",
    "roberta-base",
    "gpt-neox-pii",
]
FILES += ["models/t5-small", "models/bert-base-uncased", "models/mistral-7b-v0.1"]


@pytest.mark.parametrize("name", ["qwen3", "gpt2", *FILES])
def test_ids_are_those_of_the_whole(name: str, tmp_path: pathlib.Path) -> None:
    is_file = name in FILES
    tokenizer = shared_file(name) if is_file else bpe_engine.get_encoding(name)
    names = sorted(name for name in tokenizer.special_tokens_set if name.strip())[:6]
    chance = seeded("store", name)
    plain = ConversationCache(tokenizer, max_bytes=0, allowed_special="all", disallowed_special=())
    for _ in range(2):  # A server, then another after it.
        cache = opened(tokenizer, tmp_path / "store")
        chance = seeded("store", name)
        for _ in range(4):
            prompt = chat(names, 12, chance)
            for end in sorted(chance.sample(range(len(prompt)), 4)) + [len(prompt)]:
                assert cache.encode(prompt[:end]) == plain.encode(prompt[:end])
            whole = segments(names, 6, chance)
            for end in range(0, len(whole) + 1, 7):
                expected = plain.encode(whole[:end])  # type: ignore[arg-type]
                assert cache.encode(whole[:end]) == expected  # type: ignore[arg-type]
                assert cache.encode_to_numpy(whole[:end]).tolist() == expected  # type: ignore[arg-type]
        cache.flush()
        assert cache.stats().store_error is None
    if name in ("qwen3", "gpt2", "mistral-7b-v0.3"):
        assert cache.stats().stored_tokens > 0.3 * cache.stats().tokens


def test_errors_are_those_of_encode(tmp_path: pathlib.Path) -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    cache = ConversationCache(gpt2, store=tmp_path / "store")
    with pytest.raises(ValueError, match="disallowed special token"):
        cache.encode("word " * 2000 + "<|endoftext|>")
    long = [untrusted("word " * 1000), special("<|endoftext|>")]
    for bad in ([*long, special("<|none|>")], [*long, ("x",)], [*long, 3], [*long, (b"x", True)]):
        with pytest.raises((TypeError, ValueError)) as stored:
            cache.encode(bad)  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError)) as plain:
            gpt2.encode_segments(bad)  # type: ignore[arg-type]
        assert str(stored.value) == str(plain.value)
    with pytest.raises(TypeError):
        cache.encode(3)  # type: ignore[arg-type]


PROMPT = "".join(f"{number} word " * 300 + "<|endoftext|>\n" for number in range(12))


def test_two_tokenizers_and_requests_share_a_store(tmp_path: pathlib.Path) -> None:
    for name in ("gpt2", "cl100k_base", "o200k_base", "gpt2"):
        enc = bpe_engine.get_encoding(name)
        cache = opened(enc, tmp_path / "store")
        expected = enc.encode(PROMPT, allowed_special="all")
        assert cache.encode(PROMPT) == cache.encode(PROMPT) == expected
        other = ConversationCache(enc, disallowed_special=(), store=tmp_path / "store")
        assert other.encode(PROMPT) == enc.encode(PROMPT, disallowed_special=())
        assert other.encode([trusted(PROMPT)]) == expected
        untold = [untrusted(PROMPT), special("<|endoftext|>")]
        assert other.encode(untold) == enc.encode_segments(untold)


def test_a_store_hides_no_refusal(tmp_path: pathlib.Path) -> None:
    enc = bpe_engine.get_encoding("gpt2")
    refusing = ConversationCache(enc, store=tmp_path / "store")
    taking = ConversationCache(enc, disallowed_special=(), store=tmp_path / "store")
    assert taking.encode(PROMPT) == enc.encode(PROMPT, disallowed_special=())
    taking.flush()
    with pytest.raises(ValueError, match="endoftext"):
        refusing.encode(PROMPT)


def test_threads_that_open_a_store_at_once(tmp_path: pathlib.Path) -> None:
    enc = bpe_engine.get_encoding("gpt2")
    for number in range(10):
        store, barrier = tmp_path / str(number), threading.Barrier(8)

        def opened_at_once(store: pathlib.Path, barrier: threading.Barrier) -> list[int]:
            barrier.wait(60)
            return ConversationCache(enc, store=store).encode("hello")

        with ThreadPoolExecutor(8) as threads:
            made = [threads.submit(opened_at_once, store, barrier) for _ in range(8)]
            assert [each.result() for each in made] == [enc.encode("hello")] * 8


#: The start of programs: the store, and the encoding.
HEAD = f"""
import sys, bpe_engine
from bpe_engine.serving import ConversationCache
PROMPT = {PROMPT!r}
enc = bpe_engine.get_encoding(sys.argv[2] if len(sys.argv) > 2 else "gpt2")
expected = enc.encode(PROMPT, allowed_special="all")
def cache(**more):
    return ConversationCache(enc, allowed_special="all", store=sys.argv[1], **more)
"""


def command(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", HEAD + code, *map(str, arguments)]


def child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(code, *arguments), capture_output=True, text=True, timeout=300)


USE = (
    "c = cache()\nassert c.encode(PROMPT) == expected\nc.flush()\nprint(c.stats().stored_tokens)\n"
)


def test_processes_after_one_another(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "store"
    first, second = (child(USE, store) for _ in range(2))
    assert first.stdout == "0\n", first.stderr
    assert int(second.stdout) > 3000, second.stderr
    other = child(USE, store, "cl100k_base")
    assert other.stdout == "0\n", other.stderr


def test_processes_that_are_killed(tmp_path: pathlib.Path) -> None:
    """Writers die somewhere; the others go on, and ids stay exact."""
    code = (
        "import itertools\nc = cache(max_store_bytes=1 << 21)\nprint('ready', flush=True)\n"
        "for n in itertools.count():\n    prompt = PROMPT[n * 7 % 3000:] + str(n)\n"
        "    assert c.encode(prompt) == enc.encode(prompt, allowed_special='all')\n"
    )
    chance = seeded("killed")
    store = tmp_path / "store"
    assert child(USE, store).returncode == 0
    for _ in range(6):
        process = subprocess.Popen(command(code, store), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(chance.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    result = child(USE, store)
    assert result.returncode == 0, result.stderr


def test_a_fork_while_threads_encode(tmp_path: pathlib.Path) -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    expected = gpt2.encode(PROMPT, allowed_special="all")
    cache = opened(gpt2, tmp_path / "store")
    done = threading.Event()

    def encode(seed: int) -> None:
        chance = seeded("fork", seed)
        while not done.is_set():
            cache.encode(PROMPT[chance.randrange(3000) :])

    def in_child() -> None:
        """Two threads of the child open the store again, at once."""
        before = cache.stats().stored_tokens
        with ThreadPoolExecutor(2) as pool:
            is_same = [*pool.map(cache.encode, [PROMPT] * 4)] == [expected] * 4
        cache.encode(f"{os.getpid()} {PROMPT}")
        cache.flush()
        stats = cache.stats()
        os._exit(int(not is_same or stats.store_error is not None or stats.stored_tokens == before))

    threads = [threading.Thread(target=encode, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    context = multiprocessing.get_context("fork")
    try:
        for _ in range(6):
            process = context.Process(target=in_child)
            process.start()
            process.join(120)
            assert process.exitcode == 0
            # What the child wrote is there for its parent.
            found = cache.stats().stored_tokens
            assert process.pid is not None and gpt2.decode(cache.encode(f"{process.pid} {PROMPT}"))
            assert cache.stats().stored_tokens > found + 3000
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert cache.encode(PROMPT) == expected and cache.stats().store_error is None


def test_a_fork_that_ends_as_programs_do(tmp_path: pathlib.Path) -> None:
    """The parent's readers stay registered, and a store that is gone is an error, not a crash."""
    code = (
        "import os, time\nc = cache()\nassert c.encode(PROMPT) == expected\nc.flush()\n"
        "if (child := os.fork()) == 0:\n    assert c.encode(PROMPT) == expected\n"
        "    assert c.stats().store_error is None\n    time.sleep(0.3)\n    sys.exit()\n"
        "environment = c._store._environment\nwith environment.begin() as transaction:\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "    assert str(os.getpid()) in environment.readers(), environment.readers()\n"
        "if (child := os.fork()) == 0:\n    open(sys.argv[1] + '/notes', 'w').close()\n"
        "    assert c.encode(PROMPT) == expected\n"
        "    assert 'store alone' in c.stats().store_error\n    sys.exit()\n"
        "assert os.waitpid(child, 0)[1] == 0 and c.encode(PROMPT) == expected\n"
    )
    result = child(code, tmp_path / "store")
    assert result.returncode == 0, result.stderr


def test_prompts_without_special_tokens(tmp_path: pathlib.Path) -> None:
    """Also those outside of the normal form of their encoding."""
    chance = seeded("stored forms")
    for name in ("qwen3", "o200k_base"):
        enc = bpe_engine.get_encoding(name)
        for prompt in ("e\u0301 naïve <\u0338 text. " * 3000, text(chance, 30_000)):
            for end in (len(prompt) - 9, len(prompt) // 2, len(prompt)):
                cache = opened(enc, tmp_path / "store")
                assert cache.encode(prompt[:end]) == enc.encode(prompt[:end], allowed_special="all")
                cache.flush()
            assert cache.stats().stored_tokens > 0.6 * cache.stats().tokens


def test_size_is_bounded(tmp_path: pathlib.Path) -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    cache = opened(gpt2, tmp_path / "store", max_store_bytes=1 << 21)
    chance = seeded("size")
    for _ in range(40):
        prompt = text(chance, 9000).join(["<|endoftext|>"] * 6)
        assert cache.encode(prompt) == gpt2.encode(prompt, allowed_special="all")
        cache.flush()
    assert cache.stats().store_error is None
    assert (tmp_path / "store" / "data.mdb").stat().st_size <= 1 << 21
    cache.encode(prompt)
    assert cache.stats().stored_tokens > 5000


def later_prompts_are_stored(cache: ConversationCache) -> bool:
    """Whether prompts are written and found; one may be dropped while room is made."""
    enc, chance, before = bpe_engine.get_encoding("gpt2"), seeded("later"), 0
    for _ in range(4):
        prompt = text(chance, 3000)
        for _ in range(2):
            before = cache.stats().stored_tokens
            assert cache.encode(prompt) == enc.encode(prompt)
            cache.flush()
    assert cache.stats().store_error is None
    return cache.stats().stored_tokens > before


def block(size: int) -> str:
    """A text that cannot be cut before its end."""
    return "a" * size + " b c d e f g " * 200


@pytest.mark.parametrize("kind", ["burst", "one block"])
def test_more_than_a_small_store_holds(kind: str, tmp_path: pathlib.Path) -> None:
    gpt2, chance = bpe_engine.get_encoding("gpt2"), seeded("small")
    cache = opened(gpt2, tmp_path / "store", max_store_bytes=1 << 20)
    prompts = [text(chance, 20_000) for _ in range(20)] if kind == "burst" else [block(2 << 20)]
    for prompt in prompts:
        assert cache.encode(prompt) == gpt2.encode(prompt)
    assert later_prompts_are_stored(cache)
    assert (tmp_path / "store" / "data.mdb").stat().st_size <= 1 << 20


def test_a_block_that_is_too_large_keeps_the_others(tmp_path: pathlib.Path) -> None:
    gpt2, chance = bpe_engine.get_encoding("gpt2"), seeded("large block")
    cache = opened(gpt2, tmp_path / "store", max_store_bytes=1 << 20)
    prompt = text(chance, 3000)
    cache.encode(prompt)
    cache.flush()
    for size in (400_000, 400_001):
        cache.encode(block(size))
        cache.flush()
    before = cache.stats().stored_tokens
    assert cache.encode(prompt) == gpt2.encode(prompt)
    assert cache.stats().stored_tokens > before and cache.stats().store_error is None


#: A program that is killed while it reads.
KILLED = (
    "import os\nc = cache(max_store_bytes=1 << 20)\n"
    "with c._store._reading() as get:\n    get(b'x')\n    os.kill(os.getpid(), 9)\n"
)


def test_a_reader_that_is_killed(tmp_path: pathlib.Path) -> None:
    """Its pages are free again, for those that have the store open and for the next one."""
    gpt2, chance = bpe_engine.get_encoding("gpt2"), seeded("killed reader")
    cache = opened(gpt2, tmp_path / "store", max_store_bytes=1 << 20)
    assert later_prompts_are_stored(cache)
    assert child(KILLED, tmp_path / "store").returncode == -signal.SIGKILL
    for _ in range(12):
        cache.encode(text(chance, 20_000))
        cache.flush()
        assert cache.stats().store_error is None
    assert later_prompts_are_stored(cache)
    process = subprocess.Popen(command(KILLED, tmp_path / "store"))
    assert process.wait(300) == -signal.SIGKILL
    environment = cache._store._environment  # type: ignore[union-attr]
    assert str(process.pid) in environment.readers()
    assert child(USE, tmp_path / "store").returncode == 0
    assert str(process.pid) not in environment.readers()


def test_files_stay_below_their_limit_when_opened_again(tmp_path: pathlib.Path) -> None:
    """Also where a reader that kept pages was killed each time."""
    code = (
        "import os\nc = cache(max_store_bytes=1 << 20)\n"
        "with c._store._environment.begin():\n    for number in range(12):\n"
        "        c.encode(f'{os.getpid()} {number} words ' * 4000)\n        c.flush()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    for _ in range(3):
        assert child(code, tmp_path / "store").returncode == -signal.SIGKILL
        assert (tmp_path / "store" / "data.mdb").stat().st_size <= 1 << 20
    cache = opened(bpe_engine.get_encoding("gpt2"), tmp_path / "store", max_store_bytes=1 << 20)
    assert later_prompts_are_stored(cache)


def test_killed_readers_in_every_place(tmp_path: pathlib.Path) -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    cache = opened(gpt2, tmp_path / "store")
    code = (
        "import os, lmdb\nc = cache()\nreading = []\ntry:\n    while True:\n"
        "        reading.append(c._store._environment.begin())\n"
        "except lmdb.ReadersFullError:\n    os.kill(os.getpid(), 9)\n"
    )
    assert child(code, tmp_path / "store").returncode == -signal.SIGKILL
    assert later_prompts_are_stored(cache)


def test_readers_in_every_place(tmp_path: pathlib.Path) -> None:
    """Prompts are encoded without the store, which is used again afterwards."""
    gpt2, chance = bpe_engine.get_encoding("gpt2"), seeded("many readers")
    cache = opened(gpt2, tmp_path / "store")
    environment = cache._store._environment  # type: ignore[union-attr]
    reading = []
    with pytest.raises(lmdb.ReadersFullError):
        while True:
            reading.append(environment.begin())
    prompt = text(chance, 3000)
    assert cache.encode(prompt) == gpt2.encode(prompt)
    assert cache.stats().store_error is None
    reading.clear()
    assert later_prompts_are_stored(cache)


def test_a_reader_that_stays(tmp_path: pathlib.Path) -> None:
    """Blocks without room are dropped, and later ones are written again."""
    gpt2, chance = bpe_engine.get_encoding("gpt2"), seeded("long reader")
    cache = opened(gpt2, tmp_path / "store", max_store_bytes=1 << 20)
    assert later_prompts_are_stored(cache)
    environment = cache._store._environment  # type: ignore[union-attr]
    with environment.begin():
        for _ in range(12):
            prompt = text(chance, 20_000)
            assert cache.encode(prompt) == gpt2.encode(prompt)
            cache.flush()
        assert cache.stats().store_error is None
    assert later_prompts_are_stored(cache)


def test_blocks_that_are_written_again_count_once(tmp_path: pathlib.Path) -> None:
    """As those that two processes encode at the same time."""
    store = open_store(tmp_path / "store", 1 << 20)
    for number in range(20):
        store._put({b"first": number * b"x"})
        store._put({b"key": 5000 * b"x"})
    with store._environment.begin() as transaction:
        blocks, order, sizes = store._databases
        assert int(transaction.get(b"bytes", db=sizes)) < 10_000
        assert transaction.stat(order)["entries"] == transaction.stat(blocks)["entries"] == 2
    assert store.error is None


def test_a_full_disk(tmp_path: pathlib.Path) -> None:
    code = (
        "import resource\nc = cache()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "for _ in range(3):\n    assert c.encode(PROMPT) == expected\n    c.flush()\n"
        "print(c.stats().store_error)\n"
    )
    result = child(code, tmp_path / "store")
    assert result.returncode == 0 and result.stdout.strip() != "None", (
        result.stdout,
        result.stderr,
    )
    assert child(USE, tmp_path / "store").returncode == 0


def test_a_disk_that_is_full_at_first(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left on device") as raised:
        opened(bpe_engine.get_encoding("gpt2"), tmp_path / "store")
    assert raised.value.errno == errno.ENOSPC and "lock.mdb" in str(raised.value)


def test_a_store_that_is_read_only(tmp_path: pathlib.Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write any file")
    store = tmp_path / "store"
    assert child(USE, store).returncode == 0
    store.chmod(0o500)
    try:
        result = child(USE, store)
        assert int(result.stdout) > 3000, result.stderr
    finally:
        store.chmod(0o700)


def test_a_store_that_is_removed(tmp_path: pathlib.Path) -> None:
    """It reads what it has open, says why it writes no more, and the next cache begins anew."""
    enc, chance, folder = bpe_engine.get_encoding("gpt2"), seeded("removed"), tmp_path / "s"
    one, two = ("<|endoftext|>".join(text(chance, 9000) for _ in range(3)) for _ in range(2))
    cache = opened(enc, folder)
    expected = [enc.encode(it, allowed_special="all") for it in (one, two)]
    assert cache.encode(one) == expected[0]
    cache.flush()
    shutil.rmtree(folder)
    assert [cache.encode(it) for it in (one, two)] == expected
    cache.flush()
    assert cache.stats().stored_tokens > 0
    assert f"the files of {folder} were removed" in str(cache.stats().store_error)
    assert not folder.exists()
    again = opened(enc, folder)
    assert again.stats().store_error is cache.stats().store_error is None
    for _ in range(2):
        assert [each.encode(it) for each in (again, cache) for it in (one, two)] == 2 * expected
        again.flush()
    assert again.stats().stored_tokens > 0
    # Another store in its place, as after a backup.
    for kind in ("data", "lock"):
        (folder / f"{kind}.new").write_bytes((folder / f"{kind}.mdb").read_bytes())
        (folder / f"{kind}.new").replace(folder / f"{kind}.mdb")
    assert cache.encode(one + two) == enc.encode(one + two, allowed_special="all")
    cache.flush()
    assert "were removed or replaced" in str(cache.stats().store_error)
    assert opened(enc, folder).encode(one) == expected[0]
    assert cache.stats().store_error is None


def test_a_folder_that_is_refused_again(tmp_path: pathlib.Path) -> None:
    """Also in a fork; and it is taken once it is in order."""
    enc, folder = bpe_engine.get_encoding("gpt2"), tmp_path / "s"
    cache = opened(enc, folder)
    cache.encode(PROMPT)
    cache.flush()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "notes").touch()

    def refused() -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="holds 'notes'"):
                opened(enc, folder)
            assert cache.encode(PROMPT) == enc.encode(PROMPT, allowed_special="all")
            cache.flush()

    process = multiprocessing.get_context("fork").Process(target=refused)
    process.start()
    process.join(120)
    assert process.exitcode == 0
    refused()
    assert "holds 'notes'" in str(cache.stats().store_error)
    (folder / "notes").unlink()
    for again in (cache, opened(enc, folder)):
        assert later_prompts_are_stored(again)


def test_files_of_others(tmp_path: pathlib.Path) -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match="give a folder for the store alone"):
        opened(gpt2, mine)
    with pytest.raises(ValueError, match="is not a folder"):
        opened(gpt2, mine / "notes.txt")
    with pytest.raises(ValueError, match="store must name a folder"):
        ConversationCache(gpt2, store="")
    with pytest.raises(ValueError, match="max_store_bytes must be at most"):
        ConversationCache(gpt2, store=tmp_path / "large", max_store_bytes=1 << 50)
    pipe = tmp_path / "pipe"
    pipe.mkdir()
    os.mkfifo(pipe / "data.mdb")
    with pytest.raises(ValueError, match="is not a file"):
        opened(gpt2, pipe)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "data.mdb").write_bytes(b"x" * 20_000)
    with pytest.raises(ValueError, match="not a store"):
        opened(gpt2, foreign)
    other = tmp_path / "other"
    environment = lmdb.open(str(other), map_size=1 << 20, max_dbs=2)
    with environment.begin(write=True) as transaction:
        transaction.put(b"a", b"b")
    environment.close()
    with pytest.raises(ValueError, match="not a store"):
        opened(gpt2, other)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(ValueError, match="every user may write it"):
        opened(gpt2, open_to_all)


def test_a_store_that_was_cut(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "store"
    assert child(USE, store).returncode == 0
    data = store / "data.mdb"
    os.truncate(data, data.stat().st_size // 2)
    result = child(USE, store)
    assert "is damaged" in result.stderr and result.returncode == 1


def add_pages(data: pathlib.Path, more: int) -> None:
    """Changes the number of the last page, in both headers."""
    with open(data, "r+b") as file:
        for page in (0, 4096):
            file.seek(page + 16 + 24 + 2 * 48)
            last = int.from_bytes(file.read(8), "little")
            assert (last + 1) * 4096 <= data.stat().st_size
            file.seek(-8, os.SEEK_CUR)
            file.write((last + more).to_bytes(8, "little"))


def test_pages_that_were_not_written(tmp_path: pathlib.Path) -> None:
    """LMDB leaves out pages at the end that a transaction took and gave back."""
    store = tmp_path / "store"
    assert child(USE, store).returncode == 0
    add_pages(store / "data.mdb", 4)
    assert int(child(USE, store).stdout) > 3000


def test_a_number_of_pages_that_is_damaged(tmp_path: pathlib.Path) -> None:
    """The file does not become larger than its limit."""
    store = tmp_path / "store"
    assert child(USE, store).returncode == 0
    size = (store / "data.mdb").stat().st_size
    add_pages(store / "data.mdb", 1 << 12)
    with pytest.raises(ValueError, match="is damaged"):
        opened(bpe_engine.get_encoding("gpt2"), store, max_store_bytes=8 << 20)
    assert (store / "data.mdb").stat().st_size == size


def test_limits_that_differ(tmp_path: pathlib.Path) -> None:
    enc, store = bpe_engine.get_encoding("gpt2"), tmp_path / "store"
    cache = ConversationCache(enc, store=store, max_store_bytes=2 << 20)
    texts = [f"{number} some words " * 2000 for number in range(60)]
    code = (
        "c = ConversationCache(enc, store=sys.argv[1], max_store_bytes=int(sys.argv[3]))\n"
        "for n in range(60):\n    assert c.encode(f'{n} some words ' * 2000)\n"
        "c.flush()\nprint(c.stats().store_error)\n"
    )
    for size in (1 << 30, 2 << 20):
        result = child(code, store, "gpt2", size)
        assert result.stdout == "None\n", (result.stdout, result.stderr)
        for text in texts[:3] + texts[-3:]:
            assert cache.encode(text) == enc.encode(text)
        cache.flush()
        assert cache.stats().store_error is None


def test_damaged_numbers_end_no_thread(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "store"
    assert child(USE, store).returncode == 0
    environment = lmdb.open(str(store), max_dbs=3)
    sizes = environment.open_db(b"bpe_engine sizes 1")
    with environment.begin(write=True, db=sizes) as transaction:
        transaction.put(b"bytes", b"abc")
    environment.close()
    code = (
        "c = cache()\nassert c.encode('other ' * 9000)\nc.flush()\nprint(c.stats().store_error)\n"
    )
    result = child(code, store)
    assert "cannot be written: invalid literal" in result.stdout, (result.stdout, result.stderr)


def test_damaged_ids_are_not_used(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "store"
    assert child(USE, store).returncode == 0
    environment = lmdb.open(str(store), max_dbs=3)
    blocks = environment.open_db(b"bpe_engine blocks 1")
    chance = seeded("damaged")
    with environment.begin(write=True, db=blocks) as transaction:
        for key, value in [*transaction.cursor()]:
            broken = bytearray(value)
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
            transaction.put(key, chance.choice([bytes(broken), value[:9], value[:-4], b""]))
    environment.close()
    result = child(USE, store)
    assert result.stdout == "0\n", result.stderr


def test_lmdb_is_asked_for(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(ImportError, match=r"bpe-engine\[store\]"):
        opened(bpe_engine.get_encoding("gpt2"), tmp_path / "store")
