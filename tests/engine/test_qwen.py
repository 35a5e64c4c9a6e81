"""Tests the Qwen encodings: worked examples, normalization, generations, model names."""

from __future__ import annotations

import functools
import unicodedata

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from oracles import QWEN_PATTERN, ranks

from bpe_engine import encoding_for_model, encoding_name_for_model, get_encoding

ENCODING = get_encoding("qwen")


def test_special_tokens_are_looked_for_after_normalizing():
    # NFC composes '<' and U+0338, so the name is no longer in the text.
    assert ENCODING.encode("<\u0338|endoftext|>") == ENCODING.encode("\u226e|endoftext|>")
    assert ENCODING.encode("\u212a") == ENCODING.encode("K")
    assert ENCODING.encode("e\u0301") == ENCODING.encode("\u00e9")


def test_every_character_as_python_normalizes_it():
    """Compares the core's NFC with Python's, for every character that is assigned in Python."""
    for start in range(0, 0x110000, 4096):
        characters = [
            chr(code)
            for code in range(start, start + 4096)
            if unicodedata.category(chr(code)) not in ("Cs", "Cn")
        ]
        for context in ["{}", "a{}", "{}\u0301", "\u0323{}", "\u1100{}\u11a8"]:
            text = "\n".join(context.format(character) for character in characters)
            expected = unicodedata.normalize("NFC", text)
            assert ENCODING.decode(ENCODING.encode(text)) == expected


# ---- Generations ----

# From the tokenizer_config.json files published with Qwen2.5 and Qwen3.
NAMES = """<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|>
<|box_end|> <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|>
<|video_pad|> <tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|>
<|repo_name|> <|file_sep|> <tool_response> </tool_response> <think> </think>""".split()
QWEN3 = {name: 151_643 + place for place, name in enumerate(NAMES)}
GENERATIONS = {"qwen2.5": dict(list(QWEN3.items())[:22]), "qwen3": QWEN3}

texts_with_names = st.lists(
    st.one_of(
        st.sampled_from([*GENERATIONS["qwen3"], "<|extra_0|>", "<|im_", "<think"]),
        st.text(max_size=12),
        st.sampled_from(["\n", "   ", "it's 2024", "根本", "e\u0301", "\u212a", "\ud800"]),
    ),
    max_size=8,
).map("".join)


@functools.cache
def with_tiktoken(name: str) -> tiktoken.Encoding:
    return tiktoken.Encoding(
        name,
        pat_str=QWEN_PATTERN,
        mergeable_ranks=ranks("qwen"),
        special_tokens=GENERATIONS[name],
    )


@pytest.mark.parametrize("name", GENERATIONS)
def test_special_tokens_of_a_generation(name):
    encoding = get_encoding(name)
    assert encoding._special_tokens == GENERATIONS[name]
    assert encoding.n_vocab == max(GENERATIONS[name].values()) + 1
    assert encoding._mergeable_ranks == ENCODING._mergeable_ranks
    with pytest.raises(ValueError, match="<tool_call>"):
        encoding.encode("a<tool_call>")


@pytest.mark.parametrize("name", GENERATIONS)
@given(text=texts_with_names)
def test_ids_of_a_generation(name, text):
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    normal = unicodedata.normalize("NFC", text)
    for allowed in ("all", set()):
        expected = with_tiktoken(name).encode(
            normal, allowed_special=allowed, disallowed_special=()
        )
        found = get_encoding(name).encode(text, allowed_special=allowed, disallowed_special=())
        assert found == expected


def test_a_name_that_normalization_removes():
    """Unlike `tokenizers`, we search for names after normalizing. Only U+0338 composes with '>'."""
    text = "<|im_end|>\u0338"
    assert get_encoding("qwen3").encode(text) == ENCODING.encode("<|im_end|\u226f")


@pytest.mark.parametrize(
    ("encoding", "models"),
    [
        (
            "qwen",
            "Qwen/Qwen-7B-Chat Qwen-7B qwen-1_8b-chat-int4 Qwen/Qwen-14B-Chat-Int8 Qwen-72B",
        ),
        (
            "qwen2.5",
            """Qwen/Qwen2.5-7B-Instruct qwen2.5-7b-instruct Qwen2.5-0.5B
            Qwen2.5-Coder-32B-Instruct-GPTQ-Int8 Qwen/Qwen2.5-Math-72B Qwen2.5-VL-7B-Instruct
            Qwen2.5-14B-Instruct-1M QwQ-32B-Preview""",
        ),
        (
            "qwen3",
            """Qwen/Qwen3-8B qwen3-0.6b-base Qwen3-30B-A3B-Instruct-2507-FP8 QwQ-32B
            Qwen/QwQ-32B-AWQ Qwen3-Coder-480B-A35B-Instruct Qwen3-Next-80B-A3B-Thinking
            Qwen/Qwen3-Embedding-0.6B Qwen3-VL-235B-A22B-Instruct""",
        ),
    ],
)
def test_models(encoding, models):
    for model in models.split():
        assert encoding_name_for_model(model) == encoding, model
    assert encoding_for_model(model) is get_encoding(encoding)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("Qwen/Qwen-VL-Chat", "more special tokens than qwen"),
        ("Qwen/Qwen1.5-7B-Chat", "its special tokens are <|endoftext|>, <|im_start|>"),
        ("qwen2-7b-instruct", "its special tokens are <|endoftext|>, <|im_start|>"),
        ("Qwen2-VL-7B-Instruct", "fewer special tokens than qwen2.5"),
        ("Qwen2.5-Omni-7B", "other special tokens than qwen2.5"),
        ("Qwen2.5-Math-PRM-7B", "other special tokens than qwen2.5"),
        ("Qwen3-Omni-30B-A3B-Instruct", "more special tokens than qwen3"),
        ("Qwen/Qwen3.5-4B", "its vocabulary is another"),
        ("CodeQwen1.5-7B", "its vocabulary is another"),
    ],
)
def test_models_without_an_encoding(model, reason):
    with pytest.raises(KeyError) as error:
        encoding_name_for_model(model)
    message = error.value.args[0]
    assert repr(model) in message and reason in message and "tokenizer.json" in message


@pytest.mark.parametrize("model", ["qwen-max", "other/Qwen3-8B", "myqwen3-8b", "qwen3-", "qwen"])
def test_other_models(model):
    with pytest.raises(KeyError, match="the encoding of the model"):
        encoding_name_for_model(model)
