"""Tests an installed package in an otherwise empty environment: ids, commands, README.

    python smoke.py REPOSITORY

`REPOSITORY` contains the README and release/ids.json: hard texts, and for each encoding the SHA-256
of the list of [tiktoken's ids with every special token allowed, ids with none]. The script needs
only the package and the standard library.
"""

from __future__ import annotations

import doctest
import hashlib
import json
import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import bpe_engine


def main() -> None:
    """Runs all tests; ends with a traceback at the first difference."""
    repository = Path(sys.argv[1])
    assert repository.resolve() not in Path(bpe_engine.__file__).resolve().parents
    texts = compare(repository / "release/ids.json")
    examples = quick_start(repository / "README.md")
    commands(repository)
    print(
        f"{texts} texts as tiktoken, {examples} examples, commands, import {import_time():.0f} ms"
    )


def compare(path: Path) -> int:
    """Compares ids with tiktoken's recorded ids, and returns the number of texts."""
    recorded = json.loads(path.read_text(encoding="ascii"))
    texts = [*recorded["texts"], *(unit * times + tail for unit, times, tail in recorded["long"])]
    for name, digest in recorded["digests"].items():
        encoding = bpe_engine.get_encoding(name)
        ids = [
            [encoding.encode(text, allowed_special="all"), encoding.encode_ordinary(text)]
            for text in texts
        ]
        assert hashlib.sha256(repr(ids).encode()).hexdigest() == digest, name
    return len(texts) * len(recorded["digests"])


def quick_start(readme: Path) -> int:
    """Runs the README's Python examples in one session, and returns the number of examples."""
    blocks = re.findall(r"^```pycon\n(.*?)^```$", readme.read_text(encoding="utf-8"), re.M | re.S)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README", None, 0)
    failed, tried = doctest.DocTestRunner().run(test)
    assert tried and not failed
    return tried


def commands(repository: Path) -> None:
    """Runs each command line once."""
    scripts = Path(sysconfig.get_path("scripts"))
    ranks = repository / "data/r50k_base.tiktoken"
    for words, expected in [
        (["bpe-engine", "encode", "Hello, world!"], "13225 11 2375 0"),
        (["bpe-engine", "show", "-f", str(repository / "LICENSE")], "tokens"),
        (["bpe-engine", "encodings"], "o200k_harmony"),
        (["vocab-tools", "--help"], "train"),
        (["vocab-tools", "check", str(ranks)], ""),
    ]:
        done = subprocess.run([str(scripts / words[0]), *words[1:]], capture_output=True, text=True)
        assert done.returncode == 0 and expected in done.stdout, (words, done)


def import_time() -> float:
    """Returns the milliseconds that `import bpe_engine` takes in a new process: the best of
    nine."""
    times = []
    for name in ["bpe_engine", "sys"] * 9:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", f"import {name}"], check=True)
        times.append(time.perf_counter() - began)
    return (min(times[::2]) - min(times[1::2])) * 1000


if __name__ == "__main__":
    main()
