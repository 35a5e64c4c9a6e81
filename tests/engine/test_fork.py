"""Tests that a child forked while a thread is inside a call can make the same call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

# Calls that release the interpreter or take locks, written with the names in PREPARATION.
CALLS = [
    "bpe_engine.align(enc, enc, text[:50_000])",
    "enc.chunk(text, 100, 10)",
    "bpe_engine.prompt.Conversation(enc).update(text)",
    "enc.count(text)",
    "enc.decode_batch([ids] * 4)",
    "enc.encode(text)",
    "enc.encode_batch([text] * 4)",
    "enc.encode_segments(segments)",
    "enc.encode_to_numpy(text, num_threads=2)",
    "enc.fingerprint",
    "enc.heal(text[:50_000]).allowed()",
    "enc.hf.encode(text).ids",
    "pool = bpe_engine.StreamPool(enc); pool.step([pool.open()], ids[:1])",
    "bpe_engine.TokenTrie(enc).mask(b' a')",
    "(bpe_engine.registry.ENCODINGS.clear(), bpe_engine.get_encoding('gpt2'))",
    "bpe_engine.Tokenizer(enc)(text[:5000])",
]

# A child may inherit held import locks, so the modules of these calls are imported first.
PREPARATION = """
import faulthandler, glob, os, signal, sys, threading, time
import bpe_engine.abilities.alignment, bpe_engine.abilities.chunks, bpe_engine.abilities.columns, bpe_engine.abilities.healing
import bpe_engine.abilities.ragged, bpe_engine.registry, bpe_engine.abilities.shown
import bpe_engine.tokenizer, numpy.ma
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


# If SLOW is set, a thread takes 20 ms to reattach to the interpreter.
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

# A thread makes each call on a new encoding while forked children make the same call.
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
            PREPARATION + FORK_WHILE_SLOW.replace("CALLS", f"{CALLS}"),
        ],
        env=os.environ | {"LD_PRELOAD": library},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert run.returncode == 0, run.stdout + run.stderr
