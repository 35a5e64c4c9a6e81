"""`audit_template`, which tries to forge control tokens through caller-supplied fields."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .attacks import (
    COMPLETED,
    CONVERSATIONS,
    SPLIT,
    TRICKS,
    Place,
    Trick,
    places,
    replaced,
    simplified,
)
from .audit import Audit, is_trusted
from .lint import Sample
from .samples import BOS, EOS, REFUSALS, control_tokens_of
from .segments import Segment, special, trusted, untrusted, whole_text
from .template import ChatTemplate
from .template_audit import PATHS, Forgery, Path, TemplateAudit, TriedField

if TYPE_CHECKING:
    from ..face import Face

__all__ = ["audit_template"]

#: Maximum number of texts tried in one field at once.
_AT_ONCE = 256
#: Marker word absent from templates, and the text around a forged name.
_WORD, _BEFORE, _BEHIND = "Ptarmigan", "Quince", "asks."
#: Rare characters (private use, cuneiform) missing from vocabularies.
_UNKNOWN = "\U000f0000 \U00012345"
#: Roles for the program's text and for the caller's text.
_OWN, _CALLER = "own", "caller"
#: Number of tokens shown on each side of a forged token.
_AROUND = 6
#: Variables with separate fields or without text.
_NO_TEXTS = ("messages", "tools", "documents", "add_generation_prompt")


def audit_template(
    template: str | ChatTemplate,
    tokenizer: Face,
    *,
    max_seconds: float = 600.0,
    **variables: Any,
) -> TemplateAudit:
    """Tries to forge each control token through each caller-supplied field.

    Each string of messages, tools, documents and variables is filled with the name of each control
    token, by each trick of `TemplateAudit.tricks`. Every prompt is encoded on two paths: as one
    rendered text with special tokens allowed, as in most programs; and as segments. A token is
    forged if its text comes from the caller.

    Args:
        template: A chat template.
        tokenizer: The model's tokenizer: an `Encoding`, a `bpe_engine.hf.Tokenizer` or a
            `bpe_engine.Tokenizer`. Control tokens are its special tokens or, in a tokenizer file,
            all added tokens except whitespace.
        max_seconds: Time limit in seconds. Each rendering also has the limit of `ChatTemplate`.
        variables: Other template variables, set by the program. Missing variables that the template
            reads are "[]".

    Raises:
        ValueError: The template rejects a plain conversation, or is too large.
        TimeoutError: The audit takes more than `max_seconds`.
        jinja2.TemplateError: The template has errors.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import audit_template
    >>> template = "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>{% endfor %}"
    >>> audit = audit_template(template, bpe_engine.get_encoding("qwen3"))
    >>> [tried.name for tried in audit.lets_through("naive")][:3]
    ['role of system', 'content of system', 'role of user']
    >>> audit.lets_through("segments")
    []
    """
    given = {**_roles(tokenizer), **variables}
    sample = Sample(template, tokenizer, given)
    auditor = _Auditor(sample, tokenizer, frozenset(variables), max_seconds)
    auditor.try_all()
    return auditor.result()


def _roles(tokenizer: Face) -> dict[str, Segment]:
    """Returns the begin-of-text and end-of-text tokens as template variables."""
    named = getattr(tokenizer, "special_tokens_map", {})
    known = tokenizer.special_tokens_set
    texts = {
        name: named.get(name, usual) for name, usual in (("bos_token", BOS), ("eos_token", EOS))
    }
    return {name: (special if text in known else trusted)(text) for name, text in texts.items()}


def _controls(tokenizer: Face) -> dict[int, str]:
    """Returns the special tokens by id, except whitespace and the unknown token, which any text
    may produce."""
    unknown = tokenizer.encode_segments([untrusted(_UNKNOWN)])
    names = sorted(name for name in tokenizer.special_tokens_set if name.strip())
    found = {tokenizer.encode_segments([special(name)])[0]: name for name in names}
    return {id: name for id, name in found.items() if id not in unknown}


class _Encoded(NamedTuple):
    """A prompt encoded on both paths."""

    segments: list[Segment]
    audit: Audit
    #: Forged control tokens.
    naive: set[str]
    safe: set[str]


class _Auditor:
    """Runs the tricks on the strings of conversations and records the results."""

    def __init__(self, sample: Sample, tokenizer: Face, own: frozenset[str], max_seconds: float):
        self.max_seconds = max_seconds
        self.deadline: float = time.monotonic() + max_seconds
        self.sample = sample
        self.tokenizer = tokenizer
        #: Variables set by the program.
        self.own = own
        #: Conversations accepted by the template.
        self.taken: list[dict[str, Any]] = []
        #: Control tokens by id.
        self.controls: dict[int, str] = _controls(tokenizer)
        self.names = frozenset(self.controls.values())
        self.longest = max(map(len, self.names), default=0)
        self.fields: dict[str, TriedField] = {}
        self.forgeries: dict[tuple[str, str, Path], Forgery] = {}
        #: Control tokens in the template's text: tokens of the tokenizer, and names with the form
        #: of control tokens.
        self.written: set[str] = set()
        self.looks: set[str] = set(control_tokens_of(sample.plain))

    def result(self) -> TemplateAudit:
        tokenizer, template = self.tokenizer, self.sample.template
        for tried in self.fields.values():
            for forged in (tried.naive, tried.segments):
                forged.update({trick: sorted(set(names)) for trick, names in forged.items()})
        known = tokenizer.special_tokens_set
        return TemplateAudit(
            tokenizer=tokenizer._label,
            fingerprint=tokenizer.fingerprint,
            template=hashlib.sha256(template.source.encode("utf-8", "replace")).hexdigest(),
            controls=tuple(self.controls.values()),
            unknown=tuple(sorted(self.looks.difference(known, (BOS, EOS)))),
            fields=tuple(self.fields.values()),
            tricks={trick.name: trick.what for trick in TRICKS},
            forgeries=tuple(self.forgeries.values()),
        )

    # ---- Conversations and places ----

    def try_all(self) -> None:
        """Tries each accepted conversation, then the template's variables."""
        for given in CONVERSATIONS:
            is_flat = "tools" in given and "function" not in given["tools"][0]
            if not (is_flat and self._is_shown("tools.function.name")):
                self._try_conversation(given)
        for name in sorted(self.sample.template.variables.difference(_NO_TEXTS, self.own)):
            self._try_variable(name)

    def _try_conversation(self, given: Mapping[str, Any]) -> None:
        for messages in simplified(given["messages"]):
            conversation = {**given, "messages": messages}
            segments = self._rendered(conversation)
            if segments is not None:
                audit = self.tokenizer.audit_segments(segments)
                self.written.update(self._controls_in(audit.ids))
                self.looks.update(control_tokens_of(segments))
                self.taken.append(conversation)
                for place in places(conversation):
                    self._try_place(conversation, place)
                break
        for place in places(given):
            self._field(place.field)

    def _try_variable(self, name: str) -> None:
        """Tries a template variable as a string, and if that fails as a list of one string."""
        field = f"variable {name}"
        for conversation in self.taken[:2]:
            for path in ((name,), (name, 0)):
                given = {**conversation, name: [_WORD] if path[1:] else _WORD}
                segments = self._rendered(given)
                if segments is not None and _WORD in whole_text(segments):
                    self._try_place(given, Place(field, path, False, _WORD))
                    return
        self._field(field)

    def _try_place(self, given: Mapping[str, Any], place: Place) -> None:
        """Tries all tricks at a position, or only the tricks that depend on the surrounding text
        if the field was tried before."""
        was_shown = self._is_shown(place.field)
        segments = self._rendered(replaced(given, place, _WORD))
        left, found, right = whole_text(segments or ()).partition(_WORD)
        if found:
            self._field(place.field).is_shown = True
            self._try_completions(given, place, left, right)
            self._try_splits(given, place, right)
        if not was_shown:
            for trick in TRICKS:
                self._try_trick(given, place, trick)

    def _field(self, name: str) -> TriedField:
        return self.fields.setdefault(name, TriedField(name))

    def _is_shown(self, name: str) -> bool:
        return name in self.fields and self.fields[name].is_shown

    # ---- Tricks ----

    def _try_trick(self, given: Any, place: Place, trick: Trick) -> None:
        texts = {
            spelling: name
            for name in self.controls.values()
            for spelling in dict.fromkeys(trick.spellings(name))
            if trick is TRICKS[0] or spelling not in self.names
        }
        # Tries the first spelling on its own to obtain an example.
        spellings = sorted(texts, key=lambda spelling: texts[spelling] not in self.written)
        forged = self._attack(given, trick, {place: _within(spellings[0])}) if texts else set()
        for first in range(0, len(spellings), _AT_ONCE):
            filled = "".join(map(_within, spellings[first : first + _AT_ONCE]))
            forged |= self._attack(given, trick, {place: filled})
        # Tried one by one, because the handling of one token may hide the other tokens.
        for spelling, name in texts.items():
            if name in self.written and name not in forged:
                self._attack(given, trick, {place: _within(spelling)})

    def _try_completions(self, given: Any, place: Place, left: str, right: str) -> None:
        for name in self.controls.values():
            for filled in _completions(name, left, right):
                self._attack(given, COMPLETED, {place: filled})

    def _try_splits(self, given: Any, place: Place, right: str) -> None:
        """Tries names split across two consecutive positions."""
        near = right[: self.longest + len(_WORD)]
        for other in places(given):
            # A short text would match anywhere.
            if len(other.value) < 4 or other.path == place.path or other.value not in near:
                continue
            between = near[: near.index(other.value)]
            for name in self.controls.values():
                for begin, end in _split(name, between):
                    self._attack(given, SPLIT, {place: _BEFORE + begin, other: end + _BEHIND})

    # ---- One prompt ----

    def _attack(self, given: Any, trick: Trick, texts: Mapping[Place, str]) -> set[str]:
        """Tries a prompt and returns the control tokens forged on the naive path."""
        tried = self._field(next(iter(texts)).field)
        tried.prompts += 1
        for place, text in texts.items():
            given = replaced(given, place, text)
        segments = self._rendered(given)
        if segments is None:
            tried.refused += 1
            return set()
        encoded = self._encoded(segments)
        filled = {place.field: text for place, text in texts.items()}
        for path, names in zip(PATHS, (encoded.naive, encoded.safe)):
            if not names:
                continue
            tried.forged(path).setdefault(trick.name, []).extend(names)
            key = (tried.name, trick.name, path)
            if key not in self.forgeries:
                token = next((name for name in sorted(names) if name in self.written), min(names))
                shown = self._shown(encoded, path, token)
                self.forgeries[key] = Forgery(*key[:2], token, path, filled, shown)
        return encoded.naive

    def _rendered(self, given: Mapping[str, Any]) -> list[Segment] | None:
        """Returns the segments, or None if the template rejects the input. Raises TimeoutError."""
        if time.monotonic() > self.deadline:
            tried = sum(field.prompts for field in self.fields.values())
            raise TimeoutError(
                f"trying to forge control tokens took more than {self.max_seconds:g} seconds (max_seconds); "
                f"{tried:,} prompts were tried"
            )
        # The engine would reject a plain string as the name of a token.
        filled: dict[str, Any] = {
            name: untrusted(value) if isinstance(value, str) else value
            for name, value in given.items()
        }
        try:
            return self.sample.render(**filled)
        except REFUSALS:
            return None

    def _encoded(self, segments: list[Segment]) -> _Encoded:
        audit = self.tokenizer.audit_segments(segments)
        naive = self.tokenizer.encode_segments([trusted(whole_text(segments))])
        more = Counter(self._controls_in(naive)) - Counter(self._controls_in(audit.ids))
        # A token found in normalized text is not marked as special. Its bytes determine its origin.
        owners = [part._replace(role=_OWN if _is_own(part) else _CALLER) for part in segments]
        touched = self.tokenizer.audit_segments(owners).mask(_CALLER, end=False, mixed=True)
        safe = {
            self.controls[id]
            for id, place, is_special, is_callers in zip(
                audit.ids, audit.segments, audit.special, touched
            )
            if id in self.controls and is_callers and not (is_special and _is_own(segments[place]))
        }
        return _Encoded(segments, audit, set(more), safe)

    def _controls_in(self, ids: Iterable[int]) -> Iterator[str]:
        return filter(None, map(self.controls.get, ids))

    def _shown(self, encoded: _Encoded, path: Path, token: str) -> list[tuple[int, str, bool]]:
        """Returns the tokens around a forged token."""
        text = whole_text(encoded.segments)
        if path == "segments":
            ids = encoded.audit.ids
            at = next(place for place, id in enumerate(ids) if self.controls.get(id) == token)
            return [(id, self.controls.get(id, ""), id == ids[at]) for id in ids[at : at + 1]]
        ids, spans = self.tokenizer.encode_with_offsets(
            text, allowed_special="all", disallowed_special=()
        )
        outside = [not is_trusted(it) for it in encoded.segments for _ in it.text]
        places = [place for place, id in enumerate(ids) if self.controls.get(id) == token]
        at = next((p for p in places if any(outside[slice(*spans[p])])), places[-1])
        first = max(at - _AROUND, 0)
        return [
            (ids[place], text[slice(*spans[place])], place == at)
            for place in range(first, min(at + _AROUND + 1, len(ids)))
        ]


def _is_own(segment: Segment) -> bool:
    """Returns True for template text and for tokens of the program."""
    is_template = segment.origin is None or segment.origin.field == "template"
    return is_trusted(segment) and (is_template or segment.kind == "special")


def _within(spelling: str) -> str:
    return f"{_BEFORE}{spelling}{_BEHIND} "


def _completions(name: str, left: str, right: str) -> Iterator[str]:
    """Yields the texts that complete a name together with the text around a position."""
    begins = [size for size in range(len(name)) if left.endswith(name[:size])]
    ends = [size for size in range(1, len(name) + 1) if right.startswith(name[size:])]
    for begin in begins:
        for end in ends:
            if begin <= end and (begin, end) != (0, len(name)):
                before, behind = "" if begin else _BEFORE, "" if end < len(name) else _BEHIND
                yield f"{before}{name[begin:end]}{behind}"


def _split(name: str, between: str) -> Iterator[tuple[str, str]]:
    """Yields the two parts of a name around a text."""
    if not between:
        middle = len(name) // 2
        yield name[:middle], name[middle:]
        return
    at = name.find(between, 1)
    while 0 < at < len(name) - len(between):
        yield name[:at], name[at + len(between) :]
        at = name.find(between, at + 1)
