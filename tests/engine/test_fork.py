"""Tests forks while another thread is inside a call: the child can make the same call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

import bpe_engine

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

# One entry for each public call: an expression over the names in PREPARATION.
CALLS = {
    "align": "bpe_engine.align(enc, enc, text[:50_000])",
    "align_batch": "bpe_engine.align_batch(enc, enc, [text[:50_000]] * 4)",
    "chunk": "enc.chunk(text, 100, 10)",
    "audit_segments": "enc.audit_segments(segments)",
    "cache_size": "enc.cache_size",
    "clear_cache": "enc.clear_cache()",
    "Conversation": "bpe_engine.prompt.Conversation(enc).update(text)",
    "count": "enc.count(text)",
    "count_segments": "bpe_engine.prompt.count_segments(enc, segments)",
    "count_till_limit": "enc.count_till_limit(text, 50_000)",
    "decode": "enc.decode(ids)",
    "decode_batch": "enc.decode_batch([ids] * 4)",
    "decode_bytes": "enc.decode_bytes(ids)",
    "decode_bytes_batch": "enc.decode_bytes_batch([ids] * 4)",
    "decode_single_token_bytes": "enc.decode_single_token_bytes(5)",
    "decode_tokens_bytes": "enc.decode_tokens_bytes(ids)",
    "decode_with_offsets": "enc.decode_with_offsets(ids)",
    "encode": "enc.encode(text)",
    "encode_batch": "enc.encode_batch([text] * 4)",
    "encode_batch_to_numpy": "enc.encode_batch_to_numpy([text] * 4)",
    "encode_ordinary": "enc.encode_ordinary(text)",
    "encode_ordinary_batch": "enc.encode_ordinary_batch([text] * 4)",
    "encode_segments": "enc.encode_segments(segments)",
    "encode_segments_to_numpy": "bpe_engine.prompt.encode_segments_to_numpy(enc, segments)",
    "encode_single_token": "enc.encode_single_token('hello')",
    "encode_to_numpy": "enc.encode_to_numpy(text, num_threads=2)",
    "encode_with_offsets": "enc.encode_with_offsets(text[:50_000])",
    "encode_with_unstable": "enc.encode_with_unstable('hello fan')",
    "eot_token": "enc.eot_token",
    "find_special": "enc.find_special(text)",
    "fingerprint": "enc.fingerprint",
    "heal": "enc.heal(text[:50_000]).allowed()",
    "hf": "enc.hf.encode(text).ids",
    "transformers": "enc.transformers(text[:50_000]).input_ids",
    "is_caching": "enc.is_caching",
    "is_canonical": "enc.is_canonical(ids)",
    "is_special_token": "enc.is_special_token(5)",
    "n_vocab": "enc.n_vocab",
    "set_cache_size": "enc.set_cache_size(1 << 20)",
    "set_caching": "enc.set_caching(True)",
    "special_tokens_set": "enc.special_tokens_set",
    "special_tokens": "enc.special_tokens['<|endoftext|>']",
    "mergeable_ranks": "enc.mergeable_ranks[b'a']",
    "pattern": "enc.pattern",
    "normalization": "enc.normalization",
    "chunk_spans": "enc.chunk_spans(text[:50_000], 100)",
    "show": "enc.show(text[:500])",
    "stable_prefix": "bpe_engine.prompt.stable_prefix(enc, text)",
    "split": "enc.split(text[:50_000])",
    "stream_decoder": "enc.stream_decoder().push(ids)",
    "StreamPool": "pool = bpe_engine.StreamPool(enc); pool.step([pool.open()], ids[:1])",
    "TokenTable": "bpe_engine.TokenTable(enc)[5]",
    "TokenTrie": "bpe_engine.TokenTrie(enc).mask(b' a')",
    "token_byte_values": "enc.token_byte_values()",
    "truncate": "enc.truncate(text, 30_000, side='left')",
    "Encoding": "bpe_engine.Encoding('x', pat_str='.', mergeable_ranks=ranks, special_tokens={})",
    "get_encoding": "(bpe_engine.registry.ENCODINGS.clear(), bpe_engine.get_encoding('gpt2'))",
    "list_encoding_names": "bpe_engine.list_encoding_names()",
    "Tokenizer": "bpe_engine.Tokenizer(enc)(text[:5000])",
    "encoding_for_model": "bpe_engine.encoding_for_model('gpt-4o')",
    "encoding_name_for_model": "bpe_engine.encoding_name_for_model('gpt-4o')",
}

# Python's import locks are not free in a child: what calls import is imported before.
PREPARATION = """
import faulthandler, glob, os, signal, sys, threading, time
import bpe_engine.abilities.alignment, bpe_engine.abilities.chunks, bpe_engine.abilities.columns, bpe_engine.abilities.healing
import bpe_engine.abilities.ragged, bpe_engine.registry, bpe_engine.abilities.shown
import bpe_engine.tokenizer
bpe_engine.registry.ENCODING_CONSTRUCTORS  # imports the plugins
text = "The quick brown fox 敏捷的棕色狐狸 jumps 1234 over it's dog.\\n" * 6000
ids = bpe_engine.get_encoding("cl100k_base").encode(text)
segments = [(text, False), ("<|endoftext|>", True), (text, True)]
ranks = dict(bpe_engine.get_encoding("gpt2").mergeable_ranks)

def activity(process):
    "The state and the CPU time of each thread of a process."
    found = {}
    for path in glob.glob(f"/proc/{process}/task/*/stat"):
        try:
            fields = open(path).read().rpartition(")")[2].split()
        except OSError:
            continue  # the thread has ended
        found[path] = fields[0], *fields[11:13]
    return found

def finish(child):
    "Waits for a child, and returns its status."
    looks, before = 0, None
    while looks < 100:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        now = activity(child)
        asleep = now == before and all(state == "S" for state, *_ in now.values())
        looks, before = looks + 1 if now and asleep else 0, now
        time.sleep(0.01)
    os.kill(child, signal.SIGABRT)  # faulthandler prints where it hangs
    return os.waitpid(child, 0)[1]

faulthandler.enable()
"""


def test_every_public_call_has_an_entry():
    public = {name for name in dir(bpe_engine.Encoding) if not name.startswith("_")}
    public |= {name for name in bpe_engine.__all__ if callable(getattr(bpe_engine, name))}
    public |= {"Conversation", "count_segments", "encode_segments_to_numpy", "stable_prefix"}
    # `install`, `uninstall` and `load_encoding` are about modules and files; a decoder is made by
    # its method.
    public -= {
        "install",
        "uninstall",
        "load_encoding",
        "open_tokenizer",
        "StreamDecoder",
        "StreamStop",
    }
    assert public == CALLS.keys(), "give each public call an entry, and only those"


# Where SLOW is set, a thread takes 20 ms to get the interpreter back, or to attach to it.
SLOW_THREADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static void slowly(void) {
    if (getenv("SLOW")) usleep(20000);
}
int Py_IsInitialized(void) {
    slowly();
    return ((int (*)(void))dlsym(RTLD_NEXT, "Py_IsInitialized"))();
}
void PyEval_RestoreThread(void *state) {
    slowly();
    ((void (*)(void *))dlsym(RTLD_NEXT, "PyEval_RestoreThread"))(state);
}
"""

# A thread makes each call, the first of an encoding; meanwhile children make the same call.
FORK_WHILE_SLOW = """
import ctypes
long, text, ids, segments = text * 15, text[:9000], ids[:999], [("<|endoftext|>", True)]
environment = ctypes.CDLL(None)
environment.setenv(b"SLOW", b"1", 1)
count, failed = 0, []
for call in ["enc.count(long)", *CALLS]:
    bpe_engine.registry.ENCODINGS.pop("cl100k_base", None)
    enc = bpe_engine.get_encoding("cl100k_base")
    thread = threading.Thread(target=exec, args=(call, globals()))
    thread.start()
    children = []
    while thread.is_alive() and len(children) < 20:
        time.sleep(0.01)
        children.append(os.fork())
        if children[-1] == 0:
            environment.unsetenv(b"SLOW")
            exec(call)
            os._exit(0)
    count += len(children)
    failed += [(call, status) for child in children if (status := finish(child))]
    thread.join()
print(count, "children", flush=True)
if failed:
    sys.exit(f"the child did not end: (call, status) {failed}")
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not sysconfig.get_config_var("Py_ENABLE_SHARED"),
    reason="the interpreter's functions cannot be replaced here",
)
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_no_lock_is_held_when_the_interpreter_is_released(tmp_path):
    (tmp_path / "slow.c").write_text(SLOW_THREADS)
    library = str(tmp_path / "slow.so")
    command = ["cc", "-shared", "-fPIC", "-o", library, str(tmp_path / "slow.c"), "-ldl"]
    subprocess.run(command, check=True)
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            PREPARATION + FORK_WHILE_SLOW.replace("CALLS", f"{[*CALLS.values()]}"),
        ],
        env=os.environ | {"LD_PRELOAD": library},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert run.returncode == 0, run.stdout + run.stderr
