"""Tests corpora of messages with masks, corpora of segments, and corpora with tokenizer files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import read_datatrove, write_jsonl
from small_files import unigram_file

import bpe_engine
from bpe_engine import hf
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
from bpe_engine.read.byte_level import text_of
from vocab_tools.compare.subjects import of_tokenizer

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


TOOLS = [
    {"type": "function", "function": {"name": "add", "parameters": {"a": {"type": "integer"}}}}
]
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
WITH_TOOLS = (
    "{{ tools | tojson }} {{ thinking }} {{ date }}{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
)


def chat_ids(tmp_path: Path, rows: list[Any], **options: Any) -> tuple[list[int], list[int], Any]:
    """Returns the ids, the mask and the report for a corpus of messages."""
    source = options.pop("source", None) or write_rows(tmp_path / "in.jsonl", rows)
    out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
    given = {"content": "messages", "field": "messages", "format": "arrow", **options}
    plan = make_plan([source], "gpt2", out, **given)
    run_plan(plan, processes=1)
    assert verify_corpus(plan).problems == []
    reader = CorpusReader(plan)
    loss = reader.loss(0, reader.tokens)
    assert loss is not None
    return reader.ids(0, reader.tokens).tolist(), loss.tolist(), corpus_report(plan)


def test_what_belongs_to_a_conversation_is_rendered(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    import pyarrow as pa
    import pyarrow.parquet as parquet

    messages = [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
    ]
    gpt2 = bpe_engine.get_encoding("gpt2")

    def expected(**variables: Any) -> list[int]:
        return gpt2.encode_segments(render_template(WITH_TOOLS, messages, **variables))

    row = {"messages": messages, "tools": TOOLS, "thinking": True, "note": "x"}
    options = {"template": WITH_TOOLS, "template_variables": {"date": "today"}}
    ids, _, report = chat_ids(tmp_path, [row], **options)
    assert ids == expected(tools=TOOLS, date="today")
    assert report.notes == [
        "1 row: the field 'thinking' is not rendered; --template-field thinking=thinking gives it to the "
        "template"
    ]
    options["template_fields"] = {"thinking": "thinking"}
    wanted = expected(tools=TOOLS, date="today", thinking=True)
    ids, _, report = chat_ids(tmp_path, [row, {**row, "tools": json.dumps(TOOLS)}], **options)
    assert ids == [*wanted, *wanted] and report.notes == []
    # Rows that lack `tools`, and rows in which it is null or an empty string.
    rows = [
        {"messages": messages},
        {"messages": messages, "tools": None},
        {"messages": messages, "tools": ""},
    ]
    ids, _, _ = chat_ids(tmp_path, rows, **options)
    assert ids == expected(date="today") * 3
    # Every struct in a column has the members that any row has.
    other = [
        {"type": "function", "function": {"name": "sub", "parameters": {"b": {"type": "integer"}}}}
    ]
    source = tmp_path / "in.parquet"
    parquet.write_table(pa.Table.from_pylist([row, {**row, "tools": other}]), source)
    ids, _, _ = chat_ids(tmp_path, [], source=source, **options)
    assert ids == [*wanted, *expected(tools=other, date="today", thinking=True)]
    ids, _, report = chat_ids(tmp_path, [row], **{**options, "tools": None})
    assert (
        ids == expected(date="today", thinking=True)
        and "'tools' is not rendered" in report.notes[0]
    )


def test_fields_of_templates_that_are_false_or_missing_are_noted(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    row = {"messages": CHATS[0], "thinking": False, "available_tools": TOOLS}
    options: dict[str, Any] = {"template": WITH_TOOLS, "template_fields": {"date": "day"}}
    options["template_variables"] = {"thinkng": True}
    _, _, report = chat_ids(tmp_path, [row, {"messages": CHATS[0], "day": "x"}], **options)
    notes = "\n".join(report.notes)
    assert "1 row: the field 'thinking' is not rendered" in notes
    assert "2 rows: the template has no variable 'thinkng'" in notes
    assert "1 row: the field 'available_tools' is not rendered" in notes
    assert "1 row: the field 'day', which is to be 'date' in the template, is not there" in notes


TO_TOOLS = "--tools {path} gives it to the template"
TO_FIELD = "--template-field {name}={path} gives it to the template"
INNER = "--template-field thinking={path}.thinking gives 'thinking' to the template"


@pytest.mark.parametrize(
    ("others", "advice"),
    [
        ({"functions": [TOOLS[0]["function"]]}, TO_TOOLS),
        ({"available_tools": TOOLS}, TO_TOOLS),
        ({"tool_list": json.dumps(TOOLS)}, TO_TOOLS),
        ({"Tools": TOOLS[0]}, TO_TOOLS),
        ({"a.b": TOOLS}, TO_TOOLS),
        ({"date": TOOLS}, TO_FIELD),
        ({"thinking": False}, TO_FIELD),
        ({"chat_template_kwargs": {"x": 1, "thinking": False}}, INNER),
        ({"kwargs": '{"thinking": 0}'}, "the text is JSON with the variable 'thinking' of the template; give an object"),
        ({"documents": [{"title": "t", "text": "x"}]}, "the template has no variable 'documents'"),
        ({"system_prompt": "Be brief"}, "write the text as a message with the role 'system'"),
        ({"critic": "Be brief"}, "write the text as a message with the role 'critic'"),
        ({"id": "7", "source": "web", "score": 0.5, "prompt": "1+1?", "meta": {"lang": "en"}}, None),
        ({"rejected": [{"role": "user", "content": "x"}], "numbers": [1, 2], "tools": [], "a": None}, None),
        ({"b": "[a] {b}", "bos_token": "<s>"}, None),
    ],
)  # fmt: skip
def test_fields_that_belong_to_a_conversation_are_noted(
    tmp_path: Path, others: dict[str, Any], advice: str | None
) -> None:
    """A note names fields next to the messages, in JSON lines and Parquet, in rows and objects."""
    pytest.importorskip("jinja2")
    import pyarrow as pa
    import pyarrow.parquet as parquet

    template = WITH_TOOLS.replace("{{ m.role }}", "{% if m.role == 'critic' %}S{% endif %}")
    inner = {"messages": CHATS[0], **others}
    name = next(iter(others)).replace(".", "\\.")
    for field, row in (("messages", inner), ("conv.messages", {"conv": inner})):
        source = tmp_path / f"{field}.parquet"
        parquet.write_table(pa.Table.from_pylist([row]), source)
        path = field.replace("messages", name)
        said = f"1 row: the field {path!r} is not rendered; {(advice or '').format(path=path, name=name)}"
        for given in (None, source):
            options = {"template": template, "field": field, "source": given}
            _, _, report = chat_ids(tmp_path, [row], **options)
            assert report.notes == ([] if advice is None else [said])


def test_tools_of_a_message_are_noted(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    messages = [{"role": "system", "content": "S", "tools": TOOLS}, *CHATS[0]]
    _, _, report = chat_ids(tmp_path, [{"messages": messages}], template=WITH_TOOLS)
    assert report.notes == [
        "1 row: 'tools' of a message is not rendered; give tools in a field of the row, and name the "
        "field with --tools"
    ]
    template = WITH_TOOLS + "{{ messages[0].tools }}"
    assert chat_ids(tmp_path, [{"messages": messages}], template=template)[2].notes == []
    row = {"messages": CHATS[0], "xml_tools": TOOLS, "tools": TOOLS}
    (note,) = chat_ids(tmp_path, [row], template=WITH_TOOLS)[2].notes
    assert note.endswith("'xml_tools' is not rendered; the tools of the row are in 'tools'")
    (note,) = chat_ids(tmp_path, [{**row, "tools": None}], template=TEMPLATE)[2].notes
    assert note.endswith("'xml_tools' is not rendered; the template reads no tools")


@pytest.mark.parametrize("tools", ["{", 7, {"a": 1}, "7"])
def test_tools_that_are_none(tmp_path: Path, tools: Any) -> None:
    pytest.importorskip("jinja2")
    with pytest.raises(CorpusError, match=r"line 1: .*the field 'tools' is "):
        chat_ids(tmp_path, [{"messages": CHATS[0], "tools": tools}], template=WITH_TOOLS)


def test_arguments_that_are_escaped_twice(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    function = {"name": "add", "arguments": '{"a": 1}'}
    messages = [{"role": "assistant", "content": "", "tool_calls": [{"function": function}]}]
    rows = [{"messages": messages}] * 2
    _, _, report = chat_ids(tmp_path, rows, template=WITH_TOOLS)
    assert report.notes[0].startswith("2 rows: a call has its arguments as JSON in a string")
    plain = WITH_TOOLS.replace("c.function.arguments | tojson", "c.function.arguments")
    _, _, report = chat_ids(tmp_path, rows, template=plain)
    assert report.notes == []
    ascii_only = WITH_TOOLS.replace("arguments | tojson", "arguments | tojson(ensure_ascii=True)")
    old = "{% for m in messages %}{{ m.function_call | tojson }}{% endfor %}"
    blind = "{% for m in messages %}{{ m.content }}{% endfor %}"
    for call, template, is_noted in (
        ({"tool_calls": [{"function": {"arguments": "{}"}}]}, WITH_TOOLS, True),
        ({"tool_calls": [{"function": {"arguments": '{"a": "\u00f6"}'}}]}, ascii_only, True),
        ({"tool_calls": [{"function": {"arguments": "a=1"}}]}, WITH_TOOLS, False),
        ({"function_call": function}, old, True),
        ({"tool_calls": json.dumps([function])}, blind, False),
    ):
        rows = [{"messages": [{"role": "assistant", "content": "x", **call}]}]
        _, _, report = chat_ids(tmp_path, rows, template=template)
        assert bool(report.notes) == is_noted


def test_messages_that_count(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    roles = ["user", "assistant", "user", "assistant"]
    messages = [{"role": role, "content": f"{role} says {at}"} for at, role in enumerate(roles)]
    gpt2 = bpe_engine.get_encoding("gpt2")

    def trained(**options: Any) -> str:
        given = {"template": TEMPLATE, "bos": "<|endoftext|>", **options}
        ids, mask, report = chat_ids(tmp_path, [{"messages": messages}], **given)
        notes[:] = report.notes
        return gpt2.decode([id for id, bit in zip(ids, mask) if bit])

    notes: list[str] = []
    end = "<|endoftext|>"
    assert trained() == f" says 1{end} says 3{end}"
    assert trained(train_on="last") == f" says 3{end}"
    messages[3]["weight"], messages[1]["weight"] = 0, 1  # type: ignore[assignment]
    assert trained(weight_key="weight") == f" says 1{end}"
    assert notes == []
    assert trained(weight_key="other") == trained()
    note = "1 row: {0!r} of a message is {1!r} and not used; --weight-key {0} omits the message from the mask"
    assert notes == [note.format("weight", 0)]
    messages[3].pop("weight")
    for at, key, value in ((1, "train", False), (3, "loss", 0.0), (2, "weight", 0), (1, "x", 0)):
        messages[at][key] = value  # type: ignore[assignment]
    assert trained() and sorted(notes) == [note.format("loss", 0.0), note.format("train", False)]
    messages[3]["weight"] = "no"
    with pytest.raises(CorpusError, match="message 3: 'weight' is 'no', not a number"):
        trained(weight_key="weight")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template_fields": {"tools": "a"}}, "'tools' cannot be a variable .* --tools"),
        ({"template_variables": {"a b": 1}}, "'a b' cannot be a variable"),
        ({"template_variables": {"a": {1}}}, "template_variables are not JSON"),
        ({"template_variables": {"a": 1}, "template_fields": {"a": "b"}}, "'a' is given twice"),
        ({"train_on": "first"}, "train_on is 'first'; choose one of every, last"),
        ({"template": "{% for"}, "the chat template is broken"),
        ({"content": "text", "template": None, "weight_key": "w"}, "weight_key is for messages"),
    ],
)
def test_wrong_options_of_templates(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    pytest.importorskip("jinja2")
    with pytest.raises(CorpusError, match=message):
        chat_ids(tmp_path, [{"messages": CHATS[0]}], **{"template": WITH_TOOLS, **options})


def test_unknown_tokens_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(unigram_file()), encoding="utf-8")
    source = write_jsonl(tmp_path / "in.jsonl", ["a\u16a0b", "ab"])
    plan = make_plan([source], str(path), tmp_path / "out", eod="</s>", format="datatrove")
    run_plan(plan, processes=1)
    ids = [id for row in read_datatrove(tmp_path / "out" / "parts" / "00000", 2) for id in row]
    unknown = Coder(load_engine(str(path))).unknown
    report = corpus_report(plan)
    assert unknown is not None and report.unknown == ids.count(unknown) == 1
    assert "1 of " in report.notes[0] and "unknown text" in report.notes[0]
    assert Coder(bpe_engine.get_encoding("gpt2")).unknown is None
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.BPE({"a": 0, "b": 1, "</s>": 2}, [])
    tokenizers.Tokenizer(model).save(str(path))
    plan = make_plan([source], str(path), tmp_path / "b", eod=None, format="datatrove")
    run_plan(plan, processes=1)
    assert corpus_report(plan).notes[0].startswith("2 rows: the tokenizer has no token for unknown")


@pytest.mark.parametrize("name", ["<unk>", "[UNK]"])
def test_unknown_tokens_of_a_model_with_another_name(tmp_path: Path, name: str) -> None:
    oracle = pytest.importorskip("sentencepiece_oracle")
    path = tmp_path / "m.model"
    path.write_bytes(oracle.trained(oracle.WORDS, ("unknown",), unk_piece=name, vocab_size=60))
    tokenizer = hf.Tokenizer.from_sentencepiece(path)
    assert Coder(tokenizer).unknown == tokenizer.token_to_id(name) == tokenizer.model.unk_id
    assert tokenizer.encode("\u16a0", add_special_tokens=False).ids[-1] == tokenizer.model.unk_id
    assert of_tokenizer("a", tokenizer).unknown == tokenizer.model.unk_id
    source = write_jsonl(tmp_path / "in.jsonl", ["a"])
    plan = make_plan([source], str(path), tmp_path / "out", eod="</s>", format="datatrove")
    run_plan(plan, processes=1)
    assert verify_corpus(plan).problems == []


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
    """Writes a byte-level tokenizer with special, ordinary and whitespace added tokens."""
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
    for name in (path, tmp_path):  # The tokenizer file, and the folder that contains it.
        out = tmp_path / f"out-{name.name}"
        plan = make_plan([source], str(name), out, eod="<eos>", format="datatrove")
        run_plan(plan)
        assert verify_corpus(plan).problems == []
        found = read_datatrove(out / "parts" / "00000", 2)
        # Whitespace becomes the added token; the names of other added tokens become bytes.
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
    """Names in documents are text, even if the model itself merges their letters into the token."""
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
    assert verify_corpus(plan).problems == []
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
