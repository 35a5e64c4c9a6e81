"""Builds an sdist of the last commit, and wheels for this system from that sdist.

    python release/wheels.py [--python VERSION ...] [--out dist]

Needs git, Rust, and maturin from the package index. The forge builds the wheels to upload.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Builds the sdist, and wheels for the Pythons named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="*", default=[], help="such as 3.12 or 3.14t")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        sdist = build_sdist(Path(folder), out)
    source = ROOT / "target" / "sdist"
    shutil.rmtree(source, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(source)
    # Files in an sdist have fixed times, so cargo would reuse the build of a different sdist.
    for path in source.rglob("*"):
        os.utime(path)
    if options.python:
        build_wheels(source / sdist.name.removesuffix(".tar.gz"), out, options.python)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}")


def build_sdist(folder: Path, out: Path) -> Path:
    """Builds the sdist of the last commit; links in its README also work outside a clone."""
    clone = folder / "clone"
    clone.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", clone], input=archive.stdout, check=True)
    readme = clone / "README.md"
    home = re.search(r'^Homepage = "(.*)"$', (clone / "pyproject.toml").read_text(), re.MULTILINE)
    if home:
        readme.write_text(with_home(readme.read_text(encoding="utf-8"), home[1]), encoding="utf-8")
    before = set(out.iterdir())
    run("maturin", "sdist", "--out", out, "--manifest-path", clone / "bindings" / "Cargo.toml")
    made = set(out.glob("*.tar.gz"))
    return max(made - before or made, key=lambda path: path.stat().st_mtime)


def with_home(text: str, home: str) -> str:
    """Returns Markdown whose relative links and pictures begin with `home`.

    >>> with_home("[a](docs/a.md#b), [c](https://c), [d](#d)", "https://home/")
    '[a](https://home/docs/a.md#b), [c](https://c), [d](#d)'
    >>> with_home('<img src="docs/a.svg">', "https://home/")
    '<img src="https://home/docs/a.svg">'
    """
    return re.sub(r'(\]\(|\bsrc="|\bsrcset=")(?!#|\w+:)', rf"\1{home}", text)


def build_wheels(source: Path, out: Path, pythons: list[str]) -> None:
    """Builds a wheel of `source` for each Python."""
    # All Pythons share the target folder, so cargo rebuilds only the bindings.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target" / "wheels")}
    names = [f"python{version}" for version in pythons]
    run(
        *("maturin", "build", "--release", "--locked", "--out", out, "--interpreter", *names),
        *("--manifest-path", source / "bindings" / "Cargo.toml"),
        environment=environment,
    )


def run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    """Runs a command of this Python's environment; on failure, exits with its status."""
    scripts = os.path.dirname(sys.executable)
    environment = {**(environment or os.environ)}
    environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"
    if not shutil.which(str(command[0]), path=environment["PATH"]):
        raise SystemExit(f"{command[0]} is missing: pip install 'bpe-engine[release]'")
    print("$", *command, flush=True)
    done = subprocess.run([str(word) for word in command], env=environment)
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
