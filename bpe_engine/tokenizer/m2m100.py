"""`M2M100Tokenizer`: reads the folders of M2M100's models of translation."""

from __future__ import annotations

import os
from typing import Any

from ..hf.processors import TemplateProcessing
from ..hf.tokenizers import Tokenizer as FileTokenizer
from . import classes
from .files import located, read_config, settings_of
from .folder import added_tokens
from .named_pieces import of_named_pieces, read_ids
from .piecewise import Around, PiecewiseTokenizer
from .special import content_of

__all__ = ["M2M100Tokenizer"]

_VOCAB, _MODEL = "vocab.json", "sentencepiece.bpe.model"
#: The languages of the models in the order of their ids.
_LANGUAGES = {
    "m2m100": """af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu
    ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl
    no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo
    zh zu""".split(),
    "wmt21": "en ha is ja cs ru zh de".split(),
}


class M2M100Tokenizer(PiecewiseTokenizer):
    """The tokenizer of M2M100: a model of SentencePiece, the ids of a vocab.json, and a token for the
    language before each text.

    `Tokenizer.from_pretrained` makes it of a folder.

    Args:
        source: The model, with the tokens of languages.
        pieces: Its own pieces.
        files: The contents of the files, by their names.
        src_lang, tgt_lang: The languages of texts and of ``text_target``, such as ``"fr"``. Can be set.
        kwargs: As in `bpe_engine.Tokenizer`.
    """

    def __init__(
        self,
        source: FileTokenizer,
        pieces: frozenset[str],
        files: dict[str, bytes],
        *,
        language_codes: str = "m2m100",
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        **kwargs: Any,
    ):
        self._files = files
        self._language_codes = language_codes
        super().__init__(source, source, pieces, **kwargs)
        #: The language of ``text_target``.
        self.tgt_lang = tgt_lang
        self._source_language = ""
        self.src_lang = src_lang or "en"

    @property
    def src_lang(self) -> str:
        """The language of texts. Can be set."""
        return self._source_language

    @src_lang.setter
    def src_lang(self, language: str) -> None:
        before, after = [self._language(language)], [self.eos_token_id]
        token, eos = f"__{language}__", self.eos_token
        self._source_language = language
        self._engine.post_processor = TemplateProcessing(
            [token, "$A", eos], [token, "$A", "$B", eos], [(token, before[0]), (eos, after[0])]
        )

    def _language(self, language: str) -> int:
        """Returns the id of a language. Raises ValueError if the model lacks it."""
        codes = _LANGUAGES[self._language_codes]
        id = self._engine.token_to_id(f"__{language}__") if language in codes else None
        if id is None:
            raise ValueError(f"no language {language!r}; there are {', '.join(codes)}")
        return id

    def _around(self, is_target: bool) -> Around:
        language = self.tgt_lang if is_target else self.src_lang
        if language is None:
            raise ValueError('text_target needs a language: set tgt_lang, as in tgt_lang = "fr"')
        return [self._language(language)], [self.eos_token_id]

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **kwargs: Any) -> M2M100Tokenizer:
        """Reads ``vocab.json``, ``sentencepiece.bpe.model`` and the configuration in a local folder.

        Args:
            folder: The folder. Nothing is downloaded.
            kwargs: Arguments of `bpe_engine.Tokenizer`, which override the files; ``src_lang`` and
                ``tgt_lang``.

        Raises:
            OSError: The folder or a file does not exist.
            ValueError: A file is malformed, or the configuration does not list the languages.
        """
        path, arguments = located(folder, kwargs)
        config = read_config(path)
        settings = {**classes.defaults("M2M100Tokenizer", config), **settings_of(path, config)}
        for name in ("src_lang", "tgt_lang", "language_codes"):
            if config.get(name) is not None:
                settings[name] = config[name]
        settings |= {"name_or_path": os.fspath(folder), **arguments}
        ids = read_ids(path / _VOCAB)
        unknown = content_of(settings["unk_token"])
        source, pieces = of_named_pieces(path / _MODEL, ids, unknown)
        codes = _LANGUAGES.get(settings.get("language_codes", "m2m100"))
        if codes is None:
            known = ", ".join(_LANGUAGES)
            raise ValueError(
                f"{path}: no languages {settings['language_codes']!r}; there are {known}"
            )
        tokens = [f"__{code}__" for code in codes]
        extra = [content_of(token) for token in settings.get("extra_special_tokens") or ()]
        if extra[: len(tokens)] != tokens:
            raise ValueError(
                f"{path}: additional_special_tokens does not list the tokens of all languages in the "
                f"order of their ids, {tokens[0]} to {tokens[-1]}; list them in tokenizer_config.json"
            )
        source.add_special_tokens([*(token for token in tokens if token not in ids)])
        source.add_tokens(list(added_tokens(config).values()))
        files = {name: (path / name).read_bytes() for name in (_VOCAB, _MODEL)}
        return cls(source, pieces, files, **settings)

    def _config(self) -> dict[str, Any]:
        config = {**super()._config(), "src_lang": self.src_lang, "tgt_lang": self.tgt_lang}
        return {**config, "language_codes": self._language_codes}
