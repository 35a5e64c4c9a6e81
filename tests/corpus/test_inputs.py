"""Tests that every kind of input yields the same documents, and that errors name file and line."""

from __future__ import annotations

import gzip
import http.server
import io
import json
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from corpora import texts, write_jsonl
from seeds import seeded

import bpe_engine
from bpe_engine.corpus import (
    CorpusError,
    corpus_report,
    make_plan,
    run_plan,
    tokenize_batch,
    verify_corpus,
)
from bpe_engine.corpus import manifest as manifests
from bpe_engine.corpus.corpus_reader import CorpusReader
from bpe_engine.texts import json_lines
from bpe_engine.texts.documents import text_blocks
from bpe_engine.texts.fields import Fields
from bpe_engine.texts.inputs import blocks, first_line, found, parts_of_input
from bpe_engine.texts.json_lines import line_blocks
from bpe_engine.texts.tables import arrow_blocks

pa = pytest.importorskip("pyarrow")

GPT2 = bpe_engine.get_encoding("gpt2")


def ids(folder: Path, *inputs: object, **options: object) -> list[list[int]]:
    """Plans and runs a corpus without end-of-document tokens, and returns the ids by document."""
    plan = make_plan(inputs, "gpt2", folder, eod=None, **options)
    run_plan(plan, processes=1)
    reader = CorpusReader(plan)
    spans = reader.spans(0, reader.documents).tolist()
    return [reader.ids(a, b).tolist() for a, b in zip(spans, spans[1:])]


def encoded(documents: list[str]) -> list[list[int]]:
    return [GPT2.encode_ordinary(text) for text in documents]


def compressed(data: bytes, kind: str) -> bytes:
    """Compresses data as two members or frames, as tools that append do."""
    half = len(data) // 2
    if kind == "gz":
        return gzip.compress(data[:half]) + gzip.compress(data[half:])
    return b"".join(pa.compress(part, "zstd", asbytes=True) for part in (data[:half], data[half:]))


def test_kinds_give_the_same(tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    documents = texts()
    source = write_jsonl(tmp_path / "a.jsonl", documents)
    data = source.read_bytes()
    (tmp_path / "b.jsonl.gz").write_bytes(compressed(data, "gz"))
    (tmp_path / "c.jsonl.zst").write_bytes(compressed(data, "zst"))
    table = pa.table({"n": range(len(documents)), "text": documents})
    pyarrow.parquet.write_table(table, tmp_path / "d.parquet", row_group_size=7)
    with pa.ipc.new_file(tmp_path / "e.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=9)
    with pa.ipc.new_stream(tmp_path / "f.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=9)
    pyarrow.csv.write_csv(table, tmp_path / "g.csv")
    between = "\n---\n"
    (tmp_path / "h.txt").write_text(between.join([*documents, ""]), newline="")
    wanted = encoded(documents)
    for name in sorted(path.name for path in tmp_path.iterdir()):
        for size in (500, 1 << 20):
            out = tmp_path / f"{name}-{size}"
            assert ids(out, tmp_path / name, unit_bytes=size, separator=between) == wanted, name


def test_a_document_a_file(tmp_path: Path) -> None:
    documents = [*texts(8), "\ufeffmark", "no line end"]
    for number, text in enumerate(documents):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{number:02d}.txt").write_text(text, newline="", encoding="utf-8")
    (tmp_path / "in" / ".hidden").write_text("no document")
    documents[8] = "mark"
    assert ids(tmp_path / "out", tmp_path / "in", unit_bytes=100) == encoded(documents)
    assert ids(tmp_path / "b", str(tmp_path / "in" / "0*.txt")) == encoded(documents)


def test_ranges_of_lines_have_every_line_once(tmp_path: Path) -> None:
    chance = seeded("ranges")
    rows = [b'{"text": "%s"}' % (b"x" * chance.choice([0, 1, 30])) for _ in range(40)]
    ends = [chance.choice([b"\n", b"\r\n", b"\n\n", b"\n \n"]) for _ in rows]
    data = b"".join(row + end for row, end in zip(rows, ends))
    data = chance.choice([data, data.rstrip(), b"\xef\xbb\xbf" + data])
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    lines = [at for at, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    source = found(str(path), None)
    fields = Fields("text", None, False)
    for size in [*range(1, 60), len(data)]:
        where, what = [], []
        for part, _ in parts_of_input(source, 0, size, False):
            offset = first_line(source, part)
            for block in blocks(source, part, fields, None):
                where += (block.lines + offset).tolist()
                what += block.texts.to_pylist()
        assert where == lines, size
        assert what == [json.loads(row)["text"] for row in rows]


def test_nested_fields_and_names(tmp_path: Path) -> None:
    import pyarrow.parquet

    rows = [{"meta": {"text": text, "id": at}, "a.b": "other"} for at, text in enumerate(texts(9))]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    wanted = encoded([row["meta"]["text"] for row in rows])
    for path in (source, tmp_path / "in.parquet"):
        options = {"field": "meta.text", "id_field": "meta.id", "format": "arrow"}
        out = tmp_path / f"{path.suffix}-out"
        assert ids(out, path, **options) == wanted
        names = CorpusReader(out).names(0, 9).to_pylist()
        assert names == [str(number) for number in range(9)]
        assert ids(tmp_path / f"{path.suffix}-b", path, field=r"a\.b") == encoded(["other"] * 9)


BROKEN = {
    b"no json": "it is not a JSON object",
    b"[1]": "it is not a JSON object",
    b'{"text": "a"} {"text": "b"}': "more than one JSON value",
    b'{"text": "a"': "broken JSON: Expecting ',' delimiter at column 13",
    b'{"text": "a" "b": 1}': "broken JSON",
    b'{"text": 5}': "the field 'text' is a number, not text",
    b'{"text": null}': "the field 'text' is null",
    b'{"other": "a"}': "the field 'text' is missing; there is 'other'",
    b'{"text": "a\xff"}': "invalid UTF-8: byte 0xff at 1",
    b'{"text": "\\ud800"}': "surrogate",
    b'{"text": "a", "text": "b"}': "the field 'text' is given twice",
    b"{}": "the field 'text' is missing; there is nothing",
    b'{"text": "\xed\xa0\x80"}': "invalid UTF-8: byte 0xed at 0",
}


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_errors_name_file_and_line(tmp_path: Path, broken: bytes) -> None:
    documents = texts(30)
    source = write_jsonl(tmp_path / "in.jsonl", documents)
    lines = source.read_bytes().splitlines()
    lines.insert(20, broken)
    source.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(CorpusError) as error:
        ids(tmp_path / "raise", source, unit_bytes=1500)
    assert str(error.value).startswith(f"{source}, line 21: ")
    assert BROKEN[broken] in str(error.value)
    skipped = ids(tmp_path / "skip", source, unit_bytes=1500, on_error="skip")
    assert skipped == encoded(documents)
    kept = ids(tmp_path / "keep", source, unit_bytes=1500, on_error="keep-empty")
    assert kept == encoded([*documents[:20], "", *documents[20:]])
    for policy in ("skip", "keep"):
        report = corpus_report(tmp_path / policy)
        uri, line, reason, is_kept = report.refused[0]
        assert (uri, line, is_kept) == (str(source), 21, policy == "keep")
        assert BROKEN[broken] in reason and len(report.refused) == report.rows_refused == 1
        assert report.rows == 31 and verify_corpus(tmp_path / policy).problems == []


def test_all_refused_rows_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MOST_REFUSED", 3)
    lines = ['{"text": "a"}', "x", '{"text": 1}', "", '{"id": 2}', '{"text": "b"}'] * 20
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(lines))
    for policy in ("skip", "keep-empty"):
        out = tmp_path / policy
        ids(out, source, unit_bytes=400, on_error=policy)
        listed = [
            json.loads(line)
            for path in sorted((out / "refused").iterdir())
            for line in path.read_text("utf-8").splitlines()
        ]
        wrong = [number for number, line in enumerate(lines, 1) if line in {*lines[1:3], lines[4]}]
        assert [row["row"] for row in listed] == wrong and listed[0]["input"] == str(source)
        report = corpus_report(out)
        assert report.rows_refused == 60 and [row[1] for row in report.refused] == wrong[:3]
        assert any("The first 3 of 60; " in part.text for part in report.page().parts)
        assert verify_corpus(out).problems == []


def test_a_line_is_judged_alone() -> None:
    def judged(lines: list[bytes]) -> list[tuple[str | None, str | None]]:
        stream = pa.BufferReader(b"\n".join([*lines, b""]))
        (block,) = line_blocks(stream, "in.jsonl", 0, None, Fields("text", None, False))
        return list(zip(block.texts.to_pylist(), map(dict(block.bad).get, range(len(lines)))))

    chance = seeded("alone")
    good = [b'{"text": "a"}', b'{"n": {"text": 1e9999}, "text": ""}', b'{"text": "\\ud83d\\ude00"}']
    known = [*BROKEN, *good, b'{"text": NaN}', b'{"text": "\\udc00\\ud800"}', b'{"text": "a\tb"}']
    for _ in range(40):
        lines = chance.choices(known, k=chance.randrange(2, 40))
        assert judged(lines) == [judged([line])[0] for line in lines]


UNREAD = [
    b'"\\ud800"',
    b'"\xff"',
    b'{"a": 1, "a": 2}',
    b"NaN",
    b"-Inf",
    b"9" * 5000,
    b"[" * 3000 + b"]" * 3000,
]


@pytest.mark.parametrize("is_alone", [True, False])
def test_fields_that_are_not_read_may_hold_anything(is_alone: bool) -> None:
    lines = [b'{"o": %s, "text": "a", "o": 1, "id": "n"}' % value for value in UNREAD]
    lines += [] if is_alone else [b"no json"]
    stream = io.BytesIO(b"\n".join([*lines, b""]))
    fields = Fields("text", "id")
    (block,) = line_blocks(stream, "in.jsonl", 0, None, fields)
    assert block.texts.to_pylist()[: len(UNREAD)] == ["a"] * len(UNREAD)
    assert block.names.to_pylist()[: len(UNREAD)] == ["n"] * len(UNREAD)
    assert [row for row, _ in block.bad] == list(range(len(UNREAD), len(lines)))


@pytest.mark.parametrize("line", [b"", b" \t", *BROKEN], ids=str)
def test_a_line_that_is_no_row_is_read_once(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is parsed at most once as a whole, and each nonblank line at most once."""
    import pyarrow.json

    calls = {"block": 0, "line": 0}

    def counted(name: str, work: Any) -> Any:
        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return work(*arguments)

        return call

    monkeypatch.setattr(json_lines, "row_of", counted("line", json_lines.row_of))
    monkeypatch.setattr(pyarrow.json, "read_json", counted("block", pyarrow.json.read_json))
    lines = [b'{"text": "good"}', *[line] * 1000, b""]
    (block,) = line_blocks(io.BytesIO(b"\n".join(lines)), "in.jsonl", 0, None, Fields("text"))
    assert len(block.bad) == (1000 if line.strip() else 0)
    assert calls["block"] <= 1 and calls["line"] <= (1001 if line.strip() else 0)


def test_names_are_text_or_whole_numbers(tmp_path: Path) -> None:
    import pyarrow.parquet

    source = tmp_path / "in.jsonl"
    wrong = [b"1.5", b"true", b"{}", b'"\\udc00"', b'"\xff"']
    good = [b"7", b'"x"', b"18446744073709551615", b"null", b'"\xc3\xa9"']
    lines = [b'{"text": "%d", "id": %s}' % pair for pair in enumerate([*good, *wrong])]
    source.write_bytes(b"\n".join([*lines, b'{"text": "none"}', b""]))
    names = ["7", "x", "18446744073709551615", None, "é", None]
    ids(tmp_path / "a", source, id_field="id", format="arrow", on_error="skip")
    assert CorpusReader(tmp_path / "a").names(0, 6).to_pylist() == names
    reasons = [reason for *_, reason, _ in corpus_report(tmp_path / "a").refused]
    assert len(reasons) == 5 and reasons[1] == "the field 'id' is true or false, not a name"
    raw = pa.table({"text": ["a", "b"], "id": pa.array([b"\xff", b"ok"])})
    pyarrow.parquet.write_table(raw, tmp_path / "b.parquet")
    ids(tmp_path / "b", tmp_path / "b.parquet", id_field="id", format="arrow", on_error="skip")
    assert CorpusReader(tmp_path / "b").names(0, 1).to_pylist() == ["ok"]
    with pytest.raises(CorpusError, match="'text' is the text"):
        ids(tmp_path / "c", source, id_field="text", format="arrow")


def test_columns_that_are_missing_or_given_twice(tmp_path: Path) -> None:
    for name, table, message in [
        ("a", pa.table({"text": ["a"]}), "no field 'id', only 'text'; name it with --id-field"),
        ("b", pa.table([["a"], ["b"]], names=["text", "text"]), "has 2 fields 'text'"),
        ("c", pa.table({"text": ["a"], "id": [[1]]}), r"the field 'id' is list<.*>, not a name"),
    ]:
        with pa.ipc.new_file(tmp_path / f"{name}.arrow", table.schema) as file:
            file.write_table(table)
        with pytest.raises(CorpusError, match=message):
            ids(tmp_path / name, tmp_path / f"{name}.arrow", id_field="id", format="arrow")
    with pytest.raises(CorpusError, match="more than one column 'text'"):
        tokenize_batch(pa.table([["a"], ["b"]], names=["text", "text"]), "gpt2")


def test_arrow_reads_only_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "in.arrow"
    rows = {"long": ["x" * 9000] * 90, "text": texts(90), "n": range(90), "id": range(90)}
    table = pa.table(rows)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=10)
    source = found(str(path), None)
    (*_, (part, _)) = parts_of_input(source, 0, 100_000, False)

    class Stream(io.BytesIO):
        count = 0

        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            self.count += len(data)
            return data

    stream = Stream(path.read_bytes())
    with pa.PythonFile(stream, "r") as opened:
        fields = Fields("text", "id", False)
        (block,) = arrow_blocks(opened, "in.arrow", part.first, part.last, fields)
    assert part.first == 8 and block.lines.tolist() == [*range(81, 91)]
    assert block.texts.to_pylist() == texts(90)[80:] and stream.count < 90_000


def test_tables_name_rows(tmp_path: Path) -> None:
    import pyarrow.parquet

    rows = [*texts(10), None, *texts(5)]
    pyarrow.parquet.write_table(pa.table({"text": rows}), tmp_path / "a.parquet", row_group_size=4)
    with pytest.raises(CorpusError, match=r"a\.parquet, row 11: the field 'text' is null"):
        ids(tmp_path / "out", tmp_path / "a.parquet")
    bad = pa.array([b"a", b"\xc3(", b"c"], pa.binary())
    pyarrow.parquet.write_table(pa.table({"text": bad}), tmp_path / "b.parquet")
    with pytest.raises(CorpusError, match=r"b\.parquet, row 2: invalid UTF-8: byte 0xc3 at 0"):
        ids(tmp_path / "b", tmp_path / "b.parquet")
    pyarrow.parquet.write_table(pa.table({"text": [1, 2]}), tmp_path / "c.parquet")
    with pytest.raises(CorpusError, match="the field 'text' is int64, not text"):
        ids(tmp_path / "c", tmp_path / "c.parquet")
    with pytest.raises(CorpusError, match="no field 'content', only 'text'"):
        ids(tmp_path / "d", tmp_path / "c.parquet", field="content")
    (tmp_path / "e.csv").write_text('text,n\n"a\nb",1\nc,2,3\n')
    with pytest.raises(CorpusError, match=r"e\.csv, record \d+: 3 values, not 2"):
        ids(tmp_path / "e", tmp_path / "e.csv")
    (tmp_path / "f.csv").write_text('text,n\n "a,b",1\n')
    with pytest.raises(CorpusError, match=r"f\.csv, record \d+: 3 values, not 2"):
        ids(tmp_path / "f", tmp_path / "f.csv")


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst", "parquet"])
def test_files_that_are_cut_off(tmp_path: Path, ending: str) -> None:
    import pyarrow.parquet

    documents = [f"{seeded('cut', at).random()}" for at in range(3000)]
    data = write_jsonl(tmp_path / "a", documents).read_bytes()
    if ending == "parquet":
        sink = io.BytesIO()
        pyarrow.parquet.write_table(pa.table({"text": documents}), sink)
        data = sink.getvalue()
    else:
        data = compressed(data, ending[-3:].strip("."))
    path = tmp_path / f"in.{ending}"
    path.write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(CorpusError, match="in.*" + ending.split(".")[0]):
        ids(tmp_path / "out", path)


def test_wrong_inputs_are_refused(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", texts(3))
    for inputs, kind, message in [
        ([source, source], CorpusError, "given twice"),
        ([tmp_path / "none"], FileNotFoundError, "No such file"),
        ([tmp_path / "*.x"], FileNotFoundError, "matches no files"),
        ([], CorpusError, "no inputs"),
    ]:
        with pytest.raises(kind, match=message):
            make_plan(inputs, "gpt2", tmp_path / "out")
    (tmp_path / "x.parquet.gz").write_bytes(gzip.compress(b"PAR1"))
    with pytest.raises(CorpusError, match="unpack the file first"):
        make_plan([tmp_path / "x.parquet.gz"], "gpt2", tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="unknown encoding 'gpt22'.*gpt2"):
        make_plan([source], "gpt22", tmp_path / "out")
    for options in ({"eod": "<|end|>"}, {"allow_special": ["<|end|>"]}):
        with pytest.raises(CorpusError, match=r"'<\|end\|>' is not a special token of gpt2"):
            make_plan([source], "gpt2", tmp_path / "out", **options)
    with pytest.raises(CorpusError, match="give a list"):
        make_plan([source], "gpt2", tmp_path / "out", allow_special="<|endoftext|>")
    with pytest.raises(CorpusError, match="give a list"):
        make_plan(str(source), "gpt2", tmp_path / "out")
    with pytest.raises(CorpusError, match="'xml'; choose one of arrow, csv, jsonl, parquet, text"):
        make_plan([source], "gpt2", tmp_path / "out", input_kind="xml")


def test_folders_follow_links(tmp_path: Path) -> None:
    linked = tmp_path / "elsewhere"
    (tmp_path / "in" / "b").mkdir(parents=True)
    linked.mkdir()
    write_jsonl(tmp_path / "in" / "a.jsonl", ["a"])
    write_jsonl(linked / "b.jsonl", ["b"])
    (tmp_path / "in" / "b" / "link").symlink_to(linked)
    (tmp_path / "in" / "c.jsonl").symlink_to(linked / "b.jsonl")
    out = tmp_path / "in" / "out"  # The corpus does not read its own output files.
    for _ in range(2):
        assert ids(out, tmp_path / "in") == encoded(["a", "b", "b"])
    (linked / "up").symlink_to(tmp_path / "in")
    with pytest.raises(CorpusError, match="link to a folder above it"):
        make_plan([tmp_path / "in"], "gpt2", tmp_path / "out")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and names of any bytes")
def test_odd_files_are_refused(tmp_path: Path) -> None:
    for name, message in [
        (b"line\nend.jsonl", "has a line end"),
        (b"\xff.jsonl", "is not UTF-8"),
        (b"pipe.jsonl", "not a file whose size is known"),
        (b"empty.jsonl.gz", "has no bytes"),
        (b"link.jsonl", "cannot be read"),
    ]:
        path = os.path.join(os.fsencode(tmp_path), name)
        if b"pipe" in name:
            os.mkfifo(path)
        elif b"link" in name:
            os.symlink("nowhere", path)
        else:
            Path(os.fsdecode(path)).touch()
        with pytest.raises(CorpusError, match=message):
            inputs = tmp_path if b"link" in name else os.fsdecode(path)
            make_plan([inputs], "gpt2", tmp_path / "out")
        os.unlink(path)
    odd = write_jsonl(tmp_path / "é 東京 [a]*?#%20.jsonl", ["odd"])
    assert ids(tmp_path / "out", tmp_path) == encoded(["odd"])
    assert corpus_report(tmp_path / "out").sources == {str(odd): (1, 3, 1)}


def test_a_name_tells_the_kind(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", texts(5))
    (tmp_path / "b.jsonl.gz").write_bytes(source.read_bytes())  # Decompressed while being read.
    (tmp_path / "c.ndjson").write_bytes(compressed(source.read_bytes(), "gz"))
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0skip"
    (tmp_path / "d.jsonl.zst").write_bytes(skipped + compressed(source.read_bytes(), "zst"))
    for name in ("b.jsonl.gz", "c.ndjson", "d.jsonl.zst"):
        assert ids(tmp_path / name[0], tmp_path / name) == encoded(texts(5))


def test_long_documents_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("json_lines", "documents", "tables"):
        monkeypatch.setattr(f"bpe_engine.texts.{module}.LONGEST", 5000)
        monkeypatch.setattr(f"bpe_engine.texts.{module}.AT_ONCE", 1000)
    documents = [*texts(10), "x" * 9000, *texts(10, seed=1), "y" * 7000]
    wanted = encoded([text for text in documents if len(text) < 7000])
    source = write_jsonl(tmp_path / "in.jsonl", documents)
    (tmp_path / "in.txt").write_text("\0\n".join(documents), newline="")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"text": documents}), tmp_path / "in.parquet")
    for path in (source, tmp_path / "in.txt", tmp_path / "in.parquet"):
        out = tmp_path / path.suffix
        options = {"on_error": "skip", "separator": "\0\n", "unit_bytes": 3000}
        assert ids(out, path, **options) == wanted, path
        report = corpus_report(out)
        assert [row[1] for row in report.refused] == [11, 22], path
        assert "longer than" in report.refused[0][2]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Serves the files of a folder over HTTP on the loopback interface, with range requests."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            path = Path(self.translate_path(self.path))
            if not path.exists():
                return self.send_error(404)
            data, asked = path.read_bytes(), self.headers.get("Range")
            if "no ranges" in str(path) and self.command == "GET":
                asked = None
            status, first, last = 200, 0, len(data) - 1
            if asked:
                low, _, high = asked.removeprefix("bytes=").partition("-")
                status, first, last = 206, int(low), min(int(high or last), last)
            self.send_response(status)
            self.send_header("Accept-Ranges", "bytes")
            if asked:
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            self.send_header("Content-Length", str(last - first + 1))
            self.end_headers()
            self.wfile.write(data[first : last + 1])

        def log_message(self, *_: object) -> None:
            pass

    handler = partial(Handler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


def test_a_server_gives_what_files_give(tmp_path: Path, server: str) -> None:
    pytest.importorskip("aiohttp")
    import pyarrow.parquet

    documents = texts()
    source = write_jsonl(tmp_path / "a.jsonl", documents)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(source.read_bytes()))
    pyarrow.parquet.write_table(pa.table({"text": documents}), tmp_path / "c.parquet")
    for name in ("a.jsonl", "b.jsonl.gz", "c.parquet"):
        out = tmp_path / f"{name}-out"
        assert ids(out, f"{server}/{name}", unit_bytes=900) == encoded(documents), name
    source.rename(tmp_path / "no ranges.jsonl")
    with pytest.raises(CorpusError, match="ranges.jsonl cannot be read: .*range requests"):
        ids(tmp_path / "d", f"{server}/no ranges.jsonl", unit_bytes=900)
    with pytest.raises(CorpusError, match="the server does not have it, or does not answer"):
        ids(tmp_path / "e", f"{server}/none.jsonl")


def test_folders_of_fsspec(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    documents = texts()
    memory = fsspec.filesystem("memory")
    for number in range(3):
        part = write_jsonl(tmp_path / "part", documents[number::3]).read_bytes()
        memory.pipe(f"/corpus-test/{number}.jsonl", part)
    wanted = encoded([text for number in range(3) for text in documents[number::3]])
    try:
        assert ids(tmp_path / "a", "memory://corpus-test/") == wanted
        assert ids(tmp_path / "b", "memory://corpus-test/*.jsonl") == wanted
    finally:
        memory.rm("/corpus-test", recursive=True)


def test_line_ends_of_windows(tmp_path: Path) -> None:
    """Separators and empty lines match every system's line ends."""
    paragraphs = ["One.", "Two.", "Three."]
    for end in ("\n", "\r\n"):
        path = tmp_path / f"{len(end)}.txt"
        path.write_bytes((end + end).join(paragraphs).encode())
        assert documents(path, "\n\n") == paragraphs
        path.write_bytes(end.join(paragraphs).encode())
        assert documents(path, "\n") == paragraphs
        assert documents(path, ".\n") == ["One", "Two", "Three."]
        long = ["Once there was a cat. " * 20] * 3_000
        path.write_bytes((end + end).join(long).encode())
        assert documents(path, "auto") == long
    path.write_bytes(b"a\r\nb\n")
    assert documents(path, "\r\n") == ["a", "b\n"]


def documents(path: Path, separator: str) -> list[str]:
    with open(path, "rb") as stream:
        blocks = text_blocks(stream, str(path), separator, Fields("text"))
        return [text for block in blocks for text in block.texts.to_pylist()]


def test_utf_16_and_separators_that_never_occur(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hello", encoding="utf-16")
    with pytest.raises(CorpusError, match=r"a\.txt is UTF-16, not UTF-8; convert it: iconv"):
        make_plan([path], "gpt2", tmp_path / "a")
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(CorpusError, match=r"a\.txt is UTF-16, not UTF-8; convert it: iconv"):
        run_plan(make_plan([path], "gpt2", tmp_path / "b"), processes=1)
    path.write_text("One.<doc>Two.")
    for separator, notes in (
        ("<doc>", []),
        ("<x>", [f"{path} is one document: no separator '<x>' is between two"]),
    ):
        plan = make_plan([path], "gpt2", tmp_path / f"out{separator}", separator=separator)
        run_plan(plan, processes=1)
        assert corpus_report(plan).notes == notes


def test_a_broken_record_that_is_not_utf_8(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,n\na,1\nb\xff,1,2\nc,3\n")
    with pytest.raises(CorpusError, match=r"a\.csv, record 3: 3 values, not 2"):
        run_plan(make_plan([path], "gpt2", tmp_path / "out"), processes=1)
    assert "Exception ignored" not in capfd.readouterr().err


def test_lying_offsets_name_the_file_and_the_field(tmp_path: Path) -> None:
    """Errors name the file and the field, for an offset far outside or just after the last text."""
    import struct

    texts = [f"hello world {number:03d}" for number in range(64)]
    table = pa.table({"text": texts, "id": texts, "meta": [{"text": text} for text in texts]})
    path = tmp_path / "x.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    whole, offsets = path.read_bytes(), struct.pack("<3i", 0, 15, 30)
    places = [at for at in range(len(whole)) if whole.startswith(offsets, at)]
    for field, start in zip(("text", "id", "meta.text"), places, strict=True):
        for at, offset in ((2, 0x7FFFFF00), (64, 64 * 15 + 40)):
            contents = bytearray(whole)
            contents[start + 4 * at : start + 4 * at + 4] = struct.pack("<i", offset)
            path.write_bytes(contents)
            names = {"field": "meta.text"} if field == "meta.text" else {"id_field": "id"}
            out = tmp_path / f"{field}{at}"
            with pytest.raises(CorpusError, match=rf"x\.arrow, field '{field}': the column is dam"):
                run_plan(make_plan([path], "gpt2", out, format="olmo", **names), processes=1)
