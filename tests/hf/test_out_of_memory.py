"""Tests that exhausted memory raises `MemoryError`, and never causes a panic, abort or hang."""

from __future__ import annotations

import sys

import pytest
from prepared import prepared as fixture_of
from prepared import with_room

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")

PREPARATION = """
import json, types
import numpy
from bpe_engine import _core, hf
from bpe_engine.read import byte_level
characters = sorted({byte_level.text_of(bytes([byte])) for byte in range(256)})
parts = ["abcdefghijklm", "nopqrstuvwxyz", "ABCDEFGHIJKLM", "NOPQRSTUVWXYZ"]
heads, vocab, merges = list(parts[0]), characters, []
for part in parts[1:]:
    merges += [[head, letter] for head in heads for letter in part]
    heads = [head + letter for head in heads for letter in part]
    vocab = vocab + heads
vocab = {token: id for id, token in enumerate(vocab)}
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
added = [{"id": len(vocab) + place, "content": f"<{place}>", "single_word": False,
          "lstrip": False, "rstrip": False, "normalized": False, "special": True}
         for place in range(3000)]
ours = hf.Tokenizer(json.dumps({
    "version": "1.0", "added_tokens": added, "pre_tokenizer": level, "post_processor": level,
    "decoder": level, "model": {"type": "BPE", "vocab": vocab, "merges": merges},
}))
text = "Ein schöner anAN, 東京 cpCP e\\u0301 <7> " * 40_000
plain = text.replace("<7> ", "")
many = [f"anAN {place} <3> of many" for place in range(60_000)]
[ids] = ours._encode_each([text], 1, allowed_special="all", disallowed_special=())
rows = [ids[:20]] * 40_000
encoding = ours.encode(text)
encoding.offsets
normal = json.loads(ours.to_str())
normal["normalizer"] = {"type": "NFC"}
normal = hf.Tokenizer(json.dumps(normal))
normal.encode_with_offsets(text, allowed_special="all")
grown = _core.ConversationState(ours, "all", ())
grown.append_text(plain)
other = hf.Tokenizer.from_str(ours.to_str())
other.normalizer = hf.normalizers.Replace(hf.Regex("[ab]"), "cd")
cuts = [hf.pre_tokenizers.Punctuation(), hf.pre_tokenizers.ByteLevel(False)]
other.pre_tokenizer = hf.pre_tokenizers.Sequence(cuts)
def made(**fields):
    named = dict(is_pretokenized=False, add_special_tokens=True, truncation=None, padding=None,
                 overflow=False, num_threads=1, allowed_special="all", disallowed_special=())
    return _core.RowEncoder(ours, **{**named, **fields})
wide = types.SimpleNamespace(length=500, direction="left", pad_to_multiple_of=None, pad_id=0,
                             pad_type_id=0, pad_token="x")
"""

#: Names in the stub to calls that allocate memory for texts, ids, matrices or files.
CALLS = {
    "Pipeline.encode_to_numpy": "ours.encode_to_numpy(plain, num_threads=2)",
    "Pipeline.encode_with_offsets": "normal.encode_with_offsets(text, allowed_special='all')",
    "Pipeline._encode_each": "ours._encode_each(many, 2)",
    "Pipeline._encode_ragged": "ours._encode_ragged([many], 2)",
    "Pipeline._count_each": "ours._count_each([many], 2)",
    "Pipeline.decode_bytes": "ours.decode_bytes(ids)",
    "Pipeline._decode_batch": "ours._decode_batch(rows, 'replace', 2)",
    "RowEncoder.encode": "made().encode(many, False)",
    "EncodedRows.fields, as matrices": "made(padding=wide).encode(many[:20_000], False).fields(('input_ids',), True, True)",
    "ConversationState.update_text": "_core.ConversationState(ours, 'all', ()).update_text(plain)",
    "ConversationState.append_text": "_core.ConversationState(ours, 'all', ()).append_text(plain)",
    "ConversationState.append_text, of a branch": "(grown.fork(), grown.append_text('a'))",
    "HfEncoding.pad": "encoding.pad(1_000_000)",
    "HfEncoding.merge": "hf.Encoding.merge([encoding, encoding])",
    "Pipeline._read_json": "hf.Tokenizer.from_str(ours.to_str())",
    "Tokenizer.encode": "ours.encode(text)",
    "Tokenizer.encode, added tokens": "ours.encode('<7>' * 3_000_000)",
    "Tokenizer.encode, words": "ours.encode(['ab'] * 1_000_000, is_pretokenized=True)",
    "Tokenizer.encode, components": "other.encode(plain)",
    "HfEncoding.sequence_ids": "encoding.sequence_ids",
    "HfEncoding.token_to_chars": "ours.encode(plain).token_to_chars(3)",
    "Tokenizer.encode_batch": "ours.encode_batch(many)",
    "Tokenizer.encode_batch_fast": "ours.encode_batch_fast(many)",
    "Tokenizer.decode": "ours.decode(ids)",
    "Tokenizer.decode_batch": "ours.decode_batch(rows)",
    "Tokenizer.add_tokens": "ours.add_tokens([f'new {place}' for place in range(20_000)])",
}


prepared = fixture_of(PREPARATION)


@pytest.mark.parametrize("name", CALLS)
def test_calls_without_memory_raise_memory_error(prepared, name):
    outputs = []
    for kilobytes in (4_000, 9_000, 20_000, 45_000, 100_000, 220_000):
        run = prepared.run(with_room(CALLS[name], kilobytes))
        assert run.status == 0, f"{kilobytes} kB: {run.status} {run.output}"
        outputs.append(run.output)
        assert run.output in ("MemoryError\n", "done\n"), run.output
        if run.output == "done\n":
            break
