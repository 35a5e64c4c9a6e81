"""Makes random models of every type: few characters, long pieces, overlapping prefixes, ties."""

from __future__ import annotations

import random
from typing import Any

from seeds import seeded
from tokenizers import models

#: Letters of one to four bytes, the space marks of pre-tokenizers, and parts of prefixes.
LETTERS = "aabbch#▁Ġé日本😀e\u0301 "
PREFIXES = ["##", "##", "#", "", "a", "▁", "日"]
UNKNOWN = ["[UNK]", "[UNK]", "a", "##a", "<none>"]
#: Scores that tie, whose sums round, or that are huge.
SCORES = [-1.0, -2.0, -3.0, 0.0, -0.1, -0.2, -0.30000000000000004, 1.5, -1e300, 1e300, -1e-9]


def word(rng: random.Random, most: int = 5) -> str:
    """Returns a word of up to `most` letters."""
    return "".join(rng.choices(LETTERS, k=rng.randrange(1, most + 1)))


def words(rng: random.Random, most: int = 40) -> list[str]:
    """Returns words, some of which are prefixes or concatenations of other words, and letters."""
    made = [word(rng) for _ in range(rng.randrange(most))]
    made += [some[: rng.randrange(1, len(some) + 1)] for some in made if rng.random() < 0.5]
    made += [some + other for some, other in zip(made, made[::-1]) if rng.random() < 0.2]
    made += [letter for letter in sorted(set(LETTERS)) if rng.random() < 0.7]
    if rng.random() < 0.1:
        made.append(word(rng, 2) * 60)
    return made


def ids(rng: random.Random, tokens: list[str]) -> dict[str, int]:
    """Assigns ids to tokens, often consecutive and in order."""
    tokens = list(dict.fromkeys(tokens))
    if rng.random() < 0.5:
        rng.shuffle(tokens)
    wide = len(tokens) * (1 if rng.random() < 0.7 else 3)
    return dict(zip(tokens, sorted(rng.sample(range(wide), len(tokens)))))


def word_level(rng: random.Random) -> models.WordLevel:
    tokens = words(rng) + ([] if rng.random() < 0.1 else ["[UNK]"])
    return models.WordLevel(ids(rng, tokens), unk_token=rng.choice(UNKNOWN))


def word_piece(rng: random.Random) -> models.WordPiece:
    prefix = rng.choice(PREFIXES)
    tokens = words(rng) + [prefix + some for some in words(rng)]
    tokens += [] if rng.random() < 0.1 else ["[UNK]"]
    most = rng.choice([100, 100, 5, 1, 0, 10**9])
    return models.WordPiece(
        ids(rng, tokens),
        unk_token=rng.choice(UNKNOWN),
        max_input_chars_per_word=most,
        continuing_subword_prefix=prefix,
    )


def unigram(rng: random.Random) -> models.Unigram:
    """Returns a Unigram model whose pieces may repeat and whose unknown token may be missing."""
    tokens = words(rng) + ["<unk>", "</s>"]
    tokens += [some for some in tokens if rng.random() < 0.05]
    has_bytes = rng.random() < 0.4
    if has_bytes:
        tokens += [f"<0x{byte:02X}>" for byte in range(rng.choice([0, 0, 128]), 256)]
    rng.shuffle(tokens)
    scores = SCORES if rng.random() < 0.5 else [rng.uniform(-9, 0) for _ in range(30)]
    vocab = [(some, rng.choice(scores)) for some in tokens]
    place = tokens.index("<unk>") if rng.random() < 0.8 else rng.randrange(len(tokens))
    return models.Unigram(vocab, None if rng.random() < 0.1 else place, has_bytes)


def bpe(rng: random.Random) -> models.BPE:
    """Returns a BPE model with affixes, an unknown token, byte tokens, and merges of any tokens."""
    prefix, suffix = rng.choice([None, "", *PREFIXES[:5]]), rng.choice([None, "", "</w>", "▁", "b"])
    letters = sorted(set(LETTERS))
    forms = [
        (before + letter + after)
        for letter in letters
        for before in {"", prefix or ""}
        for after in {"", suffix or ""}
    ]
    vocab = [form for form in forms if rng.random() < 0.8] + ["<u>"]
    if has_bytes := rng.random() < 0.4:
        vocab += [f"<0x{byte:02X}>" for byte in range(rng.choice([0, 128]), 256)]
    vocab = list(dict.fromkeys(vocab))
    merges = []
    for _ in range(rng.randrange(60)):
        left, right = rng.choice(vocab), rng.choice(vocab)
        if not right.startswith(prefix or "") or len(left + right) > 14:
            continue
        product = left + right[len(prefix or "") :]
        if product not in vocab:
            vocab.append(product)
        merges.append((left, right))
    fields = {
        "dropout": rng.choice([None, None, 0.0, 1.0]),
        "unk_token": rng.choice([None, "<u>", "<u>", "a", "<none>"]),
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": suffix,
        "fuse_unk": rng.random() < 0.5,
        "byte_fallback": has_bytes,
        "ignore_merges": rng.random() < 0.3,
    }
    fields = {name: value for name, value in fields.items() if value is not None}
    return models.BPE(vocab=ids(rng, vocab + words(rng)), merges=merges, **fields)


MODELS: dict[str, Any] = {
    "BPE": bpe,
    "WordLevel": word_level,
    "WordPiece": word_piece,
    "Unigram": unigram,
}


def model_of(kind: str, seed: int) -> Any:
    """Returns a random `tokenizers` model of this kind."""
    return MODELS[kind](seeded(f"model {kind}", seed))


def text_of(rng: random.Random) -> str:
    """Returns a text of letters, names of tokens and a few other characters."""
    parts = [*LETTERS, " ", " ", "x", "X", "\n", "</s>", "<0xE6>", "[UNK]", "<unk>", "\U0001f601"]
    return "".join(rng.choices(parts, k=rng.choice([0, 3, 8, 30, 120])))
