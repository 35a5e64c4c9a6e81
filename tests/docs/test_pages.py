"""Tests links, navigation, tables and versions in the pages of the manual."""

from __future__ import annotations

import doctest
import re

import pages
import pytest
from pages import ROOT, Page, every_page, manual

import bpe_engine

README = Page(ROOT / "README.md")
INDEX = Page(ROOT / "docs" / "index.md")


def test_readme_is_short() -> None:
    assert len(README.text.encode()) <= 10_000


def test_readme_has_the_commands() -> None:
    """The README has commands to install, to build, and to install and run the tests."""
    commands = [body for language, body in README.blocks if language == "sh"]
    assert len(commands) == 3
    assert all(body.startswith("pip install ") and body.count("\n") == 1 for body in commands)
    assert commands[0] == "pip install .\n"
    assert "pytest" in commands[2]


@pytest.mark.parametrize("page", manual(), ids=lambda page: page.name)
def test_every_example_is_run(page: Page) -> None:
    """Pages have only code blocks that a test runs, and plain text."""
    others = {"sh"} if page == README else {"{toctree}", "{eval-rst}"}
    languages = {language for language, _ in page.blocks}
    assert languages <= {"pycon", "console", "text"} | others


@pytest.mark.parametrize("page", every_page(), ids=lambda page: page.name)
def test_links(page: Page) -> None:
    for link in page.links:
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        assert target.exists(), f"{page.name}: {link}"
        # The API reference has an anchor for each name, which the build of the site checks.
        if anchor and target.parent.name != "reference":
            assert anchor in Page(target).anchors, f"{page.name}: {link}"


@pytest.mark.parametrize("page", every_page(), ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Page) -> None:
    folders = "core|hf|bindings|bpe_engine|vocab_tools|benchmarks|data|docs|tests"
    for path in re.findall(rf"`((?:{folders})/[\w./]*)`", page.prose):
        assert (ROOT / path).exists(), f"{page.name}: {path}"


def test_every_page_is_in_the_navigation() -> None:
    """Every page is in a toctree, because readers cannot find other pages."""
    docs = ROOT / "docs"
    listed = {
        (page.path.parent / line).relative_to(docs).as_posix()
        for page in manual()
        for language, body in page.blocks
        if language == "{toctree}"
        for line in body.split()
        if not line.startswith(":")
    }
    for page in manual():
        if page not in (README, INDEX):
            name = page.path.relative_to(docs).with_suffix("").as_posix()
            assert name in listed, f"add {name} to a toctree of docs/index.md"


def test_table_of_encodings() -> None:
    text = Page(ROOT / "docs" / "encodings.md").text
    rows = re.findall(r"^\| (`.*`) \| (\d+) \| (\d+) \| (\d+) \|", text, re.MULTILINE)
    found = {
        name: (int(tokens), int(specials), int(largest))
        for names, tokens, specials, largest in rows
        for name in re.findall(r"`([\w.]+)`", names)
    }
    for name, row in found.items():
        enc = bpe_engine.get_encoding(name)
        assert row == (
            len(enc.token_byte_values()),
            len(enc.special_tokens_set),
            enc.max_token_value,
        )
    assert found.keys() == set(bpe_engine.list_encoding_names())


def test_versions_that_are_asked_for() -> None:
    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    python = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    rust = re.search(r'rust-version = "([\d.]+)"', cargo)
    least = re.search(r'requires-python = ">=([\d.]+)"', python)
    assert rust and f"Rust toolchain ({rust[1]} or later)" in README.text
    assert least and f"Python {least[1]} or later" in README.text


def test_tables_of_benchmarks_have_a_place() -> None:
    for path, kind in (("README.md", "speed"), ("docs/benchmarks.md", "benchmarks")):
        text = Page(ROOT / path).text
        assert text.count(f"<!-- {kind} -->\n") == text.count("<!-- end -->\n") == 1


def test_examples_of_the_helpers() -> None:
    assert doctest.testmod(pages).failed == 0
