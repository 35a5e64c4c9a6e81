"""Trains models on nine of ten lines of a corpus, and compares the models on the tenth line."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bpe_engine.common.values import check_choice
from bpe_engine.texts.listed import Paths, corpus_files
from bpe_engine.texts.reading import read_texts

from ..arguments import number_of, several_names
from ..text import plural
from ..train.models import MODELS, train_model
from ..train.training import ProgressFunction
from .comparison import Comparison
from .measure import compare_texts
from .segments import lines_of
from .subjects import Subject, of_tokenizer

#: One line in this many is held out.
HELD_OUT_ONE_IN = 10

#: Maximum size of WordPiece's alphabet, because each character needs one or two tokens.
MOST_CHARACTERS = 1000


def compare_trained(
    models: Sequence[str],
    corpus: Paths,
    vocab_size: int,
    *,
    others: Sequence[Subject] = (),
    field: str = "text",
    errors: str = "strict",
    progress: ProgressFunction | None = None,
) -> Comparison:
    """Trains models on nine of ten lines, and compares the models on the tenth line.

    BPE is byte-level, as in GPT-2; other models use the default pipelines of :func:`train_model`.

    Args:
        models: "bpe", "wordpiece", "unigram" or "wordlevel".
        corpus, field, errors: as in :func:`train_model`.
        vocab_size: the vocabulary size of each model.
        others: additional tokenizers for the comparison.
        progress: called with the name of a step, the work done and the total work.

    Raises:
        ValueError: a model is unknown, the text has fewer than ten lines, or as in ``train_model``.
        OSError: a file cannot be read.
    """
    number_of("vocab_size", vocab_size, 1)
    for name in several_names("models", models, '["bpe"]'):
        check_choice("a model", name, MODELS)
    blocks = (block for path in corpus_files(corpus) for block in read_texts(path, field, errors))
    lines = [line for block in blocks for text in block for line in lines_of(text)]
    held_out = lines[HELD_OUT_ONE_IN - 1 :: HELD_OUT_ONE_IN]
    if not held_out:
        raise ValueError(
            f"the text has {plural(len(lines), 'line')}; at least {HELD_OUT_ONE_IN} are needed, "
            f"since one in {HELD_OUT_ONE_IN} is held out"
        )
    del lines[HELD_OUT_ONE_IN - 1 :: HELD_OUT_ONE_IN]
    options: dict[str, dict[str, Any]] = {
        "bpe": {"like": "gpt2"},
        "wordpiece": {"limit_alphabet": max(min(MOST_CHARACTERS, vocab_size // 4), 1)},
    }
    trained = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines.txt")
        whole = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        path.write_text(whole, encoding="utf-8", newline="")
        for model in models:
            more = options.get(model, {})
            made = train_model([path], vocab_size, model=model, progress=progress, **more)
            trained.append(of_tokenizer(model, made.tokenizer))
    return compare_texts([*trained, *others], "lines held out", held_out)
