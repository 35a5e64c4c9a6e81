"""Compares the look-up of chunks between spaces with `tokenizers`, on texts with few boundaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from charsmaps import charsmap
from hf_models import model_of
from hf_oracle import SHARED, assert_same, both, tokenizers
from seeds import rounds, seeded
from tokenizers import Regex, models, normalizers, pre_tokenizers

from bpe_engine import hf

#: SentencePiece's nmt_nfkc rules, and rules that match clusters, remove or lengthen text.
RULES = {
    "\t": " ",
    "\n": " ",
    "\r": " ",
    "\u00a0": " ",
    "\u3000": " ",
    "\u200b": " ",
    "\u2581": " ",
    "\u00ad": "",
    "\u200d": "",
    "\uff0c": ",",
    "\uff76": "\u30ab",
    "\uff76\uff9e": "\u30ac",
    "e\u0301": "\u00e9",
    "\u00a8": " \u0308",
    " \u0301": "x",
    "\u00bd": "1\u20442",
    "H": "h",
}
CHARSMAP = normalizers.Precompiled(charsmap(RULES))
#: A charsmap that removes or replaces whitespace.
ODD = normalizers.Precompiled(charsmap({"\n": "n", "\t": "", "\u00a0": " ", "a": "", "b": "b "}))
QUOTES = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
SPACES = normalizers.Replace(Regex(" {2,}"), " ")

NORMALIZERS = {
    "none": None,
    "bert": normalizers.BertNormalizer(),
    "bert, cased": normalizers.BertNormalizer(True, True, None, False),
    "bert, unclean": normalizers.BertNormalizer(False, False, True, True),
    "precompiled": CHARSMAP,
    "odd": ODD,
    "line ends": normalizers.Precompiled(charsmap({"\r\n": "b", "\t": " "})),
    "nfc": normalizers.NFC(),
    "nmt": normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()]),
    "albert": normalizers.Sequence(
        [
            *QUOTES,
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            CHARSMAP,
            SPACES,
        ]
    ),
    "xlnet": normalizers.Sequence(
        [*QUOTES, normalizers.NFKD(), normalizers.StripAccents(), CHARSMAP]
    ),
    "converted": normalizers.Sequence(
        [CHARSMAP, normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), "▁")]
    ),
    "rows, then rules": normalizers.Sequence([normalizers.Replace(Regex(r"\s+"), " "), CHARSMAP]),
    "stripped": normalizers.Sequence([CHARSMAP, normalizers.Strip(), SPACES]),
    "odd, rows": normalizers.Sequence([ODD, SPACES]),
    "deleting": normalizers.Sequence([normalizers.Replace("a", ""), CHARSMAP]),
    "nmt, rows": normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), SPACES]),
    "nfkd": normalizers.NFKD(),
    "nmt, moved": normalizers.Sequence(
        [normalizers.Nmt(), normalizers.Replace("ab", "a "), SPACES]
    ),
    "nmt, removed": normalizers.Sequence(
        [normalizers.Nmt(), normalizers.Replace("ab", ""), normalizers.Strip(True, False)]
    ),
    "twice, rows": normalizers.Sequence(
        [
            normalizers.BertNormalizer(),
            normalizers.BertNormalizer(),
            normalizers.Replace(Regex(" {2,}"), "▁"),
        ]
    ),
    "clip": normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    ),
}
METASPACES = [
    pre_tokenizers.Metaspace("▁", scheme, split)
    for scheme in ("always", "never", "first")
    for split in (True, False)
]
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
PRE_TOKENIZERS = [
    pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(CLIP), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    ),
    pre_tokenizers.BertPreTokenizer(),
    pre_tokenizers.WhitespaceSplit(),
    pre_tokenizers.Whitespace(),
    pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(True)]),
    *METASPACES,
    *(
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
        for metaspace in METASPACES[:4]
    ),
    pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), METASPACES[0]]),
    pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("h")]),
]

WORDS = ["a", "b", "ab", "abc", "H", "hh", "#", "日本", "e\u0301", "é", "c", "ba", "```", "''", "'"]
EDGES = [
    *("\u0301", "\u0308\u0301", "\u200d", "\ufe0f", "\u0600", "\u0903", "\u093f", "\u1100", "\u1161"),
    *("\u00a0", "\u3000", "\u2003", "\u200b", "\u2581", "\u00ad", "\x00", "\x0b", "\x1c", "\x85"),
    *("\uff76\uff9e", "\uff76", "\uff9e", "\u00a8", "\u00bd", "\uff0c", "\u3002", "😀", "👩\u200d👩"),
    *("\u203e", "\u2017", "\U0001f1e9", "\U0001f3fb", ",", ".", "-", "_", "\ufeff", "\ufffd", "\u4dc0", "\u3400", "中", "각"),
]  # fmt: skip
GAPS = [" ", " ", " ", "  ", "\n", "\r\n", "\t", " \t", "\n\n", "\r", "\u2028"]


def text_of(rng) -> str:
    parts = [
        rng.choice(rng.choices([WORDS, EDGES, GAPS], [4, 3, 4])[0])
        for _ in range(rng.choice([0, 1, 3, 8, 40]))
    ]
    return "".join(parts) + rng.choice(["", "", " ", "\n", "x" * 200])


def ids_of(tokenizer, text):
    """Returns the ids of a text; None if the model lacks an unknown token for it."""
    try:
        return tokenizer.encode(text, add_special_tokens=False).ids
    except Exception as error:
        assert "unk" in str(error).lower(), error
        return None


def check(ours: hf.Tokenizer, theirs, texts) -> None:
    expected = [ids_of(theirs, text) for text in texts]
    for caching in (True, True, False):
        ours.set_caching(caching)
        for text, ids in zip(texts, expected):
            assert ids_of(ours, text) == ids, text
    ours.set_caching(True)
    known = [(text, ids) for text, ids in zip(texts, expected) if ids is not None]
    rows = ours.encode_batch([text for text, _ in known], add_special_tokens=False)
    assert [row.ids for row in rows] == [ids for _, ids in known]
    joined = " ".join(text for text, _ in known)
    whole = ids_of(theirs, joined)
    assert ids_of(ours, joined) == whole
    for tokenizer in (ours, theirs):
        tokenizer.enable_truncation(3)
    for text, _ in known[-2:] + [(joined, whole)]:
        assert ids_of(ours, text) == ids_of(theirs, text), text
    for tokenizer in (ours, theirs):
        tokenizer.no_truncation()


def exact_unigram(seed: int):
    """Returns a model whose sums of scores are exact and often tie."""
    state = json.loads(model_of("Unigram", seed).__getstate__())
    rng = seeded("exact", seed)
    vocab = [(token, rng.choice([-1.0, -1.5, -2.0, -2.25, -4.0])) for token, _ in state["vocab"]]
    vocab += [(token, rng.choice([-1.0, -3.0])) for token in ".,-#'_(" if rng.random() < 0.7]
    vocab += [(token, -2.0) for token in ["a.", ".b", "日,", ",日", "▁(", "é-", ".."]]
    return models.Unigram(vocab, state["unk_id"], state.get("byte_fallback", False))


def tokenizer_of(kind: str, seed: int, normalizer, pre_tokenizer):
    is_exact = kind == "Unigram, exact"
    made = tokenizers.Tokenizer(exact_unigram(seed) if is_exact else model_of(kind, seed))
    if normalizer is not None:
        made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizer
    return both(made.to_str())


#: Parts of names that are searched for in normalized text, and characters that normalize to them.
NAMED = [
    "<|A|>", "<|a|>", "<|\u00c1|>", "<", "|a|>", "\uff1c|A|>", "\u226e|a|>", "<\u0338|a|>", "<|a\u0338|>",
    "a  <|a", "a-  a", "<\u00ad|a|>", "<|\u200d" "a|>", "<|a|\u226f", "a-b", "-", "b<|a|>b", "<|a|><|A|>", "< |a|>", "=\u0338", "<|a \u0301|>",
    "<=\u0338a", "<=a", "<=\x01\u0338a", "<\u2260a", "<", "AB>", "b>", "<|\u0301", "<b='a'>", "</a>", "a<", "<\x01|a|>",
]  # fmt: skip
NAMES = "<|A|> a-b \u226e|a =a <|ax|> <\u2260a ab> < \u2581<|a a-\u2581a".split()


@pytest.mark.parametrize("name", NORMALIZERS)
@pytest.mark.parametrize("kind", ["WordPiece", "Unigram", "Unigram, exact", "WordLevel", "BPE"])
@pytest.mark.parametrize("seed", range(rounds(4)))
def test_chunks_in_every_pipeline(kind, name, seed):
    """Tests without added tokens, then with names that are searched for in normalized text."""
    for place, pre_tokenizer in enumerate(PRE_TOKENIZERS):
        pair = tokenizer_of(kind, 100 * seed + place, NORMALIZERS[name], pre_tokenizer)
        rng = seeded(f"chunks {kind} {name} {seed}", place)
        check(*pair, [text_of(rng) for _ in range(rounds(40))])
        names = rng.sample(NAMES, k=rng.randrange(1, 6))
        for tokenizer, package in zip(pair, (hf, tokenizers)):
            tokenizer.add_tokens([package.AddedToken(it, normalized=True) for it in names])
        texts = []
        for _ in range(rounds(40)):
            parts = text_of(rng), *rng.choices(NAMED, k=rng.choice([0, 0, 1, 3])), text_of(rng)
            texts.append("".join(rng.sample(parts, len(parts))))
        check(*pair, texts)


def long_words(seed: int) -> models.BPE:
    """Returns a BPE model over few letters, often with a suffix, with merges mostly in id order."""
    rng = seeded("long words", seed)
    suffix = rng.choice(["</w>", "</w>", "", "b"])
    letters = rng.choice(["ab", "abc", "abcde"])
    single = [*letters, *(letter + suffix for letter in letters)]
    tokens, merges = list(dict.fromkeys(single)), []
    for _ in range(rng.randrange(40)):
        left, right = rng.choice(tokens), rng.choice(tokens)
        is_end = suffix and left.endswith(suffix)
        if not is_end and left + right not in tokens and len(left + right) < 24:
            merges.append((left, right))
            tokens.append(left + right)
    unknown = rng.choice([None, "[UNK]", tokens[-1]])
    tokens = list(dict.fromkeys([*tokens, "[UNK]"]))
    if merges and rng.random() < 0.3:
        # A merge out of id order, or two merges for a token.
        place = rng.randrange(len(merges))
        left, right = merges[place]
        cut = rng.randrange(1, len(left + right))
        parts = (left + right)[:cut], (left + right)[cut:]
        if set(parts) <= set(tokens):
            merges.insert(rng.randrange(len(merges) + 1), parts)
        else:
            merges.append(merges.pop(place))
    options = {"unk_token": unknown} if unknown else {}
    options |= {"end_of_word_suffix": suffix} if suffix else {}
    vocabulary = {token: id for id, token in enumerate(tokens, rng.choice([0, 7]))}
    return models.BPE(vocabulary, merges, fuse_unk=rng.random() < 0.5, **options)


def test_long_words_by_their_list() -> None:
    """Merging uses windows if merges are in id order; the texts have unknown characters."""
    for seed in range(rounds(40)):
        theirs = tokenizers.Tokenizer(long_words(seed))
        theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        ours, theirs = both(theirs.to_str())
        rng = seeded("texts of long words", seed)
        texts = []
        for _ in range(12):
            units = rng.choices(["a", "b", "c", "d", "e", "ab", "aab", "x", "é☃"], k=3)
            runs = (rng.choice(units) * rng.choice([1, 1, 2, 30]) for _ in range(60))
            texts.append("".join(runs) + " ab")
        texts += [unit * 3000 for unit in ("a", "ab", "aabab")]
        for text in texts:
            assert_same(ours.encode(text), theirs.encode(text), text)
            assert ours.encode(text, add_special_tokens=False).ids == theirs.encode(text).ids
            assert ours.count(text) == len(theirs.encode(text).ids)


def real_files() -> list[Path]:
    return sorted((SHARED / "tokenizers" / "models").glob("*.json"))


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.stem)
def test_chunks_of_real_files(path):
    ours, theirs = both(path.read_text(encoding="utf-8"))
    rng = seeded(f"chunks {path.stem}", 0)
    check(ours, theirs, [text_of(rng) for _ in range(rounds(300))])
    for text in ("a" * 50_000, "word " * 20_000, "中" * 20_000, " " * 50_000, "é" * 20_000):
        assert ours.encode(text).ids == theirs.encode(text).ids
    for part, steps in {
        "normalizer": (None, normalizers.Lowercase(), normalizers.StripAccents()),
        "pre_tokenizer": (pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Whitespace(), None),
    }.items():
        for step in steps:  # Cached chunks are not used with other components.
            setattr(ours, part, step)
            text = "The naïve Word's café words\nThe naïve"
            assert_same(ours.encode(text), both(ours.to_str())[1].encode(text), (part, step))


def test_a_token_added_later_changes_chunks():
    ours, theirs = tokenizer_of("Unigram", 3, CHARSMAP, METASPACES[0])
    texts = ["ab ▁ab abc", "ab abc", " ab"]
    check(ours, theirs, texts)
    for tokenizer in (ours, theirs):
        tokenizer.add_tokens(["bc"])
    check(ours, theirs, texts)
    for tokenizer in (ours, theirs):
        tokenizer.normalizer = normalizers.Lowercase()
    check(ours, theirs, texts)
