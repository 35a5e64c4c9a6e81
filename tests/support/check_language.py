"""Checks the language of the sources, as far as a script can: `make lint` runs it.

    python tests/support/check_language.py [FILE...]

Prints `file:line: reason` for each finding, and ends with status 1 if there are any:

* a doc comment or docstring that begins with "The same", "What", "Of" or "As many";
* "is none", "is no" or "there is no", where "not" or "without" is meant, in any line;
* the name of a test with more than 60 characters.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST_NAME = 60

BEGINNING = re.compile(r"(The same|What|Of|As many)\b")
PHRASE = re.compile(r"\b(is none|is no|[Tt]here is no)\b(?! (?:longer|more|less|one else)\b)")
DOC_COMMENT = re.compile(r"^\s*(//[/!]|#:)\s?(.*)$")
RUST_TEST = re.compile(r"#\[test\]\s*(?:#\[[^\n]*\]\s*|//[^\n]*\s*)*fn (\w+)")
PYTHON_TEST = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)

#: Lines that may have a phrase or beginning: the end of a path, and a part of the line.
EXCEPTIONS: tuple[tuple[str, str], ...] = (
    ("tests/support/check_language.py", ""),
    ("tests/project/test_check_language.py", ""),
    # A message of transformers, word for word.
    ("bpe_engine/tokenizer/options.py", "there is no truncation strategy"),
)


def main() -> int:
    paths = [Path(name).resolve() for name in sys.argv[1:]] or sources()
    found = [finding for path in paths for finding in findings(path)]
    print("\n".join(found) or "no findings")
    return 1 if found else 0


def sources() -> list[Path]:
    """The Rust, Python and Markdown files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.rs", "*.py", "*.pyi", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.exists()]


def findings(path: Path) -> Iterator[str]:
    """The findings of one file, in the order of its lines."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    found: list[tuple[int, str]] = []
    for number, line in docs(path, text):
        if (begins := BEGINNING.match(line)) and not is_exception(name, line):
            found.append((number, f"begins with {begins[0]!r}: {line.strip()}"))
    for number, line in enumerate(text.splitlines(), 1):
        if (phrase := PHRASE.search(line)) and not is_exception(name, line):
            found.append((number, f"{phrase[0]!r}: {line.strip()}"))
    for test in (RUST_TEST if path.suffix == ".rs" else PYTHON_TEST).finditer(text):
        if len(test[1]) > LONGEST_NAME:
            number = text.count("\n", 0, test.start(1)) + 1
            found.append((number, f"{len(test[1])} characters: {test[1]}"))
    yield from (f"{name}:{number}: {reason}" for number, reason in sorted(found))


def docs(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """The first line of each doc comment and docstring, with its number."""
    if path.suffix == ".md":
        return
    before: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        comment = DOC_COMMENT.match(line)
        if comment and comment[2] and comment[1] != before:
            yield number, comment[2]
        # An empty line of a comment is followed by a paragraph, not by another comment.
        before = comment[1] if comment else None
    if path.suffix in (".py", ".pyi"):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, kinds) and (doc := ast.get_docstring(node)):
                yield node.body[0].lineno, doc.splitlines()[0]


def is_exception(name: str, line: str) -> bool:
    """True for a line of :data:`EXCEPTIONS`."""
    return any(name.endswith(end) and part in line for end, part in EXCEPTIONS)


if __name__ == "__main__":
    sys.exit(main())
