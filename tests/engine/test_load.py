"""Tests reading rank files: valid, compressed, extended and malformed files."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import os
import sys
import tracemalloc
import types
from pathlib import Path

import pytest
import tiktoken.load
from oracles import DATA, oracle, ranks

import bpe_engine
from bpe_engine import Encoding, load, load_encoding, open_tokenizer, vocabulary
from bpe_engine.read import byte_level

CL100K = DATA / "cl100k_base.tiktoken"
CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"


def line(token: bytes, rank: object) -> bytes:
    return base64.b64encode(token) + f" {rank}\n".encode()


BYTES = b"".join(line(bytes([byte]), byte) for byte in range(256))


@pytest.fixture
def write(tmp_path):
    def write(contents: bytes, name: str = "mine.tiktoken") -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(contents)
        return str(path)

    return write


def test_load_and_dump(tmp_path):
    loaded = load.load_tiktoken_bpe(str(CL100K), expected_hash=CL100K_SHA256)
    assert loaded == ranks("cl100k_base")
    path = str(tmp_path / "again.tiktoken")
    load.dump_tiktoken_bpe(loaded, path)
    assert (tmp_path / "again.tiktoken").read_bytes() == CL100K.read_bytes()
    assert tiktoken.load.load_tiktoken_bpe(path) == loaded
    assert [file.name for file in tmp_path.iterdir()] == ["again.tiktoken"]


def test_load_encoding():
    theirs = oracle("cl100k_base")
    special = theirs._special_tokens
    ours = load_encoding(CL100K, "cl100k_base", special, expected_hash=CL100K_SHA256)
    text = "Hello, 世界! <|endoftext|> 12345\n\n  x"
    for rules in ({"allowed_special": "all"}, {"disallowed_special": ()}):
        assert ours.encode(text, **rules) == theirs.encode(text, **rules)
    assert ours.name == "cl100k_base"
    assert ours._pat_str == theirs._pat_str
    assert ours._mergeable_ranks == theirs._mergeable_ranks
    assert load_encoding(CL100K, name="other").name == "other"
    assert load_encoding(CL100K).special_tokens_set == set(special)
    assert load_encoding(CL100K, special_tokens={}).special_tokens_set == set()


def test_custom_pattern(write):
    mine = load_encoding(write(BYTES + line(b"ab", 300)), pattern=r"[a-z]+|[^a-z]+")
    assert mine.split("abc 12") == ["abc", " 12"]
    assert mine.encode("abc 1") == [300, 99, 32, 49]
    with pytest.raises(ValueError, match="does not compile"):
        load_encoding(write(BYTES), pattern="(")


def test_extra_files(write):
    more = write(line(b"ab", 1000) + line(b"abc", 5000), "more.tiktoken")
    yet_more = write(line(b"abcd", 2**20), "yet_more.tiktoken.gz")
    mine = load_encoding(
        write(BYTES), extra=[more, yet_more], special_tokens={"<|x|>": 2**31}, name="long"
    )
    expected = Encoding(
        "long",
        pat_str=mine._pat_str,
        mergeable_ranks={**{bytes([i]): i for i in range(256)},
                         b"ab": 1000, b"abc": 5000, b"abcd": 2**20},
        special_tokens={"<|x|>": 2**31},
    )  # fmt: skip
    for text in ["abcdabcab<|x|>abcd", "d<|x|>"]:
        ids = mine.encode(text, allowed_special="all")
        assert ids == expected.encode(text, allowed_special="all")
        assert mine.decode(ids) == text
    assert mine.encode("abcdabcab") == [2**20, 5000, 1000]
    assert mine.n_vocab == 2**31 + 1
    with pytest.raises(ValueError, match='the tokens b"c" and b"xyz" share the rank 99'):
        load_encoding(write(BYTES), extra=[write(line(b"xyz", 99), "bad.tiktoken")])
    with pytest.raises(ValueError, match='the token b"a" has two ranks, 97 and 777'):
        load_encoding(write(BYTES), extra=[write(line(b"a", 777), "bad.tiktoken")])
    with pytest.raises(ValueError, match=r"bad.tiktoken, line 2: bad base64"):
        load_encoding(write(BYTES), extra=[write(line(b"xyz", 300) + b"!!! 301\n", "bad.tiktoken")])


def test_gzip(write):
    packed = gzip.compress(CL100K.read_bytes())
    path = write(packed, "cl100k.tiktoken.gz")
    assert load.load_tiktoken_bpe(path) == ranks("cl100k_base")
    # The expected hash can cover the compressed file or its contents.
    for expected in (CL100K_SHA256, hashlib.sha256(packed).hexdigest(), CL100K_SHA256.upper()):
        assert load_encoding(path, expected_hash=expected).encode("hi") == [6151]
    assert load_encoding(path).name == "cl100k"
    for damaged in (packed[:-100], packed[:50], packed[:2], packed[:-8] + b"12345678"):
        with pytest.raises(ValueError, match="mine.tiktoken is a damaged gzip file"):
            load_encoding(write(damaged))


def test_wrong_hash(write):
    for call in (load.load_tiktoken_bpe, load.read_file_cached):
        with pytest.raises(ValueError, match=f"not the expected {'0' * 64}; the file is damaged"):
            call(str(CL100K), "0" * 64)
    with pytest.raises(ValueError, match=CL100K_SHA256):
        load_encoding(CL100K, expected_hash="0" * 64)
    packed = write(gzip.compress(b"a", mtime=0))
    with pytest.raises(ValueError, match="not the expected"):
        load_encoding(packed, expected_hash="0" * 64)


BAD_LINES = [
    (b"!!!! 256\n", r"line 257: bad base64 .* in \"!!!! 256\""),
    (b"YWI 256\n", "line 257: bad base64"),
    (b"YWI=\n", r"line 257: expected base64\(token\), a space and the rank in \"YWI=\""),
    (b"YWI= \n", "line 257: expected base64"),
    (b"YWI= 256 7\n", "line 257: expected base64"),
    (b"YWI= x\n", "line 257: the rank is not a whole number from 0 to 4294967294"),
    (b"YWI= -1\n", "line 257: the rank is not a whole number"),
    (b"YWI= 4294967295\n", "line 257: the rank is not a whole number"),
    (b"YWI= 4294967296\n", "line 257: the rank is not a whole number"),
    (b"YWI= 1.5\n", "line 257: the rank is not a whole number"),
    (b"\xff\xfe 256\n", "line 257"),
    (b"YWI= 97\n", r"b\"a\" and b\"ab\" share the rank 97|b\"ab\" and b\"a\" share the rank 97"),
    (b"YWI= 256\nYWI= 257\n", r'the token b"ab" has two ranks, 256 and 257'),
    (b"YWI= 256\nYWI= 256\n", r"ab"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_LINES)
def test_bad_lines(write, bad, message):
    path = write(BYTES + bad)
    for call in (load.load_tiktoken_bpe, load_encoding):
        with pytest.raises(ValueError, match=message):
            call(path)
    with pytest.raises(ValueError, match="mine.tiktoken"):
        load.load_tiktoken_bpe(path)


def test_files_without_tokens(write):
    for contents in (b"", b"\n\n", b"\r\n"):
        for call in (load.load_tiktoken_bpe, load_encoding):
            with pytest.raises(ValueError, match="needs at least one token"):
                call(write(contents))
    for call in (load.load_tiktoken_bpe, load_encoding):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            call("nowhere.tiktoken")


def test_line_ends(write):
    expected = {bytes([byte]): byte for byte in range(256)}
    for contents in (
        BYTES.replace(b"\n", b"\r\n"),
        BYTES + b"\n\r\n\n",
        BYTES.rstrip(b"\n"),
        BYTES.replace(b"\n", b"\n\n"),
    ):
        assert load.load_tiktoken_bpe(write(contents)) == expected


# ---- Files from the network ----


@pytest.fixture
def network(monkeypatch):
    """Replaces `requests`; returns the files that it serves, and the list of requested URLs."""
    files, asked = {}, []

    def get(url, *, stream, timeout):
        assert stream and all(0 < seconds <= 60 for seconds in timeout)
        asked.append(url)
        return contextlib.nullcontext(
            types.SimpleNamespace(
                iter_content=lambda size: (
                    files[url][start : start + size] for start in range(0, len(files[url]), size)
                ),
                raise_for_status=lambda: None,
            )
        )

    monkeypatch.setitem(sys.modules, "requests", types.SimpleNamespace(get=get))
    return files, asked


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_cache(network, monkeypatch, tmp_path, variable):
    files, asked = network
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "deep" / "cache"))
    url = "https://example.com/x.tiktoken"
    files[url] = BYTES
    digest = hashlib.sha256(BYTES).hexdigest()
    for _ in range(3):
        assert load.read_file_cached(url, digest) == BYTES
        assert len(load.load_tiktoken_bpe(url, digest)) == 256
    assert asked == [url]
    copy = tmp_path / "deep" / "cache" / hashlib.sha1(url.encode()).hexdigest()
    assert [copy] == list(copy.parent.iterdir())
    assert copy.read_bytes() == BYTES
    # tiktoken finds our copy, and we find tiktoken's.
    assert tiktoken.load.read_file_cached(url, digest) == BYTES
    # A damaged copy is fetched again.
    copy.write_bytes(b"damaged")
    assert load.read_file_cached(url, digest) == BYTES
    assert asked == [url, url]
    assert copy.read_bytes() == BYTES
    # Without an expected hash, any copy is used.
    copy.write_bytes(b"anything")
    assert load.read_file_cached(url) == b"anything"
    with pytest.raises(ValueError, match="not the expected"):
        load.read_file_cached(url, "0" * 64)


def test_no_cache(network, monkeypatch, tmp_path):
    files, asked = network
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    url = "https://example.com/x.tiktoken"
    files[url] = BYTES
    assert load.read_file_cached(url) == load.read_file_cached(url) == BYTES
    assert asked == [url, url]
    with pytest.raises(ValueError, match="not the expected"):
        load.read_file_cached(url, "0" * 64)


def test_unwritable_cache(network, monkeypatch, tmp_path):
    files, _ = network
    url = "https://example.com/x.tiktoken"
    files[url] = BYTES
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError):
        load.read_file_cached(url)
    # The default directory was not requested, so failing to write there is not an error.
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    assert load.read_file_cached(url) == BYTES


def test_missing_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    monkeypatch.setitem(sys.modules, "blobfile", None)
    with pytest.raises(ImportError, match="pip install requests"):
        load.read_file("https://example.com/x")
    with pytest.raises(ImportError, match="pip install blobfile"):
        load.read_file("az://account/x")
    with pytest.raises(ImportError, match="pip install blobfile"):
        load.dump_tiktoken_bpe({b"a": 0}, "az://account/x")


def test_check_hash():
    digest = hashlib.sha256(b"x").hexdigest()
    assert load.check_hash(b"x", digest)
    assert not load.check_hash(b"y", digest)


# ---- The GPT-2 pair of files ----


def gpt2_files(tmp_path, change=lambda ids: None):
    """Writes GPT-2's pair of files for the first 1000 ranks of r50k_base."""
    written, all_ranks = byte_level.text_of, ranks("r50k_base")
    some = {token: rank for token, rank in all_ranks.items() if rank < 1000}
    pairs = (pair for pair in vocabulary.token_splits(some).values() if pair)
    merges = ["#version: 0.2", *(" ".join(map(written, pair)) for pair in pairs)]
    ids = {written(token): rank for token, rank in some.items()}
    ids["<|endoftext|>"] = 50256
    change(ids)
    bpe, encoder = tmp_path / "vocab.bpe", tmp_path / "encoder.json"
    bpe.write_text("\n".join(merges) + "\n", encoding="utf-8")
    encoder.write_text(json.dumps(ids), encoding="utf-8")
    return str(bpe), str(encoder)


def test_data_gym(tmp_path):
    files = gpt2_files(tmp_path)
    loaded = load.data_gym_to_mergeable_bpe_ranks(*files)
    assert loaded == {token: rank for token, rank in ranks("r50k_base").items() if rank < 1000}
    assert loaded == tiktoken.load.data_gym_to_mergeable_bpe_ranks(*files)
    hashes = [hashlib.sha256(open(file, "rb").read()).hexdigest() for file in files]
    assert load.data_gym_to_mergeable_bpe_ranks(*files, *hashes) == loaded
    with pytest.raises(ValueError, match="not the expected"):
        load.data_gym_to_mergeable_bpe_ranks(*files, hashes[1], hashes[0])


def test_data_gym_with_other_bytes(tmp_path):
    def swap(ids):
        ids["a"], ids["b"] = ids["b"], ids["a"]

    files = gpt2_files(tmp_path, swap)
    with pytest.raises(ValueError, match="do not match: the token b'(a|b)'"):
        load.data_gym_to_mergeable_bpe_ranks(*files)
    loaded = load.data_gym_to_mergeable_bpe_ranks(*files, clobber_one_byte_tokens=True)
    assert loaded == tiktoken.load.data_gym_to_mergeable_bpe_ranks(
        *files, clobber_one_byte_tokens=True
    )


def test_malformed_data_gym_files(tmp_path):
    bpe, encoder = gpt2_files(tmp_path)
    (tmp_path / "bad.bpe").write_text("#version\na b c\n", encoding="utf-8")
    with pytest.raises(ValueError, match="bad.bpe, line 2: expected two tokens in 'a b c'"):
        load.data_gym_to_mergeable_bpe_ranks(str(tmp_path / "bad.bpe"), encoder)
    (tmp_path / "bad.bpe").write_text("#version\na 根\n", encoding="utf-8")
    with pytest.raises(ValueError, match="'根', which stands for no byte"):
        load.data_gym_to_mergeable_bpe_ranks(str(tmp_path / "bad.bpe"), encoder)


def test_path_types(write, tmp_path):
    first, more = write(BYTES), write(line(b"ab", 256), "more.tiktoken")
    for kind in (str, os.fsencode, Path):
        extended = load_encoding(kind(first), extra=kind(more))
        assert extended.name == "mine"
        assert extended.encode("ab") == [256]
        assert load_encoding(first, extra=[kind(more)]).encode("ab") == [256]
        assert load.load_tiktoken_bpe(kind(more)) == {b"ab": 256}


def test_wrong_argument_types(write):
    path = write(BYTES)
    for arguments, message in [
        ({"path": 5}, "path must be the path of a file, not the int 5"),
        ({"extra": 5}, "extra must be a path or several, not the int 5"),
        ({"extra": [None]}, "extra must be the path of a file, not None"),
        ({"pattern": 5}, "pattern must be a str with a regular expression, not the int 5"),
        ({"special_tokens": ["x"]}, r"special_tokens must be a dict, not the list \['x'\]"),
    ]:
        with pytest.raises(TypeError, match=message + "$"):
            load_encoding(**{"path": path, **arguments})
    with pytest.raises(ValueError, match="contains a surrogate"):
        load_encoding(path, special_tokens={"\ud800": 300})


def test_errors_of_a_vocabulary_name_its_files(write):
    first, again = write(BYTES), write(line(b"a", 300), "again.tiktoken")
    taken, empty = write(line(b"ab", 7), "taken.tiktoken"), write(b"", "empty.tiktoken")
    for path, extra, message in [
        (first, again, f'{first} and {again}: the token b"a" has two ranks, 97 and 300'),
        (first, taken, f"{first} and {taken}: the tokens "),
        (empty, (), f"{empty}: a vocabulary needs at least one token"),
    ]:
        with pytest.raises(ValueError) as error:
            load_encoding(path, extra=extra)
        assert str(error.value).startswith(message)
    # An error that the files did not cause does not name them.
    with pytest.raises(ValueError) as error:
        load_encoding(first, special_tokens={"<|x|>": 7})
    assert first not in str(error.value)
    with pytest.raises(ValueError) as error:
        load_encoding(first, pattern="(")
    assert first not in str(error.value)


# ---- Limits, and files of other kinds ----

LOADERS = [load.load_tiktoken_bpe, load_encoding]


@pytest.mark.parametrize("call", LOADERS)
def test_gzip_bomb_stops_at_the_limit(write, call):
    """A file that decompresses to 1 GB is read only up to the limit."""
    member = gzip.compress(bytes(1 << 25), 9)
    path = write(member * 32, "bomb.tiktoken.gz")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as error:
            call(path, max_bytes=1 << 22)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(error.value) == (
        f"{path}, unpacked, has more than 4,194,304 bytes, too many for a rank file; if that is "
        "right, pass a larger max_bytes"
    )
    assert peak < 3 << 22


@pytest.mark.parametrize("call", LOADERS)
def test_files_of_exactly_the_limit(write, call):
    for contents in (BYTES, gzip.compress(BYTES) + gzip.compress(line(b"ab", 256))):
        path = write(contents)
        size = max(len(contents), len(gzip.decompress(contents)) if contents != BYTES else 0)
        assert call(path, max_bytes=size)
        with pytest.raises(ValueError, match=f"more than {size - 1:,} bytes"):
            call(path, max_bytes=size - 1)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_endless_file():
    for call in (*LOADERS, load.read_file):
        with pytest.raises(ValueError, match="/dev/zero has more than 5,000,000 bytes"):
            call("/dev/zero", max_bytes=5_000_000)


def test_limits_of_every_kind_of_file(network, monkeypatch, tmp_path, write):
    files, _ = network
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    url = "https://example.com/x.tiktoken"
    files[url] = BYTES
    with pytest.raises(ValueError, match=f"{url} has more than 1,000 bytes"):
        load.load_tiktoken_bpe(url, max_bytes=1000)
    assert not list(tmp_path.glob("cache/*"))
    bpe, encoder = gpt2_files(tmp_path)
    with pytest.raises(ValueError, match=r"vocab.bpe has more than 1,000 bytes"):
        load.data_gym_to_mergeable_bpe_ranks(bpe, encoder, max_bytes=1000)
    more = write(BYTES, "more.tiktoken")
    with pytest.raises(ValueError, match=r"more.tiktoken has more than 100 bytes"):
        load_encoding(write(line(b"ab", 256)), extra=more, max_bytes=100)


@pytest.mark.parametrize("call", LOADERS)
@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b'{"version": "1.0", "model": {}}', "is JSON, not a rank file .* tokenizer.json"),
        (b'\n  {"a": 0}', "is JSON, not a rank file .* data_gym_to_mergeable_bpe_ranks"),
        (gzip.compress(b'{"version": "1.0"}', mtime=0), "is JSON, not a rank file"),
        (b"YQ== 0\n".decode().encode("utf-16"), "is UTF-16 or UTF-32; .* iconv -f utf-16"),
        (b"YQ== 0\n".decode().encode("utf-16-be"), "is UTF-16 or UTF-32"),
        (b"YQ== 0\n".decode().encode("utf-16-le"), "is UTF-16 or UTF-32"),
        (b"YQ== 0\n".decode().encode("utf-32"), "is UTF-16 or UTF-32"),
        (b"\xef\xbb\xbfYQ== 0\n", "begins with a byte order mark; save it as UTF-8 without"),
    ],
)
def test_files_that_are_not_rank_files(write, call, contents, message):
    with pytest.raises(ValueError, match=f"mine.tiktoken {message}"):
        call(write(contents))


@pytest.mark.parametrize("call", [*LOADERS, load.read_file])
def test_unreadable_files(tmp_path, call):
    for path, kind in [(tmp_path, IsADirectoryError), (tmp_path / "none", FileNotFoundError)]:
        with pytest.raises(kind) as error:
            call(str(path))
        assert str(path) in str(error.value)
    locked = tmp_path / "locked.tiktoken"
    locked.write_bytes(BYTES)
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        with pytest.raises(PermissionError, match=r"locked.tiktoken"):
            call(str(locked))


def test_misspelt_encoding_as_pattern(write):
    with pytest.raises(
        ValueError, match=r"'cl10k_base' is not an encoding's name. Did you mean 'cl1"
    ):
        load_encoding(write(BYTES), pattern="cl10k_base")
    assert load_encoding(write(BYTES), pattern="abc").split("abcabc") == ["abc", "abc"]
    assert load_encoding(write(BYTES), pattern="(?:cl10k_base)").encode("cl10k_base")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"{", "encoder.json is not a JSON object of tokens and ids"),
        (b"[1]", "encoder.json is not a JSON object of tokens and ids"),
        (b'{"model": {}}', r"encoder.json is not a JSON object .* tokenizer.json"),
        (b"[" * 100_000, "encoder.json is not a JSON object of tokens and ids"),
        (b"\xff", "encoder.json is not UTF-8 \\(byte 0\\)"),
        ('{"a": 0}'.encode("utf-16"), "encoder.json is UTF-16 or UTF-32"),
        (b"\xef\xbb\xbf{}", "encoder.json begins with a byte order mark"),
    ],
)
def test_data_gym_files_of_other_formats(tmp_path, contents, message):
    bpe, encoder = gpt2_files(tmp_path)
    Path(encoder).write_bytes(contents)
    with pytest.raises(ValueError, match=message):
        load.data_gym_to_mergeable_bpe_ranks(bpe, encoder)


@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "o200k_base", "qwen"])
def test_published_ranks_bring_their_own_pattern(name, tmp_path):
    ours, published = load_encoding(DATA / f"{name}.tiktoken"), bpe_engine.get_encoding(name)
    text = "It's 12345 e\u0301 " + "".join(published.special_tokens)
    expected = published.encode(text, allowed_special="all")
    assert ours.encode(text, allowed_special="all") == expected
    # The file extends the published ranks by a token with a special token's id.
    taken, id = list(published.special_tokens.items())[-1]
    more = tmp_path / "more.tiktoken"
    more.write_bytes((DATA / f"{name}.tiktoken").read_bytes() + line(b"zzzqqq", id))
    extended = load_encoding(more)
    assert extended.special_tokens_set == published.special_tokens_set - {taken}
    assert extended.pattern == published.pattern and extended.encode("zzzqqq") == [id]


def test_the_sidecar_and_arguments_that_replace_it(write, tmp_path):
    path = write(BYTES + line(b"ab", 256))
    sidecar = tmp_path / (str(path).rpartition("/")[2].rpartition(".")[0] + ".encoding.json")
    sidecar.write_text('{"pattern": "a|b", "special_tokens": {"<|end|>": 300}}')
    own = load_encoding(path)
    assert own.encode("ab<|end|>", allowed_special="all") == [97, 98, 300]
    assert load_encoding(path, "cl100k_base").encode("ab<|end|>", allowed_special="all") == [
        256,
        300,
    ]
    assert load_encoding(path, special_tokens={}).special_tokens_set == set()
    for contents in (
        "[",
        "[]",
        '{"pattern": 1}',
        "{}",
        '{"pattern": "a", "special_tokens": {"x": "1"}}',
    ):
        sidecar.write_text(contents)
        with pytest.raises(ValueError, match="encoding.json"):
            load_encoding(path)


def test_names_files_and_folders_are_opened(write, tmp_path):
    path = write(BYTES, "one/mine.tiktoken")
    assert open_tokenizer("gpt2") is bpe_engine.get_encoding("gpt2")
    assert open_tokenizer(path).name == open_tokenizer(tmp_path / "one").name == "mine"
    write(BYTES, "one/other.tiktoken")
    for call in (open_tokenizer, load_encoding):
        with pytest.raises(ValueError, match="mine.tiktoken, other.tiktoken; give the path of one"):
            call(tmp_path / "one")
        with pytest.raises(IsADirectoryError, match=r"\(tokenizer.json, tekken.json.*it has one"):
            call(tmp_path)
        with pytest.raises(FileNotFoundError, match=r"No such file or directory; .*x/y"):
            call("x/y")
    with pytest.raises(FileNotFoundError, match="Did you mean 'o200k_base'"):
        open_tokenizer("o200kbase")
