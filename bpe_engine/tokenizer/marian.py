"""`MarianTokenizer`: reads the folders of Marian's models of translation."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from ..hf.processors import TemplateProcessing
from ..hf.tokenizers import Tokenizer as FileTokenizer
from . import classes
from .files import located, read_config, settings_of
from .folder import added_tokens
from .named_pieces import of_named_pieces, read_ids
from .piecewise import PiecewiseTokenizer
from .special import content_of

__all__ = ["FILES", "MarianTokenizer"]

_SOURCE, _TARGET = "source.spm", "target.spm"
_VOCAB, _TARGET_VOCAB = "vocab.json", "target_vocab.json"
#: The files of a folder.
FILES = (_SOURCE, _TARGET, _VOCAB)
_NAME = "MarianTokenizer"
_LANGUAGE = re.compile(r">>[\s\S]*?<<")


class MarianTokenizer(PiecewiseTokenizer):
    """The tokenizer of a Marian model: a model of SentencePiece for the language of texts and one for
    that of their translations, with the ids of a vocab.json.

    `Tokenizer.from_pretrained` makes it of a folder with ``source.spm``. ``text_target`` of a call is
    encoded by the other model. A language such as ``>>fr<<`` at the beginning of a text is one token.
    Other abilities than calls take texts without one. Tokens have no offsets, as in transformers.

    Args:
        source, target: The two models, as the files of a folder make them.
        pieces: The pieces of the model that decodes.
        files: The contents of these files, by their names.
        separate_vocabs: Whether translations have a vocabulary of their own.
        kwargs: As in `bpe_engine.Tokenizer`.
    """

    _after_special = " "

    def __init__(
        self,
        source: FileTokenizer,
        target: FileTokenizer,
        pieces: frozenset[str],
        files: dict[str, bytes],
        *,
        separate_vocabs: bool = False,
        **kwargs: Any,
    ):
        self._files = files
        self._separate_vocabs = separate_vocabs
        super().__init__(source, target, pieces, **kwargs)
        eos = self.eos_token
        for engine in (self._engine, self._target):
            id = engine.token_to_id(eos)
            engine.post_processor = TemplateProcessing(
                ["$A", eos], ["$A", "$B", eos], [(eos, id)] if id is not None else []
            )

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **kwargs: Any) -> MarianTokenizer:
        """Reads ``source.spm``, ``target.spm``, ``vocab.json`` and ``tokenizer_config.json`` from a local
        folder.

        Args:
            folder: The folder. Nothing is downloaded.
            kwargs: Arguments of `bpe_engine.Tokenizer`, which override the files.

        Raises:
            OSError: The folder or a file does not exist.
            ValueError: A file is malformed.
        """
        path, arguments = located(folder, kwargs)
        config = read_config(path)
        settings = {**classes.defaults(_NAME, config), **settings_of(path, config), **arguments}
        settings.setdefault("model_max_length", 512)
        settings.setdefault("name_or_path", os.fspath(folder))
        is_separate = bool(settings.pop("separate_vocabs", config.get("separate_vocabs", False)))
        unknown = content_of(settings["unk_token"])
        ids = read_ids(path / _VOCAB)
        target_ids = read_ids(path / _TARGET_VOCAB) if is_separate else ids
        names = [*FILES, *([_TARGET_VOCAB] if is_separate else [])]
        source, pieces = of_named_pieces(path / _SOURCE, ids, unknown)
        target, of_target = of_named_pieces(path / _TARGET, target_ids, unknown)
        added = list(added_tokens(config).values())
        for engine in (source, target):
            engine.add_tokens(added)
        return cls(
            source,
            target,
            of_target if is_separate else pieces,
            {name: (path / name).read_bytes() for name in names},
            separate_vocabs=is_separate,
            **settings,
        )

    def _config(self) -> dict[str, Any]:
        return {**super()._config(), "separate_vocabs": self._separate_vocabs}

    def _parts(self, engine: FileTokenizer, text: str) -> list[tuple[str, bool]]:
        """Cuts out the language at the beginning of a text, and after special tokens in it. Returns each
        part, and whether it is a language."""
        if not isinstance(text, str) or ">>" not in text:
            return super()._parts(engine, text)
        names = [] if engine.encode_special_tokens else self.added_tokens_encoder
        longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        spans = [match.span() for match in re.finditer(longest_first, text)] if names else []
        begins = [0, *(end for _, end in spans)]
        ends = [*(start for start, _ in spans), len(text)]
        parts, done = [], 0
        for begin, end in zip(begins, ends):
            language = _LANGUAGE.match(text, begin, end)
            if language is not None:
                parts += [(text[done:begin], False), (language[0], True)]
                done = language.end()
        return [*(part for part in parts if part[0]), (text[done:], False)]

    def get_special_tokens_mask(
        self,
        token_ids_0: Sequence[int],
        token_ids_1: Sequence[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """Returns 1 for each id of a special token other than `unk_token`, 0 for others. The arguments
        are those of `Tokenizer.get_special_tokens_mask`."""
        mask = super().get_special_tokens_mask(token_ids_0, token_ids_1, already_has_special_tokens)
        return [int(one and id != self.unk_token_id) for one, id in zip(mask, token_ids_0)]

    def _mask(self, ids: Sequence[int]) -> list[int]:
        special = {id for id in self.all_special_ids if id != self.unk_token_id}
        return [int(id in special) for id in ids]

    @property
    def _decoded(self) -> FileTokenizer:
        return self._target if self._separate_vocabs else self._engine

    def _text_of(self, tokens: Sequence[Any]) -> str:
        return super()._text_of(tokens).replace("\u2581", " ").strip()
