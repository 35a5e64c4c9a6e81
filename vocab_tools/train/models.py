"""Trains tokenizers of every model, with the pipeline of a known tokenizer."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bpe_engine import hf
from bpe_engine.common.system import cores
from bpe_engine.common.values import check_choice, describe
from bpe_engine.hf import decoders, normalizers, pre_tokenizers, processors
from bpe_engine.texts.listed import Paths
from bpe_engine.vocabulary import MAX_TOKENS, PieceCounts

from ..arguments import number_of, progress_of, several_names
from ..brief import Brief
from ..convert import sentencepiece_model
from ..corpus.cutting import Cutting
from ..corpus.piece_counts import CorpusCounts, count_corpus, dropped_note
from .rules import RULES, charsmap
from .training import ProgressFunction

if TYPE_CHECKING:
    from bpe_engine.hf import Tokenizer as HfTokenizer

#: Models that can be trained, with the name of each model's default pipeline.
MODELS = {"bpe": "llama", "wordpiece": "bert", "unigram": "t5", "wordlevel": "words"}

#: Names of the models in a ``tokenizer.json``.
_TYPES = {"bpe": "BPE", "wordpiece": "WordPiece", "unigram": "Unigram", "wordlevel": "WordLevel"}

#: Memory for training a model, as a multiple of the memory for byte-level BPE.
_MEMORY = {"Unigram": 2}

#: Names of the options that a model does not support.
_UNFIT = {
    "Unigram": ["limit_alphabet"],
    "WordLevel": ["limit_alphabet", "character_coverage", "max_token_length"],
}

_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_MARK = "▁"


@dataclass(repr=False)
class TrainedModel(Brief):
    """A trained tokenizer."""

    tokenizer: HfTokenizer
    #: Notes for the user.
    notes: list[str] = field(default_factory=list)

    def tokenizer_json(self) -> bytes:
        """Returns the tokenizer as a ``tokenizer.json``."""
        return self.tokenizer.to_str(True).encode()

    def sentencepiece(self) -> bytes:
        """Returns the tokenizer as a SentencePiece ``.model``.

        Raises a ValueError that names the feature if such a file cannot express a feature.
        """
        return sentencepiece_model.written(json.loads(self.tokenizer.to_str()))

    def to_plain(self) -> dict[str, Any]:
        """Returns figures about the result as plain types, for JSON."""
        return {"size": self.tokenizer.get_vocab_size(), "notes": self.notes}


def _with_ends(first: Sequence[str], last: Sequence[str]) -> tuple[str, str]:
    """Returns the templates for one sequence and for a pair."""
    one = " ".join([*first, "$A", *last])
    return one, " ".join([one, "$B:1", *(f"{name}:1" for name in last)])


def _bert() -> tuple[hf.Tokenizer, list[str], Any]:
    tokenizer = hf.Tokenizer(hf.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return tokenizer, special, _with_ends(["[CLS]"], ["[SEP]"])


def _t5() -> tuple[hf.Tokenizer, list[str], Any]:
    tokenizer = hf.Tokenizer(hf.Unigram([("<unk>", 0.0)], 0))
    spaces = normalizers.Replace(hf.Regex(" {2,}"), " ")
    parts = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(), spaces]
    tokenizer.normalizer = normalizers.Sequence(parts)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer, ["<pad>", "</s>", "<unk>"], _with_ends([], ["</s>"])


def _mark_spaces(tokenizer: hf.Tokenizer, parts: list[Any], first: int) -> None:
    """Marks spaces like a ``.model``, even before a text that begins with a mark. Decoding removes
    up to `first` leading spaces."""
    marks = [normalizers.Prepend(_MARK), normalizers.Replace(" ", _MARK)]
    tokenizer.normalizer = normalizers.Sequence([*parts, *marks])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    steps = [decoders.Replace(_MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", first, 0)])


def _llama() -> tuple[hf.Tokenizer, list[str], Any]:
    model = hf.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = hf.Tokenizer(model)
    _mark_spaces(tokenizer, [], 1)
    return tokenizer, ["<unk>", "<s>", "</s>"], _with_ends(["<s>"], [])


def _sentencepiece() -> tuple[hf.Tokenizer, list[str], Any]:
    tokenizer = hf.Tokenizer(hf.Unigram([("<unk>", 0.0)], 0))
    ends = normalizers.Replace(hf.Regex(sentencepiece_model.ENDS), "")
    _mark_spaces(tokenizer, [ends, normalizers.Replace(hf.Regex(" {2,}"), " ")], 1_000_000)
    return tokenizer, ["<unk>", "<s>", "</s>"], None


def _gpt2() -> tuple[hf.Tokenizer, list[str], Any]:
    tokenizer = hf.Tokenizer(hf.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer, ["<|endoftext|>"], None


def _words() -> tuple[hf.Tokenizer, list[str], Any]:
    tokenizer = hf.Tokenizer(hf.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer, ["<unk>"], None


#: Functions that make a pipeline, by name.
LIKE = {
    "bert": _bert,
    "t5": _t5,
    "llama": _llama,
    "gpt2": _gpt2,
    "sentencepiece": _sentencepiece,
    "words": _words,
}


def is_named(like: str | os.PathLike[str]) -> bool:
    """Returns True for a name in :data:`LIKE`, optionally with a colon and the name of rules."""
    return isinstance(like, str) and like.partition(":")[0] in LIKE


@dataclass(frozen=True)
class Words(Cutting):
    """Settings for cutting text into words by a pipeline; files of counts record the pipeline."""

    tokenizer: HfTokenizer | None = field(default=None, compare=False)
    pipeline: str = ""

    def counter(self) -> PieceCounts:
        """Returns an empty counter, which counts the words of lines."""
        assert self.tokenizer is not None
        return PieceCounts.of_words(self.tokenizer, "stripped")

    def dump(self) -> str:
        """Returns the pipeline as JSON, for the metadata of a counts file."""
        return self.pipeline


def words_of(model: str | None, like: str | os.PathLike[str] | None) -> Words:
    """Returns the settings for counting words for :func:`train_model` with these arguments."""
    return _words_of(_pipeline(model, like)[0])


def _words_of(tokenizer: hf.Tokenizer) -> Words:
    whole = json.loads(tokenizer.to_str())
    parts = {name: whole[name] for name in ("normalizer", "pre_tokenizer")}
    # The pattern ``.`` is unused.
    return Words(".", tokenizer=tokenizer, pipeline=json.dumps(parts))


def check_model(model: str | None, like: str | os.PathLike[str] | None) -> None:
    """Raises a ValueError that names the feature if a ``.model`` cannot express the pipeline."""
    tokenizer, _, _ = _pipeline(model, like)
    sentencepiece_model.check_pipeline(json.loads(tokenizer.to_str()))


def train_model(
    corpus: Paths | CorpusCounts,
    vocab_size: int,
    *,
    model: str | None = None,
    like: str | os.PathLike[str] | None = None,
    special_tokens: Sequence[str] = (),
    user_defined: Sequence[str] = (),
    min_frequency: int = 2,
    limit_alphabet: int | None = None,
    character_coverage: float | None = None,
    max_token_length: int | None = None,
    field: str = "text",
    errors: str = "strict",
    max_memory: int | None = None,
    drop_rare: int = 1,
    num_threads: int | None = None,
    progress: ProgressFunction | None = None,
) -> TrainedModel:
    """Trains a tokenizer with the pipeline of a known tokenizer. Each line, without its line end,
    is a text.

    The result depends only on the text and the options, and not on the number of threads or the
    order of files.

    Args:
        corpus: text files, folders and globs; or counts of the pipeline's words.
        vocab_size: the number of tokens, special tokens included.
        model: "bpe", "wordpiece", "unigram" or "wordlevel"; by default the model of ``like``.
        like: the normalizer, pre-tokenizer, decoder and special tokens of "bert", "t5", "llama",
            "gpt2", "sentencepiece" or "words", or of the folder or the file of a tokenizer; by
            default the usual pipeline of the model. "sentencepiece:nmt_nfkc" also normalizes by
            SentencePiece's rules of that name: "nfkc", "nfkc_cf", "nmt_nfkc" or "nmt_nfkc_cf".
        special_tokens: names of additional special tokens, after the tokens of ``like``.
        user_defined: ordinary tokens that are recognized in text before anything else.
        min_frequency: the minimum number of occurrences of a pair or word that becomes a token.
            Unigram has no such limit.
        limit_alphabet: the maximum number of characters that are tokens in BPE and WordPiece.
        character_coverage: share of the text's characters, most frequent first, from which tokens
            are made; other characters are unknown, or become bytes.
        max_token_length: the maximum length of a token in characters; by default 16 for Unigram.
        field: the text field of JSON lines and Parquet.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        max_memory: bytes of memory for counts; further counts go to temporary files.
        drop_rare: drop words with fewer occurrences than this.
        num_threads: the number of threads; by default one per processor.
        progress: called with the name of a step, the work done and the total work.

    Raises:
        ValueError: the corpus is empty, training needs more than ``max_memory``, an option is
            invalid, or a file is not UTF-8.
        OSError: a file cannot be read.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "text.txt")
    >>> _ = path.write_text("low low lower newest newest widest", encoding="utf-8")
    >>> trained = train_model([path], 40, model="wordpiece", min_frequency=1)
    >>> trained.tokenizer.encode("Lowest").tokens
    ['[CLS]', 'lowe', '##st', '[SEP]']
    """
    numbers: dict[str, tuple[Any, int]] = {
        "vocab_size": (vocab_size, 1),
        "min_frequency": (min_frequency, 0),
        "limit_alphabet": (limit_alphabet, 1),
        "max_token_length": (max_token_length, 1),
        "max_memory": (max_memory, 0),
        "drop_rare": (drop_rare, 0),
        "num_threads": (num_threads, 0),
    }
    for name, (value, least) in numbers.items():
        if value is not None or name in ("vocab_size", "min_frequency", "drop_rare"):
            number_of(name, value, least)
    if vocab_size > MAX_TOKENS:
        raise ValueError(f"vocab_size is {vocab_size:,}; it can be at most {MAX_TOKENS:,}")
    if model is not None:
        check_choice("model", model, MODELS)
    if character_coverage is not None and not isinstance(character_coverage, (int, float)):
        raise TypeError(
            f"character_coverage is {describe(character_coverage)}; it must be a number"
        )
    if character_coverage is not None and not 0 < character_coverage <= 1:
        raise ValueError(f"character_coverage is {character_coverage}; it must be above 0, up to 1")
    names = several_names("special_tokens", special_tokens, '["<mask>"]')
    tokenizer, special, template = _pipeline(model, like)
    special = list(dict.fromkeys([*special, *names]))
    defined = list(dict.fromkeys(several_names("user_defined", user_defined, '["<sep>"]')))
    if "" in [*special, *defined]:
        raise ValueError("a special or user-defined token is empty; give it a name")
    if both := [name for name in defined if name in special]:
        raise ValueError(f"{both[0]!r} is special and user-defined; leave one out")
    cut = _words_of(tokenizer)
    whole = json.loads(tokenizer.to_str())
    contents: dict[str, Any] = whole["model"]
    kind = contents["type"]
    options = {
        "limit_alphabet": limit_alphabet,
        "character_coverage": character_coverage,
        "max_token_length": max_token_length,
    }
    if unfit := [name for name in _UNFIT.get(kind, ()) if options[name] is not None]:
        raise ValueError(f"a {kind} model has no {unfit[0]}; leave the option out")

    if isinstance(corpus, CorpusCounts):
        given = corpus
    else:
        given = count_corpus(
            corpus,
            cut,
            field=field,
            errors=errors,
            max_memory=max_memory,
            num_threads=num_threads,
            progress=progress_of(progress, "counting"),
        )
    with given as found:
        found.load(drop_rare, max_memory, _MEMORY.get(kind, 1))
        notes = [note for note in [dropped_note(found)] if note]
        counts = found.pieces
    if not counts.totals()[0]:
        raise ValueError(
            "the corpus has no words: it is empty, or the pre-tokenizer keeps none of its text"
        )
    common: dict[str, Any] = {"min_frequency": min_frequency}
    if kind == "Unigram":
        unk = contents["vocab"][contents["unk_id"]][0] if contents["vocab"] else None
        unk = unk or ("[UNK]" if "[UNK]" in special else "<unk>")
        special = special if unk in special else [unk, *special]
        pieces = _bytes_of(contents, [*special, *defined])
        learned = counts.train_unigram(
            vocab_size,
            special_tokens=len(pieces),
            excluded=pieces,
            character_coverage=character_coverage,
            max_piece_length=max_token_length or 16,
            num_threads=num_threads or cores(),
            progress=progress_of(progress, "pruning"),
        )
        contents["vocab"] = [*((name, 0.0) for name in pieces), *learned]
        contents["unk_id"] = pieces.index(unk)
        size = len(contents["vocab"])
    elif kind == "WordLevel":
        first = [*special, *defined]
        _check_room(vocab_size, len(first), 0)
        room = vocab_size + len(first)
        tokens = counts.train_word_level(room, special_tokens=first, **common)
        tokens = list(dict.fromkeys(tokens))[:vocab_size]
        contents["vocab"] = {token: id for id, token in enumerate(tokens)}
        size = len(tokens)
    else:
        is_bytes = '"ByteLevel"' in json.dumps(whole["pre_tokenizer"])
        first = _bytes_of(contents, [*special, *defined])
        tokens, merges = counts.train_bpe(
            vocab_size,
            special_tokens=first,
            limit_alphabet=limit_alphabet,
            character_coverage=character_coverage,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if is_bytes else [],
            prefix=contents.get("continuing_subword_prefix") or "",
            suffix=contents.get("end_of_word_suffix") or "",
            max_token_length=None if max_token_length is None else max_token_length + 1,
            progress=progress_of(progress, "merging"),
            **common,
        )
        size = len(tokens)
        if size > vocab_size:
            _check_room(vocab_size, len(first), size - len(first))
        contents["vocab"] = {token: id for id, token in enumerate(tokens)}
        if kind == "BPE":
            contents["merges"] = [[tokens[left], tokens[right]] for left, right in merges]
    tokenizer = hf.Tokenizer.from_str(json.dumps(whole))
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens([hf.AddedToken(name, normalized=False) for name in defined])
    if template is not None:
        vocab = tokenizer.get_vocab()
        ids = [(name, vocab[name]) for name in special if name in vocab]
        tokenizer.post_processor = processors.TemplateProcessing(template[0], template[1], ids)
    if size < vocab_size:
        notes.append(
            f"the vocabulary has {size:,} tokens, not {vocab_size:,}: the text gives no more"
        )
    return TrainedModel(tokenizer, notes)


def _check_room(vocab_size: int, special: int, characters: int) -> None:
    if special + characters > vocab_size:
        raise ValueError(
            f"a vocabulary of {vocab_size:,} tokens has no room for the {characters:,} characters of "
            f"the text and {special:,} special tokens; ask for more, or leave rare characters out "
            f"with character_coverage or limit_alphabet"
        )


def _bytes_of(contents: dict[str, Any], special: list[str]) -> list[str]:
    """Returns the first tokens: special tokens, and byte tokens if the model has byte fallback."""
    more = _BYTES if contents.get("byte_fallback") else []
    return [*special, *(name for name in more if name not in special)]


def _pipeline(
    model: str | None, like: str | os.PathLike[str] | None
) -> tuple[hf.Tokenizer, list[str], Any]:
    """Returns a tokenizer without a vocabulary, its special tokens, and its template."""
    name = (MODELS[model] if model else "gpt2") if like is None else like
    if is_named(name):
        kind, _, rules = str(name).partition(":")
        tokenizer, special, template = LIKE[kind]()
        if rules:
            if rules not in RULES:
                raise ValueError(f"the rules are {rules!r}; choose one of {', '.join(RULES)}")
            steps: list[Any] = [normalizers.Precompiled(charsmap(rules))]
            steps += [] if tokenizer.normalizer is None else [tokenizer.normalizer]
            tokenizer.normalizer = normalizers.Sequence(steps)
    elif not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"like is {describe(name)}; give a name, a folder or a file")
    elif os.path.exists(name):
        tokenizer, special, template = _like_file(name)
    else:
        raise ValueError(
            f"like is {os.fspath(name)!r}; give a folder, a file, or one of {', '.join(LIKE)}"
        )
    contents = json.loads(tokenizer.to_str())
    if model is not None and contents["model"]["type"] != _TYPES[model]:
        unknown = "[UNK]" if "[UNK]" in special else "<unk>"
        fields = {"unk_token": unknown} if model != "unigram" else {"unk_id": None}
        lists: Any = [] if model == "unigram" else {}
        contents["model"] = {"type": _TYPES[model], "vocab": lists, **fields}
        if model == "wordpiece":
            contents["model"] |= {
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
            }
            own = contents["decoder"]
            rest = {"type": "Replace", "pattern": {"Regex": "^##"}, "content": ""}
            whole: Any = {"type": "Sequence", "decoders": [rest, own]}
            alone = {"type": "WordPiece", "prefix": "##", "cleanup": False}
            contents["decoder"] = whole if own else alone
        if model == "bpe":
            fuses = str(name).partition(":")[0] == "sentencepiece"
            contents["model"] |= {"merges": [], "fuse_unk": fuses}
        tokenizer = hf.Tokenizer.from_str(json.dumps(contents))
        if unknown not in special:
            special = [unknown, *special]
    return tokenizer, special, template


def _like_file(path: str | os.PathLike[str]) -> tuple[hf.Tokenizer, list[str], Any]:
    read = hf.Tokenizer.from_pretrained if os.path.isdir(path) else hf.Tokenizer.from_file
    contents = json.loads(read(path).to_str())
    model = contents["model"]
    if model["type"] not in _TYPES.values():
        raise ValueError(f"{os.fspath(path)}: a {model['type']} model has no pipeline to take over")
    special = [token["content"] for token in contents.pop("added_tokens", []) if token["special"]]
    unk = None
    if model["type"] == "Unigram" and model["unk_id"] is not None:
        unk = model["vocab"][model["unk_id"]][0]
    model |= {"vocab": {}, "merges": []}
    if model["type"] == "Unigram":
        model |= {
            "vocab": [] if unk is None else [[unk, 0.0]],
            "unk_id": None if unk is None else 0,
        }
        del model["merges"]
    processor = contents.pop("post_processor", None)
    template = None
    if processor and processor["type"] == "TemplateProcessing":
        template = (processor["single"], processor["pair"])
    elif processor and processor["type"] in ("BertProcessing", "RobertaProcessing"):
        template = _with_ends([processor["cls"][0]], [processor["sep"][0]])
    elif processor and processor["type"] == "ByteLevel":
        contents["post_processor"] = processor
    if template is not None and isinstance(template[0], list):
        single, pair = (" ".join(map(_item, items)) for items in template)
        template = (single, pair)
    return hf.Tokenizer.from_str(json.dumps(contents)), special, template


def _item(item: dict[str, Any]) -> str:
    """Returns an item of a template in the spelling of template strings."""
    [(kind, value)] = item.items()
    name = f"${value['id']}" if kind == "Sequence" else value["id"]
    return f"{name}:{value['type_id']}"
