"""Tests every ability on every class, over every kind of tokenizer file, against `tokenizers`.

A new kind of file is a new line of `FILES` in tests/support/kinds.py; a new ability is a new
function below.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hf_oracle import tokenizers
from kinds import (
    CASES,
    FILES,
    FLAGS,
    LEVEL,
    PIECES,
    Case,
    byte_level_file,
    file_case,
    file_of,
    ids_of,
    same,
    texts,
)
from pages import ROOT
from seeds import rounds, seeded

import bpe_engine
from bpe_engine import hf
from bpe_engine.face import Face
from bpe_engine.prompt import Conversation, special, stable_prefix, trusted, untrusted
from bpe_engine.qwen import QwenTokenizer
from bpe_engine.read import byte_level

#: Arguments that disallow every special token.
NONE: dict[str, Any] = {"allowed_special": set(), "disallowed_special": "all"}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def test_ids_and_offsets(case: Case) -> None:
    for text in texts(60, "ids"):
        ids, spans = case.oracle(text)
        ours = case.face.encode_with_offsets(text, disallowed_special=())
        assert ours[0] == ids, text
        if spans is not None:
            # Our spans cover the text as given: all characters that a normalizer rewrites together.
            assert all(a <= start and end <= b for (a, b), (start, end) in zip(ours[1], spans)), (
                text
            )
        assert case.face.encode_to_numpy(text, disallowed_special=()).tolist() == ids
    long = "".join(texts(40, "long")) * 40
    numbers = case.face.encode_to_numpy(long, num_threads=2, disallowed_special=())
    assert numbers.tolist() == ids_of(case, long)


def bytes_of(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Converts a character span to a byte span."""
    return len(text[: span[0]].encode()), len(text[: span[1]].encode())


def exact_bytes(case: Case, ids: list[int]) -> list[tuple[int, int]]:
    """Returns the byte spans of consecutive tokens."""
    ends = np.cumsum(
        [len(token) for token in map(bpe_engine.TokenTable(case.face).__getitem__, ids)]
    )
    return list(zip([0, *ends.tolist()], ends.tolist()))


def test_offsets_in_bytes(case: Case) -> None:
    for text in texts(60, "bytes"):
        ids, spans = case.face.encode_with_offsets(text, disallowed_special=())
        found = case.face.encode_with_offsets(text, unit="bytes", disallowed_special=())
        assert found[0] == ids
        whole = [bytes_of(text, span) for span in spans]
        if found[1] != whole:
            tokens = map(bpe_engine.TokenTable(case.face).__getitem__, ids)
            assert all(
                text.encode()[start:end] == token or start <= first <= last <= end
                for (start, end), token, (first, last) in zip(found[1], tokens, whole)
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


def test_counts_of_batches(case: Case) -> None:
    given = texts(30, "batches of counts")
    pyarrow = pytest.importorskip("pyarrow")
    expected = [len(ids_of(case, text)) for text in given]
    for column in (given, iter(given), pyarrow.array(given), np.array(given)):
        assert case.face.count_batch(column) == expected
    assert case.face.count_batch([]) == []
    with pytest.raises(TypeError, match="row 1: text must be a str, not int"):
        case.face.count_batch(["a", 1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"for one text pass \[text\]"):
        case.face.count_batch("text")


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
        # Drops as few of the text's tokens as possible.
        if total > 1:
            assert case.face.truncate(text, total - 1)[:1] == text[:1] or total < 12


def test_chunks(case: Case) -> None:
    for text in texts(25, "chunks"):
        for most, overlap in ((24, 0), (40, 7)):
            chunks = case.face.chunk(text, most, overlap)
            spans = case.face.chunk_spans(text, most, overlap)
            assert all(len(ids_of(case, chunk)) <= most for chunk in chunks)
            # A tokenizer may give no ids for whitespace.
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
    given = [untrusted(f"x {name} y")]
    assert case.face.audit_segments(given).controls
    stripped = case.face.encode_segments(given, on_control="strip")
    assert case.decode(stripped).split() == case.decode(ids_of(case, "x  y")).split()
    for function in (
        Conversation(case.face, **NONE).update,
        partial(stable_prefix, case.face, **NONE),
    ):
        with pytest.raises(ValueError, match="disallowed special token"):
            function(f"x {name} y")


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


def test_decoding_of_any_ids(case: Case) -> None:
    """Streams and offsets give the text of `decode`, even for bytes that are not UTF-8."""
    rng = seeded("matrix any ids")
    table = bpe_engine.TokenTable(case.face)
    known = table.ids("ordinary") + table.ids("special")
    # Short tokens that include non-ASCII bytes.
    broken = [id for id in known if len(table[id]) < 4 and not table[id].isascii()]
    for _ in range(rounds(150)):
        ids = [
            rng.choice(broken if broken and rng.random() < 0.7 else known)
            for _ in range(rng.randrange(9))
        ]
        expected = case.decode(ids)
        decoded, starts = case.face.decode_with_offsets(ids)
        assert decoded == expected and len(starts) == len(ids), ids
        assert starts == sorted(starts) and all(0 <= start <= len(decoded) for start in starts)
        stream = case.face.stream_decoder()
        sizes, parts = iter([0, 3, 1, 1, 2, 1, 1, 9]), []
        while ids:
            size = next(sizes)
            parts.append(stream.push(ids[:size]))
            ids = ids[size:]
        assert "".join([*parts, stream.finish()]) == expected


@pytest.mark.parametrize("name", ["characters, Prepend", "characters, Metaspace"])
def test_bytes_of_any_ids(name: str) -> None:
    """No byte is lost, even where the text shows U+FFFD."""
    case = file_case(FILES[name](), same)
    rng = seeded(f"matrix bytes {name}")
    space = 0x20
    likely = [space, 0xE2, 0x82, 0xAC, 0x41, 0xFF, case.face.token_to_id("▁"), 300, 301, 310]
    for _ in range(rounds(800)):
        ids = rng.choices(likely, k=rng.randrange(1, 6))
        made, text = case.face.decode_bytes(ids), case.decode(ids)
        try:
            assert made.decode() == text, ids
        except UnicodeDecodeError:
            assert "\ufffd" in text, ids
            whole = b"".join(case.face.decode_tokens_bytes(ids))
            assert whole.endswith(made) and not whole[: len(whole) - len(made)].strip(b" "), ids
        stream = case.face.stream_decoder()
        assert "".join([*map(stream.push, ids), stream.finish()]) == text, ids
        if ids[0] == space:
            # If a later byte were invalid, a space that the stream has dropped would reappear.
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
        conversation = Conversation(case.face, disallowed_special=())
        conversation.update(text[: len(text) // 2])
        conversation.update(text)
        assert conversation.ids == ids
        for end in range(0, len(text), 7):
            conversation.update(text[:end])
            conversation.append(text[end : end + 5])
            conversation.append(text[end + 5 :])
            assert conversation.ids == ids, (text, end)
        stable, length = stable_prefix(case.face, text, disallowed_special=())
        assert ids[: len(stable)] == stable and 0 <= length <= len(text)
        assert not set(case.face.encode_segments([untrusted(text)])) & special_ids(case.face)


def test_appends(case: Case) -> None:
    rng = seeded("matrix appends")
    names = sorted(name for name in case.face.special_tokens_set if name.strip())[:4]
    for _ in range(6):
        conversation = Conversation(case.face, disallowed_special=())
        prompt, whole = Conversation(case.face), ""
        segments: list[Any] = []
        for _ in range(12):
            more = "".join(rng.choices(PIECES, k=rng.randrange(5)))
            before = conversation.ids
            change = conversation.append(more)
            whole += more
            assert conversation.ids == ids_of(case, whole) == before[: change.kept] + change.ids
            parts = [rng.choice([trusted, untrusted])(more), untrusted(rng.choice(PIECES))]
            if names and rng.random() < 0.5:
                parts.append(special(rng.choice(names)))
            segments += parts
            branch = prompt.fork()
            prompt.append(parts)
            assert prompt.ids == case.face.encode_segments(segments)
            assert case.face.audit_segments(segments).ids == prompt.ids
            if rng.random() < 0.2:
                segments.pop()
                prompt = branch
                prompt.append(parts[:-1])


def special_ids(face: Any) -> set[int]:
    table = bpe_engine.TokenTable(face)
    return set(table.ids("special"))


@pytest.mark.parametrize("make", [same, bpe_engine.Tokenizer])
def test_special_tokens_as_text_are_text_in_every_ability(
    make: Callable[[Any], Any],
) -> None:
    file = hf.Tokenizer.from_str(byte_level_file())
    file.encode_special_tokens = True
    ids = file.encode("the<a>word", add_special_tokens=False).ids
    face = make(file)
    assert bpe_engine.TokenTable(face).kind(file.token_to_id("<a>")) == "special"
    assert face.count("the<a>word") == len(ids)
    assert face.encode_to_numpy("the<a>word").tolist() == ids
    assert face.encode_with_offsets("the<a>word")[0] == ids
    assert face.encode_batch_to_numpy(["the<a>word"])[0].tolist() == ids
    assert (
        stable_prefix(face, "the<a>word ")[0] == ids[: len(stable_prefix(face, "the<a>word ")[0])]
    )
    conversation = Conversation(face)
    conversation.update("the<a>word")
    assert conversation.ids == ids


def small_file(**parts: Any) -> str:
    level = {**LEVEL, "add_prefix_space": True, "trim_offsets": True}
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    model = {"vocab": {letter: id for id, letter in enumerate(letters)}, "merges": []}
    parts = {"pre_tokenizer": level, "decoder": level, "post_processor": level, **parts}
    return file_of(model, **parts)


def test_places_are_those_of_the_given_text() -> None:
    """Offsets include composed marks and trimmed whitespace, which `tokenizers`' offsets omit."""
    level = {**LEVEL, "add_prefix_space": False, "trim_offsets": True}
    parts = {"pre_tokenizer": level, "post_processor": level}
    composing = hf.Tokenizer.from_str(small_file(normalizer={"type": "NFC"}, **parts))
    ids, spans = composing.encode_with_offsets("re\u0301 \u1112\u1161\u11ab")
    assert composing.decode(ids) == "r\u00e9 \ud55c"
    assert spans == [(0, 1), (1, 3), (1, 3), (3, 4), (4, 7), (4, 7), (4, 7)]
    trimming = hf.Tokenizer.from_str(small_file(**parts))
    assert trimming.encode_with_offsets(" ok")[1] == [(0, 1), (1, 2), (2, 3)]
    assert trimming.encode(" ok").offsets[0] == (1, 1)
    for text in ("ab<a>\U00010400", "<a>é<a>\U00010400 é", "𐐀 ﬁ"):
        assert hf.Tokenizer.from_str(small_file()).show(text)


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
    return [name for name in dir(Face) if not name.startswith("_")]


def test_every_class_has_every_ability() -> None:
    for one in (bpe_engine.Encoding, hf.Tokenizer, bpe_engine.Tokenizer, QwenTokenizer):
        assert issubclass(one, Face)
        for name in abilities():
            theirs, ours = (inspect.getattr_static(owner, name, None) for owner in (Face, one))
            assert ours is not None, (one, name)
            if callable(theirs) and theirs is not ours:
                # A class's override accepts all arguments of the common method.
                common, own = (inspect.signature(it).parameters for it in (theirs, ours))
                assert set(common) <= set(own), (one, name)


def test_the_manual_lists_every_ability() -> None:
    page = (ROOT / "docs" / "which.md").read_text(encoding="utf-8")
    assert not [name for name in abilities() if f"`{name}`" not in page]
