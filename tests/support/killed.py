"""Runs a step of a corpus repeatedly, killed (-9) at random operations, until a run completes.

    python killed.py STEP FOLDER KILLS SEED

Each run is a fork of this process, which itself never runs a step. The child kills itself at a
random file operation.
"""

from __future__ import annotations

import os
import signal
import sys

from seeds import seeded

from bpe_engine.corpus import merge_parts, pack_rows, run_plan

EVENTS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "os.listdir"}

STEPS = {
    "run": lambda folder: run_plan(folder, processes=1, num_threads=1),
    "merge": merge_parts,
    "pack": lambda folder: pack_rows(folder, 64, seed=3),
}


def child(step: str, folder: str, kill_at: int | None) -> None:
    count = 0

    def hook(event: str, _: object) -> None:
        nonlocal count
        if event in EVENTS:
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    if kill_at is not None:
        sys.addaudithook(hook)
    STEPS[step](folder)


def main(step: str, folder: str, kills: str, seed: str) -> None:
    chance = seeded("killed", seed)
    killed = 0
    for attempt in range(1000):
        lives = killed >= int(kills)
        process = os.fork()
        if process == 0:
            code = 1
            try:
                child(step, folder, None if lives else chance.randrange(1, 60))
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(process, 0)[1]
        if os.WIFSIGNALED(status):
            killed += 1
            continue
        assert os.WEXITSTATUS(status) == 0, attempt
        print(killed)
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
