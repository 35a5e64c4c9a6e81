"""Tests the trainers of all models against `tokenizers` and worked examples."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")

from seeds import rounds, seeded  # noqa: E402

from bpe_engine import hf  # noqa: E402
from bpe_engine.hf import implementations, trainers  # noqa: E402

#: Words and their counts in Hugging Face's course on tokenizers.
HUGS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
KINDS: list[Any] = [trainers.BpeTrainer, trainers.UnigramTrainer]
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "corpora"


def text_of(counts: dict[str, int]) -> str:
    return " ".join(" ".join([word] * count) for word, count in counts.items())


def both(model: str, **fields: Any) -> tuple[Any, Any]:
    """Returns an empty tokenizer of each package, which splits on whitespace."""
    made = []
    for package in (hf, tokenizers):
        models = getattr(package, "models", package)
        tokenizer = package.Tokenizer(getattr(models, model)(**fields))
        tokenizer.pre_tokenizer = package.pre_tokenizers.WhitespaceSplit()
        made.append(tokenizer)
    return made[0], made[1]


def trained(kind: str, text: str, options: dict[str, Any], **fields: Any) -> tuple[Any, Any]:
    """Returns tokenizers of both packages, trained on a text."""
    pair = both(kind, **fields)
    name = f"{'Bpe' if kind == 'BPE' else kind}Trainer"
    for tokenizer, package in zip(pair, (hf, tokenizers)):
        trainer = getattr(package.trainers, name)(**options, show_progress=False)
        tokenizer.train_from_iterator([text], trainer)
    return pair


def model_of(tokenizer: Any) -> dict[str, Any]:
    return json.loads(tokenizer.to_str())["model"]


def random_words(random: Any, letters: str, most: int) -> dict[str, int]:
    lengths = [random.randint(1, 7) for _ in range(random.randint(1, 14))]
    return {
        "".join(random.choices(letters, k=length)): random.randint(1, most) for length in lengths
    }


@pytest.mark.parametrize("part", range(rounds(32)))
def test_bpe_over_characters_is_that_of_tokenizers(part: int) -> None:
    # Small counts cause ties.
    for number in range(rounds(40)):
        random = seeded("bpe", part, number)
        letters = random.choice(["ab", "abc", "aé日😀", "abcdefgh", "a</w>", "##ab"])
        text = text_of(random_words(random, letters, 4))
        options: dict[str, Any] = {
            "vocab_size": random.randint(1, 40),
            "min_frequency": random.choice([0, 0, 2, 3]),
            "special_tokens": random.choice([[], ["<unk>"], ["ab", "a"]]),
            "initial_alphabet": random.choice([[], ["a", "zz"]]),
            "max_token_length": random.choice([None, None, 1, 2, 3, 5]),
        }
        ours, theirs = trained("BPE", text, options)
        assert model_of(ours) == model_of(theirs), (text, options)
        assert ours.get_vocab() == theirs.get_vocab(), (text, options)


@pytest.mark.parametrize("part", range(rounds(72)))
def test_affixes_are_those_of_tokenizers(part: int) -> None:
    """Words may contain the affixes: merges then make the same token from different parts, and a
    pair occurs again before it is merged."""
    agreed = []
    for number in range(rounds(44)):
        random = seeded("affixes", part, number)
        letters = random.choice(["#ab", "##a", "a</w>", "abc", "aé日😀"])
        prefix, suffix = random.choice(["##", "##", "#", ""]), random.choice(["", "", "</w>", "a#"])
        words = {
            "".join(random.choices(letters, k=random.randint(1, 12))): random.randint(1, 900)
            for _ in range(random.randint(1, 12))
        }
        # In `tokenizers`, characters with affixes get ids in hash table order, and ids break ties.
        forms = {
            f"{before}{letter}{after}"
            for letter in letters
            for before in ("", prefix)
            for after in ("", suffix)
        }
        options: dict[str, Any] = {
            "vocab_size": len(forms) + random.randint(1, 60),
            "min_frequency": random.choice([0, 0, 2, 300]),
            "special_tokens": random.sample(sorted(forms), len(forms)),
            **({"continuing_subword_prefix": prefix} if prefix else {}),
            **({"end_of_word_suffix": suffix} if suffix else {}),
        }
        kind = random.choice(["WordPiece", "BPE"]) if prefix else "BPE"
        if kind == "BPE" and random.random() < 0.4:
            options["max_token_length"] = random.randint(1, 8)
        runs = [[*map(model_of, trained(kind, text_of(words), options))] for _ in range(5)]
        agreed.append(all(theirs == runs[0][1] for _, theirs in runs))
        assert not agreed[-1] or runs[0][0] == runs[0][1], (words, options)
    assert sum(agreed) > 0.7 * len(agreed)


def unigram_agrees(text: str, options: dict[str, Any], runs: int) -> bool:
    """Compares Unigram with several runs of `tokenizers`, whose sums depend on hash table order.
    Returns False if the runs differ."""
    found: list[dict[str, float]] = []
    for _ in range(runs):
        ours, theirs = trained("Unigram", text, options)
        found.append(dict(map(tuple, model_of(theirs)["vocab"])))
    if any(one.keys() != found[0].keys() for one in found):
        return False
    own = dict(map(tuple, model_of(ours)["vocab"]))
    assert own.keys() == found[0].keys(), (text, options)
    assert model_of(ours)["unk_id"] == model_of(theirs)["unk_id"]
    lowest = min(own.values())
    for piece, score in own.items():
        scores = [one[piece] for one in found]
        # Dropped characters have the lowest scores, in hash table order.
        if len(piece) > 1 or score > lowest + 0.1 and max(scores) - min(scores) < 1e-12:
            assert score == pytest.approx(scores[0], abs=1e-9), (piece, text, options)
    return True


def test_unigram_is_that_of_tokenizers_where_their_runs_agree() -> None:
    agreed = 0
    for number in range(60):
        random = seeded("unigram", number)
        letters = random.choice(["abc", "abcdefgh", "aé日😀"])
        text = text_of(random_words(random, letters, 300))
        options: dict[str, Any] = {
            "vocab_size": random.randint(12, 40),
            "unk_token": "<unk>",
            "special_tokens": random.choice([[], ["<unk>"], ["<s>", "<unk>"]]),
            "shrinking_factor": random.choice([0.5, 0.75]),
            "n_sub_iterations": random.choice([1, 2]),
            "max_piece_length": random.choice([3, 16]),
        }
        agreed += unigram_agrees(text, options, 5)
    assert agreed > 40


@pytest.mark.parametrize("name", ["en", "multi"])
def test_unigram_drops_the_pieces_that_tokenizers_drops(name: str) -> None:
    counts = Counter((SHARED / f"{name}.txt").read_text(encoding="utf-8").split())
    agreed = 0
    for number in range(8):
        random = seeded("unigram of text", name, number)
        words = random.sample(sorted(counts), random.choice([20, 100, 400]))
        size = len(set("".join(words))) + random.choice([10, 40, 200])
        text = text_of({word: counts[word] for word in words})
        agreed += unigram_agrees(text, {"vocab_size": size, "unk_token": "<unk>"}, 3)
    assert agreed > 5


def test_word_level_is_that_of_tokenizers() -> None:
    for number in range(rounds(40)):
        random = seeded("word_level", number)
        text = text_of(random_words(random, "abc", 4))
        options: dict[str, Any] = {
            "vocab_size": random.randint(0, 12),
            "min_frequency": random.choice([0, 2]),
            "special_tokens": random.choice([[], ["<unk>"]]),
        }
        ours, theirs = trained("WordLevel", text, options, unk_token="<unk>")
        assert ours.get_vocab() == theirs.get_vocab(), (text, options)


def test_worked_examples_of_the_courses() -> None:
    ours, _ = both("BPE")
    ours.train_from_iterator([text_of(HUGS)], trainers.BpeTrainer(10))
    assert model_of(ours)["merges"] == [["u", "g"], ["u", "n"], ["h", "ug"]]
    assert ours.encode("bug").tokens == ["b", "ug"]
    pieces, _ = both("Unigram")  # Keeps all characters, even with fewer seeds.
    pieces.train_from_iterator([text_of(HUGS)], trainers.UnigramTrainer(20, seed_size=2))
    assert set("hugpnbs") <= set(pieces.get_vocab())
    words, _ = both("WordLevel", unk_token="[UNK]")
    words.train_from_iterator([text_of(HUGS)], trainers.WordLevelTrainer(special_tokens=["[UNK]"]))
    assert words.get_vocab() == {"[UNK]": 0, "pun": 1, "hug": 2, "hugs": 3, "pug": 4, "bun": 5}


#: The course's substrings of these words, with counts that sum to 210.
SUBSTRINGS = {
    "h": 15, "u": 36, "g": 20, "hu": 15, "ug": 20, "p": 17, "pu": 17, "n": 16, "un": 16, "b": 4,
    "bu": 4, "s": 5, "hug": 15, "gs": 5, "ugs": 5,
}  # fmt: skip


def test_the_unigram_tables_of_the_course() -> None:
    def loss(left_out: str | None) -> tuple[dict[str, list[str]], float]:
        table = {piece: count for piece, count in SUBSTRINGS.items() if piece != left_out}
        pieces = [(piece, math.log(count / 210)) for piece, count in table.items()]
        tokenizer = hf.Tokenizer(hf.Unigram(pieces))
        rows = {word: tokenizer.encode(word).tokens for word in HUGS}
        scores = dict(pieces)
        return rows, -sum(HUGS[word] * sum(map(scores.get, row)) for word, row in rows.items())

    rows, whole = loss(None)
    assert rows["hug"] == ["hug"]
    assert rows["hugs"] in (["hug", "s"], ["hu", "gs"], ["h", "ugs"])
    assert rows["pun"] in (["pu", "n"], ["p", "un"]) and rows["bun"] in (["bu", "n"], ["b", "un"])
    assert whole == pytest.approx(169.8, abs=0.05)
    assert loss("pu")[1] == pytest.approx(169.8, abs=0.05)
    assert loss("hug")[1] - whole == pytest.approx(23.5, abs=0.05)


def test_the_wordpiece_tables_of_the_course() -> None:
    trainer = trainers.WordPieceTrainer(vocab_size=10, special_tokens=[])
    words, _ = both("WordPiece")
    words.train_from_iterator([text_of(HUGS)], trainer)
    # All characters, and all continuing forms but h, p and b; then pairs, most frequent first. The
    # course's own trainer takes the pair with the highest count divided by its parts' counts.
    alphabet = ["b", "g", "h", "n", "p", "s", "u"]
    continued = ["##n", "##u", "##g", "##s"]
    vocab = words.get_vocab()
    assert sorted(vocab, key=vocab.__getitem__)[:7] == alphabet
    assert {*alphabet, *continued} == {*vocab}
    trainer.vocab_size = 14
    words.train_from_iterator([text_of(HUGS)], trainer)
    assert set(words.get_vocab()) - {*vocab} == {"##ug", "##un", "hug"}
    course = ["b", "h", "p", "##g", "##n", "##s", "##u", "##gs", "hu", "hug", "[UNK]"]
    model = hf.WordPiece({token: id for id, token in enumerate(course)}, unk_token="[UNK]")
    found = {word: hf.Tokenizer(model).encode(word).tokens for word in ("hugs", "bugs", "mug")}
    assert found == {"hugs": ["hug", "##s"], "bugs": ["b", "##u", "##gs"], "mug": ["[UNK]"]}


@pytest.mark.parametrize("name", ["messy", "zh"])
def test_files_of_text_are_read_as_by_tokenizers(name: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    text = (SHARED / f"{name}.txt").read_bytes().decode()[:150_000]
    path.write_bytes((text + "\r\n\n x\x85y  \u2028 end").encode())
    for ours, theirs in _pipelines():
        options: dict[str, Any] = {"vocab_size": 100_000}
        ours.train([str(path)], trainers.WordLevelTrainer(**options))
        trainer = tokenizers.trainers.WordLevelTrainer(**options, show_progress=False)
        theirs.train([str(path)], trainer)
        assert ours.get_vocab(False) == theirs.get_vocab(False), ours.pre_tokenizer


def _pipelines() -> list[tuple[Any, Any]]:
    """Returns word-level tokenizers whose pipelines count words in different ways."""
    made = []
    for package in (hf, tokenizers):
        models = getattr(package, "models", package)
        cut, clean = package.pre_tokenizers, package.normalizers
        pairs = [
            (clean.BertNormalizer(), cut.BertPreTokenizer()),
            (clean.NFKC(), cut.Metaspace()),
            (clean.NFKC(), cut.Metaspace(prepend_scheme="first")),
            (None, cut.ByteLevel(add_prefix_space=True)),
            (clean.NFC(), cut.ByteLevel(add_prefix_space=False)),
            (None, cut.Sequence([cut.WhitespaceSplit(), cut.Metaspace()])),
            (clean.Lowercase(), cut.Whitespace()),
            (None, cut.Sequence([cut.Punctuation(), cut.Digits()])),
        ]
        row = []
        for normalizer, pre_tokenizer in pairs:
            tokenizer = package.Tokenizer(models.WordLevel(unk_token="<unk>"))
            if normalizer is not None:
                tokenizer.normalizer = normalizer
            tokenizer.pre_tokenizer = pre_tokenizer
            tokenizer.add_tokens(["end"])
            row.append(tokenizer)
        made.append(row)
    return list(zip(*made))


def test_order_of_texts_and_threads_change_nothing(tmp_path: Path) -> None:
    lines = (SHARED / "en.txt").read_text(encoding="utf-8")[:400_000].splitlines(keepends=True)
    found = []
    for key in range(2):
        order = lines if key == 0 else seeded("order").sample(lines, len(lines))
        path = tmp_path / f"{key}.txt"
        path.write_text("".join(order), encoding="utf-8", newline="\n")
        row = []
        for kind, trainer in [
            ("BPE", trainers.BpeTrainer(500)),
            ("WordPiece", trainers.WordPieceTrainer(500)),
            ("Unigram", trainers.UnigramTrainer(500)),
        ]:
            ours, _ = both(kind)
            ours.train(path, trainer)
            row.append(model_of(ours))
        found.append(row)
    assert found[0] == found[1]


IMPLEMENTATIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("ByteLevelBPETokenizer", {}, {"vocab_size": 300, "special_tokens": ["<s>"]}),
    ("ByteLevelBPETokenizer", {"lowercase": True, "add_prefix_space": True}, {"vocab_size": 270}),
    ("SentencePieceBPETokenizer", {}, {"vocab_size": 90}),
    ("SentencePieceBPETokenizer", {"replacement": "_", "fuse_unk": True}, {"limit_alphabet": 30}),
    ("BertWordPieceTokenizer", {"lowercase": False}, {"vocab_size": 80}),
    ("BertWordPieceTokenizer", {"wordpieces_prefix": "@@"}, {"wordpieces_prefix": "@@"}),
    ("CharBPETokenizer", {"unicode_normalizer": "nfkc"}, {"vocab_size": 80}),
    ("CharBPETokenizer", {"split_on_whitespace_only": True, "suffix": "@"}, {"suffix": "@"}),
    ("SentencePieceUnigramTokenizer", {"add_prefix_space": False}, {"unk_token": "<unk>"}),
]


@pytest.mark.parametrize(("name", "fields", "options"), IMPLEMENTATIONS)
def test_implementations_are_those_of_tokenizers(
    name: str, fields: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    lines = (SHARED / "en.txt").read_text(encoding="utf-8")[:20_000].splitlines()
    own, other = getattr(implementations, name), getattr(tokenizers.implementations, name)
    pair = ours, theirs = own(**fields), other(**fields)
    for tokenizer in pair:
        tokenizer.train_from_iterator(lines, show_progress=False, **{"vocab_size": 120, **options})
    made, expected = (json.loads(tokenizer.to_str()) for tokenizer in pair)
    parts = ["normalizer", "pre_tokenizer", "post_processor", "decoder", "added_tokens"]
    if name in ("ByteLevelBPETokenizer", "SentencePieceBPETokenizer"):
        parts.append("model")  # In the other models, hash table order affects the result.
    assert [made[part] for part in parts] == [expected[part] for part in parts]
    assert ours.get_vocab_size() == theirs.get_vocab_size()
    assert tokenizers.Tokenizer.from_str(ours.to_str()).encode(lines[0]).ids == (
        ours.encode(lines[0]).ids
    )
    files = [tokenizer.save_model(str(tmp_path), "-") for tokenizer in (ours, theirs)]
    assert files[0] == files[1]
    if name == "SentencePieceUnigramTokenizer":
        vocab = list(map(tuple, expected["model"]["vocab"]))
        ours, theirs = own(vocab, **fields), other(vocab, **fields)
    else:
        messy = (SHARED / "messy.txt").read_text(encoding="utf-8").splitlines()
        lines += [line[:200] for line in messy[:200]]
        ours, theirs = own.from_file(*files[1], **fields), other.from_file(*files[1], **fields)
        if len(files[1]) == 2:
            names = dict(zip(("vocab_filename", "merges_filename"), files[1]))
            assert own.from_file(**names, **fields).to_str() == ours.to_str()
    assert json.loads(ours.to_str()) == json.loads(theirs.to_str())
    for line, after in zip(lines, [*lines[1:], ""]):
        found, wanted = ours.encode(line, after), theirs.encode(line, after)
        for part in ("ids", "tokens", "offsets", "type_ids", "special_tokens_mask"):
            assert getattr(found, part) == getattr(wanted, part), (line, part)
        assert ours.decode(found.ids) == theirs.decode(wanted.ids)
        if ours.normalizer is not None:
            assert ours.normalize(line) == theirs.normalize(line)
    for tokenizer, file in zip((ours, theirs), ("ours", "theirs")):
        tokenizer.save(str(tmp_path / file))
    saved = [json.loads((tmp_path / file).read_text("utf-8")) for file in ("ours", "theirs")]
    assert saved[0] == saved[1]


@pytest.mark.parametrize("name", implementations.__all__)
def test_implementations_are_copied(name: str) -> None:
    ours = getattr(hf, name)()
    ours.train_from_iterator(["low lower"], vocab_size=300)
    read = ours.from_str(ours.to_str())
    for it in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours), copy.copy(ours), read):
        assert type(it._tokenizer) is type(ours) and it.to_str() == ours.to_str()


def test_none_means_no_limit_and_no_suffix() -> None:
    ours = implementations.CharBPETokenizer()
    many = " ".join(map(chr, range(0x4E00, 0x5200)))
    ours.train_from_iterator([many], limit_alphabet=None, suffix=None, initial_alphabet=None)
    assert ours.get_vocab_size() == 1025 and ours.token_to_id("\u51ff") is not None
    with pytest.raises(TypeError, match="special_tokens must be"):
        ours.train_from_iterator(["low"], special_tokens=None)


def test_arguments_are_those_of_tokenizers() -> None:
    special = ["<unk>", tokenizers.AddedToken("<s>", lstrip=True)]
    for name in ("BpeTrainer", "WordPieceTrainer", "WordLevelTrainer", "UnigramTrainer"):
        kind, other = getattr(trainers, name), getattr(tokenizers.trainers, name)
        ours, theirs = (each(vocab_size=7, special_tokens=special) for each in (kind, other))
        assert trainers.as_trainer(theirs) == ours == pickle.loads(pickle.dumps(ours))
        assert trainers.as_trainer(other()) == kind()
    for model in ("BPE", "WordPiece", "WordLevel", "Unigram"):
        ours, theirs = both(model)
        assert trainers.as_trainer(theirs.model.get_trainer()) == ours.model.get_trainer()
    assert trainers.BpeTrainer(initial_alphabet=["ab", "c"]).initial_alphabet == ["a", "c"]


def test_mistakes_are_named_and_leave_the_tokenizer_as_it_was(tmp_path: Path) -> None:
    ours, _ = both("BPE")
    ours.train_from_iterator(["ab ab", ["ab"]])  # Uses the model's default trainer.
    assert ours.get_vocab() == {"a": 0, "b": 1, "ab": 2}
    before = ours.to_str()

    def broken() -> Any:
        yield "more"
        raise KeyError("the iterator's own")

    with pytest.raises(KeyError, match="own"):
        ours.train_from_iterator(broken())
    with pytest.raises(
        TypeError, match="WordPieceTrainer trains a WordPiece model.*take BpeTrainer"
    ):
        ours.train_from_iterator(["a"], trainers.WordPieceTrainer())
    for wrong, shown in [
        ([[b"a"]], "not the bytes b'a'"),
        ("text", "not be the str 'text'"),
        (None, "not be None"),
        ([5], "not the int 5"),
        ([None], "not None"),
        ([b"ab"], "not the bytes b'ab'"),
        # A data set's rows are dicts, not texts.
        ([{"text": "ab"}], "not the dict {'text': 'ab'}"),
        ({"ab": 2}, "not be the dict {'ab': 2}"),
    ]:
        with pytest.raises(TypeError, match=re.escape(shown)):
            ours.train_from_iterator(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the text 'a\\ud800' has a surrogate at 1"):
        ours.train_from_iterator(["a\ud800"])
    for files in (None, 5, [5], b"text.txt", {"a.txt": 1}):  # An int would be a file descriptor.
        with pytest.raises(TypeError, match="path"):
            ours.train(files)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"the class BpeTrainer; make one: BpeTrainer\(\)"):
        ours.train_from_iterator(["a"], trainers.BpeTrainer)
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"one\ntwo \xff\n")
    with pytest.raises(ValueError, match=r"bad.txt: the byte 0xff at 8 is not UTF-8"):
        ours.train(bad)
    with pytest.raises(FileNotFoundError):
        ours.train(tmp_path / "none.txt")
    with pytest.raises(ValueError, match=r"the path 'a\\x00b' has a NUL"):
        ours.train(["a\0b"])
    with pytest.raises(AttributeError, match="no attribute 'vocabsize'"):
        trainers.BpeTrainer().vocabsize = 5  # type: ignore[attr-defined]
    assert ours.to_str() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 3}, "3 tokens has no room for the 5 characters"),
        ({"vocab_size": 6, "special_tokens": ["<a>", "<b>"]}, "and 2 special tokens"),
        ({"shrinking_factor": 1.0}, "shrinking factor is 1"),
        ({"n_sub_iterations": 0}, "0 sub-iterations"),
        ({"max_piece_length": 0}, "longest piece has 0 characters"),
        ({"seed_size": 0}, "seed size is 0"),
    ],
)
def test_unigram_names_what_cannot_be_trained(options: dict[str, Any], message: str) -> None:
    ours, _ = both("Unigram")
    with pytest.raises(ValueError, match=message):
        ours.train_from_iterator(["low lower"], trainers.UnigramTrainer(**options))


WRONG: list[tuple[str, Any]] = [
    *(
        (name, it)
        for name in ("vocab_size", "min_frequency", "limit_alphabet")
        for it in (-1, "9", 1.5)
    ),
    *((name, 1 << 64) for name in ("vocab_size", "min_frequency", "max_token_length")),
    ("max_token_length", -1),
    *(("initial_alphabet", it) for it in (5, None, [5], b"ab", ["\ud800"])),
    *(("special_tokens", it) for it in (3, None, [None], [3], ["\ud800"], {"<s>": 1})),
    *((name, it) for name in trainers._AFFIXES[:2] for it in (5, b"x", "\ud800")),
    *(("max_piece_length", it) for it in (-1, None, "4", 1 << 64)),
    *(("n_sub_iterations", it) for it in (-1, "2", 1 << 64)),
    *(("seed_size", it) for it in (-1, "2", 1 << 64)),
    *(("unk_token", it) for it in (5, b"x", "\ud800")),
    *(("shrinking_factor", it) for it in ("x", None)),
    *(("show_progress", it) for it in (5, "no", None)),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_arguments_are_named(name: str, value: Any) -> None:
    kind = next(kind for kind in KINDS if name in kind.__dataclass_fields__)
    trainer = kind()
    for make in (lambda: kind(**{name: value}), lambda: setattr(trainer, name, value)):
        with pytest.raises((TypeError, ValueError), match=f"^{name} (must|has)"):
            make()
    assert trainer == kind()


def test_lists_of_a_model_are_given_together() -> None:
    for wrong in ("file.json", {"a": 1.0}, [("a",)], [("a", "x")], [5], 5):
        message = "vocab must be a list of tokens with their scores, not .*from_file reads"
        for kind in (hf.Unigram, implementations.SentencePieceUnigramTokenizer):
            with pytest.raises(TypeError, match=message):
                kind(wrong)
    for name in ("ByteLevelBPETokenizer", "CharBPETokenizer", "SentencePieceBPETokenizer"):
        with pytest.raises(ValueError, match="merges is missing; give vocab and merges"):
            getattr(implementations, name)("vocab.json")
        with pytest.raises(ValueError, match="vocab is missing"):
            getattr(implementations, name)(merges="merges.txt")


@pytest.mark.parametrize("texts", [[" \n "], ["removed"], [], [""]])
def test_nothing_to_learn_from_leaves_special_tokens(texts: list[str]) -> None:
    for kind, unk in [("BPE", None), ("WordPiece", None), ("Unigram", "<unk>")]:
        ours, _ = both(kind)
        ours.normalizer = hf.normalizers.Replace(hf.Regex("[a-z]+"), "")
        trainer = getattr(trainers, f"{'Bpe' if kind == 'BPE' else kind}Trainer")
        options = {} if unk is None else {"unk_token": unk}
        ours.train_from_iterator(texts, trainer(special_tokens=["<unk>"], **options))
        assert ours.get_vocab() == {"<unk>": 0}


@pytest.mark.parametrize("kind", ["WordPiece", "WordLevel", "Unigram"])
def test_an_unknown_token_that_is_not_there_is_missed_where_it_is_needed(kind: str) -> None:
    ours, _ = both(kind, **({} if kind == "Unigram" else {"unk_token": "[UNK]"}))
    ours.train_from_iterator(["low low"], getattr(trainers, f"{kind}Trainer")())
    assert ours.decode(ours.encode("low").ids)
    with pytest.raises(Exception, match=r"\[UNK\]|unk"):
        ours.encode("xyz")


def test_another_thread_encodes_meanwhile_as_before_or_as_after() -> None:
    ours, _ = both("BPE")
    lines = (SHARED / "en.txt").read_text(encoding="utf-8")[:200_000].splitlines()
    trainer = trainers.BpeTrainer(300, initial_alphabet=list("lower"), show_progress=False)
    ours.train_from_iterator(["low lower"], trainer)
    before = ours.encode("lower lower").tokens
    seen: list[list[str]] = []
    is_over = threading.Event()

    def encode() -> None:
        while not is_over.is_set():
            seen.append(ours.encode("lower lower").tokens)

    thread = threading.Thread(target=encode)
    thread.start()
    try:
        ours.train_from_iterator(lines, trainer)
    finally:
        is_over.set()
        thread.join()
    after = ours.encode("lower lower").tokens
    assert before in seen and before != after
    assert all(tokens in (before, after) for tokens in seen)
