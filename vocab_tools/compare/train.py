"""Trains subword methods on the same text, and compares them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bpe_engine import hf
from bpe_engine.hf import pre_tokenizers, trainers
from bpe_engine.texts import Paths, corpus_files, read_texts

from ..corpus.cutting import cutting
from ..corpus.piece_counts import CorpusCounts
from ..patterns import named_pattern
from ..text import plural
from ..train import TrainOptions, train_vocabulary
from .comparison import Comparison, Differing, Measured, rates
from .measure import compare_texts
from .segments import MOST_SHOWN, lines_of
from .subjects import RankSubject, Subject, of_tokenizer

#: The methods that can be trained.
METHODS = ("bpe", "wordpiece", "unigram")

#: One of this many lines is held out: no tokenizer is trained on it, and all are measured on it.
HELD_OUT_ONE_IN = 10

#: The number of sentences that are shown cut by each method.
SENTENCES = 8

#: The least share of letters in these, if possible.
LETTERS = 0.7

#: The encoding whose pattern cuts text before BPE.
BPE_PATTERN = "gpt2"

#: The token for what a vocabulary cannot write.
UNKNOWN = "[UNK]"

#: The most characters that WordPiece has tokens for, the most frequent ones, as for BERT; or a
#: quarter of a small vocabulary.
MOST_CHARACTERS = 1000


def compare_trained(
    methods: Sequence[str],
    corpus: Paths,
    vocab_size: int,
    *,
    others: Sequence[Subject] = (),
    field: str = "text",
    errors: str = "strict",
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Trains subword methods on nine lines of ten, and compares them on the tenth.

    Byte-level BPE is cut by GPT-2's pattern and can write every byte. WordPiece is cut at white
    space and punctuation, as BERT cuts; it has the thousand most frequent characters at most, and
    a word with another is ``[UNK]``. Unigram keeps its spaces as part of words, as SentencePiece
    does; characters that it never saw are unknown.

    Args:
        methods: of :data:`METHODS`.
        corpus: files, folders and globs: text, JSON lines or Parquet, packed or not.
        vocab_size: how many tokens each vocabulary is to have.
        others: tokenizers that are compared, too.
        field: the field of JSON lines and Parquet that has the text.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        progress: called now and then with methods done and methods in all.

    Returns:
        The comparison on the lines that were held out, with sentences cut by each, and remarks
        that say what each does differently there.

    Raises:
        ValueError: a method is not known, there is too little text, or the vocabulary is too small.
        OSError: a file cannot be read.
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise ValueError(f"unknown method {unknown[0]!r}; choose from {', '.join(METHODS)}")
    if vocab_size < 300:
        raise ValueError(
            f"a vocabulary of {vocab_size} is too small: the bytes alone are 256; take 300 or more"
        )
    lines = [
        line
        for path in corpus_files(corpus)
        for block in read_texts(path, field, errors)
        for text in block
        for line in lines_of(text)
    ]
    held_out = lines[HELD_OUT_ONE_IN - 1 :: HELD_OUT_ONE_IN]
    training = [line for place, line in enumerate(lines, 1) if place % HELD_OUT_ONE_IN]
    if not held_out:
        raise ValueError(
            f"the text has {plural(len(lines), 'line')}; at least {HELD_OUT_ONE_IN} are needed, "
            f"since one in {HELD_OUT_ONE_IN} is held out"
        )
    trained: list[Subject] = []
    for place, method in enumerate(methods):
        trained.append(train_method(method, training, vocab_size))
        if progress is not None:
            progress(place + 1, len(methods))
    subjects = [*trained, *others]
    comparison = compare_texts(subjects, "lines held out", held_out)
    comparison.sentences = [
        Differing(text, [subject.cut(text) for subject in subjects])
        for text in _sentences(held_out)
    ]
    comparison.remarks = remarks(comparison, vocab_size)
    return comparison


def _sentences(lines: list[str]) -> list[str]:
    """Returns some readable lines, mostly letters, from all parts of the text."""
    short = [line for line in lines if 20 <= len(line) <= MOST_SHOWN]
    fit = [line for line in short if sum(map(str.isalpha, line)) >= LETTERS * len(line)]
    fit = fit or short or [line[:MOST_SHOWN] for line in lines]
    return fit[:: max(len(fit) // SENTENCES, 1)][:SENTENCES]


def train_method(method: str, lines: list[str], vocab_size: int) -> Subject:
    """Trains a tokenizer with one method."""
    if method == "bpe":
        pattern = named_pattern(BPE_PATTERN)
        with CorpusCounts(cutting(pattern, nfc=False)) as counts:
            counts.pieces.count(lines)
            result = train_vocabulary(counts, vocab_size, TrainOptions(pattern=pattern))
        return RankSubject(method, result.encoding())
    makers = {"wordpiece": _wordpiece, "unigram": _unigram}
    tokenizer, trainer = makers[method](vocab_size)
    tokenizer.train_from_iterator(lines, trainer)
    return of_tokenizer(method, tokenizer)


def _wordpiece(vocab_size: int) -> tuple[hf.Tokenizer, trainers.Trainer]:
    tokenizer = hf.Tokenizer(hf.WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # Each character may be two tokens, at the start of a word and within.
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        limit_alphabet=min(MOST_CHARACTERS, vocab_size // 4),
        special_tokens=[UNKNOWN],
        show_progress=False,
    )
    return tokenizer, trainer


def _unigram(vocab_size: int) -> tuple[hf.Tokenizer, trainers.Trainer]:
    tokenizer = hf.Tokenizer(hf.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, special_tokens=[UNKNOWN], unk_token=UNKNOWN, show_progress=False
    )
    return tokenizer, trainer


#: Descriptions of the methods.
ABOUT = {
    "byte-level BPE": "joins the most frequent pair of neighbors again and again, starting from "
    "bytes, and writes any text, spaces and line ends included",
    # Google's trainer weighs a pair by its parts; this trainer and `tokenizers`' count pairs as BPE
    # does.
    "WordPiece": "learns its tokens as BPE does, but from characters, and cuts in another way: it "
    "takes the longest token that fits, from the left; spaces are lost, and a word with a rare "
    "character is unknown as a whole",
    "Unigram": "starts from many tokens and drops those that cost least; of all ways to cut a word "
    "it takes the most probable one; a character that it never saw is unknown",
}


def remarks(comparison: Comparison, vocab_size: int) -> list[str]:
    """Returns remarks on how the methods differ on this text, in sentences."""
    found = []
    total = comparison.total
    for row in comparison.rows:
        about = ABOUT.get(row.subject.method, "")
        size = plural(row.subject.size, "token")
        fertility = rates(row.tokens, total)["per_word"]
        sentence = f"{row.name} ({row.subject.method}, {size})"
        sentence += f" {about}." if about else "."
        sentence += f" Here it takes {fertility:.2f} tokens per word"
        details = []
        if row.unknown:
            share = row.unknown / row.tokens
            details.append(
                f"{plural(row.unknown, 'token')} ({share:.2%}) are unknown: it cannot encode their text"
            )
        if row.broken:
            details.append(f"{plural(row.broken, 'token')} hold a part of a character")
        details.append(f"{row.used_share:.0%} of its vocabulary is used")
        found.append(f"{sentence}; {', '.join(details)}.")
        if row.subject.size < vocab_size and row.subject.method in ABOUT:
            found.append(
                f"{row.name} has fewer than {vocab_size:,} tokens: the text gives no more."
            )
    return [*found, *_verdict(comparison.rows)]


def _verdict(rows: Sequence[Measured]) -> list[str]:
    if len(rows) < 2:
        return []
    ordered = sorted(rows, key=lambda row: row.tokens)
    first, last = ordered[0], ordered[-1]
    if first.tokens == last.tokens:
        return ["All need the same number of tokens for this text."]
    more = last.tokens / first.tokens - 1
    text = (
        f"{first.name} needs the fewest tokens for this text, {last.name} {more:.0%} more. Fewer is "
        f"not better in itself: the model that is trained on them counts, and another text may "
        f"reverse the order."
    )
    if last.unknown or first.unknown:
        text += " Unknown tokens make a text short, but lose its contents."
    return [text]
