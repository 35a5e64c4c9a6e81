"""The command `bpe-engine`: text to tokens and back, and a look at both.

Every command takes its input in the same three ways (arguments, ``--file``, standard input) and
its encoding in the same three (``--encoding``, ``--model``, ``--ranks``); see `_reads_text` and
`_takes_encoding`. What is drawn on a terminal is in `display`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click

from . import (
    Encoding,
    __version__,
    encoding_name_for_model,
    get_encoding,
    list_encoding_names,
    load_encoding,
)

_DEFAULT = "o200k_base"
_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Group(click.Group):
    """Lists commands in the order in which they are written here."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name="bpe-engine")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn text into tokens and back, with exactly tiktoken's ids, offline.

    \b
    bpe-engine count -f report.txt             how many tokens a file has
    bpe-engine show "Hello, world!"            each token in its own colour
    bpe-engine encode "Hello, world!"          13225 11 2375 0
    bpe-engine decode 13225 11 2375 0          Hello, world!
    cat notes.md | bpe-engine count -m gpt-4   input from a pipe

    Text is taken from the arguments (joined by spaces), from --file, or else from standard
    input, and is used exactly as it is: a newline at the end is part of it. The names of special
    tokens in the text are ordinary text unless --allow-special says otherwise.

    `bpe-engine COMMAND --help` shows more examples.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


# ---- Options that commands share ----


def _takes_encoding(command: _Command) -> _Command:
    """Gives a command the options that choose an encoding; it is called with `encoding`."""
    options = [
        click.option(
            "-e",
            "--encoding",
            "encoding_name",
            metavar="NAME",
            help=f"An encoding by its name; {_DEFAULT} by default. See `bpe-engine encodings`.",
        ),
        click.option(
            "-m", "--model", metavar="NAME", help="The encoding of a model, such as gpt-4o."
        ),
        click.option(
            "--ranks",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="An encoding of your own: a .tiktoken file.",
        ),
        click.option(
            "--pattern",
            metavar="PATTERN",
            help="With --ranks: the regular expression that cuts text into pieces, or the"
            " name of an encoding to take its pattern; cl100k_base by default.",
        ),
        click.option(
            "--special-token",
            "special_tokens",
            metavar="NAME=ID",
            multiple=True,
            help="With --ranks: a special token. May be repeated.",
        ),
    ]
    return _with(options, command)


def _allows_special(command: _Command) -> _Command:
    """Gives a command the option --allow-special; it is called with `allow_special`."""
    option = click.option(
        "--allow-special",
        metavar="NAME",
        multiple=True,
        help='A special token to be read as one; "all" for every one. May be repeated.',
    )
    return _with([option], command)


def _reads_text(command: _Command) -> _Command:
    """Gives a command its text: arguments, --file or standard input."""
    return _with([_TEXT, _FILE, _INPUT_ERRORS], command)


_TEXT = click.argument("words", metavar="[TEXT]...", nargs=-1)
_INPUT_ERRORS = click.option(
    "--errors",
    type=click.Choice(["strict", "replace", "ignore"]),
    default="strict",
    show_default=True,
    help="What to do with bytes in the input that are not UTF-8.",
)
_FILE = click.option(
    "-f",
    "--file",
    "path",
    metavar="PATH",
    type=click.Path(allow_dash=True),
    help="Read the input from this file; - is standard input.",
)
# So many lines are written in one go: few calls, and the first lines come soon.
_PIECES_AT_ONCE = 4096
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def _with(options: list[Callable[[Any], Any]], command: _Command) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command


def _choose(
    encoding_name: str | None,
    model: str | None,
    ranks: str | None,
    pattern: str | None,
    special_tokens: Sequence[str],
) -> Encoding:
    """The encoding that the options of `_takes_encoding` ask for."""
    if sum(choice is not None for choice in (encoding_name, model, ranks)) > 1:
        raise click.UsageError("--encoding, --model and --ranks exclude each other; give one.")
    if ranks is None and (pattern is not None or special_tokens):
        raise click.UsageError("--pattern and --special-token need --ranks.")
    try:
        if ranks is not None:
            specials = dict(map(_special_token, special_tokens))
            return load_encoding(ranks, pattern or "cl100k_base", specials)
        if model is not None:
            return get_encoding(encoding_name_for_model(model))
        if encoding_name is not None and encoding_name not in list_encoding_names():
            raise click.UsageError(
                f"Unknown encoding {encoding_name!r}; there are {', '.join(list_encoding_names())}."
            )
        return get_encoding(encoding_name or _DEFAULT)
    except KeyError:
        raise click.UsageError(
            f"No encoding is known for the model {model!r}; choose one with --encoding."
        ) from None
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _special_token(option: str) -> tuple[str, int]:
    name, equals, id = option.rpartition("=")
    if not (equals and name and id.isascii() and id.isdigit()):
        raise click.UsageError(f"--special-token {option!r} is not NAME=ID, such as '<|end|>=100'.")
    return name, int(id)


def _allowed(encoding: Encoding, names: Sequence[str]) -> set[str]:
    if "all" in names:
        return set(encoding.special_tokens_set)
    for name in names:
        if name not in encoding.special_tokens_set:
            known = sorted(encoding.special_tokens_set, key=encoding.encode_single_token)
            shown = ", ".join(known[:6]) + (", ..." if len(known) > 6 else "")
            raise click.UsageError(
                f"--allow-special {name!r} is no special token of {encoding.name}; "
                + (f"there are {shown}." if known else "it has none.")
            )
    return set(names)


# ---- Input and output ----


def _read_bytes(path: str | None) -> bytes:
    if path is None or path == "-":
        if sys.stdin is None:
            raise click.ClickException("cannot read standard input: it is closed.")
        if sys.stdin.isatty():
            print("bpe-engine: reading from the terminal; Ctrl-D ends the input", file=sys.stderr)
        try:
            return sys.stdin.buffer.read()
        except OSError as error:
            raise click.ClickException(
                f"cannot read standard input: {error.strerror or error}."
            ) from None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise click.UsageError(f"cannot read {path!r}: {error.strerror}.") from None


def _read_text(words: Sequence[str], path: str | None, errors: str) -> str:
    """The input, from wherever `_reads_text` finds it."""
    if words and path is not None:
        raise click.UsageError("Give TEXT or --file, not both.")
    if words:
        # The system hands over bytes that are not UTF-8 as surrogates.
        contents, source = " ".join(words).encode("utf-8", "surrogateescape"), "TEXT"
    else:
        contents = _read_bytes(path)
        source = "standard input" if path in (None, "-") else repr(path)
    try:
        return contents.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise click.ClickException(
            f"{source} is not UTF-8 at byte {error.start} (0x{contents[error.start]:02x}); "
            "convert it, or pass --errors replace or --errors ignore."
        ) from None


def _write(contents: bytes) -> None:
    """Writes bytes to standard output as they are."""
    sys.stdout.flush()
    rest = memoryview(contents)
    while rest:
        # Under PYTHONUNBUFFERED a write may take only a part.
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def _print(line: str) -> None:
    _write(line.encode("utf-8", "backslashreplace") + b"\n")


def _print_json(value: object) -> None:
    _print(json.dumps(value, ensure_ascii=False))


# ---- Commands ----


@cli.command()
@_takes_encoding
@_allows_special
@_reads_text
@_JSON
def encode(
    words: Sequence[str],
    path: str | None,
    errors: str,
    allow_special: Sequence[str],
    as_json: bool,
    **choice: Any,
) -> None:
    """Print the ids of a text.

    \b
    bpe-engine encode "Hello, world!"
    bpe-engine encode -e cl100k_base --json -f prompt.txt
    bpe-engine encode --allow-special all "one<|endoftext|>two"
    echo -n "from a pipe" | bpe-engine encode
    """
    encoding = _choose(**choice)
    allowed = _allowed(encoding, allow_special)
    text = _read_text(words, path, errors)
    ids = encoding.encode(text, allowed_special=allowed, disallowed_special=())
    if as_json:
        _print_json(ids)
    else:
        _print(" ".join(map(str, ids)))


@cli.command()
@_takes_encoding
@click.argument("ids", metavar="[ID]...", nargs=-1)
@_FILE
@click.option(
    "--errors",
    type=click.Choice(["replace", "ignore", "strict", "backslashreplace"]),
    default="replace",
    show_default=True,
    help="What to do with bytes that are not UTF-8.",
)
@click.option("--raw", is_flag=True, help="Write the bytes as they are, UTF-8 or not.")
@_JSON
def decode(
    ids: Sequence[str], path: str | None, errors: str, raw: bool, as_json: bool, **choice: Any
) -> None:
    """Print the text of ids.

    Ids are separated by spaces, newlines or commas; a JSON list is understood. Nothing is added
    to the text, unless it goes to a terminal: then a newline.

    \b
    bpe-engine decode 13225 11 2375 0
    bpe-engine encode -f a.txt | bpe-engine decode > same-as-a.txt
    echo '[13225, 11, 2375, 0]' | bpe-engine decode
    bpe-engine decode -e qwen --errors backslashreplace 51461
    """
    if ids and path is not None:
        raise click.UsageError("Give ID or --file, not both.")
    encoding = _choose(**choice)
    source = " ".join(ids) if ids else _read_bytes(path).decode("utf-8", "backslashreplace")
    tokens = _parse_ids(source)
    try:
        contents = encoding.decode_bytes(tokens)
        text = "" if raw else contents.decode("utf-8", errors)
    except (KeyError, OverflowError) as error:
        raise click.ClickException(f"{error.args[0]} ({encoding.name}).") from None
    except UnicodeDecodeError as error:
        raise click.ClickException(
            f"the ids are not UTF-8 at byte {error.start} (0x{contents[error.start]:02x}); "
            "pass --errors replace, or --raw for the bytes themselves."
        ) from None
    if as_json and not raw:
        _print_json(text)
        return
    _write(contents if raw else text.encode("utf-8", "surrogatepass"))
    if sys.stdout.isatty():
        _write(b"\n")


def _parse_ids(source: str) -> list[int]:
    words = source.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= 10):
            raise click.UsageError(f"{word[:40]!r} is no id; ids are whole numbers from 0 on.")
    return list(map(int, words))


@cli.command()
@_takes_encoding
@_allows_special
@_TEXT
@click.option(
    "-f",
    "--file",
    "paths",
    metavar="PATH",
    type=click.Path(allow_dash=True),
    multiple=True,
    help="Read the input from this file; - is standard input. May be repeated.",
)
@_INPUT_ERRORS
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="Exit with status 1 if there are more than N tokens in all.",
)
@_JSON
def count(
    words: Sequence[str],
    paths: Sequence[str],
    errors: str,
    limit: int | None,
    allow_special: Sequence[str],
    as_json: bool,
    **choice: Any,
) -> None:
    """Print how many tokens a text has.

    With several files: one line for each, and a last line for all.

    \b
    bpe-engine count "Hello, world!"
    bpe-engine count -m gpt-4o -f README.md
    bpe-engine count -f a.txt -f b.txt
    bpe-engine count --limit 8000 -f prompt.txt || echo too long
    """
    encoding = _choose(**choice)
    allowed = _allowed(encoding, allow_special)
    inputs: Sequence[str | None] = paths or [None]
    totals = [
        encoding.count(_read_text(words, path, errors), allowed_special=allowed) for path in inputs
    ]
    total = sum(totals)
    if as_json and len(paths) > 1:
        files = [{"file": path, "tokens": tokens} for path, tokens in zip(paths, totals)]
        _print_json({"encoding": encoding.name, "files": files, "tokens": total})
    elif as_json:
        _print_json({"encoding": encoding.name, "tokens": total})
    elif len(paths) > 1:
        width = len(str(total))
        for tokens, name in zip([*totals, total], [*paths, "total"]):
            _print(f"{tokens:{width}} {name}")
    else:
        _print(str(total))
    if limit is not None and total > limit:
        raise click.exceptions.Exit(1)


@cli.command()
@_takes_encoding
@_allows_special
@_reads_text
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Whether to colour; auto: on a terminal.",
)
@click.option(
    "--width",
    type=click.IntRange(min=8),
    metavar="N",
    help="Wrap at N columns; the terminal's width by default.",
)
@_JSON
def show(
    words: Sequence[str],
    path: str | None,
    errors: str,
    allow_special: Sequence[str],
    color: str,
    width: int | None,
    as_json: bool,
    **choice: Any,
) -> None:
    """Show the tokens of a text, each in its own colour, with the ids under them.

    A space is shown as ·, other characters that cannot be seen as escapes such as \\n, bytes of
    a character that a token cuts as \\xe6. Special tokens are inverse, their ids marked with *.

    \b
    bpe-engine show "Tokenization isn't obvious."
    bpe-engine show -e qwen --allow-special all "<|im_start|>user"
    bpe-engine show --color always -f poem.txt | less -R
    bpe-engine show --json "a b" | jq '.[].id'
    """
    from . import display

    encoding = _choose(**choice)
    allowed = _allowed(encoding, allow_special)
    text = _read_text(words, path, errors)
    tokens = display.tokens_of(encoding, text, allowed)
    if as_json:
        _print_json([token.as_dict() for token in tokens])
    else:
        display.show_tokens(encoding, text, tokens, color, width)


@cli.command()
@_takes_encoding
@_allows_special
@_reads_text
@_JSON
def split(
    words: Sequence[str],
    path: str | None,
    errors: str,
    allow_special: Sequence[str],
    as_json: bool,
    **choice: Any,
) -> None:
    """Print the pieces that a text is cut into before tokens are looked for.

    One piece a line, with spaces as · and other characters that cannot be seen as escapes.

    \b
    bpe-engine split "It's 10 o'clock."
    bpe-engine split -e gpt2 --json -f code.py
    """
    from . import display

    encoding = _choose(**choice)
    allowed = _allowed(encoding, allow_special)
    pieces = encoding.split(_read_text(words, path, errors), allowed_special=allowed)
    if as_json:
        _print_json(pieces)
    else:
        for start in range(0, len(pieces), _PIECES_AT_ONCE):
            some = pieces[start : start + _PIECES_AT_ONCE]
            _write("".join(display.visible(piece) + "\n" for piece in some).encode())


@cli.command()
@_JSON
def encodings(as_json: bool) -> None:
    """List the encodings: tokens, special tokens, largest id, and the rank file's sha256.

    \b
    bpe-engine encodings
    bpe-engine encodings --json | jq -r '.[].name'
    """
    from . import display

    rows = [display.describe(name) for name in list_encoding_names()]
    if as_json:
        _print_json(rows)
    else:
        display.show_encodings(rows)


# ---- The command itself ----


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command and exits: with 0; 1 when the input will not do or the output cannot be
    written; 2 when the command line will not do; 130 after Ctrl-C; 141 when whoever reads the
    output has gone away."""
    # Python has no object for a standard stream that was closed before it started.
    if sys.stdout is None:
        sys.exit(_complain("cannot write: standard output is closed", 1))
    try:
        # Not `cli.main`: it spreads messages over several lines and hides a closed pipe.
        words = sys.argv[1:] if arguments is None else arguments
        with cli.make_context("bpe-engine", list(words)) as context:
            cli.invoke(context)
        sys.stdout.flush()
        status = 0
    except click.exceptions.Exit as exit:
        status = exit.exit_code
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "bpe-engine"
        message = error.format_message().rstrip(".")
        status = _complain(f"{message} (`{where} --help` shows examples)", 2)
    except click.ClickException as error:
        status = _complain(error.format_message(), error.exit_code)
    except ValueError as error:
        status = _complain(str(error), 1)
    except (KeyboardInterrupt, click.Abort):
        status = 130
    except BrokenPipeError:
        _drop_output()
        status = 141
    except OSError as error:
        # What cannot be read is a ClickException already.
        _drop_output()
        status = _complain(f"cannot write: {error.strerror or error}", 1)
    sys.exit(status)


def _complain(message: str, status: int) -> int:
    """Prints an error in one line."""
    # With nowhere to print it, the status has to do. (None would be standard output.)
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print("bpe-engine:", " ".join(message.split()), file=sys.stderr)
    return status


def _drop_output() -> None:
    """Sends what is still in a buffer nowhere, so that closing it does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()
