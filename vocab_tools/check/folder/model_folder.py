"""The input of the rules for a model folder: its files, and the tokenizers that they make."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bpe_engine.sources import CONFIG, in_folder, recognize
from bpe_engine.sources import Source as File
from bpe_engine.tokenizer.files import read_json

from ...convert.battery import battery
from . import sources
from .sources import READERS, Shell, Skipped, Source
from .written import Written, written_by

#: Input that a rule may need.
Need = Literal["tokenizer", "transformers", "config", "template"]

#: The configuration files of a tokenizer, the first of which counts.
TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json")

#: The configuration files of a model.
MODEL_FILES = ("config.json", "generation_config.json")

#: The roles of special tokens.
ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")

#: The number of ordinary tokens whose texts, alone and joined, are compared.
MOST_TOKENS = 1000


@dataclass(frozen=True)
class Declared:
    """An added token as a file declares it."""

    content: str
    id: int
    flags: Mapping[str, bool]


@dataclass(frozen=True)
class Differing:
    """The texts that two sources encode differently."""

    source: Source
    compared: int
    count: int
    #: The first text, and the ids of both.
    text: str
    ids: list[int]
    other_ids: list[int]


class ModelFolder:
    """A folder that is going to be served. Expensive parts are computed on first use.

    Args:
        path: the folder; or a tokenizer file, which is checked alone.
        texts: more texts that are compared.
    """

    def __init__(self, path: Path, texts: Iterable[str] = ()) -> None:
        self.path = path
        self._texts = list(texts)
        #: Files that cannot be read, and why.
        self.broken: list[str] = []
        #: Sources that are not compared, and why.
        self.skipped: list[str] = []
        #: Why AutoTokenizer does not load the folder.
        self.refused: str | None = None

    @property
    def has(self) -> frozenset[Need]:
        """The input that the folder gives."""
        given: list[Need] = []
        given += ["tokenizer"] if self.main else []
        given += ["transformers"] if self.transformers else []
        given += ["config"] if self.json("config.json") else []
        given += ["template"] if self.written else []
        return frozenset(given)

    @functools.cache  # noqa: B019 - The folder lives as long as the check.
    def json(self, name: str) -> dict[str, Any]:
        """Returns the contents of a file; empty if it is missing or broken."""
        try:
            return read_json(self.path / name) if self.path.is_dir() else {}
        except (ValueError, OSError) as error:
            self.broken.append(str(error))
            return {}

    # ---- Tokenizers ----

    @functools.cached_property
    def files(self) -> list[Source]:
        """The tokenizers of the files. The first one is what the others are compared with."""
        added = {token.content: token.id for token in self.declared(CONFIG)}
        shell = self._settings, added
        files = in_folder(self.path) if self.path.is_dir() else [recognize(self.path)]
        return [source for file in files for source in self._read(file, shell)]

    def _read(self, file: File, shell: Shell) -> list[Source]:
        path = Path(file.path)
        try:
            read = READERS[file.format](path, shell) if file.format in READERS else []
            return read if isinstance(read, list) else [read]
        except Skipped as skipped:
            self.skipped.append(f"{path.name}: {skipped}")
        except (ValueError, OSError, KeyError, TypeError) as error:
            text = str(error) if path.name in str(error) else f"{path.name}: {error}"
            self.broken.append(text)
        return []

    @functools.cached_property
    def _settings(self) -> dict[str, Any] | None:
        """The contents of the ``tokenizer.json``; None without a model."""
        contents = self.json("tokenizer.json")
        return contents if isinstance(contents.get("model"), dict) else None

    @functools.cached_property
    def main(self) -> Source | None:
        """The source that the others are compared with; None if none has ordinary tokens."""
        if self.files:
            return self.files[0]
        # For a folder without a vocabulary, transformers may make a tokenizer without one.
        made = self.transformers
        return made if made is not None and made.tokens else None

    @property
    def tokenizer(self) -> Source:
        """The first source, for rules that need one."""
        assert self.main is not None
        return self.main

    @functools.cached_property
    def transformers(self) -> Source | None:
        """The tokenizer that AutoTokenizer loads; None if it fails."""
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
        """The comparison of every other source with the first."""
        main = self.main
        if main is None:
            return []
        others = [*self.files[1:], *([self.transformers] if self.transformers else [])]
        return [self.compared(main, other) for other in others if other is not main]

    def compared(self, main: Source, other: Source) -> Differing:
        """Compares two sources on all texts."""
        compared, count, first = 0, 0, ("", [0], [0])
        names = list(main.special)
        for block in self.probes:
            if not (main.finds_special and other.finds_special):
                block = [text for text in block if not any(name in text for name in names)]
            if not block:
                continue
            compared += len(block)
            for text, one, two in zip(block, main.encode(block), other.encode(block)):
                if one != two:
                    first = first if count else (text, one, two)
                    count += 1
        return Differing(other, compared, count, *first)

    @functools.cached_property
    def probes(self) -> list[list[str]]:
        """The texts that are compared, in blocks."""
        main = self.main
        tokens = list(main.tokens) if main else []
        some = random.Random(0).sample(tokens, min(MOST_TOKENS, len(tokens)))
        return [*battery(some, main.special if main else ()), self._texts]

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
        """The special tokens by role, and in it by file."""
        found: dict[str, dict[str, str]] = {}
        for name in TOKENIZER_FILES:
            for role in ROLES:
                value = self.json(name).get(role)
                content = value.get("content") if isinstance(value, dict) else value
                if isinstance(content, str):
                    found.setdefault(role, {})[name] = content
        return found

    def role(self, role: str) -> str | None:
        """Returns the special token of a role, as the first file names it."""
        return next(iter(self.roles.get(role, {}).values()), None)

    def model_ids(self, role: str) -> dict[str, list[int]]:
        """Returns the ids that the files of the model give for a role, by file."""
        found = {}
        for name in MODEL_FILES:
            contents = self.json(name)
            inner = contents.get("text_config")
            value = contents.get(f"{role}_id", inner and inner.get(f"{role}_id"))
            ids = value if isinstance(value, list) else [value]
            if known := [id for id in ids if type(id) is int]:
                found[name] = known
        return found

    # ---- Templates ----

    @functools.cached_property
    def templates(self) -> dict[str, str]:
        """The default chat template, by the file that has it. The first one counts."""
        found = {}
        file = self.path / "chat_template.jinja"
        if file.is_file():
            try:
                found[file.name] = file.read_text(encoding="utf-8")
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
        """The chat template that counts."""
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
        """The text that the template writes, for rules that need a template."""
        assert self.written is not None
        return self.written
