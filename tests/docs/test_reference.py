"""Tests that docs/reference/ covers the public names of both packages."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import pytest
from pages import ROOT, Page, manual

import bpe_engine
import bpe_engine.abilities
import vocab_tools

REFERENCE = "".join(Page(path).text for path in (ROOT / "docs" / "reference").glob("*.md"))
MODULES = re.findall(r"^\.\. automodule:: ([\w.]+)$", REFERENCE, re.MULTILINE)

#: Modules that copy tiktoken's modules, and modules whose names only this project uses.
NOT_LISTED = {
    "core",
    "load",
    "model",
    "registry",
    "ordinary_text",
    "brief",
    "face",
    "cli",
    "columns",
    "texts",
    "visible",
}


def public_modules() -> list[str]:
    """Returns the modules directly below the two packages that declare public names."""
    found = []
    for package in (bpe_engine, bpe_engine.abilities, vocab_tools):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            name = module.name.rpartition(".")[2]
            is_private = name.startswith("_") or name in NOT_LISTED
            if not is_private and hasattr(importlib.import_module(module.name), "__all__"):
                found.append(module.name)
    return found


def names_of(module: ModuleType) -> set[str]:
    """Returns the public classes and functions of a module."""
    return {name for name in module.__all__ if callable(getattr(module, name))}


def test_every_public_module_is_listed() -> None:
    """Every public module is listed, or some of its names are listed under another module."""
    listed = {name for module in MODULES for name in names_of(importlib.import_module(module))}
    for name in public_modules():
        if name not in MODULES:
            represented = names_of(importlib.import_module(name)) & listed
            assert represented, f"docs/reference lacks {name}"


def test_every_public_class_is_shown() -> None:
    """Every public class is listed, under its module or separately: calls return these classes."""
    shown = {getattr(importlib.import_module(name), public) for name in MODULES
             for public in names_of(importlib.import_module(name))}  # fmt: skip
    for path in re.findall(r"^\.\. auto(?:class|function):: ([\w.]+)$", REFERENCE, re.MULTILINE):
        module, _, public = path.rpartition(".")
        shown.add(getattr(importlib.import_module(module), public))
    for name in public_modules():
        module_of = importlib.import_module(name)
        classes = [getattr(module_of, public) for public in names_of(module_of)]
        lacking = {one for one in classes if isinstance(one, type)} - shown
        assert not lacking, f"docs/reference lacks {lacking} of {name}"


@pytest.mark.parametrize("name", MODULES)
def test_the_number_of_threads_is_a_keyword(name: str) -> None:
    module = importlib.import_module(name)
    for public in names_of(module):
        owner = getattr(module, public)
        members = [getattr(owner, member) for member in dir(owner) if not member.startswith("_")]
        for function in [owner, *members] if isinstance(owner, type) else [owner]:
            if not callable(function) or isinstance(function, type):
                continue
            try:
                parameters = inspect.signature(function).parameters
            except ValueError:
                continue  # A built-in base class defines this method.
            assert "threads" not in parameters, function
            # The method `encode_ragged` is internal.
            if "num_threads" in parameters and function.__name__ != "encode_ragged":
                assert parameters["num_threads"].kind == inspect.Parameter.KEYWORD_ONLY, function


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_shown(name: str) -> None:
    """Every public name has a docstring; autodoc would omit a name without a docstring."""
    module = importlib.import_module(name)
    for public in names_of(module):
        assert getattr(module, public).__doc__, f"{name}.{public} has no docstring"


@pytest.mark.parametrize("page", manual(), ids=lambda page: page.name)
def test_names_that_examples_import_are_public(page: Page) -> None:
    for language, body in page.blocks:
        if language == "pycon":
            found = re.findall(r"from ((?:bpe_engine|vocab_tools)[\w.]*) import (.*)", body)
            for module, names in found:
                public = importlib.import_module(module).__all__
                assert {name.strip() for name in names.split(",")} <= set(public), page.name
