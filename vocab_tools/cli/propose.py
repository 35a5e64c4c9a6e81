"""``vocab-tools propose``."""

from __future__ import annotations

import click
from rich.table import Table
from rich.text import Text

from ..extend.propose import MIN_FREQUENCY, Proposal, propose_words, summary
from ..files import STANDARD, OutputFiles
from ..ranks import load_ranks
from ..text import plural
from ..words import listed_words
from .console import ROWS_SHOWN, console, readable_errors, say, steps_bar
from .options import FILE, Command, chosen_pattern, field_option, pattern_options


def propose_options(command: Command) -> Command:
    """What `propose` and `extend` share."""
    for option in (
        click.option(
            "--exclude", type=FILE, help="Words not to propose, one a line, with their space."
        ),
        click.option(
            "--scripts",
            metavar="NAME,...",
            default="",
            help="Only words whose letters are of these scripts, such as Thai,Latin.",
        ),
        click.option(
            "--min-frequency",
            type=click.IntRange(1),
            default=MIN_FREQUENCY,
            show_default=True,
            help="Leave out words that occur less often.",
        ),
        click.option(
            "-n",
            "--new-ids",
            type=click.IntRange(1),
            default=2000,
            show_default=True,
            help="The most ids to use, for words and for the by-products on their way.",
        ),
    ):
        command = option(command)
    return field_option(command)


@click.command()
@click.argument("base", type=FILE)
@click.argument("corpus", type=FILE, nargs=-1, required=True)
@click.option("-o", "--output", required=True, help="The file for the words; - for stdout.")
@propose_options
@click.option("--extra", type=FILE, multiple=True, help="More ranks that the base has; repeatable.")
@pattern_options
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def propose(
    base: str,
    corpus: tuple[str, ...],
    output: str,
    new_ids: int,
    min_frequency: int,
    scripts: str,
    exclude: str | None,
    extra: tuple[str, ...],
    pattern: str | None,
    pattern_regex: str | None,
    field: str,
    force: bool,
    quiet: bool,
) -> None:
    """Find the words of CORPUS that save most tokens when they become tokens of BASE.

    CORPUS is text, .jsonl or .parquet, packed with gzip or not. The words are written with their
    frequencies, those that save most for an id first, as `learn --keep-space` reads them.

    \b
      vocab-tools propose qwen.tiktoken thai/*.txt -n 2000 --scripts Thai -o words.txt
      vocab-tools learn qwen.tiktoken words.txt --keep-space -o extra.tiktoken
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    with readable_errors():
        inputs = [base, *corpus, *extra, *([exclude] if exclude else [])]
        files = OutputFiles([output], inputs, force=force)
        ranks = load_ranks(base, *extra)
        proposal = proposed(ranks, corpus, new_ids, chosen, min_frequency, scripts, exclude, field)
        files.write({output: proposal.dump()})
    if not quiet:
        print_proposal(proposal, output)
        extras = "".join(f" --extra {path}" for path in extra)
        to = console(stderr=output == STANDARD)
        command = f"vocab-tools learn {base} {output}{extras} --keep-space -o extra.tiktoken"
        say(to, f"\nLearn them with: {command}")


def proposed(
    ranks: dict[bytes, int],
    corpus: tuple[str, ...],
    new_ids: int,
    pattern: str | None,
    min_frequency: int,
    scripts: str,
    exclude: str | None,
    field: str,
) -> Proposal:
    """The words that the options ask for, with a progress bar."""
    with steps_bar() as update:
        return propose_words(
            ranks,
            corpus,
            new_ids,
            pattern=pattern,
            min_frequency=min_frequency,
            scripts=[name for name in scripts.split(",") if name.strip()],
            exclude=listed_words(exclude, keep_space=True) if exclude else (),
            field=field,
            progress=update,
        )


def print_proposal(proposal: Proposal, output: str) -> None:
    """Prints what was proposed, with the first words."""
    to = console(stderr=output == STANDARD)
    say(to, summary(proposal))
    table = Table(box=None, pad_edge=False)
    table.add_column("word", overflow="fold")
    for column in ("frequency", "tokens now", "new ids", "saved", "saved per id"):
        table.add_column(column, justify="right", no_wrap=True)
    for word in proposal.words[:ROWS_SHOWN]:
        numbers = (word.frequency, word.tokens_now, word.new_ids, word.saved)
        row = [*(f"{number:,}" for number in numbers), f"{word.saved_per_id:,.0f}"]
        table.add_row(Text(repr(word.word)), *row)
    if proposal.words:
        to.print(table)
    if len(proposal.words) > ROWS_SHOWN:
        say(to, f"and {len(proposal.words) - ROWS_SHOWN:,} more")
    for reason, count in sorted(proposal.left_out.items()):
        say(to, f"left out: {plural(count, 'piece')}, {reason}")
    if proposal.forgotten_up_to:
        times = proposal.forgotten_up_to
        say(to, f"pieces that occur {times} times or less may be missing, to bound memory")
