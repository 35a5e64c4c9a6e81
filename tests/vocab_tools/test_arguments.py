"""Tests that an argument of a wrong type raises an error with its name, its value and a remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bpe_engine
import vocab_tools
from vocab_tools import (
    ExtendOptions,
    TrainOptions,
    check_folder,
    check_vocabulary,
    compare_tokenizers,
    convert_tokenizer,
    corpus_effect,
    count_corpus,
    count_pieces,
    embedding_plan,
    extend_embeddings,
    extend_vocabulary,
    learn_merges,
    load_ranks,
    load_subject,
    map_vocabularies,
    propose_words,
    read_plan,
    read_words,
    train_vocabulary,
    write_report,
)
from vocab_tools.compare.train import compare_trained

BASE = {bytes([byte]): byte for byte in range(256)}
EXTRA = {b"ab": 300}
TEXT = "low lower lower slow " * 5
GPT2 = bpe_engine.get_encoding("gpt2")

#: Regular expressions for error messages, and calls that raise them; a call takes a text's path.
CALLS: list[tuple[str, Callable[[str], Any]]] = [
    # A name instead of a list of names.
    ("scripts is a list .* not the str 'Latn'; give ..Latn", lambda t: propose_words(BASE, t, ExtendOptions(5, scripts="Latn"))),
    ("exclude is a list .* give .. the", lambda t: propose_words(BASE, t, ExtendOptions(5, exclude=" the"))),
    ("scripts has the int 3; names are text", lambda t: propose_words(BASE, t, ExtendOptions(5, scripts=[3]))),  # type: ignore[list-item]
    ("special_tokens is a list .*'<a>'", lambda t: train_vocabulary({"low": 5}, 260, TrainOptions(special_tokens="<a>"))),
    ("special_tokens has the bytes", lambda t: train_vocabulary({"low": 5}, 260, TrainOptions(special_tokens=[b"a"]))),  # type: ignore[list-item]
    ("new_words is a list of names", lambda t: corpus_effect(t, GPT2, GPT2, "low")),
    # Pairs and bytes instead of words.
    (r"not the tuple \('low', 5\); give pairs .* dict\(pairs\)", lambda t: learn_merges(BASE, [("low", 5)])),  # type: ignore[list-item]
    ("not the tuple", lambda t: check_vocabulary(BASE, EXTRA, words=[("ab", 3)])),  # type: ignore[list-item]
    ("a line of words is a str, not the bytes", lambda t: learn_merges(BASE, [b"low"])),  # type: ignore[list-item]
    ("words are the path of a list.* not None", lambda t: learn_merges(BASE, None)),  # type: ignore[arg-type]
    ("words in a dict are read already", lambda t: read_words({"low": 5})),
    ("give words as lines, in a list: 'low lower'", lambda t: learn_merges(BASE, "low lower")),
    (r"\('low', 5\): dict\(pairs\)", lambda t: train_vocabulary([("low", 5)], 260)),  # type: ignore[list-item]
    # Arguments in the wrong order.
    ("'low' of the base is text; the base comes first", lambda t: learn_merges({"low": 5}, BASE)),  # type: ignore[dict-item, arg-type]
    ("is it the other way round. The base comes first", lambda t: embedding_plan(EXTRA, BASE)),
    ("a corpus is the path of a file.* not the dict", lambda t: propose_words(t, BASE, ExtendOptions(5))),  # type: ignore[arg-type]
    ("the path of a report.* not the dict", lambda t: write_report({}, t)),  # type: ignore[arg-type]
    ("the plan is a list; make one", lambda t: extend_embeddings(embedding_plan(BASE, EXTRA), [[1.0]])),  # type: ignore[arg-type]
    # Text instead of files.
    ("a corpus is files: write the text to one", lambda t: extend_vocabulary(BASE, TEXT, ExtendOptions(5))),
    ("a corpus is files", lambda t: extend_vocabulary(BASE, [TEXT * 30], ExtendOptions(5))),
    ("a corpus is files", lambda t: train_vocabulary("to be or not", 260)),
    ("a corpus is files", lambda t: compare_tokenizers(["gpt2"], "to be or not")),
    ("a corpus is the path of a file.* not None", lambda t: propose_words(BASE, None, ExtendOptions(5))),  # type: ignore[arg-type]
    ("a corpus is .* not the int 5", lambda t: train_vocabulary(5, 260)),  # type: ignore[arg-type]
    ("a corpus is .* not the int 5", lambda t: check_vocabulary(BASE, EXTRA, corpus=5)),  # type: ignore[arg-type]
    # None instead of a path.
    ("expected the path of a file, .* not None", lambda t: embedding_plan(BASE, EXTRA).save(None)),  # type: ignore[arg-type]
    ("expected the path of a file, .* not None", lambda t: learn_merges(BASE, {"low": 5}).save(None)),  # type: ignore[arg-type]
    ("expected the path of a file, .* not None", lambda t: propose_words(BASE, t, ExtendOptions(5)).save(None)),  # type: ignore[arg-type]
    ("expected the path of a file, .* not None", lambda t: extend_vocabulary(BASE, t, ExtendOptions(5)).save(None)),  # type: ignore[arg-type]
    ("expected the path of a file, .* not None", lambda t: train_vocabulary({"low": 5}, 260).save(None)),  # type: ignore[arg-type]
    ("expected the path of a report, .* not None", lambda t: map_vocabularies("gpt2", "r50k_base").save(None)),  # type: ignore[arg-type]
    ("expected the path of a report, .* not None", lambda t: check_vocabulary(BASE).save(None)),  # type: ignore[arg-type]
    ("expected the path of a file, .* not None", lambda t: read_plan(None)),  # type: ignore[arg-type]
    ("expected the path of a file, .* not None", lambda t: vocab_tools.read_special_tokens(None)),  # type: ignore[arg-type]
    ("a folder or a tokenizer file, .* not None", lambda t: check_folder(None)),  # type: ignore[arg-type]
    ("a folder or a tokenizer file, .* not the int", lambda t: check_folder(Path(t).parent, against=3)),  # type: ignore[arg-type]
    ("the file, the folder or the name of a tokenizer, .* not None", lambda t: convert_tokenizer(None, t)),  # type: ignore[arg-type]
    ("expected the file to make, .* not None", lambda t: convert_tokenizer("gpt2", None)),  # type: ignore[arg-type]
    ("the file or the folder of a tokenizer, .* not None", lambda t: load_subject(None)),  # type: ignore[arg-type]
    ("the dict .* has no report", lambda t: write_report("x.json", {})),  # type: ignore[arg-type]
    # Other values instead of ranks and tokenizers.
    ("None is not a source of ranks; give the path", lambda t: propose_words(None, t, ExtendOptions(5))),  # type: ignore[arg-type]
    ("not a source of ranks.* give one base", lambda t: load_ranks([BASE])),  # type: ignore[arg-type]
    ("give its .tokens .* or .extended", lambda t: embedding_plan(learn_merges(BASE, {"low": 5}), EXTRA)),  # type: ignore[arg-type]
    ("ranks are a mapping .* not None", lambda t: vocab_tools.dump_ranks(None)),  # type: ignore[arg-type]
    ("base is an Encoding, not the str 'gpt2'", lambda t: corpus_effect(t, "gpt2", "gpt2", [])),  # type: ignore[arg-type]
    ("a tokenizer to compare is a name.* the int 3", lambda t: compare_tokenizers([3], t)),  # type: ignore[list-item]
    ("the tokenizers to compare are a list, not None", lambda t: compare_tokenizers(None, t)),  # type: ignore[arg-type]
    ("progress is the int 5; it must be", lambda t: compare_tokenizers(["gpt2"], t, progress=5)),  # type: ignore[arg-type]
    ("vocab_size is the str 'x'", lambda t: compare_trained(["bpe"], t, "x")),  # type: ignore[arg-type]
    ("progress is the int 5", lambda t: learn_merges("gpt2", {"x": 1}, progress=5)),  # type: ignore[arg-type]
    ("cutting is the str 'gpt2'", lambda t: count_corpus(t, "gpt2")),  # type: ignore[arg-type]
    ("counts a pyarrow.Table, not the str", lambda t: count_pieces("low")),  # type: ignore[arg-type]
    ("names and their ids.* not the list", lambda t: learn_merges(BASE, {"low": 5}, special_tokens=["<a>"])),  # type: ignore[arg-type]
    ("names and their ids.* not the list", lambda t: embedding_plan(BASE, EXTRA, special_tokens=["<a>"])),  # type: ignore[arg-type]
    ("names and their ids.* not the list", lambda t: check_vocabulary(BASE, special_tokens=["<a>"])),  # type: ignore[arg-type]
    ("texts are a str or a list of them, not the int", lambda t: check_folder(t, 3)),  # type: ignore[arg-type]
    ("pattern is the int 3", lambda t: train_vocabulary({"low": 5}, 260, TrainOptions(pattern=3))),  # type: ignore[arg-type]
    # Other values instead of whole numbers.
    ("new_ids is the str '5'; it must be an int", lambda t: propose_words(BASE, t, ExtendOptions("5"))),  # type: ignore[arg-type]
    ("new_ids is the float 5.5", lambda t: propose_words(BASE, t, ExtendOptions(5.5))),  # type: ignore[arg-type]
    ("min_frequency is None", lambda t: propose_words(BASE, t, ExtendOptions(5, min_frequency=None))),  # type: ignore[arg-type]
    ("max_merges is the str '3'", lambda t: learn_merges(BASE, {"low": 5}, max_merges="3")),  # type: ignore[arg-type]
    ("start_id is the str '300'", lambda t: learn_merges(BASE, {"low": 5}, start_id="300")),  # type: ignore[arg-type]
    ("min_frequency is the str '2'", lambda t: train_vocabulary({"low": 5}, 260, TrainOptions(min_frequency="2"))),  # type: ignore[arg-type]
    ("max_memory is the str '4G'", lambda t: train_vocabulary({"low": 5}, 260, TrainOptions(max_memory="4G"))),  # type: ignore[arg-type]
    ("pad_to_multiple_of is the str", lambda t: extend_embeddings([[1.0]], embedding_plan(BASE, EXTRA), pad_to_multiple_of="8")),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("message", "call"), CALLS)
def test_the_message_has_the_way_out(
    tmp_path: Path, message: str, call: Callable[[str], Any]
) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    with pytest.raises((TypeError, FileNotFoundError, ValueError), match=message):
        call(str(tmp_path / "text.txt"))


def test_several_paths_of_any_kind_are_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    expected = propose_words(BASE, [path], ExtendOptions(5)).words
    for corpus in (path, str(path), (path,), iter([path]), {path}):
        assert propose_words(BASE, corpus, ExtendOptions(5)).words == expected
    assert (
        propose_words(BASE, path, ExtendOptions(5, scripts=("latin",), exclude={" slow"})).words
        == expected
    )
    several = train_vocabulary([(path,), [str(path)]], 260, TrainOptions(balance="bytes"))
    assert (
        several.new_tokens
        == train_vocabulary([path, path], 260, TrainOptions(balance="bytes")).new_tokens
    )
