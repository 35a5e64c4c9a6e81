"""Messages with masks, segments, and tokenizer files with tokens of several kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import read_datatrove, write_jsonl
from small_files import unigram_file

import bpe_engine
from bpe_engine.byte_level import text_of
from bpe_engine.corpus import (
    CorpusError,
    PackedRows,
    corpus_report,
    make_plan,
    merge_parts,
    pack_rows,
    run_plan,
    verify_corpus,
)
from bpe_engine.corpus.coder import Coder, load_engine
from bpe_engine.corpus.corpus_reader import CorpusReader
from bpe_engine.prompt import render_template, special

pytest.importorskip("pyarrow")

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: "
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ bos_token }}{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}\n{% endfor %}"
)

CHATS = [
    [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}],
    [{"role": "user", "content": "<|endoftext|>"}, {"role": "assistant", "content": "No."}],
    [{"role": "assistant", "content": ""}],
]


def write_rows(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("form", ["datatrove", "olmo", "parquet", "arrow"])
def test_messages_have_masks(tmp_path: Path, form: str) -> None:
    pytest.importorskip("jinja2")
    source = write_rows(tmp_path / "in.jsonl", [{"messages": chat} for chat in CHATS])
    plan = make_plan(
        [source],
        "gpt2",
        tmp_path / "out",
        format=form,
        content="messages",
        field="messages",
        template=TEMPLATE,
        bos="<|endoftext|>",
    )
    run_plan(plan)
    merge_parts(plan)
    assert verify_corpus(plan).problems == []
    gpt2 = bpe_engine.get_encoding("gpt2")
    bos = special("<|endoftext|>")
    audits = [gpt2.audit_segments(render_template(TEMPLATE, chat, bos_token=bos)) for chat in CHATS]
    reader = CorpusReader(plan)
    ids = [id for audit in audits for id in audit.ids]
    masks = [mask for audit in audits for mask in audit.mask("assistant")]
    assert reader.ids(0, reader.tokens).tolist() == ids
    loss = reader.loss(0, reader.tokens)
    assert loss is not None and loss.tolist() == masks and 0 < sum(masks) < len(masks)
    if form == "datatrove":
        assert Path(plan.path("corpus.ds.loss")).read_bytes() == bytes(masks)
    pack_rows(plan, 16)
    rows = PackedRows(tmp_path / "out")
    total = np.concatenate([rows[at]["loss_mask"] for at in range(len(rows))])
    assert sum(total.tolist()) == sum(masks) and len(total) == len(masks)


def test_templates_that_fail_name_the_row(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    source = write_rows(tmp_path / "in.jsonl", [{"messages": CHATS[0]}, {"messages": "no list"}])
    options = {
        "content": "messages",
        "field": "messages",
        "template": TEMPLATE,
        "bos": "<|endoftext|>",
    }
    plan = make_plan([source], "gpt2", tmp_path / "out", format="arrow", **options)
    with pytest.raises(CorpusError, match=r"in\.jsonl, line 2: .*messages"):
        run_plan(plan)
    plan = make_plan([source], "gpt2", tmp_path / "b", format="arrow", on_error="skip", **options)
    run_plan(plan)
    report = corpus_report(plan)
    assert report.documents == 1 and report.refused[0][1] == 2
    assert verify_corpus(plan).problems == []


def test_segments_have_control_tokens(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rows = [
        [{"text": "a<|endoftext|>", "special": False}, {"text": "<|endoftext|>", "special": True}],
        [{"text": "b", "special": None}],
        [],
    ]
    parquet.write_table(pa.table({"parts": rows}), tmp_path / "in.parquet")
    lists = [[[part["text"], bool(part["special"])] for part in row] for row in rows]
    source = write_rows(tmp_path / "in.jsonl", [{"parts": row} for row in lists])
    gpt2 = bpe_engine.get_encoding("gpt2")
    text = gpt2.encode_ordinary("a<|endoftext|>")
    wanted = [[*text, 50256, 50256], [*gpt2.encode("b"), 50256], [50256]]
    for path in (source, tmp_path / "in.parquet"):
        out = tmp_path / f"{path.suffix}-out"
        options = {"content": "segments", "field": "parts", "format": "datatrove"}
        plan = make_plan([path], "gpt2", out, **options)
        run_plan(plan)
        assert read_datatrove(out / "parts" / "00000", 2) == wanted
        assert verify_corpus(plan).problems == []


def test_objects_that_are_not_what_they_must_be(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    chat, lone = CHATS[0], [{"role": "user", "content": "\ud800"}]
    options = {"format": "parquet", "id_field": "id", "on_error": "skip"}
    segments = [
        ("abc", "segments are a list, not str"),
        ({"text": "a"}, "segments are a list, not dict"),
        ([{"text": "\ud800"}], r"a lone surrogate, '\ud800'"),
        ([[7] * 10_000], "[7, 7, 7, 7, 7, 7, ...] is not a segment"),
    ]
    rows = [{"id": 1, "x": value} for value, _ in segments] + [{"id": "\ud800", "x": ["a"]}]
    source = write_rows(tmp_path / "a.jsonl", [*rows, {"x": ["no name"]}])
    plan = make_plan([source], "gpt2", tmp_path / "a", content="segments", field="x", **options)
    run_plan(plan, processes=1)
    report = corpus_report(plan)
    assert report.documents == 1 and report.rows_refused == 5
    for (_, message), (*_, reason, _) in zip(segments, report.refused):
        assert reason.startswith(message) or message in reason
    rows = [{"id": 1, "x": value} for value in (lone, chat)] + [{"id": "\ud800", "x": chat}]
    source = write_rows(tmp_path / "b.jsonl", rows)
    options |= {"content": "messages", "template": TEMPLATE + "{{ raise_exception('é' * 9999) }}"}
    plan = make_plan([source], "gpt2", tmp_path / "b", field="x", bos="<|endoftext|>", **options)
    run_plan(plan, processes=1)
    assert [len(reason) < 500 for *_, reason, _ in corpus_report(plan).refused] == [True] * 3


def tokenizer_file(folder: Path) -> Path:
    """A tokenizer of bytes with tokens that are special, that are not, and of white space."""
    letters = [text_of(bytes([byte])) for byte in range(256)]
    added = [("<eos>", True), ("<think>", False), ("   ", False)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    spec = {
        "version": "1.0",
        "added_tokens": [
            {
                "id": 256 + at,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": is_special,
            }
            for at, (content, is_special) in enumerate(added)
        ],
        "normalizer": None,
        "pre_tokenizer": {**level, "use_regex": True},
        "decoder": level,
        "post_processor": None,
        "model": {
            "type": "BPE",
            "vocab": {letter: at for at, letter in enumerate(letters)},
            "merges": [],
        },
    }
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(spec))
    return path


def test_added_tokens_in_text(tmp_path: Path) -> None:
    path = tokenizer_file(tmp_path)
    source = write_jsonl(tmp_path / "in.jsonl", ["a   <think><eos>", "b", ""])
    with pytest.raises(CorpusError, match="has no <|endoftext|>.*tokens: '<eos>'"):
        make_plan([source], str(path), tmp_path / "out")
    for name in (path, tmp_path):  # A file, and its folder.
        out = tmp_path / f"out-{name.name}"
        plan = make_plan([source], str(name), out, eod="<eos>", format="datatrove")
        run_plan(plan)
        assert verify_corpus(plan).problems == []
        found = read_datatrove(out / "parts" / "00000", 2)
        # White space is a token, and names are their bytes.
        assert found[0] == [*load_engine(str(path)).encode("a").ids, 258, *found[0][2:-1], 256]
        assert len(found[0]) == 2 + len("<think><eos>") + 1
        assert found[2] == [256]
        assert set(corpus_report(plan).controls) == {"<think>", "<eos>"}
    out = tmp_path / "allowed"
    options = {"eod": "<eos>", "allow_special": ("<think>",), "format": "datatrove"}
    plan = make_plan([source], str(path), out, **options)
    run_plan(plan)
    assert read_datatrove(out / "parts" / "00000", 2)[0][1:3] == [258, 257]
    assert verify_corpus(plan).problems == []


def test_a_model_that_makes_control_tokens(tmp_path: Path) -> None:
    """Names in documents are text, also where the model makes them of their letters."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(unigram_file()), encoding="utf-8")
    tokenizer = bpe_engine.open_tokenizer(path)
    documents = ["a</s>b", "ab", "</s>", "a <unk> b", "b" * 50]
    source = write_jsonl(tmp_path / "in.jsonl", documents)
    plan = make_plan([source], str(path), tmp_path / "out", eod="</s>", format="datatrove")
    run_plan(plan)
    found = read_datatrove(tmp_path / "out" / "parts" / "00000", 2)
    expected = [tokenizer.encode_segments([(text, False)]) for text in documents]
    assert [list(row) for row in found] == [[*ids, 1] for ids in expected]
    assert not any(1 in ids for ids in expected)
    # `tokenizers` makes the control token of two documents.
    checked = verify_corpus(plan)
    assert checked.problems == [] and any("tokenizers" in check for check in checked.checks)
    assert corpus_report(plan).controls["</s>"][0] == 2


def test_columns_are_encoded_as_texts(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tokenizer_file(tmp_path)
    coder = Coder(load_engine(str(path)))
    texts = ["", "plain", "é   <eos>", "x" * 50_000]
    for threads in (1, 3):
        ids, splits = coder.encode(pa.array(texts), threads)
        other, places = coder.encode(texts, threads)
        assert ids.tolist() == other.tolist() and splits.tolist() == places.tolist()
    with pytest.raises(ValueError, match="row 1 is null"):
        coder.encode(pa.array(["a", None]), 1)
    assert coder.count_controls(pa.array(["a<eos>", "<eos><eos><think>"])) == [
        ("<eos>", 3, 0),
        ("<think>", 1, 1),
    ]
