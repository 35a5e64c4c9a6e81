"""Tests folders of Marian and M2M100 against the classes of transformers, on models that are trained here."""

from __future__ import annotations

import itertools
import json
import pickle
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from seeds import seeded
from sentencepiece_oracle import MODELS, ODD, WORDS, random_text, sentencepiece, trained

import bpe_engine
from bpe_engine import Tokenizer
from bpe_engine.prompt import untrusted
from bpe_engine.tokenizer.m2m100 import M2M100Tokenizer
from bpe_engine.tokenizer.marian import MarianTokenizer

transformers = pytest.importorskip("transformers")
pytest.importorskip("numpy")

CODES = [">>fr<<", ">>pt_BR<<", ">>日<<"]
#: Parts of texts: languages, halves of them, special tokens, languages that are unknown.
MORE = [
    *CODES,
    ">>xx<<",
    ">>",
    "<<",
    ">><<",
    "</s>",
    "<pad>",
    "<unk>",
    "</s>>>fr<<",
    "Ünïcödé",
    "ⅷ",
]


def pieces_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(id) for id in range(processor.get_piece_size())]


def write_folder(
    path: Path, name: str = "unigram", lacks: int = 0, separate: bool = False, **config: Any
) -> Path:
    """A folder of Marian, whose vocabulary lacks some pieces."""
    options = MODELS[name]
    source, target = (
        trained(WORDS[:20], ("marian", "source"), **options),
        trained(WORDS[12:], ("marian", "target"), **options),
    )
    path.mkdir()
    (path / "source.spm").write_bytes(source)
    (path / "target.spm").write_bytes(target)
    rng = seeded("marian vocabulary", name, lacks)

    def vocab(pieces: list[str]) -> dict[str, int]:
        rest = sorted({*pieces} - {"<unk>", "</s>", "<s>"})
        left = rng.sample(rest, lacks)
        # A text that the source has no piece for is among them.
        names = ["</s>", "<unk>", *CODES, *(one for one in rest if one not in left), "ⅷ", "<pad>"]
        return {token: id for id, token in enumerate(dict.fromkeys(names))}

    one, other = pieces_of(source), pieces_of(target)
    first = vocab(one if separate else [*one, *other])
    (path / "vocab.json").write_text(json.dumps(first), encoding="utf-8")
    if separate:
        (path / "target_vocab.json").write_text(json.dumps(vocab(other)), encoding="utf-8")
        config["separate_vocabs"] = True
    (path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


def theirs_of(path: Path, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.MarianTokenizer.from_pretrained(path, **options)


def texts(count: int, note: str, rng: random.Random | None = None) -> list[str]:
    rng = rng or seeded("marian texts", note)
    made = []
    for _ in range(count):
        text = random_text(rng)
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            place = rng.choice([0, 0, rng.randrange(len(text) + 1)])
            text = text[:place] + rng.choice(MORE) + text[place:]
        made.append(text)
    return [*made, *ODD, *MORE, *(a + b for a, b in itertools.product(MORE, MORE)), ""]


def plain(result: Any) -> dict[str, Any]:
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in result.items()
    }


CALLS: list[dict[str, Any]] = [
    {},
    {"add_special_tokens": False},
    {"return_special_tokens_mask": True, "return_token_type_ids": True, "return_length": True},
    {"truncation": True, "max_length": 5},
    {"truncation": "only_first", "max_length": 3, "return_attention_mask": False},
    {"padding": "max_length", "max_length": 12, "truncation": True},
    {"split_special_tokens": True},
]
BATCHES: list[dict[str, Any]] = [
    {"padding": True, "return_tensors": "np"},
    {"padding": True, "padding_side": "left", "return_special_tokens_mask": True},
    {"padding": "max_length", "truncation": True, "max_length": 16, "pad_to_multiple_of": 8},
]
FOLDERS: list[dict[str, Any]] = [
    {},
    {"lacks": 12},
    {"lacks": 12, "model_max_length": 7, "source_lang": "en", "target_lang": "fr"},
    {"name": "unigram defined", "lacks": 5},
    {"name": "unigram suffix"},
    {"name": "unigram loose", "lacks": 5},
    {"name": "bpe", "lacks": 9},
    {"name": "bpe defined", "lacks": 9, "separate": True},
    {"name": "unigram", "lacks": 9, "separate": True},
    {"name": "char"},
]


def same(ours: Any, theirs: Any, note: str) -> None:
    for name in (
        "model_input_names", "padding_side", "special_tokens_map", "pad_token_id", "eos_token_id",
        "all_special_tokens", "all_special_ids", "vocab_size", "model_max_length", "is_fast",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert len(ours) == len(theirs)
    assert ours.num_special_tokens_to_add(True) == theirs.num_special_tokens_to_add(True)
    chosen = texts(300, note)
    for text in chosen:
        for options in CALLS:
            assert plain(ours(text, **options)) == plain(theirs(text, **options)), (text, options)
        assert ours(text_target=text).input_ids == theirs(text_target=text).input_ids, text
        both = plain(ours(text, text_target=text))
        assert both == plain(theirs(text, text_target=text))
        assert ours.tokenize(text) == theirs.tokenize(text)
        for skip in (False, True):
            for ids in (both["input_ids"], both["labels"]):
                assert ours.decode(ids, skip) == theirs.decode(ids, skip_special_tokens=skip), text
    rng = seeded("marian ids", note)
    for _ in range(200):
        ids = [rng.randrange(theirs.vocab_size) for _ in range(rng.randrange(12))]
        skip = rng.random() < 0.5
        assert ours.decode(ids, skip) == theirs.decode(ids, skip_special_tokens=skip), ids
        assert ours.convert_ids_to_tokens(ids) == theirs.convert_ids_to_tokens(ids)
        mask = theirs.get_special_tokens_mask(ids, already_has_special_tokens=True)
        assert ours.get_special_tokens_mask(ids, already_has_special_tokens=True) == mask
    for options in BATCHES:
        assert plain(ours(chosen, **options)) == plain(theirs(chosen, **options)), options
    pairs = list(zip(chosen[::2], chosen[1::2]))
    for options in (
        {"return_token_type_ids": True},
        *(
            {"truncation": it, "max_length": 9}
            for it in ("longest_first", "only_first", "only_second")
        ),
    ):
        for pair in pairs:
            if options.get("truncation", "").startswith("only") and min(
                len(theirs.tokenize(text)) for text in pair
            ) < 9:  # fmt: skip
                # Neither truncates what is shorter than what has to go.
                continue
            assert plain(ours(*pair, **options)) == plain(theirs(*pair, **options)), (pair, options)
    words = [text.split() for text in chosen if text.split()][:50]
    expected = plain(theirs(words, is_split_into_words=True, padding=True))
    assert plain(ours(words, is_split_into_words=True, padding=True)) == expected


@pytest.mark.parametrize("options", FOLDERS, ids=str)
def test_marian(tmp_path: Path, options: dict[str, Any]) -> None:
    path = write_folder(tmp_path / "model", **options)
    theirs, ours = theirs_of(path), Tokenizer.from_pretrained(path)
    assert type(ours) is MarianTokenizer
    same(ours, theirs, str(options))


def test_saved_marian(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "model", lacks=5)
    theirs_of(path).save_pretrained(tmp_path / "saved")
    ours = Tokenizer.from_pretrained(tmp_path / "saved")
    same(ours, theirs_of(tmp_path / "saved"), "saved")
    ours.add_tokens(["<new>"])
    ours.add_special_tokens({"extra_special_tokens": [">>new<<"]})
    theirs = theirs_of(path)
    theirs.add_tokens(["<new>"])
    theirs.add_special_tokens({"extra_special_tokens": [">>new<<"]})
    texts = ["a <new> b", ">>new<< the token", "the >>new<< token", "<new>>>fr<< the"]
    expected = [theirs(text).input_ids for text in texts]
    ours.save_pretrained(tmp_path / "again")
    again = Tokenizer.from_pretrained(tmp_path / "again")
    for each in (ours, pickle.loads(pickle.dumps(ours)), again):
        assert [each(text).input_ids for text in texts] == expected
    assert [theirs_of(tmp_path / "again")(text).input_ids for text in texts] == expected


def test_other_abilities_take_texts_without_a_language(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "model", lacks=12)
    ours = Tokenizer.from_pretrained(path)
    for text in texts(200, "abilities"):
        if ">>" in text:
            continue
        ids = ours(text, add_special_tokens=False).input_ids
        assert ours.count(text) == len(ids)
        assert ours.backend.encode(text, add_special_tokens=False).ids == ids
    opened: Any = bpe_engine.open_tokenizer(path)
    assert opened.encode("the token").ids == ours("the token").input_ids


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: (path / "vocab.json").unlink(), "vocab.json"),
        (lambda path: (path / "target.spm").unlink(), "target.spm"),
        (lambda path: (path / "vocab.json").write_text('{"<unk>": 0, "a": 2}'), "no token has the id 1"),
        (lambda path: (path / "vocab.json").write_text('{"a": 0}'), "no token '<unk>'"),
        (lambda path: (path / "vocab.json").write_text('{"<unk>": "0"}'), "the id of '<unk>'"),
        (lambda path: (path / "vocab.json").write_text("[]"), "JSON object"),
        (lambda path: (path / "source.spm").write_bytes(b"\n\x02"), "source.spm"),
    ],
)  # fmt: skip
def test_files_that_are_missing_or_malformed(tmp_path: Path, change: Any, message: str) -> None:
    path = write_folder(tmp_path / "model")
    change(path)
    with pytest.raises((OSError, ValueError), match=message):
        Tokenizer.from_pretrained(path)


def test_what_a_marian_tokenizer_lacks(tmp_path: Path) -> None:
    ours = Tokenizer.from_pretrained(write_folder(tmp_path / "model"))
    with pytest.raises(ValueError, match="no offsets"):
        ours("a", return_offsets_mapping=True)
    with pytest.raises(ValueError, match="all of its special tokens or for none"):
        ours("a", allowed_special={"</s>"})
    path = write_folder(tmp_path / "bytes", "unigram bytes")
    with pytest.raises(ValueError, match=r"source.spm has byte_fallback"):
        Tokenizer.from_pretrained(path)


# ---- M2M100 ----


def write_m2m100(path: Path, lacks: int = 0, **config: Any) -> Path:
    """A folder of M2M100, whose vocabulary lacks some pieces."""
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    model = trained(WORDS, ("marian", "source"), **MODELS["bpe" if lacks else "unigram"])
    path.mkdir()
    (path / "sentencepiece.bpe.model").write_bytes(model)
    rest = [piece for piece in pieces_of(model)[3:] if piece != "the"][lacks:]
    names = ["<s>", "<pad>", "</s>", "<unk>", *rest, "ⅷ"]
    ids = {token: id for id, token in enumerate(dict.fromkeys(names))}
    (path / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    codes = FAIRSEQ_LANGUAGE_CODES[config.get("language_codes", "m2m100")]
    config["additional_special_tokens"] = [f"__{code}__" for code in codes]
    config["tokenizer_class"] = "M2M100Tokenizer"
    (path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "config",
    [
        {"tgt_lang": "zu"},
        {"lacks": 5, "src_lang": "fr", "tgt_lang": "de"},
        {"lacks": 5, "language_codes": "wmt21", "model_max_length": 9, "tgt_lang": "de"},
    ],
)
def test_m2m100(tmp_path: Path, config: dict[str, Any]) -> None:
    path = write_m2m100(tmp_path / "model", **config)
    theirs = transformers.M2M100Tokenizer.from_pretrained(path)
    ours: Any = Tokenizer.from_pretrained(path)
    assert type(ours) is M2M100Tokenizer
    chosen = [text.replace(">>fr<<", "__en__") for text in texts(150, f"m2m100 {config}")]

    def compare(ours: Any) -> None:
        assert (ours.src_lang, ours.tgt_lang) == (theirs.src_lang, theirs.tgt_lang)
        assert ours.get_vocab() == theirs.get_vocab()
        assert (len(ours), ours.vocab_size) == (len(theirs), theirs.vocab_size)
        assert ours.all_special_tokens == theirs.all_special_tokens
        for text in chosen:
            for options in CALLS:
                assert plain(ours(text, **options)) == plain(theirs(text, **options)), text
            both = plain(theirs(text, text_target=text))
            assert plain(ours(text, text_target=text)) == both
            assert ours.tokenize(text) == theirs.tokenize(text)
            for skip in (False, True):
                for ids in both["input_ids"], both["labels"]:
                    expected = theirs.decode(ids, skip_special_tokens=skip)
                    assert ours.decode(ids, skip) == expected, text
        for options in BATCHES:
            assert plain(ours(chosen, **options)) == plain(theirs(chosen, **options))
        pairs = [{"return_token_type_ids": True, "return_special_tokens_mask": True}, {}]
        for options in pairs:
            assert plain(ours("the", "other", **options)) == plain(
                theirs("the", "other", **options)
            )

    compare(ours)
    ours.save_pretrained(tmp_path / "again")
    compare(Tokenizer.from_pretrained(tmp_path / "again"))
    compare(pickle.loads(pickle.dumps(ours)))
    ours.src_lang, ours.tgt_lang = "ja", "is"
    theirs.src_lang, theirs.tgt_lang = "ja", "is"
    compare(ours)
    ours.tgt_lang = None
    with pytest.raises(ValueError, match="text_target needs a language"):
        ours("a", text_target="b")
    with pytest.raises(ValueError, match="no language 'xx'; there are"):
        ours.src_lang = "xx"


def test_m2m100_without_languages_is_refused(tmp_path: Path) -> None:
    path = write_m2m100(tmp_path / "model")
    (path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ValueError, match="does not list the tokens of all languages"):
        Tokenizer.from_pretrained(path)


def test_unknown_characters_never_become_names_in_segments(tmp_path: Path) -> None:
    """Marian looks a run of unknown characters up in its vocabulary, where languages are, too."""
    path = write_folder(tmp_path / "model")
    vocab = json.loads((path / "vocab.json").read_text())
    vocab |= {name: len(vocab) + place for place, name in enumerate(["界界", "界"])}
    (path / "vocab.json").write_text(json.dumps(vocab))
    ours = MarianTokenizer.from_pretrained(path)
    ours.add_special_tokens({"extra_special_tokens": ["界界", "界"]})
    control = set(ours.all_special_ids) - {ours.unk_token_id}
    for text in ("a 界界", "界界", "x界 y", "</s>", "日</s>", "<pad>日"):
        ids = ours.encode_segments([untrusted(text)])
        assert not control & set(ids), (text, ids)
        ours.audit_segments([untrusted(text)]).assert_safe()
