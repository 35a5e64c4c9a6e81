"""Calls of the native module without enough memory raise `MemoryError`: no panic, abort or hang."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prepared import Prepared

import bpe_engine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")

PREPARATION = """
import base64, contextlib, json, pickle, resource, types
import numpy
import bpe_engine
from bpe_engine import _core, byte_level, hf
from bpe_engine.prompt import special, trusted, untrusted
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
engine = ours._native_engine
unigram = hf.Tokenizer(json.dumps({
    "version": "1.0", "added_tokens": [], "pre_tokenizer": level, "decoder": level,
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [[token, -1.0] for token in vocab]},
}))
core = bpe_engine.get_encoding("gpt2")._core_bpe
text = "Ein schöner anAN, 東京 cpCP e\\u0301 <7> " * 40_000
many = [f"anAN {place} <3> of many" for place in range(60_000)]
ids = engine.encode(text, "all", ())
rows = [ids[:20]] * 40_000
encoding = ours.encode(text)
encoding.offsets
ranks = core.mergeable_ranks()
lines = b"".join(b"%s %d\\n" % (base64.b64encode(token), id) for token, id in ranks.items())
segments = [untrusted(text), trusted("<1>"), special("<2>")] * 2
core.encode_ordinary(text)
table = _core.TokenTable(engine)
splits = numpy.arange(0, len(ids) // 20 + 1, dtype=numpy.int64) * 20
columns = numpy.asarray(ids, dtype=numpy.uint32)
trie, healed = _core.TokenTrie(engine), _core.Healed(engine, text, "all", ())
mask = numpy.zeros(trie.words(), numpy.int32)
grown = _core.ConversationState(engine, "all", ())
grown.append_text(text)
def made(**fields):
    named = dict(is_pretokenized=False, add_special_tokens=True, truncation=None, padding=None,
                 overflow=False, num_threads=1, allowed_special="all", disallowed_special=())
    return _core.RowEncoder(ours, **{**named, **fields})
few = made().encode(many[:20_000], True)
flat = made().encode(many[:20_000], False)
wide = types.SimpleNamespace(length=500, direction="left", pad_to_multiple_of=None, pad_id=0,
                             pad_type_id=0, pad_token="x")
processor, normalizer = json.dumps(level), json.dumps({"type": "NFC"})
"""

SCARCE = """
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
limit = used + (KILOBYTES << 10)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    result = CALL
except MemoryError:
    print("MemoryError")
else:
    print("done")
"""

#: By the name in the stub, a call that takes memory for its input or for all of a vocabulary.
CALLS = {
    "Engine.encode": "engine.encode(text, 'all', ())",
    "Engine.encode_to_numpy": "engine.encode_to_numpy(text, 2, 'all', ())",
    "Engine.encode_batch": "engine.encode_batch(many, 2, 'all', ())",
    "Engine.encode_ragged": "engine.encode_ragged([many], 2, 'all', ())",
    "Engine.encode_with_offsets": "engine.encode_with_offsets(text, 'all', ())",
    "Engine.count": "engine.count(text, None, 'all', ())",
    "Engine.truncate": "engine.truncate(text, 10**6, False, 'all', ())",
    "Engine.chunk": "engine.chunk(text, 10, 2, 'all', ())",
    "Engine.find_special": "engine.find_special(text)",
    "Engine.is_canonical": "engine.is_canonical(ids)",
    "Engine.decode": "engine.decode(ids, 'replace')",
    "Engine.decode_bytes": "engine.decode_bytes(ids)",
    "Engine.decode_tokens_bytes": "engine.decode_tokens_bytes(ids)",
    "Engine.decode_with_offsets": "engine.decode_with_offsets(ids)",
    "Engine.decode_with_starts": "engine.decode_with_starts(ids)",
    "Engine.decode_shown": "engine.decode_shown(ids, True, 0)",
    "Engine.settled": "engine.settled(ids)",
    "Engine.decode_batch": "engine.decode_batch(rows, 'replace', 2)",
    "Engine.decode_bytes_batch": "engine.decode_bytes_batch(rows, 2)",
    "Engine.decode_ragged": "engine.decode_ragged(columns, splits, 'replace', 2)",
    "CoreBPE.__new__": "_core.CoreBPE(ranks, {}, r'\\\\w+')",
    "CoreBPE.from_rank_files": "_core.CoreBPE.from_rank_files([('a', lines)], {}, r'.')",
    "CoreBPE.encode_ordinary": "core.encode_ordinary(text)",
    "CoreBPE.encode_to_tiktoken_buffer": "core.encode_to_tiktoken_buffer(text, set(), ())",
    "CoreBPE.encode_with_unstable": "core.encode_with_unstable(text, set(), ())",
    "CoreBPE.encode_single_piece": "core.encode_single_piece(text)",
    "CoreBPE._encode_bytes": "core._encode_bytes(text.encode())",
    "CoreBPE.split": "core.split(text, set(), ())",
    "CoreBPE.token_byte_values": "core.token_byte_values()",
    "CoreBPE.mergeable_ranks": "core.mergeable_ranks()",
    "TokenTable.ids": "table.ids('ordinary')",
    "TokenTrie.__new__": "_core.TokenTrie(hf.Tokenizer(ours)._native_engine)",
    "TokenTrie.tokens_with": "trie.tokens_with(b'')",
    "TokenTrie.fill_mask": "[trie.fill_mask(rest, mask) for rest in (b'', b'a', b'anAN')]",
    "Healed.__new__": "_core.Healed(engine, text, 'all', ())",
    "Healed.of_rests": "_core.Healed.of_rests(engine, [text.encode()] * 50)",
    "Healed.ids": "healed.ids()",
    "Healed.fork": "[healed.fork() for _ in range(100)]",
    "RowEncoder.encode": "made().encode(many, False)",
    "RowEncoder.encode, detailed": "made().encode(many[:20_000], True)",
    "RowEncoder.answer": "made().answer(many, False, ('input_ids',), True, True)",
    "RowSource": "made().answer(many[:20_000], False, ('input_ids',), True, True)[1]()",
    "arrange_rows": """_core.arrange_rows(rows, token_type_ids=None, attention_mask=None,
        special_tokens_mask=None, truncation=None, padding=None)""",
    "EncodedRows.fields": "few.fields(('input_ids', 'offset_mapping', 'length'), True)",
    "EncodedRows.fields, flat": "flat.fields(('input_ids', 'token_type_ids'), True)",
    "EncodedRows.fields, as matrices": "made(padding=wide).encode(many[:20_000], False).fields(('input_ids',), True, True)",
    "encode_segments": "_core.encode_segments(engine, segments, True)",
    "encode_segments_to_buffer": "_core.encode_segments_to_buffer(engine, segments, True)",
    "audit_segments": "_core.audit_segments(engine, segments, True)",
    "stable_prefix": "_core.stable_prefix(engine, text, 'all', ())",
    "NameFinder.find": "_core.NameFinder(engine, ['<1>']).find('<1>' * 10_000)",
    "ConversationState.update_text": "_core.ConversationState(engine, 'all', ()).update_text(text)",
    "ConversationState.update_segments": "_core.ConversationState(engine, 'all', ()).update_segments(segments)",
    "ConversationState.append_text": "_core.ConversationState(engine, 'all', ()).append_text(text)",
    "ConversationState.append_text, of a branch": "(grown.fork(), grown.append_text('a'))",
    "ConversationState.append_segments": "_core.ConversationState(engine, 'all', ()).append_segments(segments)",
    "PrefixCache.encode_text": "_core.PrefixCache(engine, 1 << 20, 'all', ()).encode_text(text)",
    "PrefixCache.encode_segments": "_core.PrefixCache(engine, 1 << 20, 'all', ()).encode_segments(segments)",
    "parse_ranks": "_core.parse_ranks(lines, 'a')",
    "parse_rank_lines": "_core.parse_rank_lines(lines)",
    "merge_bytes": "_core.merge_bytes(ranks, [text.encode()[:100]] * 5_000)",
    "token_splits": "_core.token_splits(ranks)",
    "count_tokens": "_core.count_tokens(core, many)",
    "HfEncoding.ids": "encoding.ids",
    "HfEncoding.type_ids": "encoding.type_ids",
    "HfEncoding.attention_mask": "encoding.attention_mask",
    "HfEncoding.special_tokens_mask": "encoding.special_tokens_mask",
    "HfEncoding.tokens": "encoding.tokens",
    "HfEncoding.offsets": "encoding.offsets",
    "HfEncoding.word_ids": "encoding.word_ids",
    "HfEncoding.words": "encoding.words",
    "HfEncoding.sequence_ids": "encoding.sequence_ids",
    "HfEncoding.overflowing": "[encoding.truncate(100, 50), encoding.overflowing]",
    "HfEncoding.pad": "encoding.pad(1_000_000)",
    "HfEncoding.truncate": "encoding.truncate(100, 50)",
    "HfEncoding.merge": "hf.Encoding.merge([encoding, encoding])",
    "HfEncoding.__reduce__": "pickle.dumps(encoding)",
    "HfTokenizer.__new__": "hf.Tokenizer.from_str(ours.to_str())",
    "HfTokenizer.to_str": "ours.to_str()",
    "HfTokenizer.__reduce__": "pickle.dumps(ours)",
    "HfTokenizer._decode_bytes": "ours._decode_bytes(ids, False)",
    "HfTokenizer.encode": "ours.encode(text)",
    "HfTokenizer.encode_batch": "ours.encode_batch(many)",
    "HfTokenizer.encode_batch_fast": "ours.encode_batch_fast(many)",
    "HfTokenizer.post_process": "ours.post_process(encoding)",
    "HfTokenizer.decode": "ours.decode(ids)",
    "HfTokenizer.decode_batch": "ours.decode_batch(rows)",
    "HfTokenizer.get_vocab": "ours.get_vocab()",
    "HfTokenizer.get_vocab_size": "ours.get_vocab_size()",
    "HfTokenizer.fingerprint": "ours.fingerprint",
    "HfTokenizer.add_tokens": "ours.add_tokens([f'new {place}' for place in range(20_000)])",
    "HfTokenizer._set_scores": "unigram._set_scores([-2.0] * len(vocab))",
    "HfTokenizer._added_tokens": "ours._added_tokens()",
    "HfTokenizer._ranks": "ours._ranks()",
    "HfTokenizer._tokenize": "ours._tokenize('anAN' * 50_000)",
    "hf_normalize": "_core.hf_normalize(normalizer, text)",
    "hf_pre_tokenize": "_core.hf_pre_tokenize(processor, text)",
    "hf_process": "_core.hf_process(processor, encoding, None, True)",
    "hf_decode": "_core.hf_decode(processor, many)",
}

#: Calls whose memory does not grow, and calls that other tests run out of memory.
SMALL = """
Engine.fingerprint Engine.decode_single_token_bytes Engine.clear_cache Engine.set_caching
Engine.byte_runs Engine.is_caching Engine.set_cache_size Engine.cache_size CoreBPE.builtin CoreBPE.max_rank
CoreBPE.rank_count CoreBPE.encode_single_token Encoding.encode_ordinary Encoding.encode
TokenBuffer TokenTrie.words TokenTrie.next_bytes Healed.rest Healed.is_done Healed.words
Healed.ids_in_table Healed.fill_mask Healed.advance TokenTable.kind TokenTable.buffer TokenTable.offsets TokenTable.kinds StreamStop
StreamPool EncodedRows.longest RowEncoder.__new__ RowEncoder.of_settings RowEncoder.is_current
AuditedIds copy_plain differing collect_segments join_traced cost_of_joining size_of_plain call_method strip_traced Labels NameFinder.is_current
NameCounter ConversationState.fork ConversationState.ids ConversationState.ids_buffer
ConversationState.memory PrefixCache.encode_text_to_buffer PrefixCache.encode_segments_to_buffer
PrefixCache.stats PrefixCache.clear disallowed_special_message work_done learn_merges audit_tokens
PieceCounts CountReader merge_counts train_bpe UnsupportedTokenizer HfEncoding.n_sequences
HfEncoding.token_to_ HfEncoding.char_to_ HfEncoding.word_to_ HfEncoding.set_sequence_id
HfTokenizer._native_engine HfTokenizer._allowed_by_default HfTokenizer._core_bpe
HfTokenizer.token_to_id HfTokenizer.id_to_token
HfTokenizer.add_special_tokens HfTokenizer.num_special_tokens_to_add HfTokenizer.enable_
HfTokenizer.no_ HfTokenizer.truncation HfTokenizer.padding HfTokenizer._component
HfTokenizer._set_component HfTokenizer._model_ hf_added_tokens hf_component
""".split()


def stub_names() -> Iterator[str]:
    """The functions of the stub, and the methods of its classes."""
    stub = Path(bpe_engine.__file__).with_name("_core.pyi")
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
            yield from (f"{node.name}.{name}" for name in methods if not name.startswith("__"))


def test_every_call_of_the_stub_is_here():
    unknown = [name for name in stub_names() if name not in CALLS]
    assert [name for name in unknown if not name.startswith(tuple(SMALL))] == []


@pytest.fixture(scope="module")
def prepared() -> Iterator[Prepared]:
    process = Prepared(PREPARATION)
    yield process
    process.close()


@pytest.mark.parametrize("name", CALLS)
def test_calls_without_memory_raise_memory_error(prepared, name):
    outputs = []
    for kilobytes in (200, 1_000, 4_000, 9_000, 20_000, 45_000, 100_000, 220_000):
        program = SCARCE.replace("KILOBYTES", str(kilobytes)).replace("CALL", CALLS[name])
        run = prepared.run(program)
        assert run.status == 0, f"{kilobytes} kB: {run.status} {run.output}"
        outputs.append(run.output)
        assert run.output in ("MemoryError\n", "done\n"), run.output
        if run.output == "done\n":
            break
