"""Compares SentencePiece models with the package sentencepiece."""

from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from charsmaps import charsmap
from hf_oracle import SHARED
from seeds import rounds, seeded
from sentencepiece_oracle import (
    MODELS,
    VERSION,
    made_model,
    model_bytes,
    pieces,
    processor,
    random_text,
    write_model,
)

import bpe_engine
from bpe_engine import hf
from bpe_engine.prompt import special, untrusted

REAL = [
    "bpemb-en-100k",
    "mistral-7b-v0.1",
    "sentencepiece-test",
    "sentencepiece-test-ja",
    "t5-unigram",
    "tf-text",
    "xlnet-base-cased",
]


def opened(contents: bytes, version: Any = VERSION) -> hf.Tokenizer:
    return hf.Tokenizer.from_sentencepiece(contents, version)


def assert_same(ours: hf.Tokenizer, theirs: Any, text: str) -> None:
    expected = pieces(theirs, text)
    assert ours.encode(text).ids == [piece.id for piece in expected], repr(text)
    found = ours.encode(text)
    assert found.tokens == [piece.text for piece in expected], repr(text)
    raw, places = text.encode(), []
    for _, _, start, end in expected:
        places.append((len(raw[:start].decode()), len(raw[:end].decode())))
    assert found.offsets == places, repr(text)
    spans = [(start, end) for _, _, start, end in expected]
    assert ours.encode_with_offsets(text, unit="bytes") == (found.ids, spans), repr(text)
    assert ours.decode(found.ids, skip_special_tokens=False) == theirs.decode(found.ids)


@pytest.mark.parametrize("name", MODELS)
def test_ids_offsets_and_decoded_text(name: str) -> None:
    ours, theirs = opened(model_bytes(name)), processor(model_bytes(name))
    rng = seeded("sentencepiece", name)
    for _ in range(rounds(1500)):
        assert_same(ours, theirs, random_text(rng))
    size = theirs.get_piece_size()
    assert ours.get_vocab_size() == size
    for _ in range(rounds(1000)):
        ids = [rng.randrange(size) for _ in range(rng.randrange(9))]
        assert ours.decode(ids, skip_special_tokens=False) == theirs.decode(ids), ids


@pytest.mark.parametrize("name", MODELS)
def test_decoding_of_bytes_that_are_not_utf8(name: str) -> None:
    """Decoding is exact even if control pieces, which have no text, separate bytes."""
    ours, theirs = opened(model_bytes(name)), processor(model_bytes(name))
    rng = seeded("sentencepiece bytes", name)
    size = theirs.get_piece_size()
    control = [id for id in range(size) if theirs.is_control(id)]
    likely = [theirs.piece_to_id(f"<0x{byte:02X}>") for byte in b"\xe2\x82\xac\xf0\x9f\xffA \xc3"]
    for _ in range(rounds(1500)):
        kinds = rng.choices([likely, control, range(size)], [7, 2, 1], k=rng.randrange(9))
        ids = [rng.choice(kind) for kind in kinds]
        text = theirs.decode(ids)
        assert ours.decode(ids) == ours.decode(ids, skip_special_tokens=False) == text, ids
        shown, starts = ours.decode_with_offsets(ids)
        assert shown == text and starts == sorted(starts) and len(starts) == len(ids), ids
        for skips in (False, True):
            stream, rest, parts = ours.stream_decoder(skip_special_tokens=skips), ids, []
            while rest:
                count = rng.randrange(1, 4)
                parts.append(stream.push(rest[:count]))
                rest = rest[count:]
                assert len(stream._waiting) <= 3  # The limit allows the ids of one character.
            assert "".join([*parts, stream.finish()]) == text, (ids, skips)
            cut = rng.randrange(len(ids) + 1)
            stream = ours.stream_decoder(prompt=ids[:cut], skip_special_tokens=skips)
            parts = [*map(stream.push, ids[cut:]), stream.finish()]
            before, after = theirs.decode(ids[:cut]), "".join(parts)
            # Spaces at the beginning of a text are omitted, even after ids without text.
            assert text.endswith(after.lstrip()), (ids, cut, skips)
            is_cut = before.endswith("\ufffd")
            assert is_cut or (before + after).lstrip() == text.lstrip(), (ids, cut, skips)


@pytest.mark.parametrize("name", MODELS)
def test_chunk_spans_work_where_chunk_does(name: str) -> None:
    ours = opened(model_bytes(name))
    rng = seeded("sentencepiece chunks", name)
    parts = [*"½…①ﷺ™㍿\u3000\u200b \n", "ﾊﾟ", "e\u0301", ". ", "ab"]
    for _ in range(rounds(120)):
        chosen = rng.sample(parts, 3)
        text = "".join(rng.choice(chosen) * rng.randrange(1, 40) for _ in range(rng.randrange(5)))
        most = rng.randrange(1, 50)
        overlap = rng.choice([0, rng.randrange(most)])
        try:
            chunks = ours.chunk(text, most, overlap)
        except ValueError as error:
            with pytest.raises(ValueError, match="alone has more than"):
                ours.chunk_spans(text, most, overlap)
            assert "alone has more than" in str(error)
            continue
        reached = 0
        for start, end, count in ours.chunk_spans(text, most, overlap):
            assert start <= reached < end and count == ours.count(text[start:end]) <= most
            assert overlap or start == reached
            reached = end
        assert reached == len(text) and bool(chunks) == bool(text)


@pytest.mark.parametrize("name", MODELS)
def test_long_texts(name: str) -> None:
    ours, theirs = opened(model_bytes(name)), processor(model_bytes(name))
    rng = seeded("sentencepiece long", name)
    for size in (2000, 20_000):
        text = random_text(rng, size)
        expected = pieces(theirs, text)
        ids, spans = ours.encode_with_offsets(text, unit="bytes")
        assert list(zip(ids, spans)) == [(id, (start, end)) for _, id, start, end in expected]
        assert ours.encode(text).ids == ids
    for text in ("a" * 30_000, "ab" * 15_000, " " * 30_000, "é" * 9000, "\u2581" * 9000):
        assert ours.encode(text).ids == theirs.encode(text)


def random_model(rng: random.Random, rules: bytes = b"") -> bytes:
    """Returns a model with few characters, long pieces, and types and scores of all kinds."""
    model_type = rng.choice([1, 1, 2, 2, 2, 4])
    letters = "ab▁é"
    single = [letter for letter in letters if rng.random() < 0.9]
    long = {"".join(rng.choices(letters, k=rng.randrange(2, 6))) for _ in range(rng.randrange(30))}
    runs = (
        {"▁" * length for length in range(2, rng.randrange(2, 9))} if rng.random() < 0.4 else set()
    )
    has_bytes = rng.random() < 0.3
    rows = [("<unk>", 0.0, 2), ("<s>", 0.0, 3)]
    rows += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)] if has_bytes else []
    unused = rng.choice([0.0, 0.0, 0.2])
    defined = rng.choice([0.0, 0.0, 0.1])
    scores = rng.choice(
        [lambda: -rng.random() * 9, lambda: -float(rng.randrange(4)), lambda: -rng.random() * 1e4]
    )
    for text in rng.sample(sorted({*single, *long} - runs), len({*single, *long} - runs)):
        draw = rng.random()
        kind = 5 if draw < unused else 4 if draw < unused + defined else 1
        rows.append((text, scores(), kind))
    rows += [(text, -1e9, 1) for text in sorted(runs)]
    if all(kind not in (1, 4) and text != "a" for text, _, kind in rows):
        rows.append(("a", -1.0, 1))
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    flags = {name: rng.random() < 0.6 for name in names}
    return made_model(rows, model_type, byte_fallback=has_bytes, charsmap=rules, **flags)


def test_random_models() -> None:
    rng = seeded("random models of sentencepiece")
    for _ in range(rounds(400)):
        contents = random_model(rng)
        ours, theirs = opened(contents), processor(contents)
        for _ in range(25):
            text = "".join(rng.choices(["a", "b", " ", "é", "▁", "ab", "  ", "x", "aaaa"], k=14))
            assert_same(ours, theirs, text)


def test_long_runs_of_marks() -> None:
    """Pieces with equal scores merge from the left; otherwise the best score merges first."""
    rng = seeded("runs of sentencepiece")
    for number in range(rounds(60)):
        lengths = rng.sample(range(2, 20), k=rng.randrange(1, 12))
        score = (lambda: -1e9) if number % 3 else (lambda: -1e9 - rng.randrange(3) * 1e6)
        rows = [("<unk>", 0.0, 2), ("▁", -1.0, 1), ("a", -2.0, 1), ("▁a", -3.0, 1)]
        rows += [("▁" * length, score(), 1) for length in lengths]
        contents = made_model(rows, 2, add_dummy_prefix=number % 2 == 0, escape_whitespaces=True)
        ours, theirs = opened(contents), processor(contents)
        for _ in range(12):
            runs = [" " * rng.randrange(1, 400) + "a" * rng.randrange(3) for _ in range(4)]
            assert_same(ours, theirs, "".join(runs))


def test_the_unknown_piece_in_a_text() -> None:
    """The piece's name is ordinary text; consecutive unknown characters fuse, even across words."""
    rng = seeded("unknown pieces of sentencepiece")
    parts = ["<unk>", "<unk>", "u", "n", "k", "<", ">", " ", "☃", "▁", "{", "<unk", "unk>", "uk"]
    for _ in range(rounds(120)):
        letters = [letter for letter in "unk<>▁" if rng.random() < 0.7] or ["u"]
        longer = {"".join(rng.choices(letters, k=rng.randrange(2, 6))) for _ in range(12)}
        rows = [(text, -rng.uniform(0, 9), 1) for text in sorted({*letters, *longer} - {"<unk>"})]
        rows.insert(rng.choice([0, len(rows)]), ("<unk>", 0.0, 2))
        if has_bytes := rng.random() < 0.3:
            rows += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
        flags = {name: rng.random() < 0.5 for name in ("add_dummy_prefix", "escape_whitespaces")}
        contents = made_model(rows, 1, byte_fallback=has_bytes, **flags)
        ours, theirs = opened(contents), processor(contents)
        texts = ["".join(rng.choices(parts, k=size)) for size in [*range(15), 60, 400, 3000]]
        for text in texts:
            assert_same(ours, theirs, text)
            assert ours.count(text) == len(theirs.encode(text))
        rows_of = ours.encode_batch_to_numpy(texts)
        assert [row.tolist() for row in rows_of] == [theirs.encode(text) for text in texts]


#: Text that rules replace: on both sides of whitespace, and whitespace itself.
REPLACED = [
    "a", "b", "x", "!", ",", "\uff0c", "é", "a\u0301", "ab", "xx", " ", "\t", "\n", "\r", "\r\n", " \u0301",
    "a ", "\u00a0", "\u200b", "\u0301", "\u0301\u0301", "▁",
]  # fmt: skip
REPLACEMENTS = ["", " ", " ", " ", "a", "b", "é", ",", "ab", " a", "a ", "a b", "▁", "  ", "x"]


def test_random_rules() -> None:
    rng = seeded("random rules of sentencepiece")
    for number in range(500):
        spaces = {space: " " for space in "\t\n\r" if rng.random() < 0.8}
        keys = rng.sample(REPLACED, k=rng.randrange(4) if number % 2 else rng.randrange(12))
        rules = spaces | {key: rng.choice(REPLACEMENTS) for key in keys}
        contents = random_model(rng, charsmap(rules) if rules else b"")
        ours, theirs = opened(contents), processor(contents)
        for _ in range(25):
            text = "".join(rng.choices([*REPLACED, "  ", " ", " ", "(", "a", "b"], k=14))
            assert_same(ours, theirs, text)


@pytest.mark.parametrize("new", ["é", "a", "ab", "", "a b"])
def test_a_rule_for_spaces(new: str) -> None:
    """A rule for spaces does not replace the dummy prefix."""
    rows = [("<unk>", 0.0, 2), ("▁", 0.0, 1), ("a", -1.0, 1), ("é", -1.5, 1), ("▁a", -0.5, 1)]
    for flags in range(8):
        names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
        options = {name: bool(flags >> bit & 1) for bit, name in enumerate(names)}
        contents = made_model(rows, 1, charsmap=charsmap({" ": new}), **options)
        ours, theirs = opened(contents), processor(contents)
        for text in ["a¡", "a", "¡", " a¡", "a ¡ a", "é a¡ ", "☃ ☃", "  "]:
            assert_same(ours, theirs, text)


def test_user_defined_pieces_of_many_lengths() -> None:
    rng = seeded("lengths of user-defined pieces")
    rows = [("<unk>", 0.0, 2), *((text, -1.0, 1) for text in "ab▁é")]
    defined = ["a" * length + "b" for length in range(1, 300)] + ["éa", "é▁a", "aaa", "▁▁"]
    rows += [(text, 0.0, 4) for text in defined]
    for model_type in (1, 2, 4):
        contents = made_model(rows, model_type, add_dummy_prefix=True, escape_whitespaces=True)
        ours, theirs = opened(contents), processor(contents)
        for text in ("a" * 4000, "a" * 4000 + "b", "é" * 50 + " " * 50 + "a" * 700):
            assert ours.encode(text).ids == theirs.encode(text)
        for _ in range(100):
            runs = [rng.choice("aab é") * rng.randrange(1, 320) for _ in range(rng.randrange(5))]
            assert_same(ours, theirs, "".join(runs))


@pytest.mark.parametrize("model_type", [2, 3, 4])
def test_control_pieces_of_one_character(model_type: int) -> None:
    """sentencepiece up to 0.2.1 returns no ids for a text with such a piece."""
    rows = [("<unk>", 0.0, 2), ("a", -1.0, 1), ("b", -1.0, 1), ("ab", -0.5, 1), ("x", 0.0, 3)]
    contents = made_model(rows, model_type)
    ours, theirs = opened(contents), processor(contents)
    calls = (
        lambda text: ours.encode(text).ids,
        lambda text: [ours.count(text)],
        lambda text: ours.encode_to_numpy(text).tolist(),
        lambda text: ours.encode(text).offsets,
        lambda text: ours.encode_with_offsets(text, unit="bytes")[0],
        lambda text: ours.encode_batch([text])[0].ids,
    )
    for text in ("ab", "ax", "x", "xa", "bxxb", "abab", "b"):
        if theirs.encode(text):
            assert_same(ours, theirs, text)
            continue
        for call in calls:
            with pytest.raises(ValueError, match=r'control piece "x", which SentencePiece 0\.2\.1'):
                call(text)


def test_scores_that_are_not_finite() -> None:
    for model_type in (1, 2, 3, 4):
        for score, shown in ((float("nan"), "NaN"), (float("-inf"), "-inf")):
            contents = made_model([("<unk>", 0.0, 2), ("a", 0.0, 1), ("b", score, 1)], model_type)
            with pytest.raises(ValueError, match=f'score of the piece "b" is {shown}; write'):
                opened(contents)


def test_a_new_normalizer_comes_with_a_new_cache() -> None:
    contents = made_model(
        [("<unk>", 0.0, 2), ("▁", -1.0, 1), ("a", -1.0, 1), ("b", -2.0, 1)],
        1,
        charsmap=charsmap({"a": "b"}),
        add_dummy_prefix=True,
        escape_whitespaces=True,
    )
    tokenizer = opened(contents)
    assert tokenizer.encode("a a").tokens == ["▁", "b", "▁", "b"]
    tokenizer.normalizer = None
    assert tokenizer.encode(" a").tokens == [" ", "a"]


@pytest.mark.parametrize("name", REAL)
def test_real_files(name: str) -> None:
    path = SHARED / "tokenizers" / "models" / f"{name}.model"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    ours, theirs = opened(path.read_bytes()), processor(path.read_bytes())
    rng = seeded("sentencepiece real", name)
    for _ in range(rounds(1000)):
        assert_same(ours, theirs, random_text(rng))
    assert [ours.id_to_token(id) for id in range(ours.get_vocab_size())] == [
        theirs.id_to_piece(id) for id in range(theirs.get_piece_size())
    ]


def test_doors(tmp_path: Path) -> None:
    path = write_model(tmp_path, "unigram defined")
    loaded = hf.Tokenizer.from_sentencepiece(path)
    for other in (
        hf.Tokenizer.from_file(path),
        hf.Tokenizer.from_pretrained(tmp_path),
        bpe_engine.open_tokenizer(path).hf,
        bpe_engine.open_tokenizer(tmp_path).hf,
        copy.deepcopy(loaded),
        pickle.loads(pickle.dumps(loaded)),
        hf.Tokenizer.from_str(loaded.to_str()),
    ):
        assert isinstance(other, hf.Tokenizer)
        assert other.fingerprint == loaded.fingerprint
        assert other.encode_special_tokens and other.encode("<ctrl> </s>").tokens[0] != "<ctrl>"
    assert type(loaded.model) is hf.SentencePiece and loaded.model.version == "0.2.3"
    with pytest.raises(ValueError, match=r"version \"0\.1\": give"):
        hf.Tokenizer.from_sentencepiece(path, "0.1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "config, before, after",
    [
        ({}, [], []),
        ({"tokenizer_class": "LlamaTokenizer"}, ["<s>"], []),
        ({"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": False}, [], []),
        ({"tokenizer_class": "T5Tokenizer"}, [], ["</s>"]),
        ({"add_eos_token": True, "eos_token": "<ctrl>"}, [], ["<ctrl>"]),
    ],
)
def test_folders(tmp_path: Path, config: Any, before: list[str], after: list[str]) -> None:
    write_model(tmp_path, "bpe defined")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    tokenizer = bpe_engine.Tokenizer.from_pretrained(tmp_path)
    theirs = processor(model_bytes("bpe defined"))
    ids = {name: theirs.piece_to_id(name) for name in (*before, *after, "</s>")}
    text = "the tokens, ab"
    around = [ids[name] for name in before], [ids[name] for name in after]
    assert tokenizer(text)["input_ids"] == [*around[0], *theirs.encode(text), *around[1]]
    found = tokenizer(f"{text}</s>{text}", add_special_tokens=False)["input_ids"]
    assert found == [*theirs.encode(text), ids["</s>"], *theirs.encode(text)]
    assert tokenizer.eos_token == config.get("eos_token", "</s>")
    tokenizer.save_pretrained(tmp_path / "saved")
    saved = bpe_engine.Tokenizer.from_pretrained(tmp_path / "saved")
    assert saved(f"{text}</s>{text}", add_special_tokens=False)["input_ids"] == found


def test_the_fingerprint_depends_on_the_version_where_ids_do() -> None:
    for name in MODELS:
        old, new = (opened(model_bytes(name), version) for version in ("0.2.1", "0.2.3"))
        assert (old.fingerprint != new.fingerprint) == name.startswith(("unigram", "word")), name


def test_control_pieces_come_from_segments_only() -> None:
    tokenizer = opened(model_bytes("bpe defined"))
    end = tokenizer.token_to_id("</s>")
    assert end not in tokenizer.encode("a</s>").ids
    ids = tokenizer.encode_segments([untrusted("a</s>"), special("</s>")])
    assert ids == [*tokenizer.encode("a</s>").ids, end]
    tokenizer.encode_special_tokens = False
    assert tokenizer.encode("a</s>").ids[-1] == end


def test_untrusted_text_has_no_special_user_defined_pieces() -> None:
    for name in ("unigram defined", "bpe defined"):
        tokenizer = opened(model_bytes(name))
        tokenizer.add_special_tokens(["<sep>"])
        mark = tokenizer.token_to_id("<sep>")
        assert mark in tokenizer.encode("a <sep> b").ids
        assert mark not in tokenizer.encode_segments([untrusted("a <sep> b")])


def test_damaged_files_fail(tmp_path: Path) -> None:
    contents = model_bytes("unigram defined")
    rng = seeded("damaged model")
    for _ in range(rounds(300)):
        damaged = bytearray(contents)
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(damaged) if rng.random() < 0.5 else 3000)
            kind = rng.randrange(3)
            if kind == 0:
                del damaged[place:]
            elif kind == 1:
                damaged[place : place + 1] = rng.randbytes(rng.randrange(3))
            else:
                damaged[place] = rng.randrange(256)
            if len(damaged) < 3000:
                break
        try:
            tokenizer = opened(bytes(damaged))
            tokenizer.encode("the tokens, ｶﾞ <sep> a").offsets  # noqa: B018
        except ValueError:
            pass
    path = tmp_path / "cut.model"
    path.write_bytes(contents[:-3])
    with pytest.raises(ValueError, match=r"cut\.model: not a SentencePiece model: it is cut off"):
        hf.Tokenizer.from_sentencepiece(path)


@pytest.mark.parametrize("name", ["▁", "<0xff>", "<0x100>"])
def test_byte_pieces_without_a_byte_are_refused(name: str) -> None:
    rows = [("<unk>", 0.0, 2), ("a", -1.0, 1), (name, 0.0, 6)]
    rows += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    for model_type in (1, 2, 4):
        contents = made_model(rows, model_type, byte_fallback=True)
        with pytest.raises(ValueError, match=f'the byte piece "{name}" must be one of <0x00> to'):
            opened(contents)


def test_bytes_are_refused() -> None:
    tokenizer = opened(model_bytes("unigram"))
    for call in (tokenizer.encode, tokenizer.count, tokenizer.encode_to_numpy):
        with pytest.raises(TypeError, match="must be (a )?str"):
            call(b"a\xff")  # type: ignore[arg-type]


def test_parts_that_cannot_be_set() -> None:
    tokenizer = opened(model_bytes("bpe"))
    with pytest.raises(hf.UnsupportedTokenizer, match="takes whole texts"):
        tokenizer.pre_tokenizer = hf.pre_tokenizers.Whitespace()
    with pytest.raises(hf.UnsupportedTokenizer, match="sets its fields"):
        tokenizer.model.byte_fallback = True


@pytest.mark.parametrize("name", ["tokenizer.model.v3", "instruct.model.v7m1", "spm.model"])
def test_names_of_files(tmp_path: Path, name: str) -> None:
    """Opens files by the names used in mistral-common and in Mistral's folders."""
    path = tmp_path / name
    path.write_bytes(model_bytes("bpe llama"))
    expected = processor(model_bytes("bpe llama")).encode("the token")
    opened = [path, tmp_path] if name == "tokenizer.model.v3" else [path]
    for source in opened:
        tokenizer = bpe_engine.open_tokenizer(source)
        assert tokenizer.encode("the token") == tokenizer.hf.encode("the token").ids == expected
