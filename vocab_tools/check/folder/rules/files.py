"""Rules about differences between the tokenizer files of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatch

from ....text import few, parting, plural, quoted, shorten
from ...findings import Found, Outcome
from .. import tables
from ..folder_rules import FOLDER_RULES
from ..model_folder import Differing, ModelFolder
from ..sources import AUTO, OLDER, Source
from ..tables import Difference, Table


@FOLDER_RULES.rule("error", "files that cannot be read")
def bad_file(folder: ModelFolder) -> Outcome:
    """A server reads this file and fails, or continues without the file.

    Do: Copy the file again from its source.
    """
    # Reads every file first, because reading records broken files.
    _ = folder.differing, folder.template, folder.roles, folder.model_ids("eos_token")
    return folder.broken


@FOLDER_RULES.rule("error", "folders without a tokenizer")
def no_tokenizer(folder: ModelFolder) -> Outcome:
    """Without a tokenizer, the model cannot be served.

    Do: Copy `tokenizer.json`, or the model's equivalent, to the folder.
    """
    if folder.main is not None:
        # Even an empty Unigram model has the unknown token.
        is_empty = len(folder.main.tokens) < 2
        return [f"{folder.main.name} has added tokens, and no vocabulary"] if is_empty else []
    if folder.broken:
        return []
    names = sorted(path.name for path in folder.path.iterdir())
    made = [f"{AUTO} makes an empty tokenizer of it"] if folder.transformers else []
    return [f"the folder has {few(names, 8) or 'no files'}", *made]


#: Maximum number of tokens to show in a difference.
_SHOWN = 4

#: Programs that read each kind of file, by patterns for the name. The first match is used.
_PROGRAMS = {
    AUTO: "transformers, and servers where they have no file to read",
    "tokenizer.json*": "transformers, vLLM, SGLang, text-generation-inference",
    "vocab.json*": "transformers' Python tokenizers, fairseq",
    "encoder.json*": "OpenAI's code of GPT-2, fairseq",
    "*vocab.txt": "transformers' Python tokenizers, sentence-transformers of old",
    "*tekken.json": "mistral-common, vLLM in its mistral mode",
    "*.tiktoken*": "tiktoken, and the model's own code",
    "*.gguf": "llama.cpp, Ollama, LM Studio",
    "*.model*": "sentencepiece, mistral-common, llama.cpp's converter, JAX",
    "*.spm": "Marian, transformers' Python tokenizers",
}


def _named(source: Source) -> str:
    """Describes a source: its kind, and known programs that read it."""
    found = (programs for name, programs in _PROGRAMS.items() if fnmatch(source.name, name))
    programs = next(found, None)
    return f"{source.name} ({source.kind}{f'; read by {programs}' if programs else ''})"


def lines_of_difference(main: Source, one: Differing) -> list[str]:
    """Returns the number of texts that differ, and the first such text in ids and in tokens."""
    ours, theirs = parting(one.ids, one.other_ids)
    lines = [
        f"{_named(one.source)}: {one.count:,} of {one.compared:,} texts differ",
        f"{shorten(quoted(one.text))} is {ours} by {main.name}, and {theirs} by {one.source.name}",
    ]
    if shown := _tokens(main, one):
        lines.append(shown)
    return lines


def _tokens(main: Source, one: Differing) -> str | None:
    """Returns the tokens around the first difference; None if a source cannot name a token."""
    alike = next((at for at, (a, b) in enumerate(zip(one.ids, one.other_ids)) if a != b), None)
    start = max((min(len(one.ids), len(one.other_ids)) if alike is None else alike) - 1, 0)
    lists = []
    for source, ids in ((main, one.ids), (one.source, one.other_ids)):
        names = [source.token(id) for id in ids[start : start + _SHOWN]]
        if None in names:
            return None
        lists.append("[" + ", ".join(quoted(str(name)) for name in names) + "]")
    return f"in tokens: {lists[0]} by {main.name}, and {lists[1]} by {one.source.name}"


@FOLDER_RULES.rule("error", "texts to which files of the folder give different ids")
def files_differ(folder: ModelFolder) -> Outcome:
    """Servers choose different files of the folder, so the same model gets different ids.

    Do: Keep the file that the model was trained with, and make the others from it with `vocab-tools
    convert`.
    """
    others = [one for one in folder.differing if one.source.name != AUTO]
    found = _differing(folder, [one for one in others if not is_older(one.source)])
    if folder.main is None or not isinstance(found, Found):
        return found
    return Found([*found.examples, f"beside {_named(folder.main)}"], count=found.count)


#: A function that compares two tables, and names their sources in the description.
_Compare = Callable[[Table, Table, tuple[str, str]], Difference | None]


def by_tables(pairs: Iterable[tuple[Source, Source]], *compares: _Compare) -> Outcome:
    """Returns the differences between the tables of each pair of sources."""
    lines, count = [], 0
    for one, two in pairs:
        for compare in compares:
            found = compare(one.table, two.table, (f"by {one.name}", f"by {two.name}"))
            if found is not None:
                lines += [f"{_named(two)}: {plural(found.count, 'difference')}", found.first]
                count += found.count
    return Found(lines, count=count)


def _beside_main(folder: ModelFolder) -> list[tuple[Source, Source]]:
    """Pairs the first source with every other source, except models as old versions read them."""
    main = folder.main
    others = [source for source in folder.sources if source is not main and not is_older(source)]
    return [] if main is None else [(main, source) for source in others]


@FOLDER_RULES.rule("error", "tokens that have another id, or none, in another source")
def tokens_differ(folder: ModelFolder) -> Outcome:
    """A program that reads the other source gives the model a different token's row, even for
    tokens that no text of the check contains.

    Do: Keep the file that the model was trained with, and make the others from it with `vocab-tools
    convert`.
    """
    return by_tables(_beside_main(folder), tables.tokens_differ)


@FOLDER_RULES.rule("error", "merges, scores or types of tokens that differ between sources")
def merges_differ(folder: ModelFolder) -> Outcome:
    """Two sources with the same tokens cut some texts differently.

    Do: Keep the file that the model was trained with, and make the others from it with `vocab-tools
    convert`.
    """
    return by_tables(_beside_main(folder), tables.merges_differ)


@FOLDER_RULES.rule("warning", "special or added tokens that some of the sources lack")
def tokens_missing(folder: ModelFolder) -> Outcome:
    """For a program that reads the source without the token, the token's name is ordinary text, and
    the token's id has no text.

    Do: Nothing if only programs that read the other source see the token. Otherwise add the token.
    """
    return by_tables(_beside_main(folder), tables.tokens_missing)


@FOLDER_RULES.rule("warning", "ids that become different text by different sources")
def decoding_differs(folder: ModelFolder) -> Outcome:
    """The same ids of the model's answer are shown with different spaces or marks, which tests and
    parsers of the text see.

    Do: Give the served file the decoder of the model's original file.
    """
    lines, count = [], 0
    for main, source in _beside_main(folder):
        compared, differ, first = folder.decoded(main, source)
        if differ:
            lines += [f"{source.name}: {differ:,} of {compared:,} lists of ids differ", first]
            count += differ
    return Found(lines, count=count)


@FOLDER_RULES.rule("warning", "files that cut or pad every text")
def cuts_texts(folder: ModelFolder) -> Outcome:
    """The package tokenizers obeys these settings of the file, but transformers and servers do not:
    only in some programs, long texts lose their end, or short texts get additional ids.

    Do: Delete `truncation` and `padding` from `tokenizer.json`, and say where they are wanted.
    """
    return [
        f"{source.name}: {name} is {shorten(value, 120)}"
        for source in folder.files
        if source.table.file == "tokenizer.json"
        for name, value in source.table.settings.items()
    ]


def is_older(source: Source) -> bool:
    """Returns True for a model as an old version of sentencepiece reads it, with different ids."""
    return source.name.endswith(OLDER)


@FOLDER_RULES.rule("warning", "texts whose ids depend on the version of sentencepiece")
def sentencepiece_versions_differ(folder: ModelFolder) -> Outcome:
    """Up to 0.2.1, sentencepiece rounds the sums of a Unigram model at a different step, so texts
    encoded with those versions may have different ids.

    Do: Find the version of stored ids; `hf.Tokenizer.from_sentencepiece(version=)` reads as both.
    """
    lines, count = [], 0
    # A model as read by old versions follows the same model as read by new versions.
    for new, old in zip(folder.files, folder.files[1:]):
        if is_older(old) and (one := folder.compared(new, old)).count:
            lines += lines_of_difference(new, one)
            count += one.count
    return Found(lines, count=count)


@FOLDER_RULES.rule("error", "texts to which AutoTokenizer gives other ids than the file")
def transformers_differs(folder: ModelFolder) -> Outcome:
    """AutoTokenizer rebuilds some classes without reading the file, and then the ids differ.

    Do: Set `tokenizer_class` to `PreTrainedTokenizerFast`, or use `bpe_engine.hf.as_transformers`.
    """
    return _differing(folder, [one for one in folder.differing if one.source.name == AUTO])


def _differing(folder: ModelFolder, found: list[Differing]) -> Outcome:
    main = folder.main
    found = [one for one in found if one.count]
    if main is None or not found:
        return []
    lines = [line for one in found for line in lines_of_difference(main, one)]
    return Found(lines, count=sum(one.count for one in found))


@FOLDER_RULES.rule("warning", "folders that AutoTokenizer does not load")
def transformers_fails(folder: ModelFolder) -> Outcome:
    """Programs that load the folder with AutoTokenizer fail with this error.

    Do: Correct `tokenizer_class`, or install the packages named in the error.
    """
    _ = folder.transformers
    return [folder.refused] if folder.refused is not None else []


@FOLDER_RULES.rule("info", "sources that were not compared")
def not_compared(folder: ModelFolder) -> Outcome:
    """A file could not be compared, so its ids are unknown.

    Do: Install the named package, or remove the file.
    """
    _ = folder.differing, folder.written
    return folder.skipped
