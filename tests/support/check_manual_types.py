"""Checks the types of the examples in README.md and docs/ with pyright (`make lint` runs it).

The statements of each page become a module, except statements that raise an error and statements
with ``# type: ignore`` or ``# doctest: +SKIP``.
"""

from __future__ import annotations

import doctest
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import Page, manual


def module_of(page: Page) -> str:
    """Returns the statements of a page's Python sessions."""
    parser = doctest.DocTestParser()
    sessions = [body for language, body in page.blocks if language == "pycon"]
    examples = [example for body in sessions for example in parser.get_examples(body)]
    kept = [example.source for example in examples if not (example.exc_msg or example.options)]
    return "".join(kept)


def main() -> int:
    """Runs pyright, and returns its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        for page in manual():
            if module := module_of(page):
                name = page.name.removesuffix(".md").replace("/", "_").replace("-", "_")
                (Path(folder) / f"{name}.py").write_text(module, encoding="utf-8")
        (Path(folder) / "pyrightconfig.json").write_text(
            '{"reportMissingImports": "none", "reportUnusedExpression": "none"}'
        )
        command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", folder]
        return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
