"""Tests plans for the embedding rows of new tokens, and the rows made by a plan."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from hf_oracle import SHARED
from hypothesis import given
from seeds import seed_for
from vocab_bases import BYTES, EXAMPLE_EXTRA, QWEN, trained_bases, word_lists

import bpe_engine
from vocab_tools import embedding_plan, extend_embeddings, learn_merges, load_ranks


def table(rows: int, kind: str = "float32") -> numpy.ndarray[Any, Any]:
    return numpy.random.default_rng(seed_for("rows")).normal(size=(rows, 16)).astype(kind)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "extra.tiktoken"
    path.write_bytes(EXAMPLE_EXTRA)
    return path


def test_the_plan_of_the_worked_example(example: Path) -> None:
    plan = embedding_plan(QWEN, example)
    assert list(plan) == list(range(151851, 151857))
    assert plan[151852] == [91680, 100472]
    assert plan[151854] == [35946, 99639, 91680, 100472]
    assert plan.gaps == []
    assert plan.sizes == {
        "base_ranks": 151643,
        "extra_ranks": 6,
        "special_tokens": 208,
        "base_max_id_plus_one": 151851,
        "max_id_plus_one": 151857,
        "rows": 151857,
    }


def test_the_plan_of_a_loaded_base(example: Path) -> None:
    ranks = load_ranks(QWEN)
    plan = embedding_plan(ranks, load_ranks(example), special_tokens="qwen")
    assert plan == embedding_plan(QWEN, example)
    # Ranks loaded from a file are recognized like the file itself.
    assert embedding_plan(ranks, example).gaps == []
    # Without the special tokens, some ids are unused.
    assert embedding_plan(ranks, example, special_tokens={}).gaps == [(151643, 151850)]


@given(word_lists, trained_bases())
def test_plans_spell_the_tokens(words: dict[str, int], base: dict[bytes, int]) -> None:
    extra = learn_merges(base, words, start_id=len(base) + 5, special_tokens={}).tokens
    plan = embedding_plan(base, extra)
    tokens = {number: token for token, number in base.items()}
    assert list(plan) == list(extra.values())
    for token, number in extra.items():
        assert b"".join(tokens[part] for part in plan[number]) == token
    if extra:
        assert plan.gaps == [(len(base), len(base) + 4)]


def test_rows_have_the_mean_norm_of_the_table() -> None:
    plan = embedding_plan({**BYTES, b"ab": 256}, {b"abc": 260})
    matrix = table(257)
    grown = extend_embeddings(matrix, plan)
    assert grown.shape == (261, 16) and grown.dtype == matrix.dtype
    assert numpy.array_equal(grown[:257], matrix)
    norm = numpy.linalg.norm(matrix, axis=1).mean()
    assert numpy.allclose(numpy.linalg.norm(grown[257:], axis=1), norm, rtol=1e-5)
    mean = matrix[[256, 99]].mean(0)
    assert numpy.allclose(grown[260] / norm, mean / numpy.linalg.norm(mean), atol=1e-5)
    # Unused ids get the mean of all rows.
    mean = matrix.mean(0)
    assert numpy.allclose(grown[258] / norm, mean / numpy.linalg.norm(mean), atol=1e-5)


def test_other_methods() -> None:
    plan = embedding_plan(BYTES, {b"ab": 256})
    matrix = table(256)
    raw = extend_embeddings(matrix, plan, method="mean-raw")
    assert numpy.allclose(raw[256], matrix[[97, 98]].mean(0))
    assert not extend_embeddings(matrix, plan, method="zeros")[256].any()
    with pytest.raises(ValueError, match="mean, mean-raw, zeros"):
        extend_embeddings(matrix, plan, method="median")


def test_padding_is_filled_in_and_kept() -> None:
    plan = embedding_plan(BYTES, {b"ab": 256})
    matrix = table(300)
    matrix[256:] = 0
    grown = extend_embeddings(matrix, plan)
    assert grown.shape == (300, 16)
    assert grown[256].any() and not grown[257:].any() and not matrix[256].any()
    # The norm follows the base's rows: padding does not lower it.
    norm = numpy.linalg.norm(matrix[:256], axis=1).mean()
    assert numpy.allclose(numpy.linalg.norm(grown[256]), norm, rtol=1e-5)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_number_types_stay(kind: str) -> None:
    plan = embedding_plan(BYTES, {b"ab": 256})
    matrix = table(256, kind) * 100
    grown = extend_embeddings(matrix.astype(kind), plan)
    assert grown.dtype == kind and numpy.isfinite(grown).all()


def test_a_row_without_length_stays_so() -> None:
    plan = embedding_plan(BYTES, {b"ab": 256})
    matrix = table(256)
    matrix[97] = -matrix[98]
    assert not extend_embeddings(matrix, plan)[256].any()


def test_bad_input() -> None:
    plan = embedding_plan(BYTES, {b"ab": 256})
    with pytest.raises(ValueError, match="255 rows.*id 255"):
        extend_embeddings(table(255), plan)
    with pytest.raises(ValueError, match="shape"):
        extend_embeddings(numpy.ones(300), plan)
    with pytest.raises(TypeError, match="int64"):
        extend_embeddings(numpy.ones((300, 2), dtype="int64"), plan)
    with pytest.raises(ValueError, match="special token <x>"):
        embedding_plan(BYTES, {b"ab": 256}, special_tokens={"<x>": 256})
    with pytest.raises(ValueError, match="two ids"):
        embedding_plan(BYTES, {b"a": 256})
    with pytest.raises(ValueError, match="not a token"):
        embedding_plan({b"a": 0}, {b"ab": 1})


def test_an_id_far_off_costs_no_memory() -> None:
    far = 2**32 - 2
    plan = embedding_plan(BYTES, {b"ab": far})
    assert dict(plan) == {far: [97, 98]}
    assert plan.gaps == [(256, far - 1)] and plan.sizes["rows"] == 2**32 - 1
    with pytest.raises(ValueError, match=f"{far}.*256 rows.*number the new tokens from 256 on"):
        extend_embeddings(table(256), plan)
    # The limit on unused rows excludes rows that exist already.
    near = embedding_plan(BYTES, {b"ab": 2**20 + 256})
    assert extend_embeddings(numpy.ones((256, 1), "float16"), near).shape == (2**20 + 257, 1)
    with pytest.raises(ValueError, match="not an id from 0 to 4294967294"):
        embedding_plan(BYTES, {b"ab": 2**32 - 1})
    with pytest.raises(ValueError, match="'<x>': -1 is not an id"):
        embedding_plan(BYTES, {b"ab": 256}, special_tokens={"<x>": -1})


def test_a_plain_dict_is_not_a_plan() -> None:
    with pytest.raises(TypeError, match="is a dict; make one with embedding_plan"):
        extend_embeddings(table(256), {256: [1]})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a source of ranks"):
        embedding_plan(BYTES, 3)  # type: ignore[arg-type]


def test_several_extras_and_none() -> None:
    plan = embedding_plan(BYTES, [{b"ab": 256}, {b"abc": 257}])
    assert dict(plan) == {256: [97, 98], 257: [97, 98, 99]}
    empty = embedding_plan(BYTES, {})
    assert extend_embeddings(table(256), empty).shape == (256, 16)
    with pytest.raises(ValueError, match="no new tokens: give .* as added_tokens, as read_special"):
        embedding_plan("gpt2", [])


def test_means_are_those_of_numpy() -> None:
    plan = embedding_plan("gpt2", added_tokens={"<|dose|>": 50_258, "<|unit|>": 50_300})
    matrix = table(50_304)
    known = matrix[[*range(50_257)]].astype("float64")
    grown = extend_embeddings(matrix, plan)
    gpt2 = bpe_engine.get_encoding("gpt2")
    for name, number in (("<|dose|>", 50_258), ("<|unit|>", 50_300)):
        mean = known[gpt2.encode_ordinary(name)].mean(axis=0)
        length = numpy.sqrt((known[:50_256] ** 2).sum(axis=1)).mean()
        expected = mean * length / numpy.sqrt((mean**2).sum())
        assert numpy.allclose(grown[number], expected, rtol=1e-4, atol=1e-6)


class Tensor:
    """A stand-in for a torch tensor with the methods needed here, based on numpy."""

    def __init__(self, array: Any) -> None:
        self.array = numpy.asarray(array)
        self.shape = self.array.shape
        self.dtype = self.array.dtype

    def is_floating_point(self) -> bool:
        return bool(numpy.issubdtype(self.dtype, numpy.floating))

    def detach(self) -> Tensor:
        return self

    def to(self, kind: Any) -> Tensor:
        return Tensor(self.array.astype(kind))

    def norm(self, dim: int) -> Tensor:
        return Tensor(numpy.linalg.norm(self.array, axis=dim))

    def mean(self, *axis: int) -> Tensor:
        return Tensor(self.array.mean(*axis))

    def new_zeros(self, shape: tuple[int, int]) -> Tensor:
        return Tensor(numpy.zeros(shape, self.dtype))

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self.array[key])

    def __setitem__(self, key: Any, value: Tensor) -> None:
        self.array[key] = value.array

    def __mul__(self, factor: float) -> Tensor:
        return Tensor(self.array * numpy.asarray(factor, self.dtype))

    def __float__(self) -> float:
        return float(self.array)


class Torch:
    Tensor = Tensor
    float32 = numpy.dtype("float32")
    promote_types = staticmethod(numpy.promote_types)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Returns torch, or a stand-in if torch is not installed."""
    try:
        import torch
    except ImportError:
        monkeypatch.setitem(sys.modules, "torch", Torch)  # type: ignore[arg-type]
        yield Torch
    else:
        yield torch


def test_torch_tensors(torch: Any) -> None:
    plan = embedding_plan({**BYTES, b"ab": 256}, {b"abc": 260})
    matrix = table(257)
    tensor = Tensor(matrix) if torch is Torch else torch.tensor(matrix)
    grown = extend_embeddings(tensor, plan)
    assert isinstance(grown, torch.Tensor) and tuple(grown.shape) == (261, 16)
    plain = grown.array if torch is Torch else grown.numpy()
    assert numpy.allclose(plain, extend_embeddings(matrix, plan), atol=1e-6)
    assert grown.dtype == tensor.dtype


def test_padding_to_a_multiple() -> None:
    plan = embedding_plan(BYTES, {b"ab": 256})
    grown = extend_embeddings(table(256), plan, pad_to_multiple_of=64)
    assert grown.shape == (320, 16)
    # Padding rows are filled like rows of unused ids.
    mean = table(256).mean(0)
    assert numpy.allclose(
        grown[300] / numpy.linalg.norm(grown[300]), mean / numpy.linalg.norm(mean)
    )
    assert extend_embeddings(table(320), plan, pad_to_multiple_of=64).shape == (320, 16)
    with pytest.raises(ValueError, match="pad_to_multiple_of is 0"):
        extend_embeddings(table(256), plan, pad_to_multiple_of=0)


def test_a_table_without_the_rows_of_special_tokens_is_refused() -> None:
    numpy = pytest.importorskip("numpy")
    plan = embedding_plan({**BYTES}, {b"ab": 300}, special_tokens={"<x>": 256, "<y>": 257})
    with pytest.raises(ValueError, match="has 256 rows.*special tokens.*up to the id 257"):
        extend_embeddings(numpy.ones((256, 2)), plan)
    with pytest.raises(ValueError, match="special_tokens="):
        extend_embeddings(numpy.ones((257, 2)), plan)
    assert extend_embeddings(numpy.ones((258, 2)), plan).shape == (301, 2)


@pytest.mark.parametrize(
    "name",
    [
        "models/bert-base-uncased.json",
        "models/t5-small.json",
        "models/mistral-7b-v0.1.model",
        "phi-3-mini.sentencepiece-like.json",
    ],
)
def test_added_tokens_of_files_without_ranks(name: str) -> None:
    path = str(SHARED / "tokenizers" / name)
    tokenizer = bpe_engine.open_tokenizer(path)
    free = tokenizer.hf.get_vocab_size() + 1
    options: Any = {"added_tokens": {"<|dose|>": free}, "descriptions": {"<|dose|>": "a dose"}}
    for base in (path, tokenizer):
        plan = embedding_plan(base, **options)
        assert dict(plan) == {free: tokenizer.encode_ordinary("a dose")}
        assert plan.gaps == [(free - 1, free - 1)] and plan.sizes["rows"] == free + 1
    plan = embedding_plan(path, added_tokens={**tokenizer.hf.get_vocab(), "<|dose|>": free})
    assert list(plan) == [free]
    with pytest.raises(ValueError, match="the id 3 of '<a>' is taken by"):
        embedding_plan(path, added_tokens={"<a>": 3})
    if "bert" in name:
        with pytest.raises(ValueError, match="b' ' becomes no id of the base; give a description"):
            embedding_plan(path, added_tokens={" ": free})
    with pytest.raises(ValueError, match="has no ranks"):
        embedding_plan(path, {b"ab": free})


def test_tokens_without_merges() -> None:
    """The row of a control token comes from its description, or else from its name."""
    qwen = bpe_engine.get_encoding("qwen2.5")
    added = {**qwen.special_tokens, "<|dose|>": 151_665, "<|unit|>": 151_667}
    plan = embedding_plan(
        "qwen2.5", {b"zqx": 151_666}, added_tokens=added, descriptions={"<|dose|>": "a dose"}
    )
    assert list(plan) == [151_665, 151_666, 151_667]
    assert plan[151_665] == qwen.encode("a dose") and plan[151_667] == qwen.encode("<|unit|>")
    table = extend_embeddings(numpy.arange(151_936.0)[:, None], plan, "mean-raw")
    assert len(table) == 151_936
    assert table[151_667, 0] == numpy.mean(plan[151_667])
    for names, descriptions, problem in [
        ({"<a>": 5}, {}, "the id 5 of '<a>' is taken by '&'"),
        ({"<a>": 151_643}, {}, r"taken by '<\|endoftext\|>'"),
        ({"<a>": 151_665}, {"<b>": "x"}, "'<b>' has a description, and is not"),
        ({"<a>": 151_665}, {"<a>": ""}, "the description of '<a>' is empty"),
        ({"<a>": 151_665, "<b>": 151_665}, {}, "the id 151665 of '<b>' is taken by '<a>'"),
    ]:
        with pytest.raises(ValueError, match=problem):
            embedding_plan("qwen2.5", added_tokens=names, descriptions=descriptions)
