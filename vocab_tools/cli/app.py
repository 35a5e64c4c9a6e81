"""The commands of ``vocab-tools``, and their help."""

from __future__ import annotations

import sys

import click

import bpe_engine
from bpe_engine.cli.group import Group
from bpe_engine.cli.program import run_program

# Sections of the help, in the order of a user's work.
_SECTIONS = {
    "Measure tokenizers on text": ("stats", "compare"),
    "Map ids to another vocabulary": ("map",),
    "Extend a vocabulary": ("propose", "learn", "check", "explain", "extend"),
    "Train a vocabulary": ("count", "train"),
    "Write another format": ("convert",),
}


@click.group(
    cls=Group,
    sections=_SECTIONS,
    package=__package__,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(bpe_engine.__version__, "-V", "--version", prog_name="vocab-tools")
def cli() -> None:
    """Extend, check, train, convert and compare byte-level BPE vocabularies.

    A vocabulary is the name of an encoding (see `bpe-engine encodings`), a .tiktoken file, a
    tokenizer.json or tekken.json, or a folder with such a file.

    \b
    Measure tokenizers on text:
      vocab-tools stats o200k_base --corpus news.txt
      vocab-tools compare qwen o200k_base --corpus news.txt --report out.html
    Find words that are worth a token, add them, check the result:
      vocab-tools propose qwen corpus.txt -n 2000 -o words.txt
      vocab-tools learn qwen words.txt -o extra.tiktoken
      vocab-tools check qwen extra.tiktoken --words words.txt
    All three in one step:
      vocab-tools extend qwen corpus.txt -n 2000 -o extra.tiktoken
    Train a vocabulary:
      vocab-tools train corpus/ --vocab-size 32k -o out.tiktoken
    Map the ids of a vocabulary to another's:
      vocab-tools map gpt2 o200k_base --report map.html
    Write a tokenizer in another format:
      vocab-tools convert qwen new/tokenizer.json --extra extra.tiktoken
    """


def import_command() -> None:
    """Imports the module of the called command."""
    cli.get_command(click.Context(cli), "".join(sys.argv[1:2]))


def run() -> int:
    """Runs the command, and returns its exit status."""
    return run_program(cli, "vocab-tools", sys.argv[1:])
