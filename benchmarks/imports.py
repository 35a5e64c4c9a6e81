"""Measures what a fresh process pays before the first ids: imports, encodings, tokenizers.

    python -m benchmarks.imports [--files FOLDER] [--modules]

Each row is a process of its own, the sides in turn; a figure is the median of the CPU time, less that
of an empty process. FOLDER has a model's ``tokenizer.json``; without it, one of o200k_base is made.
With ``--modules``, the modules of ours that take longest, by ``-X importtime``.
"""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .cases.encodings import ROOT, spec_of, tokenizer_file
from .harness.sides import arguments

TIKTOKEN = (
    "import tiktoken, tiktoken.load; tiktoken.Encoding('o', pat_str={pattern!r}, "
    "mergeable_ranks=tiktoken.load.load_tiktoken_bpe({ranks!r}), special_tokens={special!r})"
)


def statements(folder: Path) -> list[tuple[str, dict[str, str]]]:
    """Returns titles, and the statements of each package."""
    spec = spec_of("o200k_base")
    tiktoken = TIKTOKEN.format(
        pattern=spec.pattern, ranks=str(spec.ranks), special=spec.special_tokens
    )
    ours = "import bpe_engine; bpe_engine"
    auto = "import transformers; transformers.AutoTokenizer"
    load = f".from_pretrained({str(folder)!r})"
    call = "; t('hello world')"
    return [
        ("import", {"bpe_engine": "import bpe_engine", "tiktoken": "import tiktoken"}),
        ("o200k_base", {"bpe_engine": f"{ours}.get_encoding('o200k_base')", "tiktoken": tiktoken}),
        (
            "o200k_base, and `encode`",
            {
                "bpe_engine": f"{ours}.get_encoding('o200k_base').encode('hello world')",
                "tiktoken": f"{tiktoken}.encode('hello world')",
            },
        ),
        ("the class", {"bpe_engine": f"{ours}.Tokenizer", "transformers": auto}),
        (
            "`from_pretrained`, and a call",
            {
                "bpe_engine": f"{ours}; t = bpe_engine.Tokenizer{load}{call}",
                "transformers": "import transformers; t = transformers.AutoTokenizer" + load + call,
            },
        ),
    ]


def milliseconds(statement: str) -> float:
    """Returns the CPU time of a process."""
    # With the bytecode that an installed package has.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", statement]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def model_folder(place: Path) -> Path:
    """Makes a folder that both packages read."""
    folder = place / "model"
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes(
        tokenizer_file(spec_of("o200k_base"), place).read_bytes()
    )
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def slowest(statement: str, count: int = 12) -> list[tuple[int, str]]:
    """Returns microseconds and names of the modules that take longest themselves."""
    command = [sys.executable, "-X", "importtime", "-c", statement]
    text = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stderr
    lines = re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)", text)
    return sorted(((int(own), name) for own, name in lines), reverse=True)[:count]


def main() -> None:
    parser = arguments(__doc__, rounds=9)
    parser.add_argument("--files", type=Path, metavar="FOLDER")
    parser.add_argument("--modules", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        rows = statements(given.files or model_folder(Path(place)))
        print(
            "| a fresh process, ms of CPU | bpe_engine | the other | ratio |\n|---|---:|---:|---:|"
        )
        for title, sides in rows:
            taken: dict[str, list[float]] = {name: [] for name in ("", *sides)}
            for round in range(given.rounds + 1):
                for name, figures in taken.items():
                    taken_now = milliseconds(sides.get(name, "pass"))
                    # The first round may write bytecode.
                    figures.extend([taken_now] if round else [])
            nothing, own, other = (statistics.median(figures) for figures in taken.values())
            own, other = own - nothing, other - nothing
            peer = next(name for name in sides if name != "bpe_engine")
            print(f"| {title} | {own:.0f} | {peer} {other:.0f} | {other / own:.1f} |", flush=True)
        if given.modules:
            for title, sides in rows:
                print(f"\n{title}:")
                for own_time, name in slowest(sides["bpe_engine"]):
                    print(f"  {own_time / 1e3:6.1f} ms  {name}")


if __name__ == "__main__":
    main()
