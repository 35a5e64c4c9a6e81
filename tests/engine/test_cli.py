"""Tests the `bpe-engine` command in this process, or in a child process if pipes matter."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import call
from small_files import added_token, character_file, unigram_file

import bpe_engine
from bpe_engine import cli
from bpe_engine.abilities import visible
from bpe_engine.cli import display, tokens

COMMANDS = [
    "count", "show", "encode", "decode", "split", "account",
    "check-template", "audit", "corpus", "encodings", "playground",
]  # fmt: skip
O200K = bpe_engine.get_encoding("o200k_base")


class Run:
    """The output and exit status of a command, run in this process or in a child process."""

    def __init__(
        self, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> None:
        if env is None:
            done = call(partial(cli.main, arguments), input=stdin)
        else:
            command = [sys.executable, "-m", "bpe_engine", *arguments]
            env, here = {**os.environ, **env}, Path(__file__).parent
            done = subprocess.run(command, input=stdin, capture_output=True, cwd=here, env=env)
        self.bytes, self.status = done.stdout, done.returncode
        self.out, self.err = done.stdout.decode("utf-8", "replace"), done.stderr.decode()


def run(*arguments: str) -> tuple[int, str, str]:
    """Runs a command in this process, and returns its status, output and errors."""
    done = Run(*arguments)
    return done.status, done.out, done.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["encode", "Hello, world!"], "13225 11 2375 0\n"),
        (["encode", "Hello,", "world!"], "13225 11 2375 0\n"),
        (["encode", "--json", "Hello, world!"], "[13225, 11, 2375, 0]\n"),
        (["encode", "-e", "cl100k_base", "hello world"], "15339 1917\n"),
        (["encode", "-m", "gpt-4", "hello world"], "15339 1917\n"),
        (["encode", "--", "-e"], f"{O200K.encode('-e')[0]}\n"),
        (["encode", ""], "\n"),
        (["encode", "-e", "gpt2", "<|endoftext|>"], "27 91 437 1659 5239 91 29\n"),
        (["encode", "-e", "gpt2", "--allow-special", "all", "<|endoftext|>"], "50256\n"),
        (["encode", "-e", "gpt2", "--allow-special", "<|endoftext|>", "<|endoftext|>"], "50256\n"),
        (["decode", "13225", "11", "2375", "0"], "Hello, world!"),
        (["decode", "[13225, 11,2375,0]"], "Hello, world!"),
        (["decode", "--json", "13225"], '"Hello"\n'),
        (["decode", "-e", "qwen", "51461"], " \ufffd"),
        (["decode", "-e", "qwen", "--errors", "ignore", "51461"], " "),
        (["decode", "-e", "qwen", "--errors", "backslashreplace", "51461", "117"], " 根"),
        (["count", "Hello, world!"], "4\n"),
        (["count", "--json", "Hello, world!"], '{"encoding": "o200k_base", "tokens": 4}\n'),
        (["count", "<|endoftext|>"], "7\n"),
        (["count", "--allow-special", "all", "<|endoftext|>"], "1\n"),
        (["count", "--limit", "4", "Hello, world!"], "4\n"),
        (["split", "It's 10\n"], "It's\n·\n10\n\\n\n"),
        (["split", "--json", "a\tb 的"], '["a", "\\tb", " 的"]\n'),
    ],
)
def test_output(arguments: list[str], expected: str) -> None:
    assert run(*arguments) == (0, expected, "")


def test_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_bytes(b"Hello, world!\r\n")
    two.write_bytes(b"x")
    ids = O200K.encode("Hello, world!\r\n")
    assert run("encode", "-f", str(one))[1] == " ".join(map(str, ids)) + "\n"
    assert run("count", "-f", str(one)) == (0, f"{len(ids)}\n", "")
    both = ("count", "-f", str(one), "-f", str(two))
    assert run(*both)[1] == f"{len(ids)} {one}\n1 {two}\n{len(ids) + 1} total\n"
    report = json.loads(run(*both, "--json")[1])
    assert report["tokens"] == len(ids) + 1
    assert report["files"][1] == {"file": str(two), "tokens": 1}
    status, out, _ = run(*both, "--limit", str(len(ids)))
    assert (status, out.splitlines()[-1]) == (1, f"{len(ids) + 1} total")


def test_count_refuses_the_names_of_files_as_text(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("Hello, world!")
    two.write_text("hello")
    status, out, err = run("count", str(one))
    assert (status, out) == (2, "")
    assert (
        f"is the name of a file. To count the tokens of the file: bpe-engine count -f {one}" in err
    )
    assert int(run("count", str(one), "and more")[1]) > 5
    status, out, err = run("count", "-f", str(one), str(two))
    assert (status, err) == (0, "")
    assert out == f"4 {one}\n1 {two}\n5 total\n"


def test_an_encoding_of_any_kind(tmp_path: Path) -> None:
    """The three forms are equivalent: a name, a rank file with its sidecar, and a folder."""
    gpt2 = bpe_engine.get_encoding("gpt2")
    path = tmp_path / "mine.tiktoken"
    bpe_engine.load.dump_tiktoken_bpe(gpt2.mergeable_ranks, str(path))
    sidecar = {"pattern": gpt2.pattern, "special_tokens": {"<|end|>": 50256}}
    (tmp_path / "mine.encoding.json").write_text(json.dumps(sidecar))
    text = "It's 12345<|end|>"
    expected = [*gpt2.encode("It's 12345"), 50256]
    for option in ("-e", "--ranks"):
        for source in (path, tmp_path):
            found = run("encode", option, str(source), "--allow-special", "all", text)
            assert found == (0, " ".join(map(str, expected)) + "\n", "")


def test_rank_files(tmp_path: Path) -> None:
    path = tmp_path / "letters.tiktoken"
    path.write_bytes(b"YQ== 0\nYg== 1\nYWI= 2\n")
    own = ("--ranks", str(path), "--special-token", "<|end|>=7")
    assert run("encode", *own, "abba")[1] == "2 1 0\n"
    assert run("encode", *own, "--pattern", ".", "abba")[1] == "0 1 1 0\n"
    assert run("encode", *own, "--allow-special", "all", "ab<|end|>")[1] == "2 7\n"
    assert run("decode", *own, "2", "7")[1] == "ab<|end|>"
    packed = tmp_path / "letters.tiktoken.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert run("encode", "--ranks", str(packed), "abba")[1] == "2 1 0\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["encode", "-e", "nope", "x"],
            2,
            "No such file or directory, and unknown encoding 'nope'. There are gpt2, ",
        ),
        (["encode", "-e", "o20k_base", "x"], 2, "encoding 'o20k_base'. Did you mean 'o200k_base'"),
        (
            ["encode", "-e", "mine.tiktoken", "x"],
            2,
            "mine.tiktoken: No such file or directory\n",
        ),
        (["encode", "-e", __file__, "x"], 1, "test_cli.py, line 1"),
        (["encod", "x"], 2, "No such command 'encod'. Did you mean 'encode'"),
        (
            ["encode", "-m", "nope", "x"],
            2,
            "model 'nope' is unknown. Give the model's tokenizer.json",
        ),
        (["encode", "-m", "gpt4o", "x"], 2, "Did you mean 'gpt-4o'"),
        (["encode", "-m", "qwen2-7b", "x"], 2, "its special tokens are <|endoftext|>"),
        (["encode", "-m", "gpt-4", "-e", "gpt2", "x"], 2, "exclude each other"),
        (["encode", "--pattern", ".", "x"], 2, "need --ranks"),
        (
            ["encode", "--allow-special", "<|x|>", "x"],
            2,
            "'<|x|>' is not a special token of o200k_base",
        ),
        (["encode", "--allow-special", "<endoftext>", "x"], 2, "Did you mean '<|endoftext|>'?"),
        (["encode", "-f", "no/such/file"], 2, "bpe-engine: no/such/file: No such file"),
        (["encode", "-f", "x", "text"], 2, "TEXT or --file, not both"),
        (["encode", "--nonsense"], 2, "--nonsense"),
        (["nonsense"], 2, "nonsense"),
        (["decode", "x"], 2, "'x' is not an id"),
        (["decode", "--", "-1"], 2, "'-1' is not an id"),
        (["decode", "1.5"], 2, "'1.5' is not an id"),
        (["decode", "4294967296"], 1, "4294967296"),
        (["decode", "999999"], 1, "Invalid token for decoding: 999999"),
        (["decode", "--errors", "strict", "-e", "qwen", "51461"], 1, "not UTF-8 at byte 1 (0xe6)"),
        (["decode", "--errors", "nonsense", "1"], 2, "nonsense"),
        (["count", "--limit", "-1", "x"], 2, "--limit"),
        (["encode", "--ranks", "no/such/file", "x"], 2, "no/such/file: No such file or directory"),
        (["check-template", "x", "--tokenizer", "no/such/file"], 2, "no/such/file: No such file"),
    ],
)
def test_errors_are_one_line(arguments: list[str], status: int, message: str) -> None:
    found, out, err = run(*arguments)
    assert (found, out) == (status, "")
    assert message in err
    assert err.startswith("bpe-engine: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("contents", "options", "message"),
    [
        (b"YQ== 0\nnonsense\n", [], "line 2"),
        (b"YQ== 0\nYQ== 1\n", [], "two ranks"),
        (b"", [], "at least one token"),
        (b"YQ== 0\n", ["--pattern", "("], "does not compile"),
        (b"YQ== 0\n", ["--special-token", "<s>=0"], "taken"),
        (b"\x1f\x8bnonsense", [], "gzip"),
        (b"YQ== 0\n", [], "the byte 0x62 is not a token"),
    ],
)
def test_bad_rank_files(
    tmp_path: Path,
    contents: bytes,
    options: list[str],
    message: str,
) -> None:
    path = tmp_path / "bad.tiktoken"
    path.write_bytes(contents)
    status, out, err = run("encode", "--ranks", str(path), *options, "b")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert message in err
    assert run("encode", "--ranks", str(path), "--special-token", "s", "b")[0] == 2


# ---- Help ----


# tests/corpus/test_command.py runs the examples of `corpus`.
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "corpus"])
def test_help_has_examples_that_work(command: str) -> None:
    status, text, _ = run(command, "--help")
    assert status == 0
    examples = re.findall(rf"^ +(?:.* \| )?bpe-engine {command}\b.*", text, re.MULTILINE)
    assert examples
    for example in examples:
        for option in re.findall(r" (--?[a-z-]+)", example.split("bpe-engine")[1].split("|")[0]):
            assert re.search(rf"{option}\b", text.split("Options:")[1])


def test_help_lists_the_commands() -> None:
    status, text, _ = run("--help")
    assert status == 0
    assert re.findall(r"^  ([\w-]+)  ", text.split("tokens:\n")[1], re.MULTILINE) == COMMANDS
    status, out, err = run()
    assert (status, out, err) == (2, "", text)
    assert run("--version")[1].strip().endswith(bpe_engine.__version__)


# ---- show and encodings ----


def test_show_plain() -> None:
    text = "根 a\nb <|endoftext|>"
    status, out, err = run("show", "-e", "gpt2", "--color", "never", "--allow-special", "all", text)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "根    ‥   ·a  \\n",
        "43718 117 257 198",
        "b  ·   <|endoftext|>",
        "65 220 50256*",
        "7 tokens, 19 characters, 21 bytes, gpt2; * marks special tokens",
    ]


@given(text=st.text(max_size=60), width=st.integers(8, 40))
def test_show_wraps_and_loses_nothing(text: str, width: int) -> None:
    found = list(tokens.tokens_of(O200K, text, set()))
    rows = list(display._rows(found, width))
    for row in rows:
        assert sum(cell.width + 1 for cell in row) - 1 <= width
    shown = "".join(cell.shown for row in rows for cell in row)
    whole = list(visible.whole_characters(token.token for token in found))
    assert b"".join(characters for _, characters in whole) == text.encode("utf-8", "replace")
    assert shown == "".join("‥" * begun + visible.visible_bytes(some) for begun, some in whole)
    ids = [cell.id for row in rows for cell in row if cell.id]
    assert ids == [str(token.id) for token in found]
    assert all(c.isprintable() for c in shown)


@given(st.lists(st.binary(max_size=5)))
def test_whole_characters_keep_all_bytes(parts: list[bytes]) -> None:
    """Each character is shown in the token where it begins; bytes outside characters remain."""
    whole = list(visible.whole_characters(parts))
    assert len(whole) == len(parts)
    assert b"".join(characters for _, characters in whole) == b"".join(parts)
    for (begun, characters), part in zip(whole, parts):
        assert begun or characters.startswith(part)


@given(st.text())
def test_visible_texts_differ_where_texts_differ(text: str) -> None:
    shown = visible.visible(text)
    assert shown.isprintable()
    unescaped = re.sub(
        r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|(.))",
        lambda m: (
            chr(int(m[1] or m[2], 16))
            if not m[3]
            else {"n": "\n", "r": "\r", "t": "\t"}.get(m[3], m[3])
        ),
        shown.removeprefix("◌" if not text.startswith("◌") else "").replace("·", " "),
    )
    assert unescaped == text


def test_show_in_color() -> None:
    _, out, _ = run("show", "--color", "always", "Hello, world!")
    backgrounds = re.findall(r"\x1b\[[0-9;]*48;2;([0-9;]+)m([^\x1b]+)", out)
    assert [text for _, text in backgrounds] == ["Hello", ",", "·world", "!"]
    assert len({color for color, _ in backgrounds}) == 4
    assert "13225" in out
    # Text cannot inject control sequences into the terminal.
    _, out, _ = run("show", "--color", "never", "\x1b[31mred\x9b\u202e")
    assert "\x1b" not in out and "\x9b" not in out and "\u202e" not in out


def test_show_json() -> None:
    _, out, _ = run("show", "--json", "-e", "gpt2", "--allow-special", "all", "根<|endoftext|>")
    assert json.loads(out) == [
        {"id": 43718, "text": None, "bytes": "e6a0", "special": False, "start": 0, "end": 1},
        {"id": 117, "text": None, "bytes": "b9", "special": False, "start": 0, "end": 1},
        {
            "id": 50256,
            "text": "<|endoftext|>",
            "bytes": b"<|endoftext|>".hex(),
            "special": True,
            "start": 1,
            "end": 14,
        },
    ]


def test_encodings() -> None:
    rows = json.loads(run("encodings", "--json")[1])
    assert [row["name"] for row in rows] == bpe_engine.list_encoding_names()
    readme = (Path(__file__).parents[2] / "data" / "README.md").read_text(encoding="utf-8")
    table = {
        sha256: int(tokens)
        for tokens, sha256 in re.findall(r"\| (\d+) \| `([0-9a-f]{64})`", readme)
    }
    for row in rows:
        assert table[row["sha256"]] == row["tokens"]
        assert row["max_id"] == bpe_engine.get_encoding(row["name"]).max_token_value
    lines = run("encodings")[1].splitlines()
    assert len(lines) == 1 + len(rows)
    for row, line in zip(rows, lines[1:]):
        *numbers, models, _ = row.values()
        assert line.split() == [*map(str, numbers), *models]


# ---- Pipes, as real processes ----


def test_pipe_and_back() -> None:
    text = "Zwölf Boxkämpfer\r\njagen\tViktor \x00 根本的\n\n".encode() + "👩‍🚀".encode()
    ids = Run("encode", stdin=text)
    assert (ids.status, ids.err) == (0, "")
    assert Run("decode", stdin=ids.bytes).bytes == text
    assert Run("decode", "-f", "-", stdin=Run("encode", "--json", stdin=text).bytes).bytes == text
    assert Run("count", stdin=text).out == f"{len(ids.out.split())}\n"


def test_output_that_is_not_utf_8() -> None:
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert Run("decode", stdin=Run("encode", "根", env=env).bytes, env=env).bytes == "根".encode()
    shown = Run("show", "a 根", env=env)
    assert (shown.status, shown.err) == (0, "")
    assert Run("decode", "--raw", "-e", "qwen", "51461").bytes == b" \xe6\xa0"


@pytest.mark.parametrize("encoding", ["ascii", "cp932"])
def test_commands_print_to_any_encoding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "根.txt"
    path.write_text("a 根 \U0001f469")
    ids = list(map(str, O200K.encode("a 根")))
    arguments = [
        *([command, "--help"] for command in COMMANDS),
        *([command, "a 根 \U0001f469"] for command in ("encode", "count", "show", "split")),
        *([command, "--json", "a 根 \U0001f469"] for command in ("encode", "show", "split")),
        ["count", "-f", str(path), "-f", str(path)],
        ["decode", *ids],
        ["encodings"],
        ["--help"],
        ["--version"],
    ]
    for words in arguments:
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as exit:
            cli.main(words)
        assert not exit.value.code, words
        assert isinstance(stream.buffer, io.BytesIO)
        assert stream.buffer.getvalue(), words


def test_input_that_is_not_utf_8(tmp_path: Path) -> None:
    failed = Run("encode", stdin=b"ab\xff")
    assert (failed.status, failed.out) == (1, "")
    assert failed.err == (
        "bpe-engine: standard input is not UTF-8 at byte 2 (0xff); convert it, or pass --errors "
        "replace\n"
    )
    path = tmp_path / "latin"
    path.write_bytes(b"caf\xe9")
    assert "is not UTF-8 at byte 3 (0xe9)" in Run("count", "-f", str(path)).err
    assert Run("split", "--errors", "ignore", "-f", str(path)).out == "caf\n"
    assert Run("split", "--errors", "replace", "-f", str(path)).out == "caf\n\ufffd\n"


@pytest.mark.skipif(os.name == "nt", reason="arguments are text on Windows")
def test_arguments_that_are_not_utf_8() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bpe_engine", "encode", b"a\xff"],
        capture_output=True,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 1
    assert b"TEXT is not UTF-8 at byte 1 (0xff)" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [("encode", ""), ("show", ""), ("decode", ""), ("encode", "1"), ("show", "1")],
)
def test_a_pipe_closed_early(command: str, unbuffered: str, tmp_path: Path) -> None:
    text = "The quick brown fox. \n" * 20_000
    path = tmp_path / "long"
    path.write_text(" ".join(map(str, O200K.encode(text))) if command == "decode" else text)
    process = subprocess.Popen(
        [sys.executable, "-m", "bpe_engine", command, "-f", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 128 + signal.SIGPIPE


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("ctrl_c")
def test_interrupt() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "bpe_engine", "count"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parent,
    )
    assert process.stdin is not None
    # The text exceeds a pipe's capacity, so once the write returns, the command is reading.
    process.stdin.write(b"a word " * 40_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    expected = (128 + signal.SIGINT, b"", b"bpe-engine: interrupted")
    assert (process.returncode, out, err.strip()) == expected


def _in_shell(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "bpe_engine"]
        + list(arguments),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parent,
    )


WRITERS = [["decode", "13225"], ["show", "a b"], ["show", "--json", "a b"], ["--help"]]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", WRITERS)
def test_output_that_cannot_be_written(arguments):
    done = _in_shell(">/dev/full", *arguments)
    assert done.stderr == "bpe-engine: standard output: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("arguments", WRITERS)
def test_closed_output(arguments):
    done = _in_shell(">&-", *arguments)
    assert done.stderr == "bpe-engine: standard output: it is closed\n"
    assert done.returncode == 1


def test_input_that_cannot_be_read():
    done = _in_shell("<&-", "encode")
    assert done.stderr == "bpe-engine: standard input: it is closed\n"
    assert (done.stdout, done.returncode) == ("", 1)


def test_input_that_fails(monkeypatch, capfdbinary):
    class Failing:
        buffer = property(lambda self: self)

        def isatty(self):
            return False

        def read(self, size):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stdin", Failing())
    with pytest.raises(SystemExit, match="1"):
        cli.main(["encode"])
    printed = capfdbinary.readouterr()
    assert printed == (b"", b"bpe-engine: standard input: Input/output error\n")


def test_errors_without_standard_error():
    assert _in_shell("<&- 2>&-", "encode").stdout == ""
    assert _in_shell("<&- 2>&-", "encode").returncode == 1


@pytest.mark.parametrize("command", ["encode", "show"])
def test_positions_of_bad_bytes_do_not_depend_on_chunks(tmp_path: Path, command: str) -> None:
    path = tmp_path / "bad"
    for good in (65_534, 65_535, 65_536):
        for bad in (b"\xe6\xa0", b"\xe6\xa0x", b"\xf0\x9f\x98"):
            path.write_bytes(b"a" * good + bad)
            err = run(command, "-f", str(path))[2]
            assert f"is not UTF-8 at byte {good} (0x{bad[0]:02x})" in err


def test_text_in_utf_16_or_with_a_byte_order_mark() -> None:
    wide = Run("count", stdin="hello".encode("utf-16"))
    assert wide.status == 1
    assert wide.err == (
        "bpe-engine: standard input is UTF-16, not UTF-8; convert it: iconv -f utf-16 -t utf-8\n"
    )
    marked = Run("count", stdin="\ufeffhello".encode())
    assert (marked.status, marked.out) == (0, f"{O200K.count(chr(0xFEFF) + 'hello')}\n")
    assert "standard input begins with a byte order mark, which counts as text" in marked.err
    assert Run("decode", stdin="\ufeff13225 11".encode()).out == "Hello,"


def test_ranks_that_are_not_a_rank_file(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"version": "1.0"}')
    status, _, err = run("count", "--ranks", str(path), "x")
    assert status == 1
    assert str(path) in err and "not a tokenizer file: missing field `model`" in err


def test_commands_are_imported_when_they_are_used() -> None:
    code = "import sys; from bpe_engine import cli\n"
    code += "try: cli.main(['encode', 'a'])\nexcept SystemExit: pass\n"
    code += "loaded = sys.modules.keys()\n"
    code += "assert not {'rich', 'bpe_engine.cli.show', 'importlib.metadata'} & loaded\n"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)


def test_the_table_of_encodings_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each row is one line; only the last column, the models, shrinks."""
    console = display.PipedConsole(width=60, highlight=False)
    monkeypatch.setattr(display, "_console", lambda *_: console)
    lines = run("encodings")[1].splitlines()
    assert len(lines) == 1 + len(bpe_engine.list_encoding_names())
    assert lines[-1].split() == ["qwen3", "151643", "26", "151668", "Qwen3-*", "QwQ-32B"]
    assert all(len(line) <= 60 for line in lines) and lines[2].endswith("…")


def test_every_command_takes_a_tokenizer_without_ranks(tmp_path: Path) -> None:
    path = str(tmp_path / "tokenizer.json")
    Path(path).write_text(json.dumps(character_file()), encoding="utf-8")
    for source in (path, str(tmp_path)):
        own = ("-e", source)
        assert run("encode", *own, "ab ab") == (0, "5 6\n", "")
        assert run("encode", *own, "--allow-special", "all", "ab<end>")[1] == "5 7\n"
        assert run("encode", *own, "a<end>")[1] != "2 7\n"
        assert run("count", *own, "ab ab") == (0, "2\n", "")
        assert run("decode", *own, "5", "6", "7")[1] == "ab ab<end>"
        assert run("split", *own, "ab ab") == (0, "ab\n·ab\n", "")
        shown = run("show", *own, "--color", "never", "ab ab")[1]
        assert shown.splitlines()[:2] == ["ab ·ab", "5  6"]
        items = json.loads(run("show", "--json", *own, "b ab")[1])
        assert [(item["id"], item["start"], item["end"]) for item in items] == [
            (3, 0, 1),
            (6, 1, 4),
        ]
    assert "Invalid token" in run("decode", "-e", path, "99")[2]
    template = tmp_path / "chat.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}<end><|x|>{% endfor %}")
    found = run("check-template", str(template), "--tokenizer", path)
    assert "unknown to the tokenizer: <|x|>" in found[1], found


def test_text_becomes_no_special_token(tmp_path: Path) -> None:
    """Text yields no special token without --allow-special, even if the model would make it."""
    path = tmp_path / "my-model.json"
    path.write_text(json.dumps(unigram_file()), encoding="utf-8")
    text, own = "a</s>b", ("-e", str(path))
    encoding = bpe_engine.open_tokenizer(path)
    assert 1 not in encoding.encode(text, disallowed_special=())
    tokenizer = encoding.hf
    ids = tokenizer.encode_segments([(text, False)])
    assert 1 not in ids and 1 in tokenizer.encode(text).ids
    allowed = ("--allow-special", "all")
    assert run("encode", *own, text)[1] == " ".join(map(str, ids)) + "\n"
    with_special = " ".join(map(str, tokenizer.encode(text).ids)) + "\n"
    assert run("encode", *own, *allowed, text)[1] == with_special
    assert run("count", *own, text)[1] == f"{len(ids)}\n"
    items = json.loads(run("show", "--json", *own, text)[1])
    assert [item["id"] for item in items] == ids and not any(item["special"] for item in items)
    shown = run("show", *own, "--color", "never", "a b")[1]
    assert shown.endswith("3 characters, 3 bytes, my-model\n")
    assert json.loads(run("count", "--json", *own, "a")[1])["encoding"] == "my-model"
    assert "(my-model)" in run("decode", *own, "99")[2]


def test_a_text_in_place_of_a_name(tmp_path: Path) -> None:
    status, _, err = run("encode", "-e", "gpt2", "--allow-special", "a<|endoftext|>")
    assert status == 2 and "Before the text, give the name of a token, or all" in err
    err = run("encode", "-e", "gpt2", "--allow-special", "<|end|>", "a")[2]
    assert "Before the text" not in err


def test_spaces_of_a_decoder_are_not_shown(tmp_path: Path) -> None:
    """`show` omits the spaces that BERT's decoder puts before words and brackets."""
    words = ["[UNK]", "a", "b", "##b", "[", "/", "'"]
    path = tmp_path / "bert.json"
    model = {"type": "WordPiece", "vocab": {word: id for id, word in enumerate(words)}}
    model |= {"unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    model |= {"max_input_chars_per_word": 100}
    contents = {
        "added_tokens": [added_token(0, "[UNK]")],
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": model,
    }
    path.write_text(json.dumps(contents))
    shown = run("show", "-e", str(path), "--color", "never", "ab [a/b' b")[1]
    assert shown.splitlines()[0].split() == ["a", "b", "·[", "a", "/", "b", "'", "·b"]
    items = json.loads(run("show", "--json", "-e", str(path), "a[ b")[1])
    assert [item["text"] for item in items] == ["a", "[", " b"]
