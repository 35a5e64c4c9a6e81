"""Adapters for trainers of Unigram, WordPiece and BPE over characters, which train on lines.

Each adapter imports its package, and returns a function of lines, a size and threads. The function
returns the tokens if trainers must agree on them, an encoder of lines, and for Unigram the scores
by id. All models mark spaces with U+2581 and cut there, except WordPiece, which cuts like BERT.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Encode = Callable[[str], list[int]]
Trained = tuple[list[str] | None, Encode, list[float] | None]
Train = Callable[[list[str], int, int], Trained]

_TYPES = {"unigram": "Unigram", "wordpiece": "WordPiece", "bpe": "BPE"}


def _pipeline(package: Any, model: str, models: Any) -> Any:
    fields = {} if model == "unigram" else {"unk_token": "[UNK]"}
    tokenizer = package.Tokenizer(getattr(models, _TYPES[model])(**fields))
    cut = package.pre_tokenizers
    tokenizer.pre_tokenizer = cut.BertPreTokenizer() if model == "wordpiece" else cut.Metaspace()
    return tokenizer


def _ours(model: str) -> Train:
    from bpe_engine import hf
    from vocab_tools import train_model

    def train(lines: list[str], size: int, threads: int) -> Trained:
        with tempfile.TemporaryDirectory() as folder:
            like, text = Path(folder, "like.json"), Path(folder, "text.txt")
            _pipeline(hf, model, hf).save(str(like))
            with text.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in lines)
            options: dict[str, Any] = {"min_frequency": 1, "special_tokens": ["[UNK]"]}
            trained = train_model([text], size, like=like, num_threads=threads, **options)
        return _result(model, trained.tokenizer)

    return train


def _tokenizers(model: str) -> Train:
    import tokenizers
    from tokenizers import trainers

    def train(lines: list[str], size: int, threads: int) -> Trained:
        made = _pipeline(tokenizers, model, tokenizers.models)
        options = {"unk_token": "[UNK]"} if model == "unigram" else {}
        kind = getattr(trainers, f"{_TYPES[model].replace('BPE', 'Bpe')}Trainer")
        trainer = kind(vocab_size=size, special_tokens=["[UNK]"], show_progress=False, **options)
        made.train_from_iterator(lines, trainer)
        return _result(model, made)

    return train


def _result(model: str, tokenizer: Any) -> Trained:
    vocab = tokenizer.get_vocab()
    # Hash table order decides ties between pairs in WordPiece, and rounding in Unigram.
    tokens = sorted(vocab, key=vocab.__getitem__) if model == "bpe" else None
    scores = None
    if model == "unigram":
        contents = json.loads(tokenizer.to_str())["model"]
        scores = _with_unknown([score for _, score in contents["vocab"]], contents["unk_id"])
    return tokens, lambda line: list(tokenizer.encode(line, add_special_tokens=False).ids), scores


def _with_unknown(scores: list[float], unknown: int) -> list[float]:
    """Sets the unknown token's score to the score that all three packages encode with."""
    known = [score for id, score in enumerate(scores) if id != unknown and score < 0]
    return [min(known) - 10 if id == unknown else score for id, score in enumerate(scores)]


def _sentencepiece(model: str) -> Train:
    import sentencepiece

    from .engines import Unsupported

    if model == "wordpiece":
        raise Unsupported("no trainer of WordPiece")

    def train(lines: list[str], size: int, threads: int) -> Trained:
        file = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=file, vocab_size=size, model_type=model,
            num_threads=threads, character_coverage=1.0, normalization_rule_name="identity",
            remove_extra_whitespaces=False, max_sentence_length=1 << 20, minloglevel=2,
        )  # fmt: skip
        made = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
        scores = [made.get_score(id) for id in range(made.get_piece_size())]
        return None, made.encode, _with_unknown(scores, made.unk_id())

    return train


TRAINERS: dict[str, Callable[[str], Train]] = {
    "bpe_engine": _ours,
    "tokenizers": _tokenizers,
    "sentencepiece": _sentencepiece,
}
