"""Reads the project's Markdown pages: text, code blocks, headings and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Page:
    """One Markdown file of the project."""

    path: Path

    @property
    def name(self) -> str:
        """The path from the root of the repository, with slashes."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """The language and the contents of each fenced block, in order."""
        return re.findall(r"^```(\S*)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)

    @property
    def prose(self) -> str:
        """The text without its fenced blocks."""
        return re.sub(r"^```.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    @property
    def anchors(self) -> set[str]:
        """The anchors of the headings, as links write them after `#`."""
        return {slug(title) for title in re.findall(r"^#+ (.*)$", self.prose, re.MULTILINE)}

    @property
    def links(self) -> list[str]:
        """The targets of all links to places inside the project."""
        prose = re.sub(r"`[^`\n]*`", "``", self.prose)
        found = re.findall(r"\]\(([^)\s]+)\)", prose)
        found += re.findall(r'\bsrc(?:set)?="([^"]+)"', prose)
        return [target for target in found if "://" not in target]


def slug(title: str) -> str:
    """Returns the anchor of a heading.

    >>> slug("What `Encoding` does, and why")
    'what-encoding-does-and-why'
    """
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def manual() -> list[Page]:
    """Returns README.md and the pages of docs/."""
    folders = (ROOT / "docs", ROOT / "docs" / "recipes", ROOT / "docs" / "reference")
    pages = [path for folder in folders for path in sorted(folder.glob("*.md"))]
    return [Page(ROOT / "README.md"), *map(Page, pages)]


def every_page() -> list[Page]:
    """Returns the manual, the changelog, and the notes of data/ and benchmarks/."""
    others = [
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "benchmarks/README.md",
        "data/README.md",
    ]
    return [*manual(), *(Page(ROOT / name) for name in others)]
