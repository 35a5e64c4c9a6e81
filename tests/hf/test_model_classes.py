"""Compares model classes with `tokenizers`: constructors, fields, files, pickles."""

from __future__ import annotations

import collections
import json
import pickle
from pathlib import Path

import pytest
from hf_models import MODELS, model_of
from hf_oracle import tokenizers
from seeds import rounds, seeded
from small_files import unigram_file

import bpe_engine
from bpe_engine import hf

MADE = {
    "BPE": ({"a": 0, "b": 1, "ab": 2}, [("a", "b")]),
    "WordPiece": ({"[UNK]": 0, "a": 1, "##b": 2},),
    "WordLevel": ({"<unk>": 0, "a": 1},),
    "Unigram": ([("<unk>", 0.0), ("a", -1.5), ("ab", -1.0)], 0),
}
TEXTS = ["ab", "a", "abab", "x", "aax b"]


def outcomes(model, text):
    try:
        return [token.as_tuple() for token in model.tokenize(text)]
    except Exception:
        return "failed"


@pytest.mark.parametrize("kind", MADE)
def test_constructors(kind):
    for given in ((), MADE[kind]):
        ours, theirs = getattr(hf, kind)(*given), getattr(tokenizers.models, kind)(*given)
        assert ours.__getstate__() == theirs.__getstate__()
        assert repr(ours) == str(theirs)
        for text in TEXTS if given else ():
            assert outcomes(ours, text) == outcomes(theirs, text)
            assert ours.token_to_id(text) == theirs.token_to_id(text)
        for id in range(4):
            assert ours.id_to_token(id) == theirs.id_to_token(id)
        again = pickle.loads(pickle.dumps(ours))
        assert again.__getstate__() == ours.__getstate__() and type(again) is type(ours)


@pytest.mark.parametrize("kind", MADE)
def test_a_tokenizer_of_a_model(kind):
    ours, theirs = getattr(hf, kind)(*MADE[kind]), getattr(tokenizers.models, kind)(*MADE[kind])
    one, other = hf.Tokenizer(ours), tokenizers.Tokenizer(theirs)
    assert one.to_str() == other.to_str() and kind in repr(one)
    assert type(one.model) is type(ours)
    for another in MADE:
        one.model = getattr(hf, another)(*MADE[another])
        assert type(one.model).__name__ == another
        one.model = getattr(tokenizers.models, another)(*MADE[another])
        other.model = getattr(tokenizers.models, another)(*MADE[another])
        assert one.to_str() == other.to_str()
    with pytest.raises(TypeError, match="expected a model"):
        one.model = {"type": "BPE"}


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_files(kind, tmp_path: Path):
    saved = 0
    simple = getattr(tokenizers.models, kind)(*MADE[kind])
    for model in [simple, *(model_of(kind, seed) for seed in range(10))]:
        contents = tokenizers.Tokenizer(model).to_str()
        ours = hf.Tokenizer.from_str(contents).model
        # Reading a file rounds scores.
        model = tokenizers.Tokenizer.from_str(contents).model
        for prefix in (None, "x"):
            (tmp_path / "a").mkdir(exist_ok=True)
            (tmp_path / "b").mkdir(exist_ok=True)
            try:
                paths = ours.save(tmp_path / "a", prefix)
            except ValueError as error:
                # `tokenizers` writes lines that neither package reads back as the same tokens.
                assert "cannot hold the token" in str(error)
                continue
            saved += 1
            others = model.save(str(tmp_path / "b"), prefix)
            assert [Path(path).name for path in paths] == [Path(path).name for path in others]
            for path, other in zip(paths, others):
                assert Path(path).read_bytes() == Path(other).read_bytes()
    assert saved
    if kind == "WordLevel":
        assert hf.WordLevel.read_file(*paths) == tokenizers.models.WordLevel.read_file(*paths)


def test_vocab_txt(tmp_path: Path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("[UNK]\na\r\nb \u3000\n##b\x1f\n\n a\na\nlast".encode())
    read = hf.WordPiece.read_file(path)
    assert read == tokenizers.models.WordPiece.read_file(str(path))
    ours = hf.WordPiece.from_file(path, max_input_chars_per_word=3)
    theirs = tokenizers.models.WordPiece.from_file(str(path), max_input_chars_per_word=3)
    for text in ("ab", "a", "b", "abbb", "last"):
        assert outcomes(ours, text) == outcomes(theirs, text)


def test_fields_are_set():
    model = hf.WordPiece(*MADE["WordPiece"])
    tokenizer = hf.Tokenizer(model)
    tokenizer.model.unk_token = "a"
    tokenizer.model.max_input_chars_per_word = 1
    assert tokenizer.encode("ab").tokens == ["a"] and tokenizer.encode("x").tokens == ["a"]
    assert model.unk_token == "[UNK]"
    with pytest.raises(AttributeError, match="no attribute 'vocab'"):
        tokenizer.model.vocab = {}
    for value in (None, 3, []):
        with pytest.raises(ValueError, match="model.unk_token"):
            tokenizer.model.unk_token = value
    with pytest.raises(ValueError, match="unk_id"):
        hf.Unigram([("a", 0.0)], 5)


@pytest.mark.parametrize("seed", range(40))
def test_scores_that_no_file_holds(seed):
    rng = seeded("scores", seed)
    odd = [float("nan"), float("inf"), -float("inf"), 0.1 + 0.2, 1 / 3, -1e308, 1e308]
    words = ["<unk>", *"abc", "ab", "bc", "abc", "ca", "cab"]
    vocab = [(word, rng.choice([*odd, rng.uniform(-9, 0)])) for word in words]
    ours, theirs = hf.Unigram(vocab, 0), tokenizers.models.Unigram(vocab, 0)
    for _ in range(rounds(50)):
        text = "".join(rng.choices("abcx", k=rng.randrange(1, 9)))
        assert outcomes(ours, text) == outcomes(theirs, text), (vocab, text)


def test_dropout_without_choice():
    vocab, merges = MADE["BPE"]
    for rate in (0.0, 1.0):
        ours, theirs = (at(vocab, merges, dropout=rate) for at in (hf.BPE, tokenizers.models.BPE))
        assert outcomes(ours, "abab") == outcomes(theirs, "abab")


def random_models():
    words = {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5}
    merges = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc")]
    scores = [("<unk>", 0.0), ("a", -1.0), ("b", -1.2), ("c", -0.8), ("ab", -1.5), ("bc", -1.9)]
    for rate in (0.1, 0.5):
        yield f"dropout {rate}", "BPE", (words, merges), {"dropout": rate}
    for options in (
        {"alpha": 0.5},
        {"alpha": 1.0, "nbest_size": 3},
        {"alpha": 0.2, "nbest_size": 64},
    ):
        yield str(options), "Unigram", ([*scores, ("abc", -2.0)], 0), options


@pytest.mark.parametrize("case", list(random_models()), ids=lambda case: case[0])
def test_random_choices(case):
    _, kind, given, options = case
    ours, theirs = (
        getattr(hf, kind)(*given, **options),
        getattr(tokenizers.models, kind)(*given, **options),
    )
    for name, value in options.items():
        assert getattr(ours, name) == pytest.approx(value)
    draws, text = rounds(20_000), "abcab"
    counts = [
        collections.Counter(tuple(token.id for token in model.tokenize(text)) for _ in range(draws))
        for model in (ours, theirs)
    ]
    for way in set(counts[0]) | set(counts[1]):
        # Five standard deviations of the difference.
        most = 5 * (counts[0][way] + counts[1][way] + 10) ** 0.5
        assert abs(counts[0][way] - counts[1][way]) < most, way
    # One text and seed give one result, with all fields; other seeds vary the result.
    tokenizer = hf.Tokenizer(ours)
    found = set()
    for seed in range(40):
        tokenizer.model.seed = seed
        encoding = tokenizer.encode(text)
        assert encoding.ids == tokenizer.encode_batch(["x", text])[1].ids
        assert len(encoding.tokens) == len(encoding.ids) and "".join(encoding.tokens) == text
        again = pickle.loads(pickle.dumps(tokenizer))
        assert again.encode(text).ids == encoding.ids and again.fingerprint == tokenizer.fingerprint
        found.add(tuple(encoding.ids))
    assert len(found) > 1


def test_no_control_token_comes_from_text():
    from bpe_engine.prompt import trusted, untrusted

    vocab = [("<unk>", 0.0), ("</s>", 5.0), *((letter, -1.0) for letter in "</s>ab ")]
    contents = json.loads(tokenizers.Tokenizer(tokenizers.models.Unigram(vocab, 0)).to_str())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    contents["added_tokens"] = [
        {"id": id, "content": name, "special": True, **flags}
        for id, name in ((0, "<unk>"), (1, "</s>"))
    ]
    tokenizer = hf.Tokenizer.from_str(json.dumps(contents))
    assert tokenizer.encode("a</s>").ids.count(1) == 1
    ids = tokenizer.encode_segments([untrusted("a</s>?"), trusted("</s>")])
    assert ids.count(1) == 1 and ids[-1] == 1 and 0 in ids
    words = hf.Tokenizer(hf.WordPiece({"[UNK]": 0, "[SEP]": 1, "[": 2, "##SEP": 3, "##]": 4}))
    words.add_special_tokens(["[UNK]", "[SEP]"])
    assert words.encode_segments([untrusted("[SEP]")]) == [2, 3, 4]
    assert words.encode_segments([untrusted("x[SEP]")]) == [0]
    assert words.encode_segments([trusted("[SEP]")]) == [1]


def test_every_ability_keeps_control_tokens_out_of_text():
    """Commands and corpora encode text to the ids of an untrusted segment."""
    from bpe_engine.abilities.ordinary_text import for_text

    contents = unigram_file()
    for normalizer in (None, {"type": "NFKC"}, {"type": "Lowercase"}):
        for scheme in ("always", "first", "never"):
            split = {**contents["pre_tokenizer"], "prepend_scheme": scheme}
            parts = {"normalizer": normalizer, "pre_tokenizer": split}
            as_it_is = hf.Tokenizer.from_str(json.dumps({**contents, **parts}))
            kept = for_text(as_it_is)
            rng = seeded("kept out", scheme)
            for size in [1, 2, 5, 9, 300]:
                text = "".join(rng.choices(["</s>", "a", "b", " ", "</", "s>", "?", "  "], k=size))
                text += "a</s>b"
                ids = as_it_is.encode_segments([(text, False)])
                assert 1 not in ids
                none = {"allowed_special": ()}
                assert kept.encode_to_numpy(text, **none).tolist() == ids
                assert kept._encode_each([text], 1, **none) == [ids]
                assert kept.encode_batch_to_numpy([text], **none)[0].tolist() == ids
                assert kept.count(text, **none) == len(ids)
                assert kept.count_till_limit(text, len(ids), **none) == len(ids)
                assert kept.count_till_limit(text, len(ids) - 1, **none) is None
                found, spans = kept.encode_with_offsets(text, **none)
                assert found == ids and spans[-1][1] == len(text)
                assert [token.id for token in kept.show(text, **none)] == ids
                chunks = kept.chunk_spans(text, len(ids), ids=True, **none)
                assert all(1 not in chunk.ids for chunk in chunks)
                assert 1 not in bpe_engine.prompt.Conversation(kept, **none).update(text).ids
                # Calls without `allowed_special` have the same results as before.
                assert kept.encode(text).ids == as_it_is.encode(text).ids
                assert kept.encode_to_numpy(text).tolist() == as_it_is.encode(text).ids
                plain = text.replace("</s>", "ab")
                assert kept.encode_with_offsets(plain) == as_it_is.encode_with_offsets(plain)
                again = pickle.loads(pickle.dumps(kept))
                assert again.encode_to_numpy(text, **none).tolist() == ids
            assert kept.fingerprint == again.fingerprint != as_it_is.fingerprint
    kept = for_text(hf.Tokenizer.from_str(json.dumps(contents)))
    text = "ab a</s>b " * 60_000
    ids = kept.encode_to_numpy(text, allowed_special=(), num_threads=2)
    assert ids.tolist() == kept.encode_segments([(text, False)])


NOT_FINITE = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("number", NOT_FINITE)
def test_numbers_that_no_field_takes(number):
    with pytest.raises(ValueError, match=rf"^dropout must be from 0 to 1, not {number}$"):
        hf.BPE(*MADE["BPE"], dropout=number)
    with pytest.raises(ValueError, match=rf"^alpha must be finite, not {number}$"):
        hf.Unigram(*MADE["Unigram"], alpha=number)
    tokenizer = hf.Tokenizer(hf.BPE(*MADE["BPE"]))
    with pytest.raises(ValueError, match=r"^dropout must be from 0 to 1"):
        tokenizer.model.dropout = number


def test_fields_of_other_types():
    for dropout in (True, False, 1, 0):
        ours = hf.BPE(*MADE["BPE"], dropout=dropout)
        theirs = tokenizers.models.BPE(*MADE["BPE"], dropout=dropout)
        assert ours.dropout == theirs.dropout
        assert outcomes(ours, "ab") == outcomes(theirs, "ab")
    for kind in ("WordPiece", "WordLevel", "BPE"):
        more = ([],) if kind == "BPE" else ()
        for id in (2**40, -1):
            with pytest.raises(
                ValueError, match=rf"^the id of 'a' must be from 0 to [0-9,]+, not {id}$"
            ):
                getattr(hf, kind)({"a": id}, *more)
    with pytest.raises(ValueError, match="unk_token|string") as caught:
        hf.WordLevel({"a": 0}, unk_token=5)
    assert "file" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^model\.dropout: 1\.5"):
        hf.BPE(*MADE["BPE"], dropout=1.5)


def test_a_model_without_tokens_takes_every_part():
    ours, theirs = hf.Tokenizer(hf.BPE()), tokenizers.Tokenizer(tokenizers.models.BPE())
    for pre_tokenizer in (
        tokenizers.pre_tokenizers.ByteLevel(),
        tokenizers.pre_tokenizers.Metaspace(),
        None,
    ):
        ours.pre_tokenizer = theirs.pre_tokenizer = pre_tokenizer
        assert ours.to_str() == theirs.to_str()
        assert ours.encode("a b").ids == theirs.encode("a b").ids == []
        assert ours.add_tokens(["<x>"]) == theirs.add_tokens(["<x>"])
        assert ours.encode("a<x>").ids == theirs.encode("a<x>").ids


def test_pickles_keep_scores():
    """Pickles keep exact scores, although reading JSON rounds some scores, as in `tokenizers`."""
    rng = seeded("scores")
    scores = [(chr(97 + place), rng.uniform(-20, 0)) for place in range(26)]
    model = hf.Unigram([("<unk>", 0.0), *scores, ("ab", scores[0][1] + scores[1][1])], 0)
    for made in (model, hf.Tokenizer(model), hf.Tokenizer(model).model):
        again = pickle.loads(pickle.dumps(made))
        written = [
            each.to_str() if isinstance(each, hf.Tokenizer) else each.__getstate__()
            for each in (made, again)
        ]
        assert written[0] == written[1]
