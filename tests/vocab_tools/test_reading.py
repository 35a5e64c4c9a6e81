"""Tests reading text from files: cuts between blocks, bounded memory, clear errors."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from seeds import seeded

import bpe_engine
from bpe_engine.texts import plain_text
from bpe_engine.texts.listed import corpus_files
from bpe_engine.texts.reading import read_texts

PATTERNS = sorted(bpe_engine.list_encoding_names())


def blocks(path: Path, text: str) -> list[str]:
    path.write_bytes(text.encode())
    found = [block for (block,) in read_texts(path)]
    assert "".join(found) == text
    return found


@pytest.mark.parametrize("part", range(4))
def test_a_cut_changes_no_piece(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts between blocks never change the pieces of a published pattern."""
    monkeypatch.setattr(plain_text, "BLOCK_CHARACTERS", 64)
    chooser = seeded("cuts", part)
    words = [
        "word", "Word", "4", "12345", ".", "!?", "/", "//", "'", "'s", "[", "]", "{", "(", "-", "#",
        " ", "  ", "\t", "\u3000", "\u00a0", "\n", "\n\n", "\r\n", "\r", "\n ", ".\r\n", "\n/",
        "猫", "の", "。", "é", "e\u0301", "\u0301", "ß", "я", "\u0915\u093f", "한", "😀", "\u200d", "½", "²",
    ]  # fmt: skip
    encodings = [bpe_engine.get_encoding(name) for name in PATTERNS]
    cuts = 0
    for _ in range(60):
        text = "".join(chooser.choices(words, k=150))
        found = blocks(tmp_path / "text.txt", text)
        cuts += len(found) - 1
        for encoding in encodings:
            parts = [piece for block in found for piece in encoding.split(block)]
            assert parts == encoding.split(text), encoding.name
    assert cuts > 60


@pytest.mark.parametrize(
    "line",
    ["2026-11-22 07:00 INFO started\n", "[1] {}\n", "A line.\n", "A line of Windows\r\n", "“Ja”\n"],
)
def test_lines_of_every_kind_are_cut(line: str, tmp_path: Path) -> None:
    text = line * (4 * plain_text.BLOCK_CHARACTERS // len(line))
    found = blocks(tmp_path / "text.txt", text)
    assert len(found) >= 4 and max(map(len, found)) < 1.1 * plain_text.BLOCK_CHARACTERS


@pytest.mark.parametrize("line", ["no end ", "\n  indented.", "  x.\r\n"])
def test_text_without_a_place_to_cut_takes_linear_time(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0
    cut = plain_text._cut

    def counting(text: str) -> int:
        nonlocal looked_at
        looked_at += len(text)
        return cut(text)

    monkeypatch.setattr(plain_text, "_cut", counting)
    text = line * (20 * plain_text.BLOCK_CHARACTERS // len(line))
    assert len(blocks(tmp_path / "text.txt", text)) == 1
    assert looked_at < 1.1 * len(text)


def test_odd_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "a"}\r\n\n{"text": null}\n{"text": "b"}')
    assert sum(read_texts(path), []) == ["a", "b"]
    for contents, message in [
        ('{"a":' * 100_000, "rows.jsonl, line 1: broken JSON: it is nested too deeply"),
        (
            '{"text": ' + "9" * 5000 + "}",
            "rows.jsonl, line 1: the field 'text' is a number, not text",
        ),
        ('{"text": 5}', "line 1: the field 'text' is a number, not text"),
        ("[1]", "line 1: broken JSON: it is not a JSON object"),
    ]:
        path.write_text(contents)
        with pytest.raises(ValueError, match=message):
            list(read_texts(path))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_may_be_packed(pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = pack(b"low lower")  # type: ignore[operator]
    buffer = io.BufferedReader(io.BytesIO(contents))  # type: ignore[arg-type]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=buffer))
    assert list(read_texts("-")) == [["low lower"]]


def test_errors_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BufferedReader(io.BytesIO(b"\xff"))  # type: ignore[arg-type]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=buffer))
    with pytest.raises(ValueError, match="standard input is not UTF-8"):
        list(read_texts("-"))
    if os.path.exists("/proc/self/mem"):
        with pytest.raises(OSError) as raised:
            list(read_texts("/proc/self/mem"))
        assert raised.value.filename == "/proc/self/mem"


def test_damaged_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    arrow.parquet.write_table(arrow.table({"text": ["abc" * 1000]}), path, compression="none")
    contents = bytearray(path.read_bytes())
    contents[4:40] = b"\xff" * 36
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"rows.parquet.* cannot be read"):
        list(read_texts(path))


def test_parquet_of_long_texts_takes_little_memory(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    texts = [f"{number}" + "x" * 500_000 for number in range(60)]
    # Each page holds one text; the reader reads whole pages.
    arrow.parquet.write_table(
        arrow.table({"text": texts}), path, use_dictionary=False, write_batch_size=1
    )
    tracemalloc.start()
    before = arrow.total_allocated_bytes()
    most = 0
    for number, block in enumerate(read_texts(path)):
        most = max(most, arrow.total_allocated_bytes() - before)
        assert block == texts[number : number + 1]
    _, python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The texts have 30 MB in total.
    assert python + most < 8 << 20, (python, most)


def test_packed_text_is_unpacked_bit_by_bit(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "large.zst"
    path.write_bytes(arrow.compress(b"low lower\n" * (1 << 24), "zstd", asbytes=True))
    tracemalloc.start()
    assert len(next(read_texts(path))[0]) < 2 * plain_text.BLOCK_CHARACTERS
    _, python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The text has 168 MB, the file 15 KB.
    assert python < 60 << 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_folder_has_no_pipes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    os.mkfifo(tmp_path / "pipe")
    os.symlink("/dev/zero", tmp_path / "zero")
    os.symlink(tmp_path / "nowhere", tmp_path / "broken")
    # A dangling link is reported.
    expected = [str(tmp_path / name) for name in ("a.txt", "broken")]
    assert corpus_files([tmp_path]) == corpus_files([tmp_path / "*"]) == expected
    assert corpus_files([tmp_path / "pipe"]) == [str(tmp_path / "pipe")]
    with pytest.raises(FileNotFoundError):
        list(read_texts(tmp_path / "broken"))


def test_null_is_skipped_in_either_format(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    rows, table = tmp_path / "a.jsonl", tmp_path / "a.parquet"
    texts = ["a", None, "b"]
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    arrow.parquet.write_table(arrow.table({"text": texts}), table)
    found = ["".join(sum(read_texts(path), [])) for path in (rows, table)]
    assert found == ["ab", "ab"]


PROSE = {
    "English": "The first sentence, of some length, is followed by another one. It ends here.\n\n",
    "Chinese": "第一句话很长，后面还有一句。这里结束。\n\n",
    "Korean": "첫 번째 문장은 길고 다음 문장이 이어진다. 여기서 끝난다.\n\n",
    "Arabic": "الجملة الأولى طويلة وتتبعها جملة أخرى. تنتهي هنا.\n\n",
}


@pytest.mark.parametrize("language", PROSE)
def test_paragraphs_that_are_lines_come_in_bounded_blocks(language: str, tmp_path: Path) -> None:
    text = PROSE[language] * (20 * plain_text.BLOCK_CHARACTERS // len(PROSE[language].encode()))
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    found = [block for (block,) in read_texts(path, inside_lines=True)]
    assert "".join(found) == text
    assert max(map(len, found)) < 6 * plain_text.BLOCK_CHARACTERS
    assert len(found) >= 3
    for name in PATTERNS:
        encoding = bpe_engine.get_encoding(name)
        for one, other in zip(found, found[1:]):
            left, right = one[-200:], other[:200]
            assert encoding.split(left) + encoding.split(right) == encoding.split(left + right)


def test_cuts_inside_lines_change_no_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts inside a long line never change the pieces of a published pattern."""
    monkeypatch.setattr(plain_text, "BLOCK_CHARACTERS", 16)
    monkeypatch.setattr(plain_text, "_MOST_UNCUT", 0)
    chooser = seeded("cuts inside lines")
    words = [
        "word", "Word", "WORD", "4", "12345", ".", ",", "!?", "/", "'", "'s", "'S", "[", "(", "-",
        " ", " ", "  ", "\t", "\u3000", "\u00a0", "\n", ".\n\n", "，", "。", "。\n\n", "！", "：",
        "猫", "の", "é", "e\u0301", "\u0301", "ß", "я", "\u0915\u093f", "\u0915", "한", "ك", "ג",
        "ω", "ก", "ำ", "😀", "\u200d", "½",
    ]  # fmt: skip
    encodings = [bpe_engine.get_encoding(name) for name in PATTERNS]
    path = tmp_path / "text.txt"
    cuts = 0
    for _ in range(60):
        text = "".join(chooser.choices(words, k=150))
        path.write_bytes(text.encode())
        found = [block for (block,) in read_texts(path, inside_lines=True)]
        assert "".join(found) == text
        cuts += len(found) - 1
        for encoding in encodings:
            parts = [piece for block in found for piece in encoding.split(block)]
            assert parts == encoding.split(text), encoding.name
    assert cuts > 300
