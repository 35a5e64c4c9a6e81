"""The group of commands, and how each ends."""

from __future__ import annotations

import contextlib
import os
import sys

import click

import bpe_engine

from ..text import visible
from . import PIPE_CLOSED
from .check import check
from .compare import compare, stats
from .convert import convert
from .counting import count
from .extend import extend
from .learn import learn
from .propose import propose
from .train import train


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(bpe_engine.__version__, prog_name="vocab-tools")
def cli() -> None:
    """Extend, check, train, convert and compare byte-level BPE vocabularies.

    \b
    Add words to Qwen's vocabulary:
      vocab-tools learn qwen.tiktoken words.txt -o extra.tiktoken
    Look for what is wrong with the result:
      vocab-tools check qwen.tiktoken extra.tiktoken --words words.txt
    Find the words to add in the text of a domain or language:
      vocab-tools propose qwen.tiktoken corpus.txt -n 2000 -o words.txt
    All of it in one go:
      vocab-tools extend qwen.tiktoken corpus.txt -n 2000 -o extra.tiktoken
    Train a vocabulary:
      vocab-tools train corpus/ --vocab-size 32000 -o out.tiktoken
    Write a tokenizer in another format:
      vocab-tools convert qwen.tiktoken new/tokenizer.json --extra extra.tiktoken
    Measure tokenizers on text:
      vocab-tools stats o200k_base --corpus news.txt
      vocab-tools compare qwen o200k_base --corpus news.txt --report compared.html
    """


for _command in (learn, check, propose, extend, count, train, convert, stats, compare):
    cli.add_command(_command)


def run() -> int:
    """Runs the command, and returns its exit status. Ctrl-C raises KeyboardInterrupt."""
    try:
        # Not `cli.main`, which prints an empty line after Ctrl-C.
        with cli.make_context("vocab-tools", sys.argv[1:]) as context:
            cli.invoke(context)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as ended:
        sys.stdout.flush()
        return ended.exit_code
    except click.ClickException as error:
        return _show(error)
    except click.Abort:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:
        # What is left is printing: everything else is done by now.
        _drop_output()
        where = error.filename or "standard output"
        return _show(click.ClickException(f"{where}: {error.strerror or error}"))


def _show(error: click.ClickException) -> int:
    """Shows an error, with nothing in it that a terminal would obey."""
    vars(error)["message"] = visible(error.message)
    with contextlib.suppress(OSError):
        error.show()
    return error.exit_code


def _drop_output() -> None:
    """What takes no more, such as a closed pipe: keeps the interpreter from failing on it again
    at exit."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
