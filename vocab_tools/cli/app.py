"""The command group, and the exit status of every command."""

from __future__ import annotations

import contextlib
import os
import sys

import click

import bpe_engine
from bpe_engine.cli.group import SuggestingGroup, complete, error_line
from bpe_engine.cli.printing import escape_unencodable

from ..text import visible
from .check import check
from .compare import compare, stats
from .convert import convert
from .count import count
from .explain import explain
from .extend import extend
from .learn import learn
from .propose import propose
from .train import train

#: The exit status when the reader of the output is gone: 128 + SIGPIPE.
PIPE_CLOSED = 141


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(bpe_engine.__version__, "-V", "--version", prog_name="vocab-tools")
def cli() -> None:
    """Extend, check, train, convert and compare byte-level BPE vocabularies.

    A vocabulary is the name of an encoding (see `bpe-engine encodings`), a .tiktoken file, a
    tokenizer.json or tekken.json, or a folder of one.

    \b
    Measure tokenizers on text:
      vocab-tools stats o200k_base --corpus news.txt
      vocab-tools compare qwen o200k_base --corpus news.txt --report compared.html
    Find the words of a domain or language that are worth a token, add them, check the result:
      vocab-tools propose qwen corpus.txt -n 2000 -o words.txt
      vocab-tools learn qwen words.txt --keep-space -o extra.tiktoken
      vocab-tools check qwen extra.tiktoken --words words.txt
    All three in one step:
      vocab-tools extend qwen corpus.txt -n 2000 -o extra.tiktoken
    Train a vocabulary:
      vocab-tools train corpus/ --vocab-size 32k -o out.tiktoken
    Write a tokenizer in another format:
      vocab-tools convert qwen new/tokenizer.json --extra extra.tiktoken
    """


for _command in (stats, compare, propose, learn, check, explain, extend, count, train, convert):
    cli.add_command(_command)


def run() -> int:
    """Runs the command, and returns its exit status. Ctrl-C raises KeyboardInterrupt."""
    escape_unencodable()
    if (completed := complete(cli, "vocab-tools")) is not None:
        return completed
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
    """Shows an error, with control characters escaped."""
    with contextlib.suppress(OSError):
        click.echo(visible(error_line("vocab-tools", error)), err=True)
    return error.exit_code


def _drop_output() -> None:
    """Discards what is left to print to a closed pipe or full disk, so that the interpreter does
    not fail on it again at exit."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
