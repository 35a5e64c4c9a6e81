"""Tests every ability on every class, over every kind of tokenizer file, against `tokenizers`.

A new kind of file is one more line of `FILES`; a new ability is one more function below.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hf_oracle import TEXTS, tokenizers
from pages import ROOT
from seeds import seeded

import bpe_engine
from bpe_engine import byte_level, hf
from bpe_engine._engine import EngineMethods
from bpe_engine.prompt import trusted, untrusted
from bpe_engine.qwen import QwenTokenizer

WORDS = ["the", "word", "lo", "rem", "Ab", "12", "日本", "本語", "éx", "xxx", "ing"]
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
ADDED: list[dict[str, Any]] = [
    {"content": "<a>", "special": True, **FLAGS},
    {"content": "<l>", "special": True, **FLAGS, "lstrip": True},
    {"content": "<r>", "special": True, **FLAGS, "rstrip": True},
    {"content": "née", "special": False, **FLAGS, "normalized": True},
]
PIECES = [
    *TEXTS, *WORDS, " ", "  ", " the", "\n", "<a>", "<l>", " <r> ", "<", "a>", "née", "ne\u0301e", "e\u0301",
    "lorem ipsum dolor sit amet, " * 30, "Das ist ein Satz. 你好，世界。", "x" * 300,
]  # fmt: skip


def merges_of(words: list[str], first: list[str]) -> tuple[list[str], list[list[str]]]:
    """Returns the tokens and merges that make each word of characters."""
    vocab, merges = list(first), []
    for word in words:
        for end in range(2, len(word) + 1):
            if word[:end] not in vocab:
                vocab.append(word[:end])
                merges.append([word[: end - 1], word[end - 1 : end]])
    return vocab, merges


def file_of(model: dict[str, Any], **parts: Any) -> str:
    contents = {
        "version": "1.0",
        "added_tokens": [
            {"id": len(model["vocab"]) + place, **token} for place, token in enumerate(ADDED)
        ],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", **model},
        **parts,
    }
    return json.dumps(contents)


LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}


def byte_level_file(normalizer: Any = None, permuted: bool = False, prefix: bool = False) -> str:
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    words = [byte_level.text_of(word.encode()) for word in (*WORDS, " the", " word", "  ")]
    vocab, merges = merges_of(words, letters)
    ids = list(range(len(vocab)))
    if permuted:
        seeded("matrix permuted").shuffle(ids)
    model = {"vocab": dict(zip(vocab, ids)), "merges": merges}
    level = {**LEVEL, "add_prefix_space": prefix}
    return file_of(model, normalizer=normalizer, pre_tokenizer=level, decoder=level)


def characters_file(**parts: Any) -> str:
    first = [f"<0x{byte:02X}>" for byte in range(256)]
    first += sorted(set("".join(WORDS)) | set("ab,.▁"))
    vocab, merges = merges_of([*WORDS, "▁the", "▁word", "▁▁"], first)
    model = {"vocab": {token: id for id, token in enumerate(vocab)}, "merges": merges}
    return file_of({**model, "byte_fallback": True, "fuse_unk": True}, **parts)


def words_file(kind: str, **parts: Any) -> str:
    """A file whose model takes words: WordPiece, WordLevel, or BPE with a suffix."""
    letters = sorted(set("".join(WORDS)) | set("ab,."))
    if kind == "BPE":
        ends = [letter + "</w>" for letter in letters]
        vocab, merges = merges_of(WORDS, [*letters, *ends, "<unk>"])
        vocab += [word + "</w>" for word in WORDS]
        merges += [[word[:-1], word[-1] + "</w>"] for word in WORDS if word[:-1] in vocab]
        vocab += [left + right for left, right in merges]
        extra = {"merges": merges, "end_of_word_suffix": "</w>", "unk_token": "<unk>"}
    else:
        vocab = ["[UNK]", *letters, *WORDS]
        extra = {"unk_token": "[UNK]"}
    if kind == "WordPiece":
        vocab += [f"##{token}" for token in vocab[1:]]
        extra |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    ids = {token: id for id, token in enumerate(dict.fromkeys(vocab))}
    parts = {"pre_tokenizer": {"type": "Whitespace"}, **parts}
    return file_of({"type": kind, "vocab": ids, **extra}, **parts)


def unigram_file(has_bytes: bool = False, **parts: Any) -> str:
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    letters = sorted(set("".join(WORDS)) | set("ab,.▁"))
    words = [*WORDS, "▁the", "▁word", "▁▁"]
    scores = [("<unk>", 0.0), *((byte, 0.0) for byte in bytes_)]
    scores += [(letter, -8.0) for letter in letters] + [(word, -len(word) - 0.5) for word in words]
    model = {"type": "Unigram", "unk_id": 0, "vocab": scores, "byte_fallback": has_bytes}
    return file_of(model, **parts)


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREPEND = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, REPLACE]}
LLAMA = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}

#: The kinds of files.
FILES: dict[str, Callable[[], str]] = {
    "byte-level": byte_level_file,
    "NFC": lambda: byte_level_file(normalizer={"type": "NFC"}),
    "lowercase": lambda: byte_level_file(normalizer={"type": "Lowercase"}),
    "prefix space": lambda: byte_level_file(prefix=True),
    "ids out of order": lambda: byte_level_file(permuted=True),
    "characters, Prepend": lambda: characters_file(normalizer=PREPEND, decoder=LLAMA),
    "characters, Metaspace": lambda: characters_file(pre_tokenizer=METASPACE, decoder=LLAMA),
    "WordPiece": lambda: words_file("WordPiece"),
    "WordLevel": lambda: words_file("WordLevel"),
    "BPE with a suffix": lambda: words_file("BPE"),
    "Unigram": lambda: unigram_file(pre_tokenizer=METASPACE, decoder=LLAMA),
    "Unigram, bytes": lambda: unigram_file(True, pre_tokenizer=METASPACE, decoder=LLAMA),
    "Unigram, split": lambda: unigram_file(
        pre_tokenizer={**METASPACE, "split": True}, decoder=LLAMA
    ),
}


class Case(NamedTuple):
    """A tokenizer, and what gives its ids and offsets otherwise."""

    face: Any
    oracle: Callable[[str], tuple[list[int], list[tuple[int, int]] | None]]
    #: The text of ids, special tokens included.
    decode: Callable[[list[int]], str]


def file_case(contents: str, make: Callable[[hf.Tokenizer], Any]) -> Case:
    theirs = tokenizers.Tokenizer.from_str(contents)

    def oracle(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoded = theirs.encode(text, add_special_tokens=False)
        return encoded.ids, encoded.offsets

    face = make(hf.Tokenizer.from_str(contents))
    return Case(face, oracle, lambda ids: theirs.decode(ids, skip_special_tokens=False))


def encoding_case(encoding: bpe_engine.Encoding, make: Callable[[Any], Any], allowed: Any) -> Case:
    def oracle(text: str) -> tuple[list[int], None]:
        return encoding.encode(text, allowed_special=allowed, disallowed_special=()), None

    return Case(make(encoding), oracle, encoding.decode)


def pieces_case(name: str, make: Callable[[hf.Tokenizer], Any]) -> Case:
    """A model of SentencePiece; skips without the package."""
    import sentencepiece_oracle as package

    contents = package.model_bytes(name)
    theirs = package.processor(contents)

    def oracle(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        found, raw = package.pieces(theirs, text), text.encode()
        places = [
            (len(raw[:start].decode()), len(raw[:end].decode())) for _, _, start, end in found
        ]
        return [piece.id for piece in found], places

    return Case(make(hf.Tokenizer(contents, None, package.VERSION)), oracle, theirs.decode)


def same(it: Any) -> Any:
    return it


CASES: dict[str, Callable[[], Case]] = {
    "Encoding": lambda: encoding_case(bpe_engine.get_encoding("gpt2"), same, set()),
    "Encoding, NFC": lambda: encoding_case(bpe_engine.get_encoding("qwen"), same, set()),
    "Tokenizer of an Encoding": lambda: encoding_case(
        bpe_engine.get_encoding("o200k_base"), bpe_engine.Tokenizer, "all"
    ),
    "QwenTokenizer": lambda: encoding_case(
        bpe_engine.get_encoding("qwen"), lambda _: QwenTokenizer(), "all"
    ),
}
for _name, _make in FILES.items():
    CASES[f"hf.Tokenizer, {_name}"] = lambda make=_make: file_case(make(), same)
    CASES[f"Tokenizer, {_name}"] = lambda make=_make: file_case(make(), bpe_engine.Tokenizer)

for _kind, _model in (("Unigram", "unigram"), ("BPE", "bpe llama")):
    CASES[f"hf.Tokenizer, SentencePiece {_kind}"] = lambda model=_model: pieces_case(model, same)
    CASES[f"Tokenizer, SentencePiece {_kind}"] = lambda model=_model: pieces_case(
        model, bpe_engine.Tokenizer
    )


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def texts(count: int, note: str) -> list[str]:
    rng = seeded(f"matrix {note}")
    return ["".join(rng.choices(PIECES, k=rng.randrange(8))) for _ in range(count)]


def ids_of(case: Case, text: str) -> list[int]:
    return case.oracle(text)[0]


def test_ids_and_offsets(case: Case) -> None:
    for text in texts(60, "ids"):
        ids, spans = case.oracle(text)
        ours = case.face.encode_with_offsets(text, disallowed_special=())
        assert ours[0] == ids, text
        if spans is not None:
            assert ours[1] == spans, text
        assert case.face.encode_to_numpy(text, disallowed_special=()).tolist() == ids
    long = "".join(texts(40, "long")) * 40
    numbers = case.face.encode_to_numpy(long, num_threads=2, disallowed_special=())
    assert numbers.tolist() == ids_of(case, long)


def bytes_of(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Returns the bytes of a span of characters."""
    return len(text[: span[0]].encode()), len(text[: span[1]].encode())


def exact_bytes(case: Case, ids: list[int]) -> list[tuple[int, int]]:
    """Returns the bytes of each token, one after the other."""
    ends = np.cumsum([len(token) for token in map(case.face.token_table().__getitem__, ids)])
    return list(zip([0, *ends.tolist()], ends.tolist()))


def test_offsets_in_bytes(case: Case) -> None:
    for text in texts(60, "bytes"):
        ids, spans = case.face.encode_with_offsets(text, disallowed_special=())
        found = case.face.encode_with_offsets(text, unit="bytes", disallowed_special=())
        assert found[0] == ids
        whole = [bytes_of(text, span) for span in spans]
        if found[1] != whole:
            tokens = map(case.face.token_table().__getitem__, ids)
            assert all(
                text.encode()[start:end] == token or (start, end) == all_of_it
                for (start, end), token, all_of_it in zip(found[1], tokens, whole)
            )
    with pytest.raises(ValueError, match="unit must be"):
        case.face.encode_with_offsets("a", unit="words")


@pytest.mark.parametrize(
    "name",
    [
        "Encoding", "Encoding, NFC", "Tokenizer of an Encoding", "QwenTokenizer",
        "hf.Tokenizer, byte-level", "hf.Tokenizer, ids out of order",
    ],
)  # fmt: skip
def test_offsets_in_bytes_are_exact_where_tokens_are_the_bytes(name: str) -> None:
    case = CASES[name]()
    for text in texts(60, "exact bytes"):
        text = unicodedata.normalize("NFC", text)
        if "<" not in text and "n\u00e9e" not in text:
            ids, spans = case.face.encode_with_offsets(text, unit="bytes", disallowed_special=())
            assert spans == exact_bytes(case, ids), text


def test_batches(case: Case) -> None:
    given = texts(30, "batches")
    pyarrow = pytest.importorskip("pyarrow")
    for column in (given, pyarrow.array(given), np.array(given)):
        batch = case.face.encode_batch_to_numpy(column, disallowed_special=())
        assert [row.tolist() for row in batch] == [ids_of(case, text) for text in given]


def test_counts(case: Case) -> None:
    for text in texts(60, "counts"):
        expected = len(ids_of(case, text))
        assert case.face.count(text) == expected
        assert case.face.count_till_limit(text, expected) == expected
        if expected:
            assert case.face.count_till_limit(text, expected - 1) is None


def test_truncation(case: Case) -> None:
    rng = seeded("matrix truncate")
    for text in texts(40, "truncate"):
        total = len(ids_of(case, text))
        for most in {0, rng.randrange(total + 1), total, total + 5}:
            for side in ("right", "left"):
                kept = case.face.truncate(text, most, side=side)
                assert text.startswith(kept) if side == "right" else text.endswith(kept)
                assert len(ids_of(case, kept)) <= most, (text, most, side)
                assert kept == text or most < total
        # No token of the text itself is left out where only one has to go.
        if total > 1:
            assert case.face.truncate(text, total - 1)[:1] == text[:1] or total < 12


def test_chunks(case: Case) -> None:
    for text in texts(25, "chunks"):
        for most, overlap in ((24, 0), (40, 7)):
            chunks = case.face.chunk(text, most, overlap)
            spans = case.face.chunk_spans(text, most, overlap)
            assert all(len(ids_of(case, chunk)) <= most for chunk in chunks)
            # White space may have no ids.
            assert all(ids_of(case, text[a:b]) or not text[a:b].strip() for a, b, _ in spans)
            found = case.face.chunk_spans(text, most, overlap, ids=True)
            assert found == [(a, b, ids_of(case, text[a:b])) for a, b, _ in spans]
            assert spans == [(start, end, len(ids)) for start, end, ids in found]
            if overlap == 0:
                assert "".join(chunks) == text == "".join(text[a:b] for a, b, _ in spans)


def test_special_tokens_are_found(case: Case) -> None:
    names = case.face.special_tokens_set
    for text in texts(40, "special"):
        for name, start, end in case.face.find_special(text):
            found = unicodedata.normalize("NFC", text[start:end]).strip()
            assert name in names and found.casefold() == name.casefold()
    name = min(names)
    assert case.face.find_special(f"x {name} y")[0][0] == name


def test_canonical_ids(case: Case) -> None:
    for text in ("the word", "lorem ipsum 12", "Ab ing"):
        ids = ids_of(case, text)
        if case.decode(ids) == text:
            assert case.face.is_canonical(ids)
        apart = [id for letter in text for id in ids_of(case, letter)]
        if apart != ids and case.decode(apart) == text:
            assert not case.face.is_canonical(apart)


def test_decoding(case: Case) -> None:
    for text in texts(40, "decoding"):
        ids = ids_of(case, text)
        expected = case.decode(ids)
        assert case.face.decode_bytes(ids).decode("utf-8", "replace") == expected
        decoded, starts = case.face.decode_with_offsets(ids)
        assert decoded == expected and len(starts) == len(ids)
        assert starts == sorted(starts) and all(0 <= start <= len(decoded) for start in starts)
        stream = case.face.stream_decoder()
        assert "".join([*map(stream.push, ids), stream.finish()]) == expected


@pytest.mark.parametrize("name", ["characters, Prepend", "characters, Metaspace"])
def test_bytes_of_any_ids(name: str) -> None:
    """No byte is lost, also where text shows U+FFFD."""
    case = file_case(FILES[name](), same)
    rng = seeded(f"matrix bytes {name}")
    space = 0x20
    likely = [space, 0xE2, 0x82, 0xAC, 0x41, 0xFF, case.face.token_to_id("▁"), 300, 301, 310]
    for _ in range(800):
        ids = rng.choices(likely, k=rng.randrange(1, 6))
        made, text = case.face.decode_bytes(ids), case.decode(ids)
        try:
            assert made.decode() == text, ids
        except UnicodeDecodeError:
            assert "\ufffd" in text, ids
            whole = b"".join(case.face._native_engine.decode_tokens_bytes(ids))
            assert whole.endswith(made) and not whole[: len(whole) - len(made)].strip(b" "), ids
        if ids[0] == space:
            # A later byte that is not UTF-8 brings back a space; a stream has left it out by then.
            continue
        stream = case.face.stream_decoder(errors="surrogateescape")
        pieces = [stream.push(id) for id in ids] + [stream.finish()]
        assert "".join(pieces).encode("utf-8", "surrogateescape") == made, ids
    assert case.face.decode_bytes([0x20, 0xE2]) == b" \xe2"


def test_shown_tokens(case: Case) -> None:
    for text in texts(20, "show"):
        shown = case.face.show(text)
        assert [token.id for token in shown] == ids_of(case, text)
        assert shown._repr_html_() and repr(shown)
    assert len(case.face.show([trusted("the"), untrusted(" word")])) >= 1


def test_segments_and_growing_texts(case: Case) -> None:
    for text in texts(20, "segments"):
        ids = ids_of(case, text)
        conversation = case.face.conversation(disallowed_special=())
        conversation.update(text[: len(text) // 2])
        conversation.update(text)
        assert conversation.ids == ids
        stable, length = case.face.stable_prefix(text, disallowed_special=())
        assert ids[: len(stable)] == stable and 0 <= length <= len(text)
        assert not set(case.face.encode_segments([untrusted(text)])) & special_ids(case.face)


def special_ids(face: Any) -> set[int]:
    table = face.token_table()
    return set(table.ids("special"))


@pytest.mark.parametrize("make", [same, bpe_engine.Tokenizer])
def test_special_tokens_as_text_are_text_in_every_ability(
    make: Callable[[Any], Any],
) -> None:
    file = hf.Tokenizer.from_str(byte_level_file())
    file.encode_special_tokens = True
    ids = file.encode("the<a>word", add_special_tokens=False).ids
    face = make(file)
    assert face.token_table().kind(file.token_to_id("<a>")) == "special"
    assert face.count("the<a>word") == len(ids)
    assert face.encode_to_numpy("the<a>word").tolist() == ids
    assert face.encode_with_offsets("the<a>word")[0] == ids
    assert face.encode_batch_to_numpy(["the<a>word"])[0].tolist() == ids
    assert face.stable_prefix("the<a>word ")[0] == ids[: len(face.stable_prefix("the<a>word ")[0])]
    conversation = face.conversation()
    conversation.update("the<a>word")
    assert conversation.ids == ids


def small_file(**parts: Any) -> str:
    level = {**LEVEL, "add_prefix_space": True, "trim_offsets": True}
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    model = {"vocab": {letter: id for id, letter in enumerate(letters)}, "merges": []}
    parts = {"pre_tokenizer": level, "decoder": level, "post_processor": level, **parts}
    return file_of(model, **parts)


def test_offsets_that_go_back() -> None:
    """A trimmed prefix space lies behind the character that the next token is a part of."""
    case = file_case(small_file(), same)
    for text in ("ab<a>\U00010400", "<a>é<a>\U00010400 é", "𐐀 ﬁ"):
        assert case.face.encode_with_offsets(text) == case.oracle(text)
        assert case.face.show(text)


def test_chunks_of_text_without_tokens() -> None:
    face = hf.Tokenizer.from_str(small_file(pre_tokenizer={"type": "WhitespaceSplit"}))
    for text in ("a \n b a b", "  a  ", "a b"):
        spans = face.chunk_spans(text, 2)
        assert "".join(text[start:end] for start, end, _ in spans) == text


def test_special_tokens_of_the_model_are_text_where_all_are() -> None:
    token = {"id": 97, "content": "a", "special": True, **FLAGS}
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    id = letters.index("a")
    face = hf.Tokenizer.from_str(small_file(added_tokens=[{**token, "id": id}]))
    face.encode_special_tokens = True
    ids = face.encode("ab", add_special_tokens=False).ids
    assert face.encode_with_offsets("ab")[0] == ids
    assert face.truncate("ab", 100) == "ab" and face.chunk("ab", 100) == ["ab"]
    assert [token.id for token in face.show("ab")] == ids


def test_caches(case: Case) -> None:
    face = case.face
    before = ids_of(case, "the word lorem")
    face.set_cache_size(1 << 16)
    assert face.cache_size == 1 << 16
    face.set_caching(False)
    assert not face.is_caching
    assert face.encode_to_numpy("the word lorem").tolist() == before
    face.set_caching(True)
    face.clear_cache()
    assert face.is_caching
    assert face.encode_to_numpy("the word lorem").tolist() == before


@pytest.mark.parametrize("make", [same, bpe_engine.Tokenizer])
def test_caches_stay_off_when_a_file_changes(make: Callable[[Any], Any]) -> None:
    face = make(hf.Tokenizer.from_str(byte_level_file()))
    face.set_caching(False)
    face.set_cache_size(1 << 17)
    assert face.add_tokens(["<more>"]) == 1
    assert not face.is_caching and face.cache_size == 1 << 17
    if isinstance(face, bpe_engine.Tokenizer):
        return
    face.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    face.normalizer = tokenizers.normalizers.NFC()
    assert not face.is_caching and face.cache_size == 1 << 17


def test_the_environment_turns_caches_of_files_off() -> None:
    program = (
        "import sys; from bpe_engine import Tokenizer, hf;"
        "file = hf.Tokenizer.from_str(sys.stdin.read()); file.add_tokens(['<more>']);"
        "print(file.is_caching, Tokenizer(file).is_caching, file.cache_size)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        input=byte_level_file(),
        capture_output=True,
        text=True,
        check=True,
        env={"BPE_ENGINE_CACHE": "off", "BPE_ENGINE_CACHE_SIZE": "1 MiB"},
    ).stdout
    assert printed.split() == ["False", "False", str(1 << 20)]


def abilities() -> list[str]:
    return [name for name in vars(EngineMethods) if not name.startswith("_")]


def test_every_class_has_every_ability() -> None:
    for one in (bpe_engine.Encoding, hf.Tokenizer, bpe_engine.Tokenizer, QwenTokenizer):
        assert issubclass(one, EngineMethods)
        for name in abilities():
            theirs, ours = (
                inspect.getattr_static(owner, name, None) for owner in (EngineMethods, one)
            )
            assert ours is not None, (one, name)
            if callable(theirs) and theirs is not ours:
                # An own version takes what the common one takes.
                common, own = (inspect.signature(it).parameters for it in (theirs, ours))
                assert set(common) <= set(own), (one, name)


def test_the_manual_lists_every_ability() -> None:
    page = (ROOT / "docs" / "which.md").read_text(encoding="utf-8")
    assert not [name for name in abilities() if f"`{name}`" not in page]
