"""Converts a tokenizer, and verifies that the result gives the same ids."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpe_engine.common.atomic_write import write_at_once
from bpe_engine.common.values import with_text
from bpe_engine.hf import Tokenizer
from bpe_engine.read.sources import Source
from bpe_engine.texts.access import naming
from bpe_engine.texts.listed import Paths, corpus_files
from bpe_engine.texts.reading import read_texts

from ..arguments import check_progress, checked_path
from ..brief import Brief
from ..embedding.plan import EmbeddingPlan, embedding_plan
from ..ranks import RankSource, as_sources
from ..text import few, parting, plural, quoted, shorten, show
from . import pieces, rank_file, sentencepiece_model, tokenizer_json
from .battery import battery
from .definition import Definition, without_second_names
from .encoders import Encoder, encoder, encoder_of
from .extended import extended, plan, with_special
from .formats import dump, load, locate_source, locate_target

#: Maximum number of differences to list one by one.
MOST_EXAMPLES = 20


@dataclass(frozen=True)
class Difference:
    """A text that the result encodes to different ids."""

    text: str
    before: list[int]
    after: list[int]

    def __str__(self) -> str:
        """Returns the text, and both lists of ids from the first difference on.

        >>> str(Difference("abcdef", [1, 2, 3, 4, 5], [1, 2, 3, 9]))
        "'abcdef' is […, 3, 4, 5], and would be […, 3, 9]"
        """
        before, after = parting(self.before, self.after)
        return f"{shorten(quoted(self.text))} is {before}, and would be {after}"


@dataclass(repr=False)
class Conversion(Brief):
    """The result of a conversion."""

    source: Source
    target: Source
    definition: Definition
    #: Contents of the files, by path.
    contents: dict[str, bytes]
    #: Number of texts encoded with both tokenizers; number of texts whose ids differ.
    compared: int = 0
    differing: int = 0
    #: The first differences.
    differences: list[Difference] = field(default_factory=list)
    #: Properties of the source that the format cannot express.
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Embedding plan for new tokens; None without new tokens.
    plan: EmbeddingPlan | None = None

    @property
    def is_exact(self) -> bool:
        """True if the result gives the same ids."""
        return not self.differing and not self.reasons

    def save(self) -> None:
        """Writes the files; replaces existing files."""
        for path, contents in self.contents.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_at_once(path, contents)

    def to_plain(self) -> dict[str, Any]:
        """Returns the findings as plain types, for JSON."""
        return {
            "source": {"path": self.source.path, "format": self.source.format},
            "target": {"files": list(self.contents), "format": self.target.format},
            "tokens": len(self.definition.tokens),
            "special_tokens": len(self.definition.special_tokens),
            "compared": self.compared,
            "differing": self.differing,
            "reasons": self.reasons,
            "differences": [vars(difference) for difference in self.differences],
            "notes": self.notes,
        }


class NotAlikeError(ValueError):
    """Raised if the result would give different ids. The message names the first difference."""

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion
        lines = [f"{conversion.target.path} would not tokenize as {conversion.source.path} does:"]
        lines += conversion.reasons
        lines += map(str, conversion.differences[:1])
        if conversion.differing > 1:
            others = f"{conversion.differing:,} of {conversion.compared:,} texts differ"
            lines.append(others)
        lines.append("--allow-differences writes it nevertheless, and lists them")
        super().__init__("\n  ".join(lines))


def convert_tokenizer(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    extra: RankSource | Sequence[RankSource] = (),
    control_tokens: Iterable[str] = (),
    descriptions: Mapping[str, str] | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    corpus: Paths = (),
    field: str = "text",
    errors: str = "strict",
    allow_differences: bool = False,
    source_format: Any = None,
    target_format: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Converts a tokenizer to another format, and returns the contents without writing files.

    Args:
        source: a ``.tiktoken`` file, ``tokenizer.json``, ``vocab.json`` (with ``merges.txt``),
            ``tekken.json``, ``.gguf`` or a SentencePiece ``.model``; a folder with such a file;
            or the name of an encoding.
        target: the file to make; the name determines the format: ``.tiktoken``, ``.json``,
            ``vocab.json``, ``tekken.json`` or, for a ``tokenizer.json``, ``.model``.
        extra: one or more rank files with tokens to add.
        control_tokens: names of special tokens to add after all ids.
        descriptions: a text for each of these names, for the plan: a token's row starts as the mean
            of the rows of the tokens in its description, or else in its name.
        pattern: the name of an encoding, or a regular expression, for a source without a pattern.
        special_tokens: names and ids, for a source without special tokens.
        corpus: one or more files of texts that both tokenizers also encode.
        field: the text field of JSON lines and Parquet.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        allow_differences: also return a result that gives different ids.
        source_format: the format of the source, if the name does not determine it.
        target_format: the format of the target, if the name does not determine it.
        progress: called repeatedly with the number of texts done and the number of all texts.

    Returns:
        The conversion: the contents of the files by path, the number of texts compared, and the
        differences.

    Raises:
        NotAlikeError: the result would give different ids.
        ValueError: the source is malformed or not supported, or the target cannot hold the source.
        ImportError: a format needs a package that is not installed.
        OSError: a file cannot be read.

    >>> conversion = convert_tokenizer("r50k_base", "new/tokenizer.json")
    >>> conversion.is_exact, list(conversion.contents)
    (True, ['new/tokenizer.json'])
    """
    check_progress(progress)
    what = "the file, the folder or the name of a tokenizer"
    origin = locate_source(checked_path(source, what), source_format)
    goal = locate_target(checked_path(target, "the file to make"), target_format)
    if pieces.holds(origin):
        if goal.format != "tokenizer.json" or extra or control_tokens or pattern or special_tokens:
            raise ValueError(
                f"{origin.path} has a model of SentencePiece: the target is a tokenizer.json, without "
                f"more tokens, a pattern or special tokens"
            )
        conversion = _of_model(origin, goal, _blocks(corpus, field, errors), progress)
        return _checked(conversion, allow_differences)
    if goal.format == "sentencepiece":
        if origin.format != "tokenizer.json" or extra or control_tokens:
            raise ValueError(
                f"{goal.path} is made of a tokenizer.json, without more tokens, not of {origin.path}"
            )
        conversion = _to_model(origin, goal, _blocks(corpus, field, errors), progress)
        return _checked(conversion, allow_differences)
    added = as_sources(extra)
    if isinstance(control_tokens, str):
        raise TypeError(f"control_tokens is the str {control_tokens!r}; give a list of names")
    names = [*control_tokens]
    is_same = origin.format == goal.format == "tokenizer.json"
    are_alone = names and is_same and not (added or pattern or special_tokens)
    try:
        base = load(origin, pattern, special_tokens)
        if are_alone:
            dump(base, goal)
    except ValueError:
        if not are_alone:
            raise
        blocks = _blocks(corpus, field, errors)
        conversion = _with_controls(origin, goal, names, descriptions or {}, blocks, progress)
        return _checked(conversion, allow_differences)
    definition = with_special(extended(base, added) if added else base, names)
    if goal.format in ("tokenizer.json", "gpt2"):
        definition = without_second_names(definition)
    conversion = Conversion(origin, goal, definition, dump(definition, goal))
    if added or names:
        encode = encoder_of(base, origin)
        conversion.plan = plan(base, definition, encode, descriptions or {})
    conversion.reasons += _reasons(definition, goal)
    conversion.notes += [*definition.notes, *_notes(definition, goal)]
    before = encoder_of(definition, origin, is_read=not (added or names))
    with tempfile.TemporaryDirectory() as folder:
        _compare(
            conversion, before, Path(folder), _texts(definition, corpus, field, errors), progress
        )
    return _checked(conversion, allow_differences)


def _checked(conversion: Conversion, allow_differences: bool) -> Conversion:
    if not conversion.is_exact and not allow_differences:
        raise NotAlikeError(conversion)
    return conversion


def _with_controls(
    origin: Source,
    goal: Source,
    names: list[str],
    descriptions: Mapping[str, str],
    blocks: Iterable[list[str]],
    progress: Callable[[int, int], None] | None,
) -> Conversion:
    """Adds special tokens to a ``tokenizer.json`` without ranks, or over characters."""
    before, result = Tokenizer.from_file(origin.path), Tokenizer.from_file(origin.path)
    tokens = {name.encode(): id for name, id in before.get_vocab().items()}
    with_special(Definition(tokens, {}, None), names)  # Raises for names already in use.
    result.add_special_tokens(names)
    added = {name: int(result.get_vocab()[name]) for name in names}
    made = result.to_str(pretty=True).encode()
    definition = Definition(tokens, added, None)
    conversion = Conversion(origin, goal, definition, {goal.path: made})
    conversion.plan = embedding_plan(origin.path, added_tokens=added, descriptions=descriptions)
    again = Tokenizer.from_str(made.decode())
    texts = pieces.probes(definition, blocks)
    _compare_texts(conversion, encoder(before), encoder(again), texts, progress)
    return conversion


def _of_model(
    origin: Source,
    goal: Source,
    blocks: Iterable[list[str]],
    progress: Callable[[int, int], None] | None,
) -> Conversion:
    """Converts a SentencePiece model to a ``tokenizer.json``."""
    tokenizer, contents = pieces.load(origin)
    definition, made = pieces.definition(contents), pieces.convert(contents)
    conversion = Conversion(origin, goal, definition, {goal.path: made})
    conversion.reasons += pieces.reasons(contents)
    _compare_models(
        conversion, (tokenizer, Tokenizer.from_str(made.decode())), contents, blocks, progress
    )
    return conversion


def _to_model(
    origin: Source,
    goal: Source,
    blocks: Iterable[list[str]],
    progress: Callable[[int, int], None] | None,
) -> Conversion:
    """Converts a ``tokenizer.json`` to a SentencePiece model."""
    tokenizer = Tokenizer.from_file(origin.path)
    settings = json.loads(tokenizer.to_str())
    made = sentencepiece_model.written(settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.model")
        path.write_bytes(made)
        result = Tokenizer.from_sentencepiece(path)
    contents = json.loads(result.to_str())
    conversion = Conversion(origin, goal, pieces.definition(contents), {goal.path: made})
    if settings["post_processor"] is not None:
        conversion.notes.append(
            "a .model adds no tokens around a text: the post-processor is omitted"
        )
    _compare_models(conversion, (tokenizer, result), contents, blocks, progress)
    return conversion


def _compare_models(
    conversion: Conversion,
    both: tuple[Tokenizer, Tokenizer],
    contents: dict[str, Any],
    blocks: Iterable[list[str]],
    progress: Callable[[int, int], None] | None,
) -> None:
    """Compares ids and decoded texts of two tokenizers, given the contents of the ``.model``."""
    conversion.notes += conversion.definition.notes
    texts = pieces.probes(conversion.definition, blocks)
    _compare_texts(conversion, encoder(both[0]), encoder(both[1]), texts, progress)
    if reason := pieces.decoded_otherwise(*both, conversion.definition, contents):
        conversion.reasons.append(reason)


def _reasons(definition: Definition, goal: Source) -> list[str]:
    """Returns properties of a definition that the target's format cannot express."""
    reasons = []
    if goal.format in ("tiktoken", "tekken"):
        reasons += definition.inexpressible
        ranks = definition.tokens if goal.format == "tiktoken" else definition.order
        if reason := definition.list_differs_from(ranks):
            reasons.append(reason)
        if definition.unreached and not definition.whole_pieces:
            token = show(definition.unreached[0])
            reasons.append(
                f"merging does not reach {token}, and by ranks a piece that equals it would be it"
            )
    if goal.format == "gpt2" and definition.whole_pieces and definition.unreached:
        reasons.append(
            f"merging does not reach {show(definition.unreached[0])}, and a list of merges alone "
            f"does not say that a piece that equals it is it"
        )
    return reasons


def _notes(definition: Definition, goal: Source) -> list[str]:
    """Returns notes about the result, for the user."""
    notes = []
    if goal.format == "tokenizer.json":
        note = tokenizer_json.hole_note(definition)
        notes += [note] if note else []
    if goal.format == "tiktoken":
        notes += rank_file.notes(definition)
    if goal.format in ("tiktoken", "tekken") and definition.settings is not None:
        added = definition.settings.get("added_tokens") or []
        plain = [token["content"] for token in added if not token.get("special")]
        if plain:
            notes.append(
                f"{plural(len(plain), 'added token')} that are not special, such as "
                f"{few([quoted(name) for name in plain], 2)}: in an encoding they are found only "
                f"where special tokens are allowed"
            )
    return notes


def _texts(definition: Definition, corpus: Paths, field: str, errors: str) -> Iterator[list[str]]:
    blocks = _blocks(corpus, field, errors)
    return battery(definition.tokens, definition.special_tokens, blocks)


def _blocks(corpus: Paths, field: str, errors: str) -> Iterator[list[str]]:
    for path in corpus_files(corpus):
        yield from read_texts(path, field, errors, inside_lines=True)


def _compare(
    conversion: Conversion,
    before: Encoder,
    folder: Path,
    blocks: Iterable[list[str]],
    progress: Callable[[int, int], None] | None,
) -> None:
    """Reads the result back, and compares the ids of texts."""
    with naming(str(folder)):
        for path, contents in conversion.contents.items():
            (folder / Path(path).name).write_bytes(contents)
    format = conversion.target.format
    written = locate_source(str(folder / Path(conversion.target.path).name), format)
    try:
        read = load(written)
    except ValueError as error:
        # The file exists only during the comparison.
        text = str(error).replace(written.path, conversion.target.path)
        raise with_text(error, f"what would be written is not read: {text}") from None
    _compare_ids(conversion, read)
    _compare_texts(conversion, before, encoder_of(read, written), blocks, progress)


def _compare_texts(
    conversion: Conversion,
    before: Encoder,
    after: Encoder,
    blocks: Iterable[list[str]],
    progress: Callable[[int, int], None] | None,
) -> None:
    """Encodes texts with both tokenizers, and compares the ids."""
    total = 2 * len(conversion.definition.tokens)
    for block in blocks:
        for text, one, other in zip(block, before(block), after(block)):
            if one != other:
                conversion.differing += 1
                if len(conversion.differences) < MOST_EXAMPLES:
                    conversion.differences.append(Difference(text, one, other))
        conversion.compared += len(block)
        if progress is not None:
            progress(min(conversion.compared, total), total)


def _compare_ids(conversion: Conversion, read: Definition) -> None:
    """Compares the ids of tokens and special tokens before and after."""
    definition = conversion.definition
    rows: list[tuple[Mapping[Any, int], Mapping[Any, int]]] = [
        (definition.tokens, read.tokens),
        (definition.special_tokens, read.special_tokens),
    ]
    for before, after in rows:
        for token, number in before.items():
            if after.get(token) != number:
                name = show(token) if isinstance(token, bytes) else quoted(token)
                other = after.get(token)
                becomes = "is not a token there" if other is None else f"would have the id {other}"
                conversion.reasons.append(f"{name}, id {number}, {becomes}")
                break
