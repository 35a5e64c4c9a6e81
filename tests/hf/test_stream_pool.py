"""Compares stream pools on tokenizer files with `DecodeStream` in `tokenizers`."""

from __future__ import annotations

import json

import pytest
from hf_oracle import FILES, TEXTS, tokenizer_path, tokenizers
from seeds import seeded

import bpe_engine
from bpe_engine import hf


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_texts_are_those_of_a_decode_stream(name, skip):
    path = tokenizer_path(name)
    ours, theirs = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    special = [token for token in theirs.get_added_tokens_decoder() if token < 60_000][:3]
    rng = seeded("stream", 1)
    rows = []
    for _ in range(32):
        text = "".join(rng.choices([*TEXTS, "😀", " the"], k=6))
        ids = theirs.encode(text, add_special_tokens=False).ids
        for id in special:
            ids.insert(rng.randrange(len(ids) + 1), id)
        rows.append(ids)
    pool = bpe_engine.StreamPool(ours)
    slots = [pool.open(skip_special_tokens=skip) for _ in rows]
    streams = [tokenizers.decoders.DecodeStream(skip_special_tokens=skip) for _ in rows]
    so_far, expected = [""] * len(rows), [""] * len(rows)
    compared = 0
    for place in range(max(map(len, rows))):
        open_rows = [row for row, ids in enumerate(rows) if place < len(ids)]
        texts, _ = pool.step(
            [slots[row] for row in open_rows], [rows[row][place] for row in open_rows]
        )
        for row, text in zip(open_rows, texts, strict=True):
            so_far[row] += text
            new = streams[row].step(theirs, rows[row][place])
            if new is not None:
                expected[row] += new
                # `DecodeStream` waits for the end of a character, even with text before it.
                assert so_far[row] == expected[row]
                compared += 1
            else:
                assert so_far[row].startswith(expected[row])
    assert compared > 1000
    for row, ids in enumerate(rows):
        so_far[row] += pool.close(slots[row])
        assert so_far[row] == theirs.decode(ids, skip_special_tokens=skip)


def test_ids_without_a_token_are_skipped():
    ours = hf.Tokenizer.from_file(tokenizer_path("gpt2"))
    pool = bpe_engine.StreamPool(ours)
    slot = pool.open([999_999])
    assert pool.step([slot], [[31373, 999_999, 995]])[0] == ["hello world"]


def test_a_prompt_ends_inside_a_character():
    path = tokenizer_path("gpt2")
    ours, theirs = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    ids = theirs.encode("Hi 根本").ids
    for cut in range(len(ids)):
        pool = bpe_engine.StreamPool(ours)
        slot = pool.open(prompt_ids=ids[:cut])
        complete = theirs.decode(ids[:cut]).rstrip("\ufffd")
        assert pool.step([slot], [ids[cut:]])[0] == ["Hi 根本"[len(complete) :]]


def test_a_pool_keeps_the_tokenizer_as_it_was():
    ours = hf.Tokenizer.from_file(tokenizer_path("gpt2"))
    pool, table = bpe_engine.StreamPool(ours), bpe_engine.TokenTable(ours)
    slot = pool.open()
    id = len(table)
    ours.add_tokens(["<new>"])
    assert pool.step([slot], [id])[0] == [""]
    assert len(table) == id and len(bpe_engine.TokenTable(ours)) == id + 1
    assert bpe_engine.TokenTable(ours)[id] == b"<new>"
    later = bpe_engine.StreamPool(ours)
    assert later.step([later.open()], [id])[0] == ["<new>"]


DECODERS = [
    tokenizers.decoders.WordPiece(),
    tokenizers.decoders.WordPiece("h", False),
    tokenizers.decoders.Metaspace(),
    tokenizers.decoders.Metaspace("h", "never"),
    tokenizers.decoders.Sequence(
        [tokenizers.decoders.Replace("Ġ", "▁"), tokenizers.decoders.Metaspace()]
    ),
    None,
]


@pytest.mark.parametrize("decoder", DECODERS, ids=repr)
@pytest.mark.parametrize("skip", [False, True])
def test_decoders_that_change_the_first_token_only(decoder, skip):
    words = ["▁the", "##ing", "the", "▁", "h", "do not", " n't", "Ġx", "日", ".", "▁日"]
    contents = {"model": {"vocab": {word: id for id, word in enumerate(words)}, "merges": []}}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(contents))
    theirs.add_special_tokens(["[CLS]"])
    if decoder is not None:
        theirs.decoder = decoder
    ours = hf.Tokenizer.from_str(theirs.to_str())
    rng = seeded("first", 1)
    for _ in range(100):
        prompt, ids = (rng.choices(range(len(words) + 3), k=rng.randrange(8)) for _ in range(2))
        pool, text = bpe_engine.StreamPool(ours), ""
        slot = pool.open(prompt, skip_special_tokens=skip)
        for id in ids:
            text += pool.step([slot], [id])[0][0]
        text += pool.close(slot)
        before, whole = (theirs.decode(part, skip) for part in (prompt, prompt + ids))
        assert before + text == whole, (prompt, ids)
        assert ours.decode(ids, skip) == theirs.decode(ids, skip)
