"""`Plan`: everything that determines the bytes of a corpus, and the units that write them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..common.atomic_write import write_at_once
from ..common.system import is_uri
from ..common.values import check_choice
from ..texts.access import size_of
from ..texts.documents import AUTO
from ..texts.errors import CorpusError
from ..texts.fields import Fields
from ..texts.inputs import Input, Part, found, parts_of_input
from ..texts.kinds import KINDS
from ..texts.listed import corpus_files
from .coder import Coder, load_engine
from .formats import FORMATS
from .formats.base import Layout
from .scratch import scratch_folder
from .sealed import read_sealed, sealed, sum_of

__all__ = ["NOT_VARIABLES", "Options", "Plan", "make_plan", "read_plan"]

#: Size of a unit of work, in bytes of input.
UNIT_BYTES = 1 << 27

_VERSION = 3

#: Names reserved for the conversation and fields of the plan, forbidden for template variables.
NOT_VARIABLES = {"messages", "tools", "self", "bos_token", "eos_token", "add_generation_prompt"}

#: Line ends would break olmo's index, and plans are UTF-8.
_UNFIT = re.compile("[\r\n\ud800-\udfff]")

#: Matches names of special tokens that probably end documents.
_ENDS = re.compile(r"end.*(text|sentence)|eo[sdt]|</s>", re.IGNORECASE)


@dataclass(frozen=True)
class Options:
    """The options of a plan, each of which can change the written bytes."""

    format: str = "megatron"
    #: Special tokens: `eod` after each document (in llm.c, before), `bos` before each; or None.
    eod: str | None = None
    bos: str | None = None
    #: The fields with the text and with the name of a document.
    field: str = "text"
    id_field: str | None = None
    #: The contents of the field: "text", "segments" or "messages".
    content: str = "text"
    #: For messages: the text of the chat template.
    template: str | None = None
    #: For messages: the field of the tools; template variables from fields, and with fixed values.
    tools: str | None = "tools"
    template_fields: dict[str, str] = dataclasses.field(default_factory=dict)
    template_variables: dict[str, Any] = dataclasses.field(default_factory=dict)
    #: For messages: the assistant's messages in the mask, "every" or "last"; and the message key
    #: whose 0 or false drops the message, such as "weight".
    train_on: str = "every"
    weight_key: str | None = None
    #: For plain text: the separator of documents; None for one document per file. "auto" means None
    #: up to a megabyte, and empty lines for longer files.
    separator: str | None = AUTO
    #: For rows that are not text: "raise", "skip" or "keep-empty".
    on_error: str = "raise"
    #: Names that are encoded as special tokens wherever they occur in text.
    allow_special: tuple[str, ...] = ()
    #: The seed for shuffling the documents, or None for the order of the inputs.
    shuffle: int | None = None
    #: Share of documents, from the end, that merging writes to separate files for validation.
    held_out: float = 0.0
    unit_bytes: int = UNIT_BYTES

    @property
    def fields(self) -> Fields:
        """The fields to read from a row."""
        is_chat = self.content == "messages"
        others = self._fields_of_template if is_chat else ()
        return Fields(self.field, self.id_field, self.content != "text", others, is_chat)

    @property
    def _fields_of_template(self) -> tuple[str, ...]:
        """Fields passed to the template, and fields that a user may have meant to pass."""
        from ..prompt import ChatTemplate

        given = [*([] if self.tools is None else [self.tools]), *self.template_fields.values()]
        known = {self.field, *self.template_variables, *NOT_VARIABLES} - {"tools"}
        return tuple(
            dict.fromkeys([*given, *sorted(ChatTemplate(self.template or "").variables - known)])
        )

    @property
    def part_format(self) -> str:
        """The format of the parts, which differs from `format` if Parquet is to be shuffled."""
        return "arrow" if self.shuffle is not None and self.format == "parquet" else self.format


@dataclass(frozen=True)
class Plan:
    """The inputs, tokenizer, options and units of a corpus. Made by `make_plan`.

    A unit is a list of parts of inputs. Its files are a pure function of the plan and the number
    of the unit.
    """

    tokenizer: str
    fingerprint: str
    options: Options
    layout: Layout
    inputs: tuple[Input, ...]
    units: tuple[tuple[Part, ...], ...]
    #: The folder, which is not part of the plan: equal plans write the same bytes anywhere.
    out: str = field(compare=False)

    @property
    def plain(self) -> dict[str, Any]:
        """The plan as a dict for JSON."""
        return {
            "version": _VERSION,
            "tokenizer": self.tokenizer,
            "fingerprint": self.fingerprint,
            "options": asdict(self.options),
            "layout": self.layout._asdict(),
            "inputs": [source._asdict() for source in self.inputs],
            "units": [[list(part) for part in unit] for unit in self.units],
        }

    @property
    def sha256(self) -> str:
        """The SHA-256 of the plan, which every manifest names."""
        return sum_of(self.plain)

    def path(self, *names: str) -> str:
        """Returns a path in the folder of the corpus."""
        return os.path.join(self.out, *names)

    @property
    def needs_merge(self) -> bool:
        """True if training reads merged files instead of the parts."""
        return self.options.shuffle is not None or self.options.held_out > 0

    @property
    def parts_folder(self) -> str:
        """The folder of the parts; named differently if the order of the parts is not final."""
        return self.path("parts" if self.options.shuffle is None else "parts-in-order")

    def coder(self, tokenizer: str | None = None) -> Coder:
        """Loads the tokenizer, from its recorded name or from `tokenizer`.

        Raises:
            CorpusError: The fingerprint differs from the plan's.
        """
        coder = Coder(load_engine(tokenizer or self.tokenizer), self.options.allow_special)
        if coder.fingerprint != self.fingerprint:
            raise CorpusError(
                f"the tokenizer {tokenizer or self.tokenizer} has the fingerprint "
                f"{coder.fingerprint[:16]}..., but the plan was made with {self.fingerprint[:16]}...: "
                "its ids may be others; use the tokenizer of the plan, or plan a new folder"
            )
        return coder

    def check_input(self, source: Input) -> None:
        """Raises CorpusError if the size of an input differs from the plan's."""
        size = size_of(source.uri)
        if size != source.size:
            raise CorpusError(
                f"{source.uri} has {size:,} bytes, but had {source.size:,} when the plan was "
                "made; restore it, or plan a new folder"
            )


def make_plan(
    inputs: Iterable[str | os.PathLike[str]],
    tokenizer: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    input_kind: str | None = None,
    eod: str | None = "auto",
    **options: Any,
) -> Plan:
    """Plans a corpus and writes ``plan.json``. Calling again with the same arguments changes
    nothing.

    Args:
        inputs: Files, folders, globs, and fsspec URIs.
        tokenizer: The name of an encoding, or a folder or file with a tokenizer.
        out: The folder of the corpus.
        input_kind: The kind of all inputs, "jsonl", "text", "parquet", "arrow" or "csv", if their
            names do not show it.
        eod: The special token at the end of a document; None for none. By default
            ``<|endoftext|>``; a tokenizer without this token needs a name or None. Messages end as
            their template says.
        options: The other fields of `Options`.

    Raises:
        CorpusError: An argument or an input is invalid, or the folder has a different plan.
        FileNotFoundError: An input does not exist.

    >>> plan = make_plan(["docs/"], "gpt2", "corpus", format="nanogpt")  # doctest: +SKIP
    """
    tokenizer = os.fspath(tokenizer)
    if isinstance(options.get("allow_special"), str):
        raise CorpusError("allow_special is a string; give a list of names")
    if isinstance(inputs, (str, os.PathLike)):
        raise CorpusError(f"the inputs are one name, {os.fspath(inputs)!r}; give a list of names")
    kinds = sorted({*KINDS.values()})
    if input_kind is not None:
        check_choice("input_kind", input_kind, kinds, CorpusError)
    coder = Coder(load_engine(tokenizer), options.get("allow_special", ()))
    is_chat = options.get("content") == "messages"
    if eod == "auto":
        eod = None if is_chat else coder.end_of_document()
        if eod is None and not is_chat:
            likely = sorted(coder.controls, key=lambda name: not _ENDS.search(name))[:8]
            coder_names = ", ".join(map(repr, likely)) or "none"
            raise CorpusError(
                f"{tokenizer} has no <|endoftext|>; name the token that ends documents with --eod "
                f"(special tokens: {coder_names}), or --no-eod"
            )
    chosen = Options(
        eod=eod, **{**options, "allow_special": tuple(options.get("allow_special", ()))}
    )
    layout = _checked(chosen, coder)
    sources = tuple(found(uri, input_kind) for uri in _files(inputs, os.fspath(out)))
    is_file = not is_uri(tokenizer) and os.path.exists(tokenizer)
    name = os.path.abspath(tokenizer) if is_file else tokenizer
    plan = Plan(
        name, coder.fingerprint, chosen, layout, sources, _units(sources, chosen), os.fspath(out)
    )
    _write(plan)
    return plan


def _files(inputs: Iterable[str | os.PathLike[str]], out: str) -> list[str]:
    files = [
        path if is_uri(path) else os.path.abspath(path)
        for path in corpus_files(inputs, without=out)
    ]
    if not files:
        raise CorpusError("there are no inputs; name files or folders")
    seen: set[str] = set()
    for path in files:
        if path in seen:
            raise CorpusError(f"{path} is given twice; its documents would be written twice")
        if _UNFIT.search(path):
            raise CorpusError(f"{path!r}: the name has a line end or is not UTF-8; rename the file")
        seen.add(path)
    return files


def _checked(options: Options, coder: Coder) -> Layout:
    choices = {
        "format": tuple(FORMATS),
        "content": ("text", "segments", "messages"),
        "on_error": ("raise", "skip", "keep-empty"),
        "train_on": ("every", "last"),
    }
    for name, known in choices.items():
        check_choice(name, getattr(options, name), known, CorpusError)
    is_chat = options.content == "messages"
    if is_chat != (options.template is not None):
        raise CorpusError("messages need a chat template, and a chat template needs messages")
    _check_template(options)
    if options.id_field == options.field:
        raise CorpusError(f"the field {options.field!r} is the text; name another for --id-field")
    if options.separator == "":
        raise CorpusError("the separator is empty; leave it out for a document a file")
    if not 0 <= options.held_out < 1:
        raise CorpusError(
            f"held_out is {options.held_out}; give a share from 0 to below 1, as 0.01"
        )
    if options.held_out and options.format == "llm.c":
        raise CorpusError("llm.c holds out its first shard, merged; leave held_out out")
    if options.unit_bytes < 1:
        raise CorpusError(f"a unit has at least 1 byte, not {options.unit_bytes}")
    form = FORMATS[options.format]
    layout = Layout(
        largest_id=coder.largest_id,
        eod=None if options.eod is None else coder.id_of(options.eod),
        bos=None if options.bos is None else coder.id_of(options.bos),
        has_loss=is_chat,
        has_names=options.id_field is not None,
        is_templated=is_chat,
        tokenizer=coder.name,
    )
    form.check_layout(layout)
    return layout


def _check_template(options: Options) -> None:
    names = [*options.template_fields, *options.template_variables]
    given = {
        "template_fields": options.template_fields,
        "template_variables": options.template_variables,
        "train_on": options.train_on != "every",
        "weight_key": options.weight_key,
    }
    for option, value in given.items():
        if value and options.content != "messages":
            raise CorpusError(f"{option} is for messages; name their field with --messages")
    for name in names:
        if name in NOT_VARIABLES or not name.isidentifier():
            way_out = "give tools with --tools" if name == "tools" else "choose another name"
            raise CorpusError(f"{name!r} cannot be a variable of the template; {way_out}")
        if names.count(name) > 1:
            raise CorpusError(f"the variable {name!r} is given twice, by a field and by a value")
    if options.content == "messages":
        try:
            _ = options.fields
        except ImportError:
            raise
        except Exception as error:  # A jinja2 error; jinja2 is imported only for messages.
            raise CorpusError(f"the chat template is broken: {error}") from error
    try:
        json.dumps(options.template_variables)
    except (TypeError, ValueError) as error:
        raise CorpusError(f"template_variables are not JSON: {error}") from error


def _units(inputs: Sequence[Input], options: Options) -> tuple[tuple[Part, ...], ...]:
    # Line numbers are known from the start only for a whole file.
    whole = FORMATS[options.format].needs_lines
    units: list[tuple[Part, ...]] = []
    unit: list[Part] = []
    total = 0
    for number, source in enumerate(inputs):
        for part, size in parts_of_input(source, number, options.unit_bytes, whole):
            if unit and total + size > options.unit_bytes:
                units.append(tuple(unit))
                unit, total = [], 0
            unit.append(part)
            total += size
    return (*units, tuple(unit))


def _write(plan: Plan) -> None:
    path = plan.path("plan.json")
    try:
        os.makedirs(plan.out, exist_ok=True)
        names = set(os.listdir(plan.out))
    except OSError as error:
        raise CorpusError(f"{plan.out} cannot be made a folder: {error.strerror}") from error
    if "plan.json" in names:
        present = read_plan(plan.out)
        if present.sha256 != plan.sha256:
            is_new = names <= {"plan.json", "unfinished"}
            way_out = "delete it, since nothing is written there yet, or " if is_new else ""
            raise CorpusError(
                f"{path} is another plan: {_difference(present, plan)}; {way_out}choose another folder"
            )
        return
    # A killed planning process leaves only this folder behind.
    if names - {"unfinished"}:
        raise CorpusError(f"{plan.out} is not empty and has no plan.json; choose another folder")
    with scratch_folder(plan.out, "plan") as folder:
        write_at_once(path, sealed(plan.plain), folder)


def _difference(one: Plan, other: Plan) -> str:
    for option in fields(Options):
        before, now = getattr(one.options, option.name), getattr(other.options, option.name)
        if before != now:
            return f"{option.name} was {before!r} and is now {now!r}"
    if one.fingerprint != other.fingerprint:
        return f"the tokenizer was {one.tokenizer} ({one.fingerprint[:16]}...) and has changed"
    for before, now in zip(one.inputs, other.inputs):
        if before != now:
            return f"the input {before.uri} ({before.size:,} bytes) is now {now.uri} ({now.size:,} bytes)"
    if len(one.inputs) != len(other.inputs):
        return f"it has {len(one.inputs):,} inputs, not {len(other.inputs):,}"
    return (
        "the tokenizer has another path" if one.tokenizer != other.tokenizer else "its units differ"
    )


def read_plan(out: str | os.PathLike[str]) -> Plan:
    """Reads the plan of a folder.

    Raises:
        CorpusError: The plan is missing, or was changed.
    """
    path = os.path.join(os.fspath(out), "plan.json")
    try:
        plain = read_sealed(path, "restore it, or plan a new folder")
    except FileNotFoundError as error:
        raise CorpusError(
            f"{path}: the plan is missing; make one with bpe-engine corpus plan"
        ) from error
    if plain.get("version") != _VERSION:
        raise CorpusError(
            f"{path} has version {plain.get('version')}; this program reads version {_VERSION}"
        )
    options = plain["options"]
    options["allow_special"] = tuple(options["allow_special"])
    return Plan(
        plain["tokenizer"],
        plain["fingerprint"],
        Options(**options),
        Layout(**plain["layout"]),
        tuple(Input(**source) for source in plain["inputs"]),
        tuple(tuple(Part(*part) for part in unit) for unit in plain["units"]),
        os.fspath(out),
    )
