"""The command ``vocab-tools convert``: writes a tokenizer in another format."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles

from ..convert.conversion import Conversion, convert_tokenizer
from ..convert.formats import WRITABLE, locate_source, locate_target
from ..report import check_ending, render
from ..text import plural
from .console import console, print_json, progress_bar, say, say_wrapped
from .inputs import expect, refuse_repeated, special_inputs
from .options import (
    FILE,
    chosen_pattern,
    errors_option,
    field_option,
    pattern_options,
    read_special_option,
    special_tokens_option,
)

#: Maximum number of differences to print.
EXAMPLES_SHOWN = 10


@click.command(cls=Command)
@click.argument("source", metavar="IN", type=VOCABULARY)
@click.argument("target", metavar="OUT")
@click.option(
    "--extra", type=FILE, multiple=True, help="A rank file of new tokens to add; repeatable."
)
@click.option(
    "--control-tokens",
    type=FILE,
    help="Names of special tokens to add after all ids, one a line; a tab and a description may follow, "
    "whose ids the plan takes in place of the name's.",
)
@click.option(
    "--plan",
    metavar="FILE",
    help="Write the embedding plan for the new tokens: JSON, or .html or .md to look at.",
)
@pattern_options(
    "[default: the pattern in IN, else of the published vocabulary that IN is or begins with]"
)
@special_tokens_option
@click.option("--corpus", type=FILE, multiple=True, help="Verify on this text as well; repeatable.")
@field_option
@errors_option
@click.option(
    "--allow-differences",
    is_flag=True,
    help="Write OUT even if some text has other ids, and list the differences.",
)
@click.option(
    "--from",
    "source_format",
    type=click.Choice([*WRITABLE, "gguf"]),
    help="IN's format.",
)
@click.option("--to", "target_format", type=click.Choice(WRITABLE), help="OUT's format.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def convert(
    source: str,
    target: str,
    extra: tuple[str, ...],
    control_tokens: str | None,
    plan: str | None,
    pattern: str | None,
    pattern_regex: str | None,
    specials: str | None,
    corpus: tuple[str, ...],
    field: str,
    errors: str,
    allow_differences: bool,
    source_format: str | None,
    target_format: str | None,
    as_json: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Convert a tokenizer to another format, and verify the ids.

    Both tokenizers encode the same text, and OUT is written only if all ids are the same.

    IN is a .tiktoken file, a tokenizer.json of byte-level BPE, vocab.json with merges.txt, a
    tekken.json, a .gguf, a SentencePiece .model, a folder with such a file, or the name of an
    encoding. The name of OUT selects the format: .tiktoken, tokenizer.json, vocab.json or
    tekken.json. A SentencePiece model becomes a tokenizer.json, and a tokenizer.json can become a
    .model. Control tokens can be added to a tokenizer.json of any model. The pattern and the
    special tokens of .tiktoken and vocab.json go to NAME.encoding.json in the same folder.

    \b
      vocab-tools convert o200k_base new/tokenizer.json
      vocab-tools convert tokenizer.json qwen.tiktoken
      vocab-tools convert qwen2.5/ new/tokenizer.json --extra new.tiktoken
      vocab-tools convert qwen2.5/ new/tokenizer.json --control-tokens names.txt
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    if plan and not (extra or control_tokens):
        raise click.UsageError(
            "--plan needs new tokens; give them with --extra or --control-tokens"
        )
    if plan and _is_shown(plan):
        check_ending(plan)
    expect("ranks", "IN", [source], "the words become tokens with `learn` first")
    expect("ranks", "--extra", extra, "the words become tokens with `learn` first")
    expect("text", "--corpus", corpus, "new tokens are given with --extra")
    names = _control_tokens(control_tokens) if control_tokens else {}
    listed = [*extra, *corpus, *special_inputs(specials)]
    listed += [control_tokens] if control_tokens else []
    refuse_repeated(listed)
    origin = locate_source(source, source_format)  # type: ignore[arg-type]
    goal = locate_target(target, target_format)  # type: ignore[arg-type]
    inputs = [*origin.files, *listed]
    Path(goal.path).parent.mkdir(parents=True, exist_ok=True)
    files = OutputFiles([*goal.files, *([plan] if plan else [])], inputs, force=force)
    with progress_bar("verifying") as update:
        conversion = convert_tokenizer(
            source,
            target,
            extra=extra,
            control_tokens=names,
            descriptions={name: text for name, text in names.items() if text},
            pattern=chosen,
            special_tokens=read_special_option(specials),
            corpus=corpus,
            field=field,
            errors=errors,
            allow_differences=allow_differences,
            source_format=source_format,
            target_format=target_format,
            progress=update,
        )
    contents = dict(conversion.contents)
    if plan and conversion.plan is not None:
        made = conversion.plan
        contents[plan] = render(plan, made).encode() if _is_shown(plan) else made.dump()
    files.write(contents)
    if as_json:
        print_json(conversion.to_plain())
    elif not quiet:
        _print(conversion, list(contents), console())


def _control_tokens(path: str) -> dict[str, str]:
    """Reads names and descriptions; a name without a description gets an empty description.

    Raises ValueError for a repeated name, and for a file without names.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8-sig").splitlines(), 1):
        name, _, text = line.partition("\t")
        if name.strip() in found:
            raise ValueError(f"{path}, line {number}: {name.strip()!r} is given twice")
        if name.strip():
            found[name.strip()] = text.strip()
    if not found:
        raise ValueError(f"{path} has no names")
    return found


def _is_shown(plan: str) -> bool:
    """Returns True for a plan in a human-readable format."""
    return plan.lower().endswith((".html", ".htm", ".md"))


def _print(conversion: Conversion, files: list[str], to: Console) -> None:
    """Prints the names of the written files, and the differences."""
    definition = conversion.definition
    tokens = plural(len(definition.tokens), "token")
    special = plural(len(definition.special_tokens), "special token")
    say(to, f"{tokens} and {special}; written: {', '.join(files)}")
    texts = plural(conversion.compared, "text")
    if conversion.differing:
        say_wrapped(to, f"{conversion.differing:,} of {texts} have other ids than before:")
        for difference in conversion.differences[:EXAMPLES_SHOWN]:
            say_wrapped(to, f"  {difference}")
        if conversion.differing > EXAMPLES_SHOWN:
            say(to, f"  and {conversion.differing - EXAMPLES_SHOWN:,} more")
    else:
        say_wrapped(to, f"{texts} have the same ids before and after")
    for reason in conversion.reasons:
        say_wrapped(to, f"difference: {reason}")
    for note in conversion.notes:
        say_wrapped(to, f"note: {note}")
    if conversion.plan is not None:
        sizes, new = conversion.plan.sizes, len(conversion.plan)
        say_wrapped(
            to,
            f"{plural(new, 'new token')}; the embedding table needs "
            f"{sizes['rows']:,} rows, {sizes['rows'] - sizes['base_max_id_plus_one']:,} more than "
            f"ids before",
        )
