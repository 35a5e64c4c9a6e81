"""Strategies for the components of tokenizer files, made by `tokenizers`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from seeds import seeded
from tokenizers import (
    AddedToken,
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
SPACED = ["the", "▁the", "▁he", "ing", "▁hello", "▁▁▁", "▁", "é", "日本", "12", "e\u0301", "o▁w"]
WORDS = ["the", "he", "ing", "hello", "world", "  ", "\n", "é", "日", "本", "12", "'s", "x", "Ab"]

flags = st.booleans()
behaviors = st.sampled_from(BEHAVIORS)


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
    """Merges of any two tokens, several for one token among them, and some that never happen.

    The characters `lacking` are not tokens. A vocabulary over characters has tokens for the last
    `byte_tokens` bytes.
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


normalizer_parts = st.one_of(
    st.sampled_from([normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD()]),
    st.just(normalizers.Lowercase()),
    st.sampled_from(
        [
            normalizers.Replace("l", "LL"),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Replace("日", ""),
            normalizers.Replace(Regex("[aeiou]"), "é"),
            normalizers.Replace(" ", "▁"),
        ]
    ),
    st.sampled_from([normalizers.Prepend("▁"), normalizers.Prepend("x y")]),
    st.builds(normalizers.Strip, left=flags, right=flags),
)
normalizer_chains = st.one_of(
    st.none(),
    normalizer_parts,
    st.lists(normalizer_parts, max_size=3).map(normalizers.Sequence),
)
patterns = st.sampled_from(
    [
        Regex(CL100K),
        Regex(r"\p{N}{1,3}"),
        Regex("[0-9][0-9][0-9]"),
        Regex(r"\s+"),
        Regex("(?=h)"),
        Regex(r"[^\n]+|\n"),
        "l",
        " ",
        "日",
    ]
)
pre_tokenizer_parts = st.one_of(
    st.builds(pre_tokenizers.Split, patterns, behaviors, flags),
    st.builds(pre_tokenizers.Digits, flags),
    st.builds(pre_tokenizers.Punctuation, behaviors),
    st.sampled_from([pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit()]),
)
metaspaces = st.builds(
    pre_tokenizers.Metaspace,
    st.sampled_from(["▁", "_", "h"]),
    st.sampled_from(["first", "never", "always"]),
    flags,
)
character_chains = st.one_of(
    st.none(),
    metaspaces,
    pre_tokenizer_parts,
    st.lists(st.one_of(pre_tokenizer_parts, metaspaces), max_size=3).map(pre_tokenizers.Sequence),
)
byte_levels = st.builds(
    pre_tokenizers.ByteLevel, add_prefix_space=flags, trim_offsets=flags, use_regex=flags
)
pre_tokenizer_chains = st.one_of(
    byte_levels,
    st.tuples(
        st.lists(pre_tokenizer_parts, max_size=3),
        byte_levels,
        st.lists(pre_tokenizer_parts, max_size=1),
    ).map(lambda parts: pre_tokenizers.Sequence([*parts[0], parts[1], *parts[2]])),
)
processor_parts = st.one_of(
    st.builds(processors.ByteLevel, add_prefix_space=flags, trim_offsets=flags, use_regex=flags),
    st.builds(
        processors.RobertaProcessing,
        st.just(("</s>", 2)),
        st.just(("<s>", 1)),
        trim_offsets=flags,
        add_prefix_space=flags,
    ),
    st.just(processors.BertProcessing(("[SEP]", 5), ("[CLS]", 4))),
    st.just(
        processors.TemplateProcessing(
            single="[CLS] $A:3 [SEP]:2",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1 $A:0",
            special_tokens=[("[CLS]", 4), ("[SEP]", 5)],
        )
    ),
)
processor_chains = st.one_of(
    st.none(),
    processor_parts,
    st.tuples(
        st.builds(processors.ByteLevel, trim_offsets=flags, add_prefix_space=flags),
        processor_parts,
    ).map(lambda parts: processors.Sequence(list(parts))),
)
decoder_parts = st.one_of(
    st.just(decoders.ByteLevel()),
    st.sampled_from([decoders.Replace("Ġ", " "), decoders.Replace(Regex("[a-f]"), "<>")]),
    st.builds(decoders.Strip, st.sampled_from("hĠl"), st.integers(0, 2), st.integers(0, 0)),
    st.just(decoders.Fuse()),
    st.just(decoders.ByteFallback()),
    st.builds(
        decoders.Metaspace, st.just("▁"), st.sampled_from(["first", "never", "always"]), flags
    ),
)
decoder_chains = st.one_of(
    st.none(),
    decoder_parts,
    st.lists(decoder_parts, min_size=1, max_size=3).map(decoders.Sequence),
)
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
extra_texts = st.lists(
    st.sampled_from(
        [
            *WORDS,
            *SPACED,
            " ",
            "<a>",
            "<b>",
            "<0xE2>",
            "語",
            "😀",
            "<s>",
            "HELLO",
            "e\u0301",
            "ﬁ",
            "İ",
            "_",
            ".",
        ]
    ),
    max_size=12,
).map("".join)


def examples(count: int):
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
