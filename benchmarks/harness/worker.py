"""Worker process: reads a job as JSON, runs one case once on one engine, and writes JSON.

Started by runner.py. The job names the case, the engine (or none, for the reference ids), the
encoding, the corpus files, and the CPU to pin to.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

from ..cases import inputs
from ..cases.cases import CASES
from ..cases.encodings import spec_of
from ..peers.engines import PLANS, Unsupported
from . import measures


def pin(cpu: int | None) -> bool:
    """Pins this process to one CPU; returns False if the system cannot."""
    if cpu is None or not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError:
        return False
    return True


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Runs a job; returns ``{"values": [...]}`` or ``{"reference": {...}}``.

    Returns ``{"unsupported": reason}`` if the engine lacks an operation of the case.
    """
    case = CASES[job["case"]]
    options = {**case.input_options, **job.get("input_options", {})}
    corpus = Path(job["corpus"]) if job["corpus"] else None
    given = inputs.build(case.inputs, corpus, options)
    spec = spec_of(job["encoding"])
    if job["engine"] is None:
        from ..peers.reference import reference

        return {"reference": reference(given, spec)}
    pin(job["cpu"])
    measures.use_clock(job["clock"] if case.threads == 1 else "wall")
    run = measures.Run(
        plan=PLANS[job["engine"]],
        spec=spec,
        cache=Path(job["cache"]),
        inputs=given,
        field=case.operation,
        options=case.options,
        threads=case.threads,
        corpora=[Path(path) for path in job["corpora"]],
    )
    try:
        values = [dataclasses.asdict(value) for value in measures.MEASURES[case.measure](run)]
    except Unsupported as reason:
        return {"unsupported": str(reason)}
    return {"values": values}


def main() -> None:
    job = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)  # An engine's output must not mix with the answer.
    try:
        answer = work(job)
    except BaseException as error:  # A Rust panic is not an Exception.
        answer = {"error": f"{type(error).__name__}: {error}"[:300]}
    with os.fdopen(out, "w") as stream:
        json.dump(answer, stream)


if __name__ == "__main__":
    main()
