"""Tests reading word lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocab_tools import WordListError, read_words


def test_words_are_normalized_and_added_up(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("一只\t3\r\n\r\ncafe\u0301\t 4 \ncafé\t1\n".encode())
    notes: list[str] = []
    assert read_words(path, notes=notes) == {"一只": 3, "café": 5}
    assert any("line 4" in note and "repeated" in note for note in notes)


def test_only_line_ends_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("a\x0cb\u2028c\t3\rd\t1".encode())
    assert read_words(path) == {"a\x0cb\u2028c": 3, "d": 1}


def test_spaces_before_a_word_belong_to_it() -> None:
    lines = [" the\t5", "the\t4", "  two\t1"]
    assert read_words(lines) == {" the": 5, "the": 4, "  two": 1}


@pytest.mark.parametrize(
    ("line", "message", "lenient"),
    [
        ("猫", "line 2: no tab", {"ok": 1, "猫": 1}),
        ("猫\t1\t2", "line 2: 2 tabs", {"ok": 1, "猫": 1}),
        ("猫\tx", "line 2: the frequency is not a positive integer", {"ok": 1, "猫": 1}),
        ("猫\t0", "line 2: the frequency is not a positive integer", {"ok": 1, "猫": 1}),
        ("猫\t-5", "line 2: the frequency is not a positive integer", {"ok": 1, "猫": 1}),
        ("猫\t1.5", "line 2: the frequency is not a positive integer", {"ok": 1, "猫": 1}),
        ("猫\t" + "9" * 9000, r"line 2: the frequency is above 2\*\*63", {"ok": 1, "猫": 1}),
        ("猫\t" + "9" * 30, r"line 2: the frequency is above 2\*\*63", {"ok": 1, "猫": 1}),
    ],
)
def test_bad_lines_are_named(line: str, message: str, lenient: dict[str, int]) -> None:
    with pytest.raises(WordListError, match=message):
        read_words(["ok\t1", line])
    assert read_words(["ok\t1", line], lenient=True) == lenient


@pytest.mark.parametrize("line", ["\t5", " \t5", "\t 5 "])
@pytest.mark.parametrize("lenient", [False, True])
def test_a_line_without_a_word(line: str, lenient: bool) -> None:
    with pytest.raises(WordListError, match="line 2: the word before the tab is missing"):
        read_words(["ok\t1", line], lenient=lenient)
    # A tab at the start of a valid line is stripped.
    assert read_words(["\tok\t5"], lenient=lenient) == {"ok": 5}


def test_many_bad_lines_are_counted() -> None:
    with pytest.raises(WordListError) as caught:
        read_words([*["x"] * 25, "y\t1"])
    assert "line 10:" in str(caught.value)
    assert "line 11:" not in str(caught.value)
    assert "15 more lines" in str(caught.value)


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"ok\t1\n\xff\t1\n")
    with pytest.raises(WordListError, match="line 2"):
        read_words(path)


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeff猫\t1\n".encode())
    notes: list[str] = []
    assert read_words(path, notes=notes) == {"猫": 1}
    assert notes


def test_whole_numbers_of_spreadsheets() -> None:
    assert read_words(["a\t12.0", "b\t3.", "c\t 4.00 "]) == {"a": 12, "b": 3, "c": 4}
    for bad in ("1.5", "0.0", "1e3", ".0", "-2.0"):
        with pytest.raises(WordListError):
            read_words([f"a\t{bad}"])


def test_a_list_without_frequencies() -> None:
    assert read_words(["一只", "", " 猫 ", "一只"]) == {"一只": 2, " 猫": 1}
    assert read_words([" the", "cat"]) == {" the": 1, "cat": 1}
    # A list counts as having no frequencies only if none of its lines has a tab.
    with pytest.raises(WordListError, match="line 2: no tab"):
        read_words(["一只\t200", "猫"])
