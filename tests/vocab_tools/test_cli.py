"""Tests the command ``vocab-tools`` as a user runs it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console
from vocab_bases import EXAMPLE_EXTRA, EXAMPLE_WORDS, QWEN
from vocab_command import COMMAND, listed, run

from vocab_tools.cli.console import say_wrapped


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(EXAMPLE_WORDS, encoding="utf-8")
    return path


def test_the_worked_example(tmp_path: Path, words: Path) -> None:
    output = tmp_path / "extra.tiktoken"
    done = run("learn", QWEN, words, "-o", output)
    assert done.returncode == 0, done.stderr
    assert output.read_bytes() == EXAMPLE_EXTRA
    assert "would be pre-tokenized to ['夸张的', ' 比喻手法']" in done.stderr
    assert "一只 is already a token" in done.stderr
    assert "我 是一 只 猫 → 我 是一 只猫 → 我 是一只猫 → 我是一只猫" in done.stdout
    assert "只猫" in done.stdout and "By-products" in done.stdout
    # A pipe gets neither colors nor a progress bar.
    assert "\x1b" not in done.stdout + done.stderr

    checked = run("check", QWEN, output, "--words", words)
    assert checked.returncode == 0
    assert "OTHER_TEXT_CHANGES (2)" in checked.stdout and "no errors" in checked.stdout


@pytest.mark.parametrize("width", range(20, 60))
def test_wrapped_lines_begin_with_a_word(width: int) -> None:
    printed = io.StringIO()
    text = "Sentences are broken between words, whatever the width of the terminal is."
    say_wrapped(Console(file=printed, width=width), text)
    lines = printed.getvalue().splitlines()
    assert " ".join(lines) == text and max(map(len, lines)) <= width


def test_standard_output(words: Path) -> None:
    done = run("learn", QWEN, words, "-o", "-")
    assert done.stdout.encode() == EXAMPLE_EXTRA
    assert "By-products" in done.stderr
    assert "By-products" not in run("learn", QWEN, words, "-o", "-", "-q").stderr


def test_bad_word_lists(tmp_path: Path, base: Path) -> None:
    path = listed(tmp_path, "abc\t1", "猫\tx")
    output = tmp_path / "extra.tiktoken"
    done = run("learn", base, path, "-o", output)
    assert done.returncode == 1 and "line 2: the frequency" in done.stderr
    assert "Traceback" not in done.stderr and not output.exists()
    assert run("learn", base, path, "-o", output, "--lenient").returncode == 0
    assert output.exists()


def test_start_ids(tmp_path: Path, words: Path, base: Path) -> None:
    done = run("learn", QWEN, words, "-o", "-", "--start-id", "many")
    assert done.returncode == 2 and "auto" in done.stderr
    specials = tmp_path / "specials.json"
    specials.write_text(json.dumps({"<|x|>": 300}))
    path = listed(tmp_path, "ab\t1")
    done = run("learn", base, path, "-o", "-", "--start-id", 300, "--special-tokens", specials)
    assert done.returncode == 1 and "<|x|>" in done.stderr and "301" in done.stderr
    specials.write_text("<|x|> 300\n<|y z|> 301\n")
    done = run("learn", base, path, "-o", "-", "--start-id", 301, "--special-tokens", specials)
    assert done.returncode == 1 and "<|y z|>" in done.stderr and "302" in done.stderr
    specials.write_text("<|x|>\n")
    done = run("learn", base, path, "-o", "-", "--special-tokens", specials)
    assert done.returncode == 1 and "line 1" in done.stderr


def test_bad_bases(tmp_path: Path) -> None:
    path = tmp_path / "base.tiktoken"
    path.write_bytes(b"YQ== 0\nYQ== 1\n")
    checked = run("check", path)
    assert checked.returncode == 1 and "DUPLICATE_TOKEN (1)" in checked.stdout
    plain = json.loads(run("check", path, "--json").stdout)
    assert plain["ok"] is False


class Cells(HTMLParser):
    """Collects the texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_reports(tmp_path: Path, words: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("小只猫。我是一只猫<b>\n" * 3, encoding="utf-8")
    names = [tmp_path / f"report.{ending}" for ending in ("html", "json", "md")]
    options = [part for name in names for part in ("--report", name)]
    done = run("learn", QWEN, words, "-o", tmp_path / "e", "--corpus", corpus, *options)
    assert done.returncode == 0, done.stderr
    page, plain, markdown = (name.read_text(encoding="utf-8") for name in names)
    cells = Cells()
    cells.feed(page)
    path = "我 是一 只 猫 → 我 是一 只猫 → 我 是一只猫 → 我是一只猫"
    for text in (markdown, plain, done.stdout):
        for expected in ("只猫", "小只猫", path):
            assert expected in text
    for expected in ("只猫", "小只猫", "我是一只猫"):
        assert expected in cells.texts
    loaded = json.loads(plain)
    assert [made["token"] for made in loaded["by_products"]] == ["'只猫'", "'是一只猫'"]
    assert loaded["refused"] == {"夸张的 比喻手法": ["夸张的", " 比喻手法"]}
    assert loaded["corpus"]["unexpected"][0]["text"] == "小只猫"
    assert loaded["corpus"]["tokens_after"] < loaded["corpus"]["tokens_before"]


def test_markdown_escapes_what_it_shows(tmp_path: Path, base: Path) -> None:
    report = tmp_path / "r.md"
    path = listed(tmp_path, *(f"{word}\t1" for word in ("<b>&amp;", "`*_|`", "[x](y)", "__~~")))
    done = run("learn", base, path, "-o", "-", "--report", report, "--pattern-regex", "(?s).+")
    assert done.returncode == 0, done.stderr
    text = report.read_text(encoding="utf-8")
    for cell in ("&lt;b&gt;&amp;amp;", r"\`\*\_\|\`", r"\[x\](y)", r"\_\_\~\~"):
        assert f"| {cell} | 1 | " in text, cell
    assert "<b>" not in text


def test_warnings_shorten_words(tmp_path: Path, base: Path) -> None:
    long = "x" * 5000
    path = listed(tmp_path, f"{long} {long}\t1", f"{long}\t1", f" {long}\t1", f"{'y' * 5000}\tz")
    done = run("learn", base, path, "-o", tmp_path / "e", "-q", "--max-merges", "1", "--lenient")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert sum("x" * 50 in line for line in lines) >= 3
    assert all(len(line) < 500 for line in lines), max(map(len, lines))
    found = run("check", base, "--words", path).stdout
    assert all(len(line) < 500 for line in found.splitlines())


def many_words(tmp_path: Path, count: int) -> Path:
    """Writes a list of words that take seconds to learn."""
    letters = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")
    numbers = (f"{number * 2654435761:x}".translate(letters) for number in range(count))
    return listed(tmp_path, *(f"{word}\t1" for word in numbers))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c(tmp_path: Path, base: Path) -> None:
    path = many_words(tmp_path, 400_000)
    arguments = [*COMMAND, "learn", str(base), "-", "-o", str(tmp_path / "e")]
    process = subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    # The text exceeds a pipe's buffer: when the write returns, the command has read almost all.
    process.stdin.write(path.read_text(encoding="utf-8"))
    process.stdin.close()
    process.stdin = None
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == "" and errors == "vocab-tools: interrupted\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.tiktoken", "list.txt"]


def test_a_progress_bar_on_a_terminal(tmp_path: Path, base: Path) -> None:
    path = many_words(tmp_path, 20_000)
    arguments = ("learn", base, path, "-o", tmp_path / "e", "-q", "--max-merges", "2000")
    assert "learning" in "".join(on_a_terminal(100, *arguments, TERM="xterm"))


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("delay", [0.02, 0.06, 0.12, 0.2])
def test_ctrl_c_while_importing(tmp_path: Path, base: Path, delay: float) -> None:
    path = many_words(tmp_path, 100_000)
    arguments = [*COMMAND, "learn", str(base), str(path), "-o", str(tmp_path / "e")]
    # Waits until Python runs the command's own code.
    code = (
        "import os, signal, sys;"
        "sys.argv[0] = 'vocab-tools'; from vocab_tools.cli import main; import threading;"
        f"threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGINT)).start(); main()"
    )
    arguments[1:3] = ["-c", code]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "vocab-tools: interrupted\n")
    assert not (tmp_path / "e").exists()


def test_words_from_standard_input(base: Path) -> None:
    done = run("learn", base, "-", "-o", "-", input="low\t5\nlower\t2.0\n")
    assert len(done.stdout.splitlines()) == 4, done.stderr
    checked = run("check", base, "--words", "-", input="ab\t1\n")
    assert "WORD_NOT_ONE_TOKEN (1)" in checked.stdout


def on_a_terminal(width: int, *arguments: object, TERM: str = "dumb") -> list[str]:
    """Returns the lines that the command writes to a terminal, without cursor movements."""
    fcntl, pty, termios = map(pytest.importorskip, ("fcntl", "pty", "termios"))
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {**os.environ, "TERM": TERM}
    environment.pop("COLUMNS", None)
    command = [*COMMAND, *map(str, arguments)]
    process = subprocess.Popen(command, stderr=terminal, stdout=terminal, env=environment)
    os.close(terminal)
    shown = b""
    while True:
        try:
            block = os.read(reader, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
    os.close(reader)
    assert process.wait() in (0, 2)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_lines_end_where_the_terminal_ends(tmp_path: Path, base: Path, width: int) -> None:
    words = listed(tmp_path, "z" * 120 + "\t3", "getElementByIdAndClassName\t1234567", "a b\t2")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("getElementByIdAndClassName of zebras\n" * 9)
    extra = tmp_path / "e"
    lines = on_a_terminal(width, "learn", base, words, "-o", extra, "--corpus", corpus)
    lines += on_a_terminal(width, "check", base, extra, "--words", words, "--corpus", corpus)
    lines += on_a_terminal(width, "propose", base, corpus, "-o", tmp_path / "w", "-n", 30)
    assert len(lines) > 50
    # A path is never wrapped, so its line may exceed the width.
    assert [line for line in lines if len(line) > width and str(tmp_path) not in line] == []
    assert any("1,234,567" in line for line in lines)


def test_errors_end_where_the_terminal_ends(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("A text in place of a rank file.\n" * 9)
    lines = on_a_terminal(80, "check", path)
    # A line that contains the path may exceed the width.
    broken = [line for line in lines[1:] if str(path) not in line]
    assert broken and max(map(len, broken)) <= 80
    text = " ".join(line.strip() for line in lines)
    assert text == run("check", path).stderr.strip()


def test_tables_in_a_pipe_end_with_their_text(tmp_path: Path, base: Path) -> None:
    done = run("learn", base, listed(tmp_path, "ab\t1234", "a c\t1"), "-o", tmp_path / "e")
    assert "1,234" in done.stdout and "1  of 2 words" in done.stdout
    lines = (done.stdout + done.stderr).splitlines()
    assert all(line == line.rstrip() for line in lines)
    # Numbers and headings are right-aligned.
    words = next(place for place, line in enumerate(lines) if line.startswith("word  "))
    end = lines[words].index("frequency") + len("frequency")
    assert lines[words + 1][:end].endswith(" 1,234")


def test_little_is_imported_before_ctrl_c_is_handled() -> None:
    code = (
        "import sys; old = set(sys.modules); import vocab_tools.cli; print(*set(sys.modules) - old)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=root
    )
    found = set(done.stdout.split())
    assert "vocab_tools.cli" in found and not {"typing", "importlib", "re", "click"} & found


def test_python_runs_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vocab_tools", "-h"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "propose" in done.stdout
