"""The command ``vocab-tools``."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from .check import CheckResult, check_vocabulary
from .corpus import CorpusEffect, corpus_effect
from .learn import LearnResult, learn_merges
from .ranks import load_ranks, read_ranks_like_add_merges, read_special_tokens
from .report import Section, renderer, sections
from .words import read_words

#: Rows of a table on the screen.
ROWS_SHOWN = 20

#: Warnings on the screen; a report has all of them.
WARNINGS_SHOWN = 100

#: Sections that are not printed when they have no rows. (Remarks were printed as warnings.)
OPTIONAL = ("Words", "By-products", "Conflicts")

#: The exit status after Ctrl-C: 128 + SIGINT.
INTERRUPTED = 130

FILE = click.Path(exists=True, dir_okay=False, readable=True)


class _Console(Console):
    """Leaves a closed pipe to :func:`main`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _console(stderr: bool = False) -> Console:
    """A console that writes text as it is, and does not wrap it in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 1 << 16
    return _Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def _say(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; nothing in a pipe."""
    console = _console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Bad input as a message and exit status 1, without a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(f"{named}{error.strerror or error}") from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bpe-engine")
def cli() -> None:
    """Extend a byte-level BPE vocabulary, and check one.

    \b
    Add words to Qwen's vocabulary:
      vocab-tools learn qwen.tiktoken words.txt -o extra.tiktoken
    Look for what is wrong with the result:
      vocab-tools check qwen.tiktoken extra.tiktoken --words words.txt
    """


def _report_path(
    _context: click.Context, _option: click.Parameter, value: tuple[str, ...]
) -> object:
    """Refuses an unknown kind of report before any work is done."""
    for path in value:
        try:
            renderer(path)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return value


def _special_tokens(path: str | None) -> dict[str, int] | None:
    if path is None:
        return None
    return {} if path == "none" else read_special_tokens(path)


@cli.command()
@click.argument("base", type=FILE)
@click.argument("words", type=FILE)
@click.option("-o", "--output", required=True, help="The file for the new tokens; - for stdout.")
@click.option(
    "--pattern",
    help="Name of an encoding, or a regular expression: how text is cut before merging. "
    "[default: the encoding whose published ranks BASE has, else qwen]",
)
@click.option(
    "--special-tokens",
    "specials",
    metavar="FILE",
    help="Names and ids that are taken: JSON, or 'name id' a line; 'none' for none. "
    "[default: those of the encoding that BASE is, else of the named encoding]",
)
@click.option("--extra", type=FILE, multiple=True, help="More ranks that the base has; repeatable.")
@click.option(
    "--start-id",
    type=int,
    help="Id of the first new token. [default: 151851 for qwen, else the first free id]",
)
@click.option("--keep-space", is_flag=True, help="Keep the space that a word begins with.")
@click.option("--lenient", is_flag=True, help="Take 1 for a frequency that is bad or not there.")
@click.option("--max-merges", type=click.IntRange(0), help="Learn at most so many tokens.")
@click.option("--min-frequency", type=click.IntRange(1), help="Leave rarer pairs alone.")
@click.option(
    "--whole-characters",
    is_flag=True,
    help="Learn no token that cuts a character or crosses into one.",
)
@click.option(
    "--like-add-merges",
    is_flag=True,
    help="Write what Qwen's add_merges.py writes even where that is a defective file.",
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    callback=_report_path,
    metavar="FILE",
    help="Write a report: .html, .json or .md; repeatable.",
)
@click.option("--corpus", type=FILE, help="Compare base and extended vocabulary on this text.")
@click.option("-q", "--quiet", is_flag=True, help="Print warnings only.")
def learn(
    base: str,
    words: str,
    output: str,
    pattern: str | None,
    specials: str | None,
    extra: tuple[str, ...],
    start_id: int | None,
    keep_space: bool,
    lenient: bool,
    max_merges: int | None,
    min_frequency: int | None,
    whole_characters: bool,
    like_add_merges: bool,
    reports: tuple[str, ...],
    corpus: str | None,
    quiet: bool,
) -> None:
    """Learn the merges that make each of WORDS one token of BASE.

    WORDS has one word and its frequency a line, separated by a tab. Only the new tokens are
    written, as lines of base64, a space and the id.

    \b
      vocab-tools learn qwen.tiktoken words.txt -o extra.tiktoken
      vocab-tools learn qwen.tiktoken words.txt -o extra.tiktoken --report report.html
    """
    notes: list[str] = []
    with _errors():
        for given in (base, words, *extra):
            if output != "-" and _same_file(given, output):
                raise ValueError(f"{output} is an input; write the new tokens to another file")
        listed = read_words(
            words,
            keep_space=keep_space,
            lenient=lenient,
            like_add_merges=like_add_merges,
            notes=notes,
        )
        read = read_ranks_like_add_merges if like_add_merges else load_ranks
        with _progress("learning") as update:
            result = learn_merges(
                read(base, *extra),
                listed,
                pattern=pattern,
                special_tokens=_special_tokens(specials),
                start_id=start_id,
                max_merges=max_merges,
                min_frequency=min_frequency,
                whole_characters=whole_characters,
                like_add_merges=like_add_merges,
                progress=update,
            )
        result.notes[:0] = notes
        effect = _effect(corpus, result) if corpus is not None else None
        _write(output, result.dump())
        for path in reports:
            _write(path, renderer(path)(result, effect).encode())
    warnings = _console(stderr=True)
    for note in result.notes[:WARNINGS_SHOWN]:
        _say(warnings, f"warning: {note}")
    if len(result.notes) > WARNINGS_SHOWN:
        _say(warnings, f"and {len(result.notes) - WARNINGS_SHOWN} more warnings; see --report")
    if not quiet:
        _explain(result, effect, _console(stderr=output == "-"), output)


def _same_file(given: str, output: str) -> bool:
    return os.path.exists(output) and os.path.samefile(given, output)


def _effect(path: str, result: LearnResult) -> CorpusEffect:
    base = result.pattern.encoding(result.base, {})
    extended = result.pattern.encoding(result.extended, {})
    new_words = [word.word for word in result.words if word.id is not None]
    return corpus_effect(path, base, extended, new_words, nfc=result.pattern.nfc)


def _write(path: str, contents: bytes) -> None:
    """Writes a file at once or not at all; ``-`` is standard output."""
    if path == "-":
        sys.stdout.buffer.write(contents)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if target.exists() and not target.is_file():
        target.write_bytes(contents)
        return
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _explain(
    result: LearnResult, effect: CorpusEffect | None, console: Console, output: str
) -> None:
    where = "" if output == "-" else f" {output} has the new tokens."
    for part in sections(result, effect, ROWS_SHOWN):
        if part.title == "Remarks" or (not part.rows and part.title in OPTIONAL):
            continue
        is_summary = part.title == "Summary"
        _say(console, f"\n{part.title}: {part.text}" + (where if is_summary else ""))
        _table(console, part)


def _table(console: Console, part: Section) -> None:
    if not part.rows:
        return
    table = Table(box=None, pad_edge=False)
    for column in part.columns:
        table.add_column(column, overflow="fold")
    for row in part.rows:
        table.add_row(*(Text(text) for text in row))
    console.print(table)
    if part.total > len(part.rows):
        _say(console, f"and {part.total - len(part.rows)} more; --report has them")


@cli.command()
@click.argument("base", type=FILE)
@click.argument("extra", type=FILE, nargs=-1)
@click.option(
    "--pattern",
    help="Name of an encoding, or a regular expression. "
    "[default: the encoding whose published file BASE is, else qwen]",
)
@click.option(
    "--special-tokens",
    "specials",
    metavar="FILE",
    help="Names and ids: JSON, or 'name id' a line; 'none' for none. "
    "[default: those of the named encoding]",
)
@click.option("--words", type=FILE, help="The words that were to become tokens.")
@click.option("--corpus", type=FILE, help="Compare BASE with and without EXTRA on this text.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every id that is not OK.")
@click.pass_context
def check(
    context: click.Context,
    base: str,
    extra: tuple[str, ...],
    pattern: str | None,
    specials: str | None,
    words: str | None,
    corpus: str | None,
    as_json: bool,
) -> None:
    """Look for what is wrong with the vocabulary BASE, or with what extends it.

    The exit status is 1 when there are errors, and 0 when there are only warnings.

    \b
      vocab-tools check o200k_base.tiktoken
      vocab-tools check qwen.tiktoken extra.tiktoken --words words.txt --json
    """
    with _errors(), _progress("checking") as update:
        result = check_vocabulary(
            base,
            extra,
            pattern=pattern,
            special_tokens=_special_tokens(specials),
            words=words,
            corpus=corpus,
            progress=update,
        )
    if as_json:
        click.echo(json.dumps(result.to_plain(), ensure_ascii=False, indent=1))
    else:
        _print_findings(result, _console())
    if not result.ok:
        context.exit(1)


_COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def _print_findings(result: CheckResult, console: Console) -> None:
    sizes = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in result.sizes.items())
    _say(console, f"pattern: {result.pattern}\n{sizes}")
    for finding in result.findings:
        line = Text(f"{finding.severity:<8}", style=_COLOURS[finding.severity])
        line.append(f"{finding.code} ({finding.count}): {finding.message}", style="default")
        console.print(line, soft_wrap=True)
        for example in finding.examples[:3]:
            _say(console, f"          {example}")
    counts = ", ".join(f"{name} {count}" for name, count in result.round_trip_counts.items())
    _say(console, f"round trip: {counts}")
    _say(console, "no errors" if result.ok else "there are errors")


def main() -> None:
    """Runs the command. Ctrl-C ends it quietly with status 130; so does a pipe closed early, with
    status 1."""
    try:
        status = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except BrokenPipeError:
        status = 1
    if status == 1:
        _drop_output()
    sys.exit(status if isinstance(status, int) else 0)


def _drop_output() -> None:
    """Nobody reads a closed pipe: keeps the interpreter from failing on it again at exit."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
