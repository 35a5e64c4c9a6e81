"""Strategies for components of tokenizer files, as `tokenizers` makes them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from charsmaps import charsmap
from hypothesis import strategies as st
from seeds import seeded
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from bpe_engine.hf.component import component_of_tokenizers

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
SPACED = ["the", "▁the", "▁he", "ing", "▁hello", "▁▁▁", "▁", "é", "日本", "12", "e\u0301", "o▁w"]
WORDS = ["the", "he", "ing", "hello", "world", "  ", "\n", "é", "日", "本", "12", "'s", "x", "Ab"]

flags = st.booleans()


def model(
    seed: int,
    ignore_merges: bool,
    permuted: bool,
    tokens: int,
    lacking: str = "",
    unk_token: str | None = None,
    fuse_unk: bool = False,
    over_characters: bool = False,
    byte_tokens: int = 0,
) -> models.BPE:
    """Returns a BPE model that has several merges for the same token, and unreachable merges.

    The characters in `lacking` are not tokens. A vocabulary over characters has byte tokens for the
    last `byte_tokens` byte values.
    """
    rng = seeded("model", seed)
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    likely = WORDS
    if over_characters:
        alphabet = set("".join(SPACED)) | set("abc\n \u0301")
        likely = SPACED
    else:
        text = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        likely = [text.pre_tokenize_str(word)[0][0] for word in WORDS]
    vocab = sorted(alphabet - set(lacking))
    merges = []
    for _ in range(tokens):
        if rng.random() < 0.7:
            word = rng.choice(likely)
            cut = rng.randrange(1, len(word)) if len(word) > 1 else 0
            left, right = word[:cut], word[cut:]
            if left not in vocab or right not in vocab or not left:
                start = rng.randrange(max(1, len(word) - 1))
                left, right = word[start : start + 1], word[start + 1 : start + 2]
        else:
            left, right = rng.choice(vocab), rng.choice(vocab)
        if not left or not right or len(left + right) > 12 or (left, right) in merges:
            continue
        if left not in vocab or right not in vocab:
            continue
        if left + right not in vocab:
            vocab.append(left + right)
        merges.append((left, right))
    vocab += [word for word in likely if word not in vocab and rng.random() < 0.3]
    vocab += ["<in the vocabulary>", "<u>"]
    vocab += [f"<0x{byte:02X}>" for byte in range(256 - byte_tokens, 256)]
    ids = list(range(len(vocab)))
    if permuted:
        rng.shuffle(ids)
    return models.BPE(
        vocab=dict(zip(vocab, ids)),
        merges=merges,
        ignore_merges=ignore_merges,
        unk_token=unk_token if unk_token in vocab else None,
        fuse_unk=fuse_unk,
        byte_fallback=byte_tokens > 0,
    )


PATTERNS: list[Any] = [
    *map(Regex, (CL100K, r"\p{N}{1,3}", "[0-9][0-9][0-9]", r"\s+", "(?=h)", r"[^\n]+|\n")),
    *("l", " ", "日"),
]
REPLACEMENTS: list[tuple[Any, str]] = [
    *(("l", "LL"), ("日", ""), (" ", "▁")),
    *((Regex(r"\s+"), " "), (Regex("[aeiou]"), "é")),
]
#: Rules that lengthen, shorten or remove text, or match part of a grapheme cluster.
CHARSMAP = charsmap(
    {
        "\r": " ",
        "½": "1\u20442",
        "e\u0301": "é",
        "İ": "i\u0307",
        "ﬁ": "fi",
        "\u00ad": "",
        "日": "日本語",
        "l": "",
        "H": "hH",
        "語\u0301": "x",
        "\u1100\u1161\u11a8": "각",
    }
)
SCHEMES = ["first", "never", "always"]
CLS, SEP = ("[CLS]", 4), ("[SEP]", 5)

#: For each kind of component, the field that lists the parts of a sequence, and functions that make
#: a part from a random number generator.
PARTS: dict[str, tuple[str, list[Callable[[random.Random], Any]]]] = {
    "normalizer": (
        "normalizers",
        [
            lambda rng: getattr(normalizers, rng.choice(["NFC", "NFD", "NFKC", "NFKD"]))(),
            lambda rng: normalizers.Lowercase(),
            lambda rng: normalizers.Replace(*rng.choice(REPLACEMENTS)),
            lambda rng: normalizers.Prepend(rng.choice(["▁", "x y", " "])),
            lambda rng: normalizers.Strip(left=flip(rng), right=flip(rng)),
            lambda rng: normalizers.StripAccents(),
            lambda rng: normalizers.Nmt(),
            lambda rng: normalizers.ByteLevel(),
            lambda rng: normalizers.Precompiled(CHARSMAP),
            *2
            * [
                lambda rng: normalizers.BertNormalizer(
                    flip(rng), flip(rng), rng.choice([None, False, True]), flip(rng)
                )
            ],
        ],
    ),
    "pre_tokenizer": (
        "pretokenizers",
        [
            lambda rng: pre_tokenizers.Split(
                rng.choice(PATTERNS), rng.choice(BEHAVIORS), flip(rng)
            ),
            lambda rng: pre_tokenizers.Digits(flip(rng)),
            lambda rng: pre_tokenizers.Punctuation(rng.choice(BEHAVIORS)),
            lambda rng: pre_tokenizers.Whitespace(),
            lambda rng: pre_tokenizers.WhitespaceSplit(),
            lambda rng: pre_tokenizers.BertPreTokenizer(),
            lambda rng: pre_tokenizers.CharDelimiterSplit(rng.choice("l 日é")),
            lambda rng: pre_tokenizers.UnicodeScripts(),
            lambda rng: pre_tokenizers.FixedLength(rng.randrange(1, 8)),
            *2
            * [
                lambda rng: pre_tokenizers.Metaspace(
                    rng.choice("▁▁_hĠé "), rng.choice(SCHEMES), flip(rng)
                ),
                lambda rng: pre_tokenizers.ByteLevel(flip(rng), flip(rng), flip(rng)),
            ],
        ],
    ),
    "post_processor": (
        "processors",
        [
            lambda rng: processors.ByteLevel(flip(rng), flip(rng), flip(rng)),
            lambda rng: processors.RobertaProcessing(
                ("</s>", 2), ("<s>", 1), trim_offsets=flip(rng), add_prefix_space=flip(rng)
            ),
            lambda rng: processors.BertProcessing(SEP, CLS),
            lambda rng: processors.TemplateProcessing(
                single="[CLS] $A:3 [SEP]:2",
                pair="[CLS] $A [SEP] $B:1 [SEP]:1 $A:0",
                special_tokens=[CLS, SEP],
            ),
        ],
    ),
    "decoder": (
        "decoders",
        [
            lambda rng: decoders.ByteLevel(),
            lambda rng: decoders.Replace(*rng.choice([("Ġ", " "), (Regex("[a-f]"), "<>")])),
            # `stop` is 0, because `tokenizers` can panic if `stop` is higher.
            lambda rng: decoders.Strip(rng.choice("hĠl"), rng.randrange(3), 0),
            lambda rng: decoders.Fuse(),
            lambda rng: decoders.ByteFallback(),
            lambda rng: decoders.WordPiece(rng.choice(["##", "h", ""]), flip(rng)),
            lambda rng: decoders.BPEDecoder(rng.choice(["</w>", "e", "lo", ""])),
            lambda rng: decoders.CTC(rng.choice(["<pad>", "l", ""]), rng.choice("|he"), flip(rng)),
            lambda rng: decoders.Metaspace(rng.choice("▁_h"), rng.choice(SCHEMES), flip(rng)),
        ],
    ),
}


def flip(rng: random.Random) -> bool:
    """Returns True or False."""
    return rng.random() < 0.5


def chain(kind: str, rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """Makes the JSON of a random part, or of nested sequences of random parts."""
    field, parts = PARTS[kind]
    if rng.random() < (0.3, 0.8, 1)[depth]:
        part: dict[str, Any] = json.loads(rng.choice(parts)(rng).__getstate__())
        return part
    inner = [chain(kind, rng, depth + 1) for _ in range(rng.randrange(5))]
    return {"type": "Sequence", field: inner}


def chains(kind: str) -> Any:
    """Returns a strategy for an optional component. Hypothesis chooses only a seed, because its own
    lists are mostly short and similar."""

    def made(seed: int) -> Any:
        rng = seeded(kind, seed)
        return component_of_tokenizers(kind, json.dumps(chain(kind, rng))) if seed % 8 else None

    return st.integers(0, 10**9).map(made)


normalizer_chains = chains("normalizer")
pre_tokenizer_chains = chains("pre_tokenizer")
processor_chains = chains("post_processor")
decoder_chains = chains("decoder")
contents = st.sampled_from(
    [
        "<a>",
        "<a><b>",
        "a",
        "hello",
        "HELLO",
        "  ",
        " x",
        "▁",
        "é",
        "e\u0301",
        "<s>",
        "lo",
        "日本",
        "_",
    ]
)
added_tokens = st.lists(
    st.builds(
        AddedToken,
        contents,
        single_word=flags,
        lstrip=flags,
        rstrip=flags,
        normalized=flags,
        special=flags,
    ),
    max_size=5,
)
PIECES = [
    *WORDS, *SPACED, " ", "<a>", "<b>", "<0xE2>", "語", "😀", "<s>", "HELLO", "e\u0301", "ﬁ", "İ", "½", "\u00ad",
    "\u0301\u0323", "\x01", "\r\n", "語\u0301", "\u0378", "\u3099\u0301", "각", "do not n't", "_", ".",
]  # fmt: skip
extra_texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
