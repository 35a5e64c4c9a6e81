"""The command ``vocab-tools train``: learns a vocabulary from text."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.common.atomic_write import is_special
from bpe_engine.read.sidecar import beside
from bpe_engine.texts.access import STANDARD

from ..bases import Base, open_base
from ..corpus.piece_counts import CorpusCounts
from ..report import render
from ..text import plural, show
from ..train.arrow import read_counts
from ..train.models import LIKE, MODELS, TrainedModel, check_model, is_named, train_model, words_of
from ..train.superwords import MAX_WORDS
from ..train.train_result import TrainResult
from ..train.training import UNITS, TrainOptions, train_vocabulary
from .console import console, print_json, print_table, say, steps_bar
from .count import count_files, counting_options, expanded
from .inputs import base_inputs
from .options import (
    Options,
    Size,
    chosen_pattern,
    combined,
    json_option,
    output_options,
    refuse_mixed,
)

#: How many of the last learned tokens to print.
TOKENS_SHOWN = 8

#: Options that :func:`train_vocabulary` and :func:`train_model` share.
_SHARED = "min_frequency max_token_length field errors max_memory drop_rare num_threads".split()

#: Options for training.
training_options: Options = combined(
    click.option(
        "--balance",
        type=click.Choice(UNITS),
        help="Keep several CORPUS in balance: the next merge serves the one with the fewest of these "
        "per token.",
    ),
    click.option(
        "--max-words",
        type=click.IntRange(1),
        default=MAX_WORDS,
        show_default=True,
        help="Maximum number of words in a superword.",
    ),
    click.option(
        "--superwords-from",
        type=click.IntRange(1),
        metavar="N",
        help="From N tokens on, merges may cross pieces within a line (SuperBPE).",
    ),
    click.option("--base", type=VOCABULARY, help="A vocabulary to start from; its ids stay."),
    click.option(
        "--max-token-length",
        type=click.IntRange(1),
        help="Maximum length of a new token, in bytes.",
    ),
    click.option(
        "--min-frequency",
        type=click.IntRange(0),
        default=2,
        show_default=True,
        help="Pairs that occur less often are not merged.",
    ),
    click.option(
        "--vocab-size",
        type=Size(),
        required=True,
        metavar="N",
        help="The number of tokens, such as 32k, with single bytes, base and special tokens.",
    ),
)


@click.command(cls=Command)
@click.argument("corpus", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    "outputs",
    required=True,
    multiple=True,
    help="OUT.tiktoken, or a name that ends in .json for a tokenizer.json; repeatable; - writes the "
    "ranks to standard output.",
)
@click.option(
    "--model",
    type=click.Choice(list(MODELS)),
    help="The model to train; without --model and --like, byte-level BPE.",
)
@click.option(
    "--like",
    metavar="NAME",
    help=f"Take the pipeline and the special tokens of {', '.join(LIKE)}, or of a tokenizer's folder or "
    "file; sentencepiece:nmt_nfkc also normalizes by these rules. [default: the usual ones of --model]",
)
@click.option("--limit-alphabet", type=click.IntRange(1), help="Maximum number of characters.")
@click.option(
    "--character-coverage",
    type=click.FloatRange(0, 1, min_open=True),
    help="The part of all characters that tokens are made of. [default: all]",
)
@click.option(
    "--user-defined",
    multiple=True,
    metavar="NAME",
    help="A token that is found before anything else; repeatable.",
)
@training_options
@click.option("--counts", "as_counts", is_flag=True, help="CORPUS are files written by `count`.")
@counting_options
@output_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print warnings only.")
def train(
    corpus: tuple[str, ...],
    outputs: tuple[str, ...],
    vocab_size: int,
    pattern: str | None,
    pattern_regex: str | None,
    special_tokens: tuple[str, ...],
    base: str | None,
    as_counts: bool,
    reports: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
    model: str | None,
    like: str | None,
    limit_alphabet: int | None,
    character_coverage: float | None,
    user_defined: tuple[str, ...],
    **options: Any,
) -> None:
    """Learn a vocabulary from CORPUS: byte-level BPE, or another model.

    CORPUS are files, folders, globs and URIs: text, JSON lines, Parquet, Arrow or CSV, plain or
    compressed; - is standard input. The result does not depend on the number of threads or the order
    of files. The pattern and the special tokens go to NAME.encoding.json.

    \b
      vocab-tools train texts/ --vocab-size 32k --pattern gpt2 -o out.tiktoken
      vocab-tools train thai.txt --base gpt2 --vocab-size 52k -o thai.tiktoken
      vocab-tools train texts/ --vocab-size 32k -o out.json --report out.html
      vocab-tools train texts/ --vocab-size 30k --like bert -o bert.json
      vocab-tools train texts/ --vocab-size 8k --like sentencepiece -o spm.model
    """
    of_model: dict[str, Any] = {
        "limit_alphabet": limit_alphabet,
        "character_coverage": character_coverage,
        "user_defined": user_defined,
    }
    is_model = bool(model or like)
    if is_model:
        shared = {name: options.pop(name) for name in _SHARED}
        of_bytes = {**options, "pattern": pattern, "pattern_regex": pattern_regex, "base": base}
        _check_model_options({**of_bytes, "report": reports}, outputs)
        if any(map(_is_model, outputs)):
            check_model(model, like)
    elif unfit := [name for name, value in of_model.items() if value]:
        raise click.UsageError(f"--{unfit[0].replace('_', '-')} needs --model or --like")
    chosen = chosen_pattern(pattern, pattern_regex)
    refuse_mixed(as_json, *outputs)
    start = time.perf_counter()
    inputs = [*expanded(corpus), *base_inputs(base)]
    inputs += [] if like is None or is_named(like) else [like]
    sidecars = [] if is_model else [str(beside(path)) for path in outputs if _has_sidecar(path)]
    files = OutputFiles([*outputs, *sidecars, *reports], inputs, force=force)
    result: TrainResult | TrainedModel
    if is_model:
        source: Any = corpus
        if as_counts:
            cut = words_of(model, like)
            source = read_counts(count_files(corpus), cut, max_memory=shared["max_memory"])
        with steps_bar("counting") as update:
            result = train_model(
                source,
                vocab_size,
                model=model,
                like=like,
                special_tokens=special_tokens,
                progress=update,
                **of_model,
                **shared,
            )
        contents = {path: _model_file(result, path) for path in outputs}
    else:
        wanted = TrainOptions(pattern=chosen, special_tokens=special_tokens, **options)
        opened = None if base is None else open_base(base)
        source = _read_counts(corpus, opened, wanted) if as_counts else corpus
        with steps_bar("counting") as update:
            result = train_vocabulary(source, vocab_size, wanted, base=opened, progress=update)
        result.files = list(corpus)
        contents = _contents(result, outputs)
        contents.update({path: render(path, result).encode() for path in reports})
    files.write(contents)
    for path in () if is_model else outputs:
        if _has_sidecar(path) and not path.endswith((".tiktoken", ".tiktoken.gz")):
            say(console(stderr=True), f"note: {path} is a rank file, as .tiktoken files are")
    for note in result.notes:
        say(console(stderr=True), f"note: {note}")
    seconds = time.perf_counter() - start
    to = console(stderr=STANDARD in outputs)
    if as_json:
        found = {"files": list(contents), "seconds": round(seconds, 3)}
        print_json({**found, **result.to_plain()})
    elif not quiet:
        if isinstance(result, TrainResult):
            print_summary(result, seconds, to)
        else:
            say(to, f"{result.tokenizer.get_vocab_size():,} tokens in {seconds:,.1f} s")
        say(to, f"written: {', '.join(contents)}")


#: Defaults of omitted options.
_UNSET = (None, False, (), MAX_WORDS)


def _check_model_options(of_bytes: Mapping[str, Any], outputs: Sequence[str]) -> None:
    """Raises UsageError for options that only byte-level BPE has, and for other file formats."""
    for name, value in of_bytes.items():
        if value not in _UNSET:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is an option of byte-level BPE, without --model and --like"
            )
    for path in outputs:
        if path != STANDARD and not path.lower().endswith((".json", ".model")):
            raise click.UsageError(f"{path}: give a name that ends in .json or .model")


def _model_file(trained: TrainedModel, path: str) -> bytes:
    return trained.sentencepiece() if _is_model(path) else trained.tokenizer_json()


def _is_model(path: str) -> bool:
    return path.lower().endswith(".model")


def _has_sidecar(path: str) -> bool:
    """Returns True for a rank file; False for a JSON file, a pipe or a device."""
    return path not in (STANDARD, "") and not _is_json(path) and not is_special(path)


def _is_json(path: str) -> bool:
    return path.lower().endswith(".json")


def _contents(result: TrainResult, outputs: Sequence[str]) -> dict[str, bytes]:
    contents = {}
    for path in outputs:
        contents[path] = result.tokenizer_json() if _is_json(path) else result.dump()
        if _has_sidecar(path):
            contents[str(beside(path))] = result.dump_sidecar()
    return contents


def _read_counts(
    corpus: Sequence[str], base: Base | None, options: TrainOptions
) -> CorpusCounts | list[CorpusCounts]:
    """Reads files of counts, for one corpus, or for several corpora in balance."""
    cut, most = options.cutting(base), options.max_memory
    if options.balance:
        return [read_counts(count_files([part]), cut, max_memory=most) for part in corpus]
    return read_counts(count_files(corpus), cut, max_memory=most)


def print_summary(result: TrainResult, seconds: float, to: Console) -> None:
    """Prints the result as a small table."""
    rows = [
        ("tokens", f"{result.size:,}"),
        ("learned", f"{len(result.new_tokens):,} in {plural(len(result.merges), 'merge')}"),
        ("bytes per token, training text", f"{result.bytes_per_token:.3f}"),
    ]
    if len(result.corpus_tokens) > 1:
        parts = zip(result.corpus_bytes, result.corpus_tokens, result.served())
        for number, (size, tokens, served) in enumerate(parts, 1):
            value = f"{size / tokens:.3f} bytes per token, {plural(served, 'merge')}"
            rows.append((f"corpus {number}", value))
    rows.append(("time", f"{seconds:,.1f} s"))
    last = list(result.new_tokens)[-TOKENS_SHOWN:]
    rows.append(("last tokens", " ".join(map(show, last)) or "none"))
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    print_table(to, table)
