"""`LanguageTokenizer`: tokenizers that mark the language of a text by a token around it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..hf.processors import TemplateProcessing
from ..hf.tokenizers import Tokenizer as FileTokenizer
from .batch_encoding import BatchEncoding
from .plan import Plan
from .tokenizer import Tokenizer
from .vocabularies import id_of

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["LanguageTokenizer"]

#: The places around a text, before and after it.
_BEFORE = (("lang",), ("eos",))
_AFTER = ((), ("eos", "lang"))


class _Layout(NamedTuple):
    """How a class of transformers marks languages."""

    source: str
    target: str | None = None
    around: tuple[tuple[str, ...], tuple[str, ...]] = _BEFORE
    around_target: tuple[tuple[str, ...], tuple[str, ...]] = _BEFORE
    #: Around the name of a language.
    mark: str = ""


_LAYOUTS = {
    "MBart50Tokenizer": _Layout("en_XX"),
    "MBartTokenizer": _Layout("en_XX", None, _AFTER, _AFTER),
    "NllbTokenizer": _Layout("eng_Latn"),
    "SeamlessM4TTokenizer": _Layout("eng", "fra", _BEFORE, (("eos", "lang"), ("eos",)), "__"),
}


class LanguageTokenizer(Tokenizer):
    """A tokenizer that puts a token for the language before or after each text.

    `Tokenizer.from_pretrained` makes it of folders of MBart, MBart-50, NLLB and SeamlessM4T.
    ``text_target`` of a call is marked by the other language.

    Args:
        source: A `bpe_engine.hf.Tokenizer`.
        layout: The class of transformers.
        src_lang, tgt_lang: The languages of texts and of their translations, such as ``"en_XX"`` or
            ``"eng_Latn"``; by default those of the class. Can be set.
        legacy_behaviour: Whether NLLB has the language after a text.
        kwargs: As in `bpe_engine.Tokenizer`.

    Raises:
        ValueError: The vocabulary lacks a language.
    """

    def __init__(
        self,
        source: FileTokenizer,
        *,
        layout: str,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        legacy_behaviour: bool = False,
        **kwargs: Any,
    ):
        super().__init__(source, **kwargs)
        found = _LAYOUTS[layout]
        if legacy_behaviour and layout == "NllbTokenizer":
            found = found._replace(around=_AFTER, around_target=_AFTER)
        self._layout_name, self._languages = layout, found
        self._legacy = bool(legacy_behaviour)
        self._source_language = self._marked(src_lang or found.source)
        self._target_language = self._marked(tgt_lang or found.target)
        self._update_languages()

    def _marked(self, language: str | None) -> str | None:
        mark = self._languages.mark
        return language if language is None or mark in language else f"{mark}{language}{mark}"

    @property
    def src_lang(self) -> str | None:
        """The language of texts. Can be set."""
        return self._source_language

    @src_lang.setter
    def src_lang(self, language: str) -> None:
        self._source_language = self._marked(language)
        self._update_languages()

    @property
    def tgt_lang(self) -> str | None:
        """The language of ``text_target``. Can be set."""
        return self._target_language

    @tgt_lang.setter
    def tgt_lang(self, language: str | None) -> None:
        self._target_language = self._marked(language)
        self._update_languages()

    def _update_languages(self) -> None:
        """Sets what is put around texts and around their translations."""
        around = self._languages
        self._engine.post_processor = self._around(around.around, self._source_language)
        self._target = copy.copy(self._engine)
        language = self._target_language or self._source_language
        self._target.post_processor = self._around(around.around_target, language)

    def _around(self, places: Sequence[Sequence[str]], language: str | None) -> Any:
        tokens: Mapping[str, str] = {"lang": language or "", "eos": self.eos_token}
        if self._engine.token_to_id(tokens["lang"]) is None:
            known = [
                token
                for token in self.all_special_tokens
                if token not in self._special.named().values()
            ]
            raise ValueError(
                f"the vocabulary has no language {tokens['lang']!r}; languages are among "
                f"{', '.join(known[:8])} and {max(len(known) - 8, 0)} more"
            )
        before, after = ([tokens[place] for place in side] for side in places)
        return TemplateProcessing(
            [*before, "$A", *after],
            [*before, "$A", "$B", *after],
            [(token, id_of(self._engine, token)) for token in dict.fromkeys([*before, *after])],
        )

    def _encode_target(self, text: Any, text_pair: Any, plan: Plan) -> BatchEncoding:
        encoder = plan.arguments.encoder(self._target)
        return self._encode(text, text_pair, plan._replace(encoder=encoder))

    def _add(self, tokens: Sequence[Any]) -> int:
        count = super()._add(tokens)
        if "_target" in self.__dict__:
            self._update_languages()
        return count

    def __copy__(self) -> Self:
        other = super().__copy__()
        other._target = copy.copy(self._target)
        return other

    def _config(self) -> dict[str, Any]:
        config = {**super()._config(), "tokenizer_class": self._layout_name}
        config |= {"src_lang": self.src_lang, "tgt_lang": self.tgt_lang}
        return {**config, "legacy_behaviour": True} if self._legacy else config
