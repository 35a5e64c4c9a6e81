"""Tests `Tokenizer` around an `Encoding`, and behavior that both kinds of `Tokenizer` share."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hf_oracle import tokenizer_path
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

import bpe_engine
from bpe_engine import Tokenizer
from bpe_engine.abilities.ragged import TokenBatch
from bpe_engine.hf import AddedToken
from bpe_engine.hf import Tokenizer as FileTokenizer

np = pytest.importorskip("numpy")

GPT2 = bpe_engine.get_encoding("gpt2")
END = "<|endoftext|>"
PLAIN = Tokenizer(GPT2, pad_token=END)
AROUND = Tokenizer(
    GPT2, pad_token="<pad>", bos_token="<s>", eos_token=END, add_bos_token=True, add_eos_token=True
)

batches = st.lists(texts, min_size=1, max_size=5)
sides = st.sampled_from(["left", "right"])


# ---- Padding, truncation, strides ----


@given(batches, sides)
def test_padding_is_that_of_token_batches(batch: list[str], side: Any) -> None:
    """`padding=True` and `pad` give the same rows as `TokenBatch.pad`."""
    rows = PLAIN(batch, padding=True, padding_side=side, return_tensors="np")
    ragged = GPT2.encode_batch_to_numpy(batch, allowed_special="all")
    matrix, mask = ragged.pad(id=PLAIN.pad_token_id, side=side)
    assert (rows.input_ids == matrix).all() and (rows.attention_mask == mask).all()
    later = PLAIN.pad(PLAIN(batch), padding_side=side, return_tensors="np")
    assert (later.input_ids == matrix).all() and (later.attention_mask == mask).all()


@given(texts)
def test_there_and_back(text: str) -> None:
    repaired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for tokenizer in (PLAIN, AROUND):
        ids = tokenizer.encode(text, allowed_special=set())
        assert tokenizer.decode(ids, skip_special_tokens=True) == repaired
        tokens = tokenizer.tokenize(text, allowed_special=set())
        assert tokenizer.convert_tokens_to_string(tokens) == repaired
        assert tokenizer.convert_tokens_to_ids(tokens) == GPT2.encode_ordinary(text)


@given(texts)
def test_offsets(text: str) -> None:
    ids, spans = GPT2.encode_with_offsets(text, allowed_special="all")
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    if has_surrogates:
        assert PLAIN(text).input_ids == ids
        with pytest.raises(ValueError, match="repair it first"):
            PLAIN(text, return_offsets_mapping=True)
        return
    rows = PLAIN(text, return_offsets_mapping=True)
    assert (rows.input_ids, rows.offset_mapping) == (ids, spans)
    assert rows.tokens() == PLAIN.convert_ids_to_tokens(ids)


# ---- Special tokens ----


@pytest.fixture(params=["encoding", "file"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    source: Any = GPT2
    if request.param == "file":
        source = FileTokenizer.from_file(tokenizer_path("gpt2"))
    return Tokenizer(source, pad_token=END)


def test_what_is_found_in_text(tokenizer: Tokenizer) -> None:
    ordinary = GPT2.encode_ordinary(END)
    assert tokenizer.encode(END) == [50256]
    for options in ({"allowed_special": set()}, {"split_special_tokens": True}):
        assert tokenizer.encode(END, **options) == ordinary
    assert tokenizer.encode(END, allowed_special={END}) == [50256]
    for options in (
        {"allowed_special": set(), "disallowed_special": "all"},
        {"allowed_special": set(), "disallowed_special": [END]},
    ):
        for text in ("a" + END, ["b", END]):
            with pytest.raises(ValueError, match="disallowed special token '<|endoftext|>'"):
                tokenizer(text, **options)
        with pytest.raises(ValueError, match="disallowed"):
            tokenizer("a", "b" + END, **options)
    assert tokenizer.encode("a", disallowed_special="all") == [64]


def test_some_of_the_names() -> None:
    encoding = Tokenizer(bpe_engine.get_encoding("p50k_edit"))
    text = END + "<|fim_prefix|>"
    ids = encoding.encode(text, allowed_special={END})
    assert ids[0] == 50256 and 50281 not in ids
    file = Tokenizer(FileTokenizer.from_file(tokenizer_path("gpt2")), pad_token="<pad>")
    assert file.encode("<pad>", allowed_special={"<pad>", END}) == [50257]
    with pytest.raises(ValueError, match="all of its special tokens or for none"):
        file.encode("<pad>", allowed_special={"<pad>"})


def test_named_extras(tokenizer: Tokenizer) -> None:
    size = len(tokenizer)
    made = Tokenizer(
        tokenizer.backend, extra_special_tokens={"image_token": "<image>", "audio_token": END}
    )
    assert (made.image_token, made.image_token_id) == ("<image>", size)
    assert made.audio_token_id == 50256
    assert made.encode("a<image>") == [64, size]
    assert made.decode([64, size], skip_special_tokens=True) == "a"
    assert len(made) == size + 1 and len(tokenizer) == size
    assert made.all_special_tokens == ["<image>", END]
    assert made.all_special_ids == [size, 50256]
    assert tokenizer.encode("<image>") == GPT2.encode("<image>")
    made.image_token = END
    assert made.image_token_id == 50256
    assert made.add_special_tokens({"video_token": "<video>"}) == 1
    assert made.video_token_id == size + 1
    with pytest.raises(AttributeError):
        _ = made.sound_token
    for name in ("decode", "_secret", "no name", "vocab_size"):
        with pytest.raises(ValueError):
            Tokenizer(GPT2, extra_special_tokens={name: "<x>"})
    with pytest.raises(TypeError, match="'color'"):
        Tokenizer(GPT2, color="red")
    for wrong in ({"pad_token": 3}, {"extra_special_tokens": "<x>"}):
        with pytest.raises(TypeError):
            Tokenizer(GPT2, **wrong)  # type: ignore[arg-type]


def test_added_tokens(tokenizer: Tokenizer) -> None:
    size = len(tokenizer)
    assert tokenizer.add_tokens(["<one>", AddedToken("<two>", normalized=False), "<one>"]) == 2
    ids = tokenizer.encode("<one> <two>")
    assert ids == [size, 220, size + 1]
    # The added tokens are not special.
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<one> <two>"
    assert tokenizer.get_added_vocab() == {END: 50256, "<one>": size, "<two>": size + 1}
    tokenizer.add_tokens("<one>", special_tokens=True)
    assert tokenizer.decode(ids, skip_special_tokens=True) == " <two>"


def test_what_an_encoding_cannot_add() -> None:
    tokenizer = Tokenizer(GPT2)
    with pytest.raises(ValueError, match="lstrip"):
        tokenizer.add_tokens(AddedToken("<x>", lstrip=True))
    # An existing token cannot get the flag, because the flag would have no effect.
    with pytest.raises(ValueError, match="rstrip"):
        Tokenizer(GPT2, mask_token=AddedToken(END, rstrip=True))
    with pytest.raises(ValueError, match="a token of the vocabulary already"):
        tokenizer.add_tokens("hello")
    assert len(tokenizer) == 50257


def test_bos_and_eos(tokenizer: Tokenizer) -> None:
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    tokenizer.eos_token = END
    assert tokenizer.encode("a") == [64] and tokenizer.num_special_tokens_to_add() == 0
    tokenizer.add_bos_token = True
    tokenizer.add_eos_token = True
    bos = tokenizer.bos_token_id
    assert tokenizer.encode("a") == [bos, 64, 50256]
    assert tokenizer.encode("a", "b") == [bos, 64, 50256, bos, 65, 50256]
    assert tokenizer.encode("a", add_special_tokens=False) == [64]
    assert tokenizer.num_special_tokens_to_add(True) == 4
    rows = tokenizer("a b c", max_length=4, return_special_tokens_mask=True)
    assert rows.input_ids == [bos, 64, 275, 50256]
    assert rows.special_tokens_mask == [1, 0, 0, 1]


# ---- Tensors, fields, copies ----


def test_tensors() -> None:
    rows = PLAIN(["a", "b c"], padding=True, return_tensors="np", return_offsets_mapping=True)
    assert rows.input_ids.tolist() == [[64, 50256], [65, 269]]
    assert rows.input_ids.dtype == rows.attention_mask.dtype == np.int64
    assert rows.offset_mapping.shape == (2, 2, 2)
    rows.input_ids[0, 0] = 1  # The caller owns the array and can change it.
    assert PLAIN("a", return_tensors="np").input_ids.shape == (1, 1)
    assert PLAIN([], padding=True, return_tensors="np").input_ids.shape == (0, 0)
    ragged = PLAIN(["a", "b c"], return_tensors="np").input_ids
    assert ragged.dtype == object and ragged[1].tolist() == [65, 269]
    with pytest.raises(ValueError, match="return_tensors must be"):
        PLAIN("a", return_tensors="jax")


def test_torch_and_tensorflow() -> None:
    """Tests the installed packages; an error names a package that is not installed."""
    for kind, module in (("pt", "torch"), ("tf", "tensorflow")):
        try:
            __import__(module)
        except ImportError:
            with pytest.raises(ImportError, match=f'return_tensors="{kind}" needs {module}'):
                PLAIN("a", return_tensors=kind)
            continue
        rows = PLAIN(["a", "b c"], padding=True, return_tensors=kind)
        assert rows.input_ids.numpy().tolist() == [[64, 50256], [65, 269]]
        assert PLAIN.pad(PLAIN(["a", "b c"]), return_tensors=kind).input_ids.shape == (2, 2)
        assert PLAIN.decode(rows.input_ids) == ["a" + END, "b c"]
        with pytest.raises(ValueError, match="padding=True"):
            PLAIN(["a", "b c"], return_tensors=kind)


class FakeTorch:
    """A stand-in for torch, with the necessary methods on numpy arrays."""

    __name__ = "torch"
    int64 = np.int64
    frombuffer = staticmethod(np.frombuffer)
    empty = staticmethod(np.empty)

    @staticmethod
    def tensor(value: Any, dtype: Any = None) -> Any:
        if len({len(row) for row in value if isinstance(row, list)}) > 1:
            raise ValueError("expected sequence of length 1 at dim 1")
        return np.array(value, dtype=dtype)


def test_what_torch_is_called_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", FakeTorch())  # type: ignore[arg-type]
    rows = PLAIN(["a", "b c"], padding=True, return_tensors="pt", return_length=True)
    assert rows.input_ids.tolist() == [[64, 50256], [65, 269]]
    assert rows.length.tolist() == [2, 2]
    assert PLAIN([], return_tensors="pt").input_ids.shape == (0, 0)
    with pytest.raises(ValueError, match="input_ids has rows of different lengths.*padding=True"):
        PLAIN(["a", "b c"], return_tensors="pt")


def test_fields() -> None:
    rows = PLAIN(["a", "b c"])
    assert rows["input_ids"] is rows.input_ids and list(rows) == ["input_ids", "attention_mask"]
    assert rows[0].ids == [64] and rows[1].tokens == ["b", "Ġc"]
    assert rows[:1] == {"input_ids": [[64]], "attention_mask": [[1]]}
    assert rows.token_to_chars(1, -1) == (1, 3) and rows.char_to_token(1, 2) == 1
    with pytest.raises(AttributeError, match="'labels'"):
        _ = rows.labels
    with pytest.raises(KeyError):
        rows["labels"]
    other = pickle.loads(pickle.dumps(rows))
    assert other == rows and other.tokens(1) == ["b", "Ġc"]
    assert copy.copy(rows) == rows
    labels = PLAIN("a", text_target="b c")
    assert labels["labels"] == [65, 269]
    with pytest.raises(ValueError, match="came without text"):
        PLAIN.pad({"input_ids": [[1]]}).tokens()
    assert PLAIN.pad({"input_ids": [[1], [2, 3]]}, padding_side="left").input_ids == [
        [50256, 1],
        [2, 3],
    ]


def test_copies(tokenizer: Tokenizer) -> None:
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    for other in (
        copy.copy(tokenizer),
        copy.deepcopy(tokenizer),
        pickle.loads(pickle.dumps(tokenizer)),
    ):
        assert other(["a<s>", "b c d"], padding=True) == tokenizer(["a<s>", "b c d"], padding=True)
        other.add_tokens("<other>")
        other.pad_token = "<s>"
        assert tokenizer.pad_token == END and tokenizer.convert_tokens_to_ids("<other>") is None
        assert other.get_vocab() == {**tokenizer.get_vocab(), "<other>": len(tokenizer)}


def test_errors() -> None:
    for call, error, message in [
        (lambda: Tokenizer("gpt2"), TypeError, r'bpe_engine.get_encoding\("gpt2"\)'),
        (lambda: Tokenizer(GPT2, padding_side="middle"), ValueError, "padding_side"),
        (lambda: PLAIN("a", padding_side="middle", padding=True), ValueError, "padding_side"),
        (lambda: PLAIN("a", max_length=-1), ValueError, "max_length must be at least 0"),
        (lambda: PLAIN("a", max_length="9"), TypeError, "max_length must be an int"),
        (lambda: PLAIN("a", max_length=9, stride=-1), ValueError, "stride"),
        (lambda: PLAIN("a", padding="max_length", max_length=10**15), MemoryError, "no memory"),
        (lambda: PLAIN("a", padding="max_length", max_length=10**30), MemoryError, "no memory"),
        (lambda: PLAIN("a", padding=True, pad_to_multiple_of=10**30), MemoryError, "no memory"),
        *(
            (
                lambda most=most: PLAIN(
                    ["a", "b"], padding="max_length", max_length=most, return_tensors="np"
                ),
                MemoryError,
                "no memory",
            )
            for most in (2**60, 2**61, 10**30)
        ),
        (lambda: PLAIN("a b", max_length=1, stride=10**30), ValueError, "stride"),
        (lambda: Tokenizer(GPT2, model_max_length=-1), ValueError, "model_max_length .* is -1"),
        (lambda: Tokenizer(GPT2, errors="no such"), LookupError, "no such"),
        (lambda: PLAIN.get_special_tokens_mask([1]), ValueError, "already_has_special_tokens"),
        (
            lambda: PLAIN.pad([{"input_ids": [1], "length": 1}, {"input_ids": [2]}]),
            ValueError,
            "row 1 has no 'length', which row 0 has",
        ),
        (lambda: PLAIN.decode([50257]), KeyError, "50257"),
        (lambda: PLAIN.decode([-1]), OverflowError, "-1"),
        (lambda: PLAIN.decode(["a"]), TypeError, "str"),
        (lambda: PLAIN.pad({"input_ids": [[1, 2]], "attention_mask": [[1]]}), ValueError, "row 0"),
        (lambda: PLAIN.pad({"input_ids": [[-1]]}), OverflowError, "-1"),
    ]:
        with pytest.raises(error, match=message):
            call()
    assert PLAIN("a b", truncation=True, max_length=10**30).input_ids == PLAIN.encode("a b")
    # Misspelt attributes raise, as on any object.
    with pytest.raises(AttributeError):
        _ = PLAIN.no_such_name


def test_batches_of_tokens_are_decoded(tokenizer: Tokenizer) -> None:
    batch = TokenBatch.from_lists([GPT2.encode("a b"), [], GPT2.encode("c")])
    assert tokenizer.decode(batch) == tokenizer.batch_decode(batch) == ["a b", "", "c"]
    assert tokenizer.convert_ids_to_tokens(batch[0][0]) == "a"
    assert tokenizer.convert_ids_to_tokens(batch[0]) == ["a", "Ġb"]


def test_errors_of_decoding(tokenizer: Tokenizer) -> None:
    ids = GPT2.encode("根")[:1]
    assert tokenizer.decode(ids) == "\ufffd" and tokenizer.decode(ids, errors="ignore") == ""
    with pytest.raises(UnicodeDecodeError):
        tokenizer.decode(ids, errors="strict")
    other = Tokenizer(tokenizer.backend, errors="ignore")
    assert other.decode(ids) == "" and other.decode(ids, errors="replace") == "\ufffd"
    assert other.decode([*GPT2.encode("é"), 50256], skip_special_tokens=True) == "é"


def test_without_numpy() -> None:
    """Lists need no package; without numpy, arrays raise an error that names the extra."""
    program = """
import sys
sys.modules["numpy"] = None
import bpe_engine
tokenizer = bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2"), pad_token="<|endoftext|>")
assert tokenizer(["a", "b c"], padding=True).input_ids == [[64, 50256], [65, 269]]
assert tokenizer.pad({"input_ids": [[64], [65, 269]]}).attention_mask == [[1, 0], [1, 1]]
assert tokenizer.decode([64]) == "a" and tokenizer.tokenize("b c") == ["b", "Ġc"]
try:
    tokenizer("a", return_tensors="np")
except ImportError as error:
    assert "bpe-engine[arrays]" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_batches_on_threads() -> None:
    batch = [f"text number {number} of many" * 9 for number in range(3000)]
    expected = TokenBatch.from_lists(GPT2.encode_batch(batch))
    for num_threads in (1, 2, None):
        rows = PLAIN(batch, num_threads=num_threads)
        assert TokenBatch.from_lists(rows.input_ids) == expected


def test_words_that_change_after_the_call() -> None:
    for words in (["hello", "world"], [["hello", "world"]]):
        encoded = PLAIN(words, is_split_into_words=True)
        (words if words[0] == "hello" else words[0]).append("more words")
        assert encoded.word_ids(0) == [0, 1]
