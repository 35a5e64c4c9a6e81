"""Reads a model of SentencePiece as the classes of transformers do that build Unigram of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..hf.components import AddedToken
from ..hf.models import restore_scores
from ..hf.processors import TemplateProcessing
from ..hf.tokenizers import Tokenizer as FileTokenizer
from .special import ROLES, content_of
from .vocabularies import add_roles, id_of

__all__ = ["OPTIONS", "of_scored_pieces"]

#: The fields of a configuration that the classes take, beside those of all.
OPTIONS = ("do_lower_case", "keep_accents", "split_by_punct", "add_prefix_space", "extra_ids")

_CONTROL, _USER_DEFINED = 3, 4

Json = dict[str, Any]
Scores = list[tuple[str, float]]


class _Input(NamedTuple):
    """The input of a class, of which it makes a tokenizer."""

    pieces: Scores
    #: The rules of the normalizer, in base64; empty without any.
    charsmap: str
    config: Mapping[str, Any]
    #: Returns the token of a role.
    token: Callable[[str], str]

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.config.get(name, default))

    def place(self, token: str, default: int) -> int:
        """The place of a special token among the pieces."""
        return next(
            (place for place, row in enumerate(self.pieces) if row == (token, 0.0)), default
        )


class _Made(NamedTuple):
    """The parts of a tokenizer."""

    vocab: Scores
    unk_id: int
    normalizers: list[Json]
    pre_tokenizers: list[Json]
    #: The tokens around a text, and around a pair.
    single: str
    pair: str
    #: Pieces after the others that are special tokens.
    extra: tuple[str, ...] = ()


def _charsmap(given: _Input) -> list[Json]:
    rules = {"type": "Precompiled", "precompiled_charsmap": given.charsmap}
    return [rules] if given.charsmap else []


def _replace(content: str, **pattern: str) -> Json:
    return {"type": "Replace", "pattern": pattern, "content": content}


_QUOTES = [_replace('"', String="``"), _replace('"', String="''")]
_BARE = [{"type": "NFKD"}, {"type": "StripAccents"}]
_LOWER = [{"type": "Lowercase"}]
_SPACES: Json = {"type": "WhitespaceSplit"}


def _marks(scheme: str = "always") -> Json:
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True}


def _scheme(given: _Input) -> str:
    return "always" if given.flag("add_prefix_space", True) else "never"


_TYPED = ("{cls}:0 $A:0 {sep}:0", "{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1")
_DOUBLED = ("{bos}:0 $A:0 {eos}:0", "{bos}:0 $A:0 {eos}:0 {eos}:0 $B:0 {eos}:0")


def _t5(given: _Input) -> _Made:
    count = int(given.config.get("extra_ids", 100))
    extra = tuple(f"<extra_id_{number}>" for number in reversed(range(count)))
    around = ("$A:0 {eos}:0", "$A:0 {eos}:0 $B:0 {eos}:0")
    return _Made(
        [*given.pieces, *((piece, 0.0) for piece in extra)],
        2,
        _charsmap(given),
        [_SPACES, _marks()],
        *around,
        extra,
    )


def _xlm_roberta(given: _Input) -> _Made:
    first = [(given.token(role), 0.0) for role in ("bos", "pad", "eos", "unk")]
    vocab = [*first, *given.pieces[3:], (given.token("mask"), 0.0)]
    steps = [_SPACES, _marks(_scheme(given))]
    return _Made(vocab, 3, _charsmap(given), steps, *_DOUBLED)


def _camembert(given: _Input) -> _Made:
    first = [
        ("<s>NOTUSED", 0.0),
        (given.token("pad"), 0.0),
        ("</s>NOTUSED", 0.0),
        (given.token("unk"), 0.0),
        ("<unk>NOTUSED", -100.0),
    ]
    vocab = [*first, *given.pieces[1:], (given.token("mask"), 0.0)]
    steps = [_SPACES, _marks(_scheme(given))]
    return _Made(vocab, 3, _charsmap(given), steps, *_DOUBLED)


def _albert(given: _Input) -> _Made:
    normalizers = [
        *_QUOTES,
        *([] if given.flag("keep_accents", False) else _BARE),
        *(_LOWER if given.flag("do_lower_case", True) else []),
        *_charsmap(given),
    ]
    return _Made(given.pieces, 1, normalizers, [_SPACES, _marks(_scheme(given))], *_TYPED)


def _xlnet(given: _Input) -> _Made:
    lower = _LOWER if given.flag("do_lower_case", False) else []
    normalizers = [*_QUOTES, *_BARE, *lower, *_charsmap(given)]
    around = ("$A:0 {sep}:0 {cls}:2", "$A:0 {sep}:0 $B:1 {sep}:1 {cls}:2")
    return _Made(
        given.pieces, given.place(given.token("unk"), 0), normalizers, [_SPACES, _marks()], *around
    )


def _deberta(given: _Input) -> _Made:
    normalizers = [
        *(_LOWER if given.flag("do_lower_case", False) else []),
        _replace(" ", Regex=r"\s{2,}|[\n\r\t]"),
        {"type": "NFC"},
        {"type": "Strip", "strip_left": False, "strip_right": True},
    ]
    scheme = "always" if given.flag("add_prefix_space", True) else "first"
    is_split = given.flag("split_by_punct", False)
    punctuation = [{"type": "Punctuation", "behavior": "Isolated"}] if is_split else []
    unknown = given.place(given.token("unk"), 1)
    return _Made(given.pieces, unknown, normalizers, [*punctuation, _marks(scheme)], *_TYPED)


_CLASSES: dict[str, Callable[[_Input], _Made]] = {
    "AlbertTokenizer": _albert,
    "CamembertTokenizer": _camembert,
    "DebertaV2Tokenizer": _deberta,
    "T5Tokenizer": _t5,
    "XLMRobertaTokenizer": _xlm_roberta,
    "XLNetTokenizer": _xlnet,
}


def of_scored_pieces(
    path: str | os.PathLike[str],
    name: str | None,
    config: Mapping[str, Any],
    added: Mapping[int, AddedToken],
    settings: dict[str, Any],
) -> FileTokenizer:
    """Reads a model of SentencePiece as a class of transformers.

    Args:
        path: The file.
        name: The class.
        config: The configuration of the folder.
        added: Its added tokens by id.
        settings: The arguments of `Tokenizer`, with the special tokens. The control pieces and the
            user-defined ones become special tokens there.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is malformed or no Unigram model, or it is not known how the class reads it.
    """
    make = _CLASSES.get(name or "")
    if make is None:
        who = (
            "no class is named in tokenizer_config.json or config.json, so " if name is None else ""
        )
        raise ValueError(
            f"{who}how {name or 'transformers'} reads {os.fspath(path)} is unknown; the classes of such "
            f"a folder are {', '.join(_CLASSES)}. Let transformers save a tokenizer.json: "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
    spec: Json = json.loads(FileTokenizer.from_sentencepiece(path).to_str())
    model, pieces = spec["model"], [(piece, score) for piece, score in spec["model"]["vocab"]]
    if model["algorithm"] != "Unigram":
        raise ValueError(
            f"{os.fspath(path)} is a model of the kind {model['algorithm']}, and {name} takes Unigram; "
            "bpe_engine.hf.Tokenizer.from_sentencepiece reads it"
        )
    charsmap = spec["normalizer"]["precompiled_charsmap"]
    made = make(
        _Input(pieces, charsmap, config, lambda role: content_of(settings[f"{role}_token"]))
    )
    names = {
        role: content_of(settings[f"{role}_token"])
        for role in ("bos", "eos", "cls", "sep")
        if settings.get(f"{role}_token") is not None
    }
    contents: Json = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": _sequence("normalizers", made.normalizers),
        "pre_tokenizer": _sequence("pretokenizers", made.pre_tokenizers),
        "decoder": made.pre_tokenizers[-1],
        "model": {"type": "Unigram", "unk_id": made.unk_id, "vocab": made.vocab},
    }
    text = json.dumps(contents)
    tokenizer = FileTokenizer(text)
    restore_scores(tokenizer, text)
    kinds = zip(model["vocab"], model["kinds"])
    roles = {content_of(settings[role]) for role in ROLES if settings.get(role) is not None}
    own = {
        piece: kind == _CONTROL or piece in roles
        for (piece, _), kind in kinds
        if kind in (_CONTROL, _USER_DEFINED)
    }
    own |= dict.fromkeys(reversed(made.extra), True)
    # They come in place of those of the configuration.
    settings["extra_special_tokens"] = list(own)
    tokenizer.add_tokens(list(added.values()))
    add_roles(tokenizer, settings)
    # Their flags come in place of those of the roles.
    tokenizer.add_tokens(
        [AddedToken(token, normalized=False, special=special) for token, special in own.items()]
    )
    tokenizer.post_processor = TemplateProcessing(
        made.single.format(**names),
        made.pair.format(**names),
        [(token, id_of(tokenizer, token)) for token in dict.fromkeys(names.values())],
    )
    return tokenizer


def _sequence(key: str, steps: list[Json]) -> Json | None:
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", key: steps}
