"""Tests DeepSeek's pre-tokenizer, three consecutive splits, with merges that cross its cuts."""

from __future__ import annotations

import json

from hf_oracle import TEXTS, assert_same, both, tokenizers
from seeds import rounds, seeded

from vocab_tools.convert.pre_tokenizer import DEEPSEEK_IN_ONE, pre_tokenizer_of

#: Characters that the splits treat differently (also Japanese), or that no split mentions.
PARTS = [*"aZé\u03011٣ \n\t\u3000!.$—。中々龦のア・゙\u3099\u3097한\x00\x7f\u200d😀"]
PARTS += ["23", "  ", "\r\n", "foo", ".bar", "中文"]


def tokenizer(merged: list[str]) -> str:
    """Returns a tokenizer.json that merges each of these texts from left to right."""
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokens = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = []
    for text in merged:
        [(characters, _)] = byte_level.pre_tokenize_str(text)
        for end in range(2, len(characters) + 1):
            pair = (characters[: end - 1], characters[end - 1])
            if pair not in merges:
                merges.append(pair)
                tokens.append(characters[:end])
    ids = {token: id for id, token in enumerate(tokens)}
    spec = json.loads(tokenizers.Tokenizer(tokenizers.models.BPE(ids, merges)).to_str())
    return json.dumps({**spec, "pre_tokenizer": pre_tokenizer_of(DEEPSEEK_IN_ONE)})


def check(ours, theirs, seed: str, count: int) -> None:
    draw = seeded("deepseek", seed)
    for text in TEXTS:
        assert_same(ours.encode(text), theirs.encode(text), text)
    for _ in range(count):
        text = "".join(draw.choices(PARTS, k=draw.randint(0, 40)))
        assert_same(ours.encode(text), theirs.encode(text), text)


def test_merges_that_cross_the_splits_never_happen():
    merged = "ア・,・イ,中a,a中,1中, 1,  ,\n ,.a,!é,の゙,\x00a,!\n".split(",")
    draw = seeded("deepseek merges")
    for round in range(rounds(4)):
        ours, theirs = both(tokenizer(merged))
        assert_same(ours.encode("ア・イ"), theirs.encode("ア・イ"))
        check(ours, theirs, f"crossing {round}", 800)
        merged = ["".join(draw.choices(PARTS, k=draw.randint(2, 3))) for _ in range(40)]
