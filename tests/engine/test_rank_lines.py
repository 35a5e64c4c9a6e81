"""Tests that unusual lines of rank files are read as in tiktoken, or refused by line number."""

from __future__ import annotations

import base64

import pytest
import tiktoken.load

from bpe_engine import load
from vocab_tools.ranks import load_ranks, read_rank_file

# Lines that both packages read, with the same result.
READ = [
    b"YQ== 0", b"YQ== 0\r", b"YQ==  0", b"YQ==\t0", b" YQ== 0", b"YQ== 0 ", b"\tYQ==\x0b\x0c0\t",
    b"YQ== +1", b"YQ== 007", b"YQ== 1_000", b"YQ== 4294967294", b"= 7", b"== 7",
    b"\rYQ== 0\r\rYg== 1\r", b"YQ== 0\n\n\nYg== 1",
]  # fmt: skip

# Lines that both packages refuse.
REFUSED = [
    b"YQ==", b"0", b" ", b"\t", b"YQ== 0 0", b"YQ==0", b"YQ== 1.0", b"YQ== 0x1", b"YQ== _1",
    b"YQ== 1_", b"YQ== 1__0", b"YQ== + 1", b"YQ== ++1", b"YQ== \xd9\xa3", b"YQ==\xc2\xa00", b"YQ 0",
    b"YQ= 0", b"Y 0",
]  # fmt: skip

# Lines that only this package refuses: tiktoken drops characters outside base64, keeps ids out of
# range (and fails to make an encoding with them), and ignores bits after the last byte.
STRICTER = [
    b"Y!Q== 0", b"YQ==* 0", b"YR== 0", b"YQ==YQ== 0", b"-YQ== 0", b"YQ== -1", b"YQ== 4294967295",
    b"YQ== 99999999999999999999",
]  # fmt: skip


def both(tmp_path, contents: bytes):
    path = tmp_path / "odd.tiktoken"
    path.write_bytes(b"Yg== 5\n" + contents + b"\n")
    results = []
    for read in (tiktoken.load.load_tiktoken_bpe, load.load_tiktoken_bpe):
        try:
            results.append(read(str(path)))
        except ValueError as error:
            results.append(error)
    return results


@pytest.mark.parametrize("line", READ)
def test_read_as_tiktoken_reads_it(tmp_path, line):
    path = tmp_path / "odd.tiktoken"
    path.write_bytes(line + b"\n")
    theirs = tiktoken.load.load_tiktoken_bpe(str(path))
    assert load.load_tiktoken_bpe(str(path)) == theirs
    assert load_ranks(path) == theirs


@pytest.mark.parametrize("line", REFUSED)
def test_refused_as_tiktoken_refuses_it(tmp_path, line):
    theirs, ours = both(tmp_path, line)
    assert isinstance(theirs, ValueError)
    assert isinstance(ours, ValueError) and "odd.tiktoken, line 2: " in str(ours)
    assert [number for number, _ in read_rank_file(tmp_path / "odd.tiktoken").bad_lines] == [2]


@pytest.mark.parametrize("line", STRICTER)
def test_refused_where_tiktoken_guesses(tmp_path, line):
    theirs, ours = both(tmp_path, line)
    assert isinstance(theirs, dict)
    assert isinstance(ours, ValueError) and "odd.tiktoken, line 2: " in str(ours)


def test_lines_are_numbered_by_their_ends(tmp_path):
    path = tmp_path / "ends.tiktoken"
    path.write_bytes(b"YQ== 0\r\nYg== 1\rYw== 2\n\nwrong\n")
    with pytest.raises(ValueError, match=r"line 5: expected base64\(token\), a space and the rank"):
        load.load_tiktoken_bpe(str(path))


def test_long_bad_line_is_shortened_in_the_error(tmp_path):
    path = tmp_path / "giant.tiktoken"
    path.write_bytes(base64.b64encode(bytes(3_000_000)) + b" x\n")
    with pytest.raises(ValueError, match=r"\(4000002 bytes\)") as error:
        load.load_tiktoken_bpe(str(path))
    assert len(str(error.value)) < 1000
