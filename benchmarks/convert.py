"""Which formats can hold which tokenizers: each there and back, compared on texts.

    python -m benchmarks.convert FILE... [--corpus TEXT...]

Each FILE (a rank file, tokenizer.json or tekken.json) is converted to every format and back. A cell
says on how many texts the ids are equal both ways, corpora included, or why the conversion is
refused.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from vocab_tools import convert_tokenizer

FORMATS = {
    ".tiktoken": "x.tiktoken",
    "tokenizer.json": "new/tokenizer.json",
    "vocab.json + merges.txt": "pair/vocab.json",
    "tekken.json": "tekken.json",
}


def written(folder: Path, source: str, name: str, corpus: Sequence[str]) -> tuple[str, int]:
    """Converts into a folder; the path, and how many texts were compared."""
    path = folder / name
    conversion = convert_tokenizer(source, str(path), corpus=corpus)
    path.parent.mkdir(parents=True, exist_ok=True)
    for file, contents in conversion.contents.items():
        Path(file).write_bytes(contents)
    return str(path), conversion.compared


def cell(source: str, name: str, corpus: Sequence[str]) -> str:
    """There and back."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            path, there = written(Path(folder), source, name, corpus)
            back = "back.json" if source.endswith(".json") else "back.tiktoken"
            _, again = written(Path(folder), path, back, corpus)
        except ValueError as error:
            lines = str(error).splitlines()
            reason = lines[min(1, len(lines) - 1)].strip()
            return f"refused: {reason.removeprefix(f'{source}: ')}"
    return f"equal on {min(there, again):,} texts"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--corpus", nargs="*", default=[])
    options = parser.parse_args()
    print(f"| file | {' | '.join(FORMATS)} | s |")
    print("| --- |" + " --- |" * len(FORMATS) + " ---: |")
    for file in options.files:
        start = time.process_time()
        cells = [cell(file, name, options.corpus) for name in FORMATS.values()]
        spent = time.process_time() - start
        print(f"| {Path(file).name} | {' | '.join(cells)} | {spent:.0f} |", flush=True)


if __name__ == "__main__":
    main()
