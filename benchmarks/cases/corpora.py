"""Corpora: texts for timing engines.

The default corpora need only Python:

* ``code``: sources of the Python standard library;
* ``en``: the prose of its docstrings and of its built-in help;
* ``messy``: generated JSON, HTML, CSS, logs, tables and emoji;
* ``multi``, ``zh``: the texts in ``texts/``, continued by a Markov chain over characters, which
  makes new words of plausible shape: similar to real text, but no substitute.

``--corpora DIR`` takes the ``*.txt`` files of a folder instead.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TEXTS = Path(__file__).resolve().parent / "texts"
DEFAULT_SIZE = 2_000_000  # Size of each default corpus in bytes, if its sources suffice.


@dataclass(frozen=True)
class Corpus:
    """A named text file."""

    name: str
    path: Path


def find_corpora(folder: Path | None, cache: Path, size: int = DEFAULT_SIZE) -> list[Corpus]:
    """Returns the ``*.txt`` files of ``folder``, or the default corpora, made once in ``cache``.

    Raises ValueError for a folder without ``*.txt`` files.
    """
    if folder is None:
        return [Corpus(name, _made(name, cache, size)) for name in _MAKERS]
    found = [Corpus(path.stem, path) for path in sorted(folder.glob("*.txt"))]
    if not found:
        raise ValueError(f"No *.txt in the folder of corpora {str(folder)!r}.")
    return found


def read(path: Path | str, limit: int | None = None) -> str:
    """Reads the text of ``path`` (at most ``limit`` characters), keeping its line ends.

    Breaks up names of special tokens, which engines treat differently: the cases measure plain
    text.
    """
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return file.read(-1 if limit is None else limit).replace("<|", "< |")


def halves(text: str) -> tuple[str, str]:
    """Splits ``text`` into its even lines and its odd lines, each joined to one text.

    >>> halves("a\\nb\\nc\\n")
    ('a\\nc\\n', 'b\\n')
    """
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return "".join(lines[0::2]), "".join(lines[1::2])


def documents(text: str, size: int) -> list[str]:
    """Cuts ``text`` between characters into parts of about ``size`` bytes of UTF-8.

    Drops a last part of less than half the size.

    >>> documents("aä" * 3, 3)
    ['aä', 'aä', 'aä']
    """
    data = text.encode("utf-8")
    pieces = []
    start = 0
    while start + size // 2 < len(data):
        end = min(start + size, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        pieces.append(data[start:end].decode("utf-8"))
        start = end
    return pieces


def _made(name: str, cache: Path, size: int) -> Path:
    """Returns the file of the default corpus ``name`` in ``cache``, made once per version."""
    import hashlib

    version = hashlib.blake2b(Path(__file__).read_bytes() + sys.version.encode(), digest_size=4)
    path = cache / "corpora" / f"{version.hexdigest()}.{size}.{name}.text"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(_clipped(_MAKERS[name](), size), encoding="utf-8", newline="")
        partial.replace(path)
    return path


def _clipped(parts: Iterator[str], size: int) -> str:
    taken = []
    length = 0
    for part in parts:
        taken.append(part)
        length += len(part.encode("utf-8", "replace"))
        if length >= size:
            break
    return "".join(taken).encode("utf-8", "replace").decode("utf-8")


def _sources() -> Iterator[tuple[Path, str]]:
    """Yields the paths and sources of the standard library without its tests, in a fixed order."""
    import hashlib
    import sysconfig

    root = Path(sysconfig.get_paths()["stdlib"])
    paths = [
        path
        for path in root.rglob("*.py")
        if not {"test", "tests", "idle_test", "site-packages", "dist-packages"} & set(path.parts)
    ]
    for path in sorted(paths, key=lambda path: hashlib.md5(path.name.encode()).digest()):
        try:
            yield path, path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue


def _code() -> Iterator[str]:
    for _, source in _sources():
        yield source


def _english() -> Iterator[str]:
    import ast
    import importlib

    try:
        topics = importlib.import_module("pydoc_data.topics").topics
    except ImportError:  # Some distributions omit these sources.
        topics = {}
    yield from (text + "\n" for _, text in sorted(topics.items()))
    for path, source in _sources():
        try:
            tree = ast.parse(source, str(path))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node)
                if text and len(text) > 80:
                    yield text + "\n\n"


def _chain(paragraphs: list[str], order: int, seed: int) -> Iterator[str]:
    """Yields endless paragraphs; any ``order + 1`` adjacent characters occur in the input."""
    import random

    pick = random.Random(seed)
    followers: dict[str, list[str]] = defaultdict(list)
    starts = []
    for paragraph in paragraphs:
        padded = paragraph + "\n"
        starts.append(padded[:order])
        for i in range(len(padded) - order):
            followers[padded[i : i + order]].append(padded[i + order])
    while True:
        state = pick.choice(starts)
        text = [state]
        while not state.endswith("\n"):
            character = pick.choice(followers[state])
            text.append(character)
            state = (state + character)[-order:]
        yield "".join(text)


def _paragraphs(name: str) -> list[str]:
    return (TEXTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def _chinese() -> Iterator[str]:
    return _chain(_paragraphs("zh"), 1, 1)


def _languages() -> Iterator[str]:
    """Yields endless paragraphs in the style of each language in turn."""
    lines = _paragraphs("multi")
    chains = [_chain(lines[i : i + 3], 2, i) for i in range(0, len(lines), 3)]
    while True:
        for chain in chains:
            yield next(chain)


def _messy() -> Iterator[str]:
    """Yields generated text with much punctuation, digits and rare characters."""
    import random
    import unicodedata

    pick = random.Random(6)
    symbols = [
        chr(code)
        for code in (*range(0x2190, 0x2600), *range(0x1F300, 0x1F650), *range(0xC0, 0x250))
        if unicodedata.category(chr(code))[0] in "LS"
    ]
    words = [word for line in _paragraphs("multi") for word in line.split()]

    def name() -> str:
        return "_".join(
            "".join(pick.choices("abcdefghinorstu", k=pick.randint(3, 8))) for _ in range(2)
        )

    def json_part() -> str:
        values = [pick.random(), name(), None, [pick.randint(0, 9999)] * 3]
        document = {name(): pick.choice(values) for _ in range(5)}
        return json.dumps(document, indent=pick.choice([None, 2])) + "\n"

    def html() -> str:
        link = f"/{name()}?q={pick.randint(0, 10**6)}"
        shown = f"{pick.choice(words)}&nbsp;{pick.choice(words)}"
        return f'<div class="{name()}" id=\'{name()}\'><a href="{link}">{shown}</a></div>\r\n'

    def css() -> str:
        look = f"margin: {pick.random():.3f}em;\tcolor: #{pick.getrandbits(24):06x}"
        return f".{name()} > p:nth-child({pick.randint(1, 9)}) {{ {look} }}\n"

    def log() -> str:
        clock = ":".join(f"{pick.randint(0, 59):02}" for _ in range(3))
        when = f"2026-{pick.randint(1, 12):02}-{pick.randint(1, 28):02}T{clock}.{pick.randint(0, 999)}Z"
        level = pick.choice(["INFO", "WARN", "ERROR"])
        return f"{when} [{level}] {name()}: {pick.choice(words)} 0x{pick.getrandbits(48):012x}\n"

    def odd() -> str:
        signs = "".join(pick.choices(symbols, k=pick.randint(2, 12)))
        return signs + " " * pick.randint(1, 9) + pick.choice(words) + "\n\n"

    def numbers() -> str:
        return "| " + " | ".join(f"{pick.uniform(-1e3, 1e3):9.2f}" for _ in range(5)) + " |\n"

    makers = (json_part, html, css, log, odd, numbers)
    while True:
        yield pick.choice(makers)()


_MAKERS = {"en": _english, "code": _code, "messy": _messy, "multi": _languages, "zh": _chinese}
