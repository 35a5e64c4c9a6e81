"""The input of the rules for a model folder: its files and their tokenizers."""

from __future__ import annotations

import dataclasses
import functools
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bpe_engine.read.sources import CONFIG, RENUMBERED, in_folder, recognize
from bpe_engine.read.sources import Source as File
from bpe_engine.tokenizer.files import read_json

from ...convert.battery import TEXTS, battery
from ...convert.pieces import TEXTS as TRAPS
from ...text import few, quoted, shorten
from . import sources
from .sources import OLDER, READERS, ROLES, Shell, Skipped, Source
from .written import Written, written_by

#: Inputs that a rule may need.
Need = Literal["tokenizer", "transformers", "config", "template", "earlier"]

#: Configuration files of a tokenizer, in order of precedence.
TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json")

#: Configuration files of a model.
MODEL_FILES = ("config.json", "generation_config.json")

#: Names of SentencePiece models other than ``tokenizer.model``. Only this check reads such files,
#: because in some folders their ids differ from the ids of the tokenizer.
MODEL_NAMES = (*RENUMBERED, "target.spm", "tokenizer.model.v*")

#: Start of the pointer file that Git LFS stores in place of a file.
_POINTER = b"version https://git-lfs.github.com/spec/"

#: Maximum number of ordinary tokens whose texts are compared, one by one and joined.
MOST_TOKENS = 1000


@dataclass(frozen=True)
class Declared:
    """An added token as a file declares it."""

    content: str
    id: int
    flags: Mapping[str, bool]


@dataclass(frozen=True)
class Differing:
    """Texts that two sources encode differently."""

    source: Source
    compared: int
    count: int
    #: Number of texts omitted because they contain names of special tokens.
    left_out: int
    #: The first text that differs, and its ids from both sources.
    text: str
    ids: list[int]
    other_ids: list[int]


#: Keys for matching a tokenizer with its earlier version, most reliable first.
_ALIKE: tuple[Callable[[Source], object], ...] = (
    lambda source: source.name,
    lambda source: (source.table.format, source.name.endswith(OLDER)),
    lambda source: source.name.endswith(OLDER),
)


class ModelFolder:
    """A model folder to check. Expensive parts are computed on first use.

    Args:
        path: the folder, or a single tokenizer file.
        texts: additional texts for the comparison.
        earlier: the earlier version of the folder, for the rules about changes.
    """

    def __init__(
        self, path: Path, texts: Iterable[str] = (), earlier: ModelFolder | None = None
    ) -> None:
        self.path = path
        self._texts = list(texts)
        self._earlier = earlier
        #: Unreadable files, with the reasons.
        self.broken: list[str] = []
        #: Sources that could not be compared, with the reasons.
        self.skipped: list[str] = []
        #: AutoTokenizer's error for the folder, if any.
        self.refused: str | None = None

    @property
    def has(self) -> frozenset[Need]:
        """Names of the inputs that the folder has."""
        given: list[Need] = []
        given += ["tokenizer"] if self.main else []
        given += ["transformers"] if self.transformers else []
        given += ["config"] if self.json("config.json") else []
        given += ["template"] if self.written else []
        given += ["earlier"] if self._earlier else []
        return frozenset(given)

    @functools.cache  # noqa: B019 - The folder lives as long as the check.
    def json(self, name: str) -> dict[str, Any]:
        """Returns the contents of a file; empty if it is missing or broken."""
        try:
            if not self.path.is_dir():
                return {}
            _check_contents(self.path / name)
            return read_json(self.path / name)
        except (ValueError, OSError) as error:
            self.broken.append(str(error))
            return {}

    # ---- Tokenizers ----

    @functools.cached_property
    def files(self) -> list[Source]:
        """Tokenizers of the files; each is compared with the first tokenizer."""
        added = {token.content: token.id for token in self.declared(CONFIG)}
        shell = self._settings, added
        found = [source for file in self.listed for source in self._read(file, shell)]
        return [source for source in found if not self._is_shifted(found[0], source)]

    def _is_shifted(self, main: Source, source: Source) -> bool:
        """Returns True for a SentencePiece model whose ids all differ from the main source's ids by
        the same offset: the tokenizers of fairseq and transformers put other special tokens before
        the model's pieces."""
        if main.table.format == "sentencepiece" or source.table.format != "sentencepiece":
            return False
        types, ids = source.table.types, main.table.tokens
        common = {token: id for token, id in source.table.tokens.items() if token not in types}
        both = [ids[token] - id for token, id in common.items() if token in ids]
        shifts = set(both)
        if len(shifts) != 1 or shifts == {0} or 2 * len(both) < len(common):
            return False
        (shift,) = shifts
        note = f"{source.table.file}: {main.name} has each of its pieces at its id {shift:+}"
        reason = f"{note}, as the tokenizers of fairseq and transformers do"
        if reason not in self.skipped:
            self.skipped.append(reason)
        return True

    @functools.cached_property
    def listed(self) -> list[File]:
        """Files that contain a tokenizer, in order of precedence."""
        if not self.path.is_dir():
            is_model = any(self.path.match(name) for name in MODEL_NAMES)
            return [recognize(self.path, "sentencepiece" if is_model else None)]
        found = in_folder(self.path)
        known = {file.path for file in found}
        models = [path for name in MODEL_NAMES for path in sorted(self.path.glob(name))]
        more = [path for path in models if path.is_file() and str(path) not in known]
        return [*found, *(File(str(path), "sentencepiece") for path in more)]

    def _read(self, file: File, shell: Shell) -> list[Source]:
        path = Path(file.path)
        try:
            if self.path.is_dir() and self.listed[0].folder is None:
                raise Skipped(
                    "it is the only tokenizer file, and its class gives the pieces other ids"
                )
            for name in file.files:
                _check_contents(Path(name))
            read: Source | list[Source] = []
            if file.format in READERS:
                read = READERS[file.format](path, shell)
            return [
                dataclasses.replace(
                    source,
                    table=dataclasses.replace(source.table, file=path.name, format=file.format),
                )
                for source in (read if isinstance(read, list) else [read])
            ]
        except Skipped as skipped:
            self.skipped.append(f"{path.name}: {skipped}")
        except (ValueError, OSError, KeyError, TypeError) as error:
            text = str(error) if path.name in str(error) else f"{path.name}: {error}"
            if text not in self.broken:
                self.broken.append(text)
        return []

    @functools.cached_property
    def _settings(self) -> dict[str, Any] | None:
        """Contents of the ``tokenizer.json``; None without a model."""
        contents = self.json("tokenizer.json")
        return contents if isinstance(contents.get("model"), dict) else None

    @functools.cached_property
    def main(self) -> Source | None:
        """The source with which other sources are compared; None if no source encodes text."""
        if self.files:
            return self.files[0]
        # transformers may return a tokenizer that has only added tokens and, for T5, a space.
        made = self.transformers
        return made if made is not None and any(map(bytes.strip, made.tokens)) else None

    @property
    def tokenizer(self) -> Source:
        """The first source, for rules that require it."""
        assert self.main is not None
        return self.main

    @functools.cached_property
    def transformers(self) -> Source | None:
        """The tokenizer that AutoTokenizer loads; None if AutoTokenizer fails."""
        if not self.path.is_dir():
            return None
        try:
            return sources.of_transformers(self.path)
        except Skipped as skipped:
            self.skipped.append(f"{sources.AUTO}: {skipped}")
        except ValueError as error:
            self.refused = str(error)
        return None

    @functools.cached_property
    def differing(self) -> list[Differing]:
        """The comparison of every other source with the first source."""
        main = self.main
        if main is None:
            return []
        others = [*self.files[1:], *([self.transformers] if self.transformers else [])]
        return [self.compared(main, other) for other in others if other is not main]

    def compared(self, main: Source, other: Source) -> Differing:
        """Compares two sources on all texts. If only one source finds special tokens in texts,
        texts are compared without the names of these tokens."""
        names = _names(main, other)
        compared = count = left_out = 0
        first: tuple[str, list[int], list[int]] | None = None

        def differing(texts: list[str]) -> list[tuple[str, list[int], list[int]]]:
            kept = [cut for text in texts if (cut := _without(text, names)) is not None]
            rows = zip(kept, main.encode(kept), other.encode(kept)) if kept else ()
            return [row for row in rows if row[1] != row[2]]

        blocks = [*self.probes, *map(lines_of, self._texts)]
        wholes = [None] * len(self.probes) + self._texts
        for block, whole in zip(blocks, wholes):
            out = sum(_without(text, names) is None for text in block)
            found = differing(block)
            # Tokens may cross line ends: compares the whole text if none of its lines differs.
            if whole is not None and len(block) > 1 and not found and not out:
                found = differing([whole])
            first = first or next(iter(found), None)
            compared, count, left_out = (
                compared + len(block) - out,
                count + len(found),
                left_out + out,
            )
        return Differing(other, compared, count, left_out, *(first or ("", [0], [0])))

    @functools.cached_property
    def probes(self) -> list[list[str]]:
        """Texts of the check, in blocks."""
        main = self.main
        tokens = list(main.tokens) if main else []
        some = random.Random(0).sample(tokens, min(MOST_TOKENS, len(tokens)))
        found = [*battery(some, main.special if main else (), [list(TRAPS)])]
        earlier = self._earlier.probes if self._earlier else []
        return [*found, *(block for block in earlier if block not in found)]

    @functools.cached_property
    def sources(self) -> list[Source]:
        """The tokenizers of the files, and the tokenizer that AutoTokenizer loads."""
        return [*self.files, *([self.transformers] if self.transformers else [])]

    def decoded(self, main: Source, other: Source) -> tuple[int, int, str]:
        """Decodes the ids of texts for which two sources have the same ids.

        Returns the number of texts, the number that decode differently, and the first difference.
        """
        if main.decode is None or other.decode is None:
            return 0, 0, ""
        names = _names(main, other)
        texts = [cut for text in (*TEXTS, *TRAPS) if (cut := _without(text, names)) is not None]
        pairs = zip(main.encode(texts), other.encode(texts))
        unknown = {
            source.special.get(name) for source in (main, other) for name in ("<unk>", "[UNK]")
        }
        rows = [one for one, two in pairs if one == two and unknown.isdisjoint(one)]
        found = [
            (row, one, two)
            for row, one, two in zip(rows, main.decode(rows, False), other.decode(rows, False))
            if one != two
        ]
        if not found:
            return len(rows), 0, ""
        ids, one, two = found[0]
        shown = [shorten(quoted(text)) for text in (one, two)]
        line = f"{few([str(id) for id in ids], 8)} is {shown[0]} by {main.name}, and {shown[1]} by {other.name}"
        return len(rows), len(found), line

    # ---- An earlier version ----

    @property
    def before(self) -> ModelFolder:
        """The earlier version, for rules that require one."""
        assert self._earlier is not None
        return self._earlier

    @functools.cached_property
    def pairs(self) -> list[tuple[Source, Source]]:
        """Pairs each tokenizer with the earlier tokenizer of the same name; or else of the same
        format, or of any format, if both versions have only one. Names begin with the folders."""
        rest = [[*self.before.sources], [*self.sources]]
        found = []
        for key in _ALIKE:
            for new in [*rest[1]]:
                alike = [[one for one in side if key(one) == key(new)] for side in rest]
                if [len(side) for side in alike] == [1, 1]:
                    found.append((alike[0][0], new))
                    rest = [[one for one in side if key(one) != key(new)] for side in rest]
        return [(_placed(old, self.before.path), _placed(new, self.path)) for old, new in found]

    @functools.cached_property
    def changed(self) -> list[Differing]:
        """The comparison of each pair."""
        return [self.compared(old, new) for old, new in self.pairs]

    # ---- Declarations ----

    def declared(self, name: str) -> list[Declared]:
        """Returns the added tokens that a file declares."""
        contents = self.json(name)
        rows: Iterable[tuple[Any, Any]]
        if name == "tokenizer.json":
            rows = [(token.get("id"), token) for token in contents.get("added_tokens") or []]
        elif name == "added_tokens.json":
            rows = [(id, {"content": content}) for content, id in contents.items()]
        else:
            rows = (contents.get("added_tokens_decoder") or {}).items()
        found = []
        for id, token in rows:
            try:
                flags = {key: flag for key, flag in token.items() if type(flag) is bool}
                found.append(Declared(str(token["content"]), int(id), flags))
            except (AttributeError, KeyError, TypeError, ValueError):
                note = f"{name}: {json.dumps(token)[:80]} is not an added token"
                if note not in self.broken:
                    self.broken.append(note)
        return found

    @functools.cached_property
    def roles(self) -> dict[str, dict[str, str]]:
        """The special tokens by role and file."""
        found: dict[str, dict[str, str]] = {}
        for name in TOKENIZER_FILES:
            for role in ROLES:
                value = self.json(name).get(role)
                content = value.get("content") if isinstance(value, dict) else value
                if isinstance(content, str):
                    found.setdefault(role, {})[name] = content
        return found

    def role(self, role: str) -> str | None:
        """Returns the special token of a role from the first file that names it."""
        return next(iter(self.roles.get(role, {}).values()), None)

    def model_ids(self, role: str) -> dict[str, list[int]]:
        """Returns the ids that the model's files give a role, by file."""
        found = {}
        for name in MODEL_FILES:
            contents = self.json(name)
            inner = contents.get("text_config")
            value = contents.get(f"{role}_id", inner and inner.get(f"{role}_id"))
            ids = value if isinstance(value, list) else [value]
            if known := [id for id in ids if type(id) is int]:
                found[name] = known
        for source in self.files:
            if role in source.roles:
                found[source.name] = [source.roles[role]]
        return found

    # ---- Templates ----

    @functools.cached_property
    def templates(self) -> dict[str, str]:
        """The default chat template in each file. The first template is used."""
        found = {}
        file = self.path / "chat_template.jinja"
        if file.is_file():
            try:
                found[file.name] = file.read_text(encoding="utf-8")
                if found[file.name].startswith("\ufeff"):
                    self.broken.append(
                        f"{file.name} begins with a byte order mark, and so does each prompt; save "
                        f"the file without the mark"
                    )
            except UnicodeDecodeError as error:
                self.broken.append(f"{file.name} is not UTF-8 (byte {error.start})")
        for name in ("chat_template.json", "tokenizer_config.json"):
            given = self.json(name).get("chat_template")
            if isinstance(given, list):
                named = {str(one.get("name")): one.get("template") for one in given}
                given = named.get("default")
            if isinstance(given, str):
                found[name] = given
        return found

    @functools.cached_property
    def template(self) -> str | None:
        """The chat template in use."""
        return next(iter(self.templates.values()), None)

    @functools.cached_property
    def written(self) -> Written | None:
        """The text that the template writes; None without a template."""
        if self.template is None:
            return None
        tokens = {role: self.role(role) for role in ROLES}
        try:
            known = {role: token for role, token in tokens.items() if token}
            return written_by(self.template, known)
        except ImportError as error:
            self.skipped.append(f"{next(iter(self.templates))}: {error}")
            return None

    @property
    def text(self) -> Written:
        """The text that the template writes, for rules that require a template."""
        assert self.written is not None
        return self.written


def lines_of(text: str) -> list[str]:
    """Returns the nonempty lines of a text, without line ends.

    >>> lines_of("a\\n\\n b\\n")
    ['a', ' b']
    """
    return [line for line in text.split("\n") if line]


def _placed(source: Source, path: Path) -> Source:
    """Returns a copy of a source whose name includes the folder."""
    folder = path if path.is_dir() else path.parent
    return dataclasses.replace(source, name=str(folder / source.name))


def _names(main: Source, other: Source) -> re.Pattern[str] | None:
    """Returns a pattern for the names of special tokens that only one of two sources recognizes."""
    if main.finds_special == other.finds_special:
        return None
    finder = main if main.finds_special else other
    names = sorted({*finder.control} - {""}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, names))) if names else None


def _without(text: str, names: re.Pattern[str] | None) -> str | None:
    """Returns a text with spaces in place of names; None if names would remain.

    >>> _without("a<s>b", re.compile("<s>")), _without("a b", re.compile(" "))
    ('a b', None)
    """
    if names is None or not names.search(text):
        return text
    cut = names.sub(" ", text)
    return None if names.search(cut) else cut


def _check_contents(path: Path) -> None:
    """Raises ValueError for an empty file and for a Git LFS pointer file."""
    if not path.is_file():
        return
    with open(path, "rb") as file:
        start = file.read(len(_POINTER))
    if not start:
        raise ValueError(f"{path.name} is empty; copy it again from where the model comes from")
    if start == _POINTER:
        raise ValueError(
            f"{path.name} is a pointer of Git LFS instead of the file; fetch the file with "
            f"`git lfs pull`"
        )
