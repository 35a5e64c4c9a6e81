"""Compares the preprocessing of TF Hub's BERT models with `tokenizers` and a plain loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hf_oracle import SHARED, TEXTS, tokenizers

from bpe_engine import hf
from bpe_engine.bert import BertPreprocessor

np = pytest.importorskip("numpy")

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] hello world ##s a b ##b 語".split()
LONG = [*TEXTS, "[SEP] hello [CLS] a", "hello worlds " * 20, "ab abb b"]


@pytest.fixture(scope="module", params=["small", "bert-base-uncased"])
def vocab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "small":
        path = tmp_path_factory.mktemp("bert") / "vocab.txt"
        path.write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
        return path
    path = SHARED / "tokenizers" / "models" / f"{request.param}.vocab.txt"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return path


@pytest.mark.parametrize("lowercase", [True, False])
def test_tokenize(vocab: Path, lowercase: bool) -> None:
    theirs = tokenizers.BertWordPieceTokenizer(str(vocab), lowercase=lowercase)._tokenizer
    theirs.encode_special_tokens = True
    own = hf.Tokenizer.from_wordpiece(vocab, lowercase=lowercase)
    own.enable_truncation(3)
    own.enable_padding(length=9)
    bert = BertPreprocessor(own)
    expected = [theirs.encode(text, add_special_tokens=False) for text in LONG]
    assert bert.tokenize(LONG).to_lists() == [encoding.ids for encoding in expected]


def packed_by_hand(segments: list[list[int]], length: int) -> tuple[list[int], list[int]]:
    """Packs one row: takes an id of each segment in turn, until the row is full."""
    kept: list[list[int]] = [[] for _ in segments]
    room = length - len(segments) - 1
    while room and any(len(some) < len(all) for some, all in zip(kept, segments)):
        for some, all in zip(kept, segments):
            if room and len(some) < len(all):
                some.append(all[len(some)])
                room -= 1
    ids, types = [2], [0]
    for number, some in enumerate(kept):
        ids += [*some, 3]
        types += [number] * (len(some) + 1)
    return ids + [0] * (length - len(ids)), types + [0] * (length - len(types))


@pytest.mark.parametrize("length", [3, 4, 7, 16, 128])
def test_packing(length: int, tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    bert = BertPreprocessor(hf.Tokenizer.from_wordpiece(path))
    first, second = bert.tokenize(LONG), bert.tokenize(LONG[::-1])
    packed = bert.bert_pack_inputs([first, second], length)
    assert all(array.dtype == np.int32 for array in packed.values())
    for row, (a, b) in enumerate(zip(first.to_lists(), second.to_lists())):
        ids, types = packed_by_hand([a, b], length)
        assert packed["input_word_ids"][row].tolist() == ids
        assert packed["input_type_ids"][row].tolist() == types
        assert packed["input_mask"][row].sum() == min(length, len(a) + len(b) + 3)
    alone = bert(LONG, length)
    assert alone["input_word_ids"].shape == (len(LONG), length)
    assert (
        alone["input_word_ids"] == bert.bert_pack_inputs([first], length)["input_word_ids"]
    ).all()
    assert bert(LONG)["input_mask"].shape == (len(LONG), 128)


def test_names_of_special_tokens(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("<pad>\n<unk>\n<s>\n</s>\n<mask>\nx\n", encoding="utf-8")
    model = hf.Tokenizer(hf.WordPiece.from_file(path, unk_token="<unk>"))
    with pytest.raises(ValueError, match=r"has no token '\[CLS\]'; name the token"):
        BertPreprocessor(model)
    names = {
        "start_token": "<s>",
        "end_token": "</s>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    }
    assert BertPreprocessor(model, **names).get_special_tokens_dict() == {
        "vocab_size": 6,
        "start_of_sequence_id": 2,
        "end_of_segment_id": 3,
        "padding_id": 0,
        "mask_id": 4,
    }
    wrong: Any = "bert"
    with pytest.raises(TypeError, match=r"made of a bpe_engine.hf.Tokenizer, not str"):
        BertPreprocessor(wrong)
