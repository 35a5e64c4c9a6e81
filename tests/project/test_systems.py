"""Tests differences between operating systems, as far as one system can: file names as Windows
spells them, code pages, line ends, and calls that only some systems have."""

from __future__ import annotations

import ast
import json
import ntpath
import os
import re
import subprocess
import sys
import threading
from base64 import b64encode
from pathlib import Path

import pytest

import bpe_engine
from bpe_engine.common import system

ROOT = Path(__file__).parents[2]
GPT2 = bpe_engine.get_encoding("gpt2")

# ---- In each language, only one module checks the system ----

MODULES = {
    *"_winapi ctypes fcntl grp mmap msvcrt nt posix pty pwd resource syslog termios tty winreg".split()
}
NAMES = {
    "os": r"name|sep|altsep|fork\w*|register_at_fork|kill\w*|pread|preadv|pwrite|sched_\w+|O_\w+|open|fsync"
    r"|fdatasync|umask|chmod|chown|get(e?[ug]id|pg\w+)|set\w+id|mkfifo|statvfs|sysconf|uname|wait\w*|nice"
    r"|replace|rename|sendfile|posix_\w+|startfile|pipe2?|link|symlink|readlink",
    "sys": r"platform|getwindowsversion|winver",
    "platform": r"system|win32_ver|mac_ver",
}  # fmt: skip
RUST = re.compile(
    r"\blibc::|\bmemmap2::|\bstd::os::|\btarget_(?:os|family|env)\b|cfg!?\((?:unix|windows)\)"
)


def test_one_module_knows_the_system() -> None:
    found = set()
    for path in [*ROOT.glob("bpe_engine/**/*.py"), *ROOT.glob("vocab_tools/**/*.py")]:
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {(name, alias.name) for alias in node.names if alias.name in MODULES}
            elif (
                isinstance(node, ast.ImportFrom)
                and node.level == 0
                and node.module in {*MODULES, *NAMES}
            ):
                found.add((name, node.module))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                pattern = NAMES.get(node.value.id)
                if pattern and re.fullmatch(pattern, node.attr):
                    found.add((name, f"{node.value.id}.{node.attr}"))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if re.match(r"/(proc|dev|sys)/", node.value):
                    found.add((name, node.value))
    assert {name for name, _ in found} == {"bpe_engine/common/system.py"}, sorted(found)
    rust = [*ROOT.glob("core/src/**/*.rs"), *ROOT.glob("bindings/src/**/*.rs")]
    asking = {path.name for path in rust if RUST.search(path.read_text(encoding="utf-8"))}
    assert asking == {"system.rs"}


# ---- Names ----


def test_names_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as windows:
        windows.setattr(system.os, "path", ntpath)
        windows.setattr(system, "SEPARATORS", ("\\", "/"))
        paths = r"C:\texts\a.txt C:a.txt ..\a.txt texts/a.txt \\?\C:\a.txt \\host\share\a.txt"
        for path in paths.split():
            assert system.has_folder(path), path
            assert system.base_name(path) == "a.txt"
        for path in ("C:\\texts\\", "C:/texts/", "\\\\?\\C:\\texts\\/"):
            assert system.base_name(path) == "texts"
        assert not system.has_folder("a.txt")
    for path in (r"C:\a", "C:/a", "c://a", "://a", "Z://host/a"):
        assert system.is_uri(path) == (path == "://a"), path
    assert system.is_uri("hf://datasets/a") and system.is_uri(Path("a")) is False


@pytest.mark.skipif(os.name == "nt", reason="these are names of one file elsewhere")
@pytest.mark.parametrize(
    "name", [r"C:\texts\two words.txt", r"\\?\C:\zwölf.txt", "C:relative.txt", "aux.txt", "con"]
)
def test_a_file_with_a_name_of_windows(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes("Zwölf\r\nBoxkämpfer\r\n".encode())
    bpe_engine.load.dump_tiktoken_bpe(GPT2.mergeable_ranks, str(tmp_path / f"{name}.tiktoken"))
    for tokenizer in (f"{name}.tiktoken", "gpt2"):
        ids = program(tmp_path, "encode", "-e", tokenizer, "-f", name).split()
        assert [*map(int, ids)] == GPT2.encode("Zwölf\r\nBoxkämpfer\r\n")
    if not name.isascii():
        return  # Corpora refuse names that the locale cannot decode.
    program(tmp_path, "corpus", "plan", name, "-o", f"{name}.out", "-e", "gpt2")
    program(tmp_path, "corpus", "run", f"{name}.out")
    report = json.loads(program(tmp_path, "corpus", "report", "--json", f"{name}.out"))
    assert report["documents"] == 1 and report["tokens"] == len(ids) + 1


# ---- Code pages and line ends ----

#: A locale without UTF-8, output in a code page, and an error if text uses the default encoding.
CODE_PAGE = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONIOENCODING": "cp1252",
    "PYTHONWARNDEFAULTENCODING": "1",
    "PYTHONWARNINGS": "error::EncodingWarning:bpe_engine,error::EncodingWarning:vocab_tools",
}


def program(folder: Path, *words: str, package: str = "bpe_engine") -> str:
    """Runs a command in a locale with a code page, and returns its output."""
    done = subprocess.run(
        [sys.executable, "-m", package, *words],
        cwd=folder,
        env={**os.environ, **CODE_PAGE, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode("utf-8", "backslashreplace")


def test_commands_with_a_code_page(tmp_path: Path) -> None:
    """Commands read and write UTF-8 files in any locale, and keep line ends."""
    pytest.importorskip("pyarrow")
    text = "naïve 根 €\r\nzwölf\r\r\n\n"
    (tmp_path / "a.txt").write_bytes(text.encode())
    line = json.dumps({"text": text}, ensure_ascii=False).encode() + b"\r\n"
    (tmp_path / "b.jsonl").write_bytes(3 * line)
    (tmp_path / "c.tsv").write_bytes("根\t5\r\nlow\t9\r\n".encode())
    ids = program(tmp_path, "encode", "-f", "a.txt").split()
    assert [*map(int, ids)] == bpe_engine.get_encoding("o200k_base").encode(text)
    assert program(tmp_path, "count", "-e", "gpt2", "-f", "b.jsonl").split()[0].isdigit()
    assert program(tmp_path, "decode", "-e", "gpt2", *map(str, GPT2.encode(text))) == text
    assert "\\u6839" in program(tmp_path, "show", "-f", "a.txt")
    program(tmp_path, "corpus", "plan", "b.jsonl", "-o", "out", "-e", "gpt2")
    program(tmp_path, "corpus", "run", "out", "--processes", "1")
    program(tmp_path, "corpus", "verify", "out")
    for command in (
        "learn gpt2 c.tsv -o base.tiktoken",
        "train b.jsonl --vocab-size 300 -o own.tiktoken",
        "convert own.tiktoken tokenizer.json --pattern gpt2",
        "check own.tiktoken",
    ):
        program(tmp_path, *command.split(), package="vocab_tools")
    (tmp_path / "zwölf.jsonl").write_bytes((tmp_path / "b.jsonl").read_bytes())
    compare = ["compare", "gpt2", "o200k_base", "--corpus", "zwölf.jsonl"]
    reports = [f"répört{ending}" for ending in (".html", ".md", ".json")]
    options = [word for report in reports for word in ("--report", report)]
    printed = program(tmp_path, *compare, *options, "--json", package="vocab_tools")
    written = [(tmp_path / report).read_text(encoding="utf-8") for report in reports]
    assert all(r"zw\udcc3\udcb6lf" in text for text in (written[0], *written[2:], printed))
    assert (tmp_path / "base.tiktoken").read_bytes() == b64encode("根".encode()) + b" 50257\n"


# ---- Calls that Windows lacks, or that follow different rules there ----


def test_reading_where_reads_have_no_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(256)) * 64)
    monkeypatch.delattr(system.os, "pread", raising=False)
    descriptor = system.open_to_read(str(path))
    wrong: list[int] = []

    def read(start: int) -> None:
        for position in range(start, 16_384, 97):
            if system.read_at(descriptor, 1, position) != bytes([position % 256]):
                wrong.append(position)

    threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(descriptor)
    assert not wrong


def test_files_as_windows_replaces_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacing a file is retried while another program has it open; folders are not synced."""
    source, target = tmp_path / "new", tmp_path / "old"
    replace, synced = os.replace, os.fsync
    refused: list[float] = []
    modes: list[bool] = []

    def busy(one: str, other: str) -> None:
        if len(refused) < attempts:
            raise PermissionError(13, "in use", other)
        replace(one, other)

    def fsync(descriptor: int) -> None:
        modes.append(os.write(descriptor, b"") == 0)  # The write fails if the file is read-only.
        synced(descriptor)

    monkeypatch.setattr(system, "_IS_WINDOWS", True)
    monkeypatch.setattr(system.os, "replace", busy)
    monkeypatch.setattr(system.os, "fsync", fsync)
    monkeypatch.setattr(system.time, "sleep", refused.append)
    for attempts, is_replaced in [(0, True), (3, True), (9, False)]:  # noqa: B007
        refused.clear()
        source.write_text("new", encoding="ascii")
        target.write_text("old", encoding="ascii")
        system.sync(str(source), str(tmp_path))
        if is_replaced:
            system.replace(str(source), str(target))
        else:
            with pytest.raises(PermissionError, match="in use"):
                system.replace(str(source), str(target))
        assert target.read_text(encoding="ascii") == ("new" if is_replaced else "old")
    assert modes == [True] * 3


def test_a_pipe_that_windows_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.is_closed_pipe(BrokenPipeError(32, "Broken pipe"))
    assert not system.is_closed_pipe(OSError(22, "Invalid argument"))
    monkeypatch.setattr(system, "_IS_WINDOWS", True)
    assert system.is_closed_pipe(OSError(22, "Invalid argument"))
    assert not system.is_closed_pipe(OSError(22, "Invalid argument", "a?b"))


def test_this_process() -> None:
    assert system.cores() >= 1 and (system.peak_memory() or 1) > 0
