"""Measures the gain from each mechanism of the engine: encodes with and without the mechanism.

    python -m benchmarks.ablation
    python -m benchmarks.ablation --only packed-ids,prefetch --rounds 15
    python -m benchmarks.ablation --render docs/design.md
    python -m benchmarks.ablation --only cuts --encodings phi-3.json,mistral.json
    python -m benchmarks.ablation --only chunks,settled,margins --encodings t5.json,t5.model

Builds the core with the feature ``ablation`` (core/src/ablation.rs), which lets a process disable
one mechanism. For every row, one process per disabled mechanism alternates with one process that
has all mechanisms. A figure is the CPU time without the mechanism divided by the time with it: the
median of all rounds, where a round compares two adjacent runs. A figure above 1 is a gain.

A text consists of the odd lines of a corpus, and is encoded after the even lines. The rows:
``fresh`` is the first text of the process; ``first`` a new text; ``again`` the same text once more;
``documents`` new text in documents of 4 KB, one call each; ``prompts`` in prompts of 11 bytes;
``words`` in words; ``threads`` documents on two threads, and ``threads-again`` these documents once
more, each equally likely on either thread; ``load`` reads a file; ``added`` is ``again`` for the
encoding's ``tokenizer.json`` with 1,000 more added tokens, or for a given file, and ``added-often``
the same with an added token in every line; ``sentences`` passes 4,096 known lines of up to 100
characters to ``Tokenizer``, which pads each 64 lines to a matrix; ``template`` renders a chat
template with messages, tool calls and results made from the text. Some mechanisms apply to files:
``cuts`` to a ``tokenizer.json`` over characters, ``windows`` to WordPiece and Unigram,
``beginnings`` to files with many added tokens, ``chunks`` and ``settled`` to models that cut text
into words, ``listed-splits`` to any ``tokenizer.json``; ``chunks`` and ``margins`` to a Unigram
``.model``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .cases.corpora import Corpus, documents, find_corpora, halves
from .cases.encodings import spec_of, tokenizer_file
from .harness.render import into_page
from .harness.sides import seconds

#: Sizes in bytes of a prompt and a document, as in core/examples/ablation.rs.
PARTS = {"prompts": 11, "documents": 4096}

#: A template that renders messages, tool calls and results like published templates.
AGENT = """\
{%- for tool in tools %}{{ tool | tojson(indent=4) }}{% endfor %}
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.tool_calls %}
        {%- for call in m.tool_calls %}
            {{- call.function.name + ' ' }}{{ call.function.arguments | tojson }}
        {%- endfor %}
    {%- else %}
        {{- m.get('reasoning_content', '').strip() + m.content.split('</think>')[-1].lstrip('\\n') }}
    {%- endif %}
    {{- '<|im_end|>' if not loop.last }}
{%- endfor %}
"""

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Mechanism:
    """A name in core/src/ablation.rs, the rows to time, whether the rows need Python, and the
    suffixes of the tokenizer files to time ("" for encodings)."""

    name: str
    rows: tuple[str, ...] = ("first", "again")
    lists: bool = False
    files: tuple[str, ...] = ("",)


#: Mechanisms, in the order of docs/design.md.
MECHANISMS = (
    Mechanism("cache"),
    Mechanism("long-tables"),
    Mechanism("packed-ids"),
    Mechanism("pool", ("threads", "threads-again")),
    Mechanism("miss-batches", ("fresh", "first")),
    Mechanism("prefetch"),
    Mechanism("huge-pages", ("fresh", "first")),
    Mechanism("int-cache", ("first", "again"), lists=True),
    Mechanism("buffer-pool", ("first", "prompts"), lists=True),
    Mechanism("lanes", ("fresh", "first")),
    Mechanism("boundaries"),
    Mechanism("first-parts", ("fresh", "first")),
    Mechanism("scan", ("first", "words")),
    Mechanism("vectors"),
    Mechanism("rows", ("sentences",), lists=True),
    Mechanism("code-points", lists=True),
    Mechanism("beginnings", ("added", "added-often"), lists=True, files=("", ".json")),
    Mechanism("cuts", lists=True, files=(".json",)),
    Mechanism("chunks", ("documents", "again"), lists=True, files=(".json", ".model")),
    Mechanism("settled", ("documents", "again"), lists=True, files=(".json",)),
    Mechanism("margins", ("documents", "again"), lists=True, files=(".model",)),
    Mechanism("listed-splits", ("load",), lists=True, files=(".json",)),
    Mechanism("windows", ("first", "again"), lists=True, files=(".json",)),
    Mechanism("native-methods", ("template",), lists=True),
)


class Worker:
    """A process that times rows, with all mechanisms enabled or all but one.

    With a ``folder`` to run in, each figure comes from a new process, because the speed of
    Python's allocator depends on earlier frees.
    """

    def __init__(
        self, command: list[str], environment: dict[str, str], folder: Path | None = None
    ) -> None:
        self._command = command
        self._environment = environment
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def time(self, row: str, path: Path) -> float:
        """Returns the microseconds of CPU time; raises RuntimeError if the process has ended."""
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(f"{row} {path}\n")
            process.stdin.flush()
            return float(process.stdout.readline())
        except (OSError, ValueError):
            raise RuntimeError(f"{self._command!r} ended on {row} {path}") from None
        finally:
            if self._folder is not None:
                self.stop()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **self._environment},
        )

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


class Builds:
    """Builds the worker that times the core, and a package ``bpe_engine`` for rows in Python."""

    def __init__(self, target: Path, toolchain: str) -> None:
        self._target = target
        self._cargo = [toolchain, "build", "--profile", "ablation", "--features", "ablation",
                       "--target-dir", str(target)]  # fmt: skip

    def core(self) -> Path:
        """Builds the program that times the core, and returns its path."""
        subprocess.run(
            [*self._cargo, "-p", "bpe-core", "--example", "ablation"], cwd=ROOT, check=True
        )
        return self._target / "ablation" / "examples" / "ablation"

    def package(self) -> Path:
        """Builds and returns a folder from which ``bpe_engine`` can be imported."""
        environment = {
            **os.environ,
            "PYO3_PYTHON": sys.executable,
            "PYO3_BUILD_EXTENSION_MODULE": "1",
        }
        subprocess.run([*self._cargo, "-p", "bpe-bindings"], cwd=ROOT, check=True, env=environment)
        folder = self._target / "package"
        shutil.rmtree(folder, ignore_errors=True)
        ignore = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
        shutil.copytree(ROOT / "bpe_engine", folder / "bpe_engine", ignore=ignore)
        built = next((self._target / "ablation").glob("lib_core.*[os]"))
        shutil.copy(built, folder / "bpe_engine" / "_core.so")
        return folder


def serve_lists(encoding: str) -> None:
    """Runs the worker for rows in Python: answers ``ROW FILE`` like core/examples/ablation.rs."""
    import bpe_engine

    if Path(bpe_engine.__file__).parents[1] != Path.cwd():
        raise RuntimeError(f"{bpe_engine.__file__} is not the build in {Path.cwd()}")
    texts: dict[str, tuple[str, str]] = {}
    for line in sys.stdin:
        row, path = line.rstrip("\n").split(" ", 1)
        if path not in texts:
            texts[path] = halves(Path(path).read_text(encoding="utf-8"))
        even, odd = texts[path]
        print(seconds(_prepared(encoding, row, even, odd)) * 1e6, flush=True)


def _prepared(encoding: str, row: str, even: str, odd: str) -> Callable[[], object]:
    """Prepares a row, and returns the call to time."""
    import bpe_engine
    from bpe_engine.hf import Tokenizer

    if row == "template":
        return _rendering(odd)
    if row == "load":
        return lambda: Tokenizer.from_file(encoding)
    if row == "sentences":
        lines = [line[:100] for line in odd.splitlines() if line and not line.isspace()]
        rows = [lines[at : at + 64] for at in range(0, min(len(lines), 4096), 64)]
        tokenizer = bpe_engine.Tokenizer(
            bpe_engine.get_encoding(encoding), pad_token="<|endoftext|>"
        )
        call = partial(tokenizer, padding=True, return_tensors="np")
        deque(map(call, rows), maxlen=0)
        return lambda: deque(map(call, rows), maxlen=0)
    if row.startswith("added"):
        return _with_added_tokens(encoding, odd, often=row == "added-often")
    if encoding.endswith((".json", ".model")):
        encode: Callable[[str], object] = Tokenizer.from_file(encoding).encode
    else:
        enc = bpe_engine.get_encoding(encoding)
        enc.clear_cache()
        encode = enc.encode_ordinary
    if row in PARTS:
        # Makes one call per part, after a warm-up with the parts of the even lines.
        before, parts = documents(even, PARTS[row]), documents(odd, PARTS[row])
        deque(map(encode, before), maxlen=0)
        return lambda: deque(map(encode, parts), maxlen=0)
    for text in {"fresh": [], "first": [even], "again": [even, odd]}[row]:
        encode(text)
    return lambda: encode(odd)


def _rendering(text: str) -> Callable[[], object]:
    """Returns a function that renders a conversation made from a text."""
    from bpe_engine.prompt import ChatTemplate

    parts = documents(text, 300)[:1000]
    chat: list[dict[str, object]] = []
    for number, part in enumerate(parts):
        arguments = {"path": f"src/{number}.py", "lines": number, "text": part[:100]}
        function = {"name": f"tool_{number % 30}", "arguments": arguments}
        chat += (
            {"role": "assistant", "content": "", "tool_calls": [{"function": function}]},
            {"role": "tool", "content": part},
        )
    tools = [{"name": f"tool_{number}", "text": part} for number, part in enumerate(parts[:30])]
    template = ChatTemplate(AGENT)
    return lambda: template.render(chat, tools=tools)


def _with_added_tokens(encoding: str, text: str, often: bool) -> Callable[[], object]:
    """Returns a function that encodes a known text with a tokenizer that has many added tokens."""
    from bpe_engine.hf import Tokenizer

    file = Path(encoding if encoding.endswith(".json") else f"{encoding}.json")
    if not file.exists():
        tokenizer = Tokenizer.from_file(str(tokenizer_file(spec_of(encoding), Path.cwd())))
        tokenizer.add_special_tokens([f"<|reserved_{number}|>" for number in range(1000)])
        tokenizer.save(str(file))
    tokenizer = Tokenizer.from_file(str(file))
    if often:
        names = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        lines = text.splitlines(keepends=True)
        text = "".join(f"{names[place % len(names)]}{line}" for place, line in enumerate(lines))
    tokenizer.encode(text)
    return lambda: tokenizer.encode(text)


#: Time without the mechanism divided by time with it, by (mechanism, encoding, row, corpus).
Figures = dict[tuple[str, str, str, str], float]


def measure(
    mechanisms: list[Mechanism],
    encodings: list[str],
    corpora: list[Corpus],
    rounds: int,
    builds: Builds,
) -> Figures:
    """Times all mechanisms on all corpora, one encoding after another."""
    program = builds.core() if any(not mechanism.lists for mechanism in mechanisms) else None
    package = builds.package() if any(mechanism.lists for mechanism in mechanisms) else None
    figures: Figures = {}
    for encoding in encodings:
        spec = spec_of(encoding)
        kind = spec.file.suffix if spec.file else ""
        own = [mechanism for mechanism in mechanisms if kind in mechanism.files]
        for lists in (False, True):
            chosen = [mechanism for mechanism in own if mechanism.lists == lists]
            if not chosen:
                continue
            workers = {}
            for name in ("", *(mechanism.name for mechanism in chosen)):
                if lists:
                    name_or_file = str(spec.file or encoding)
                    command = [sys.executable, "-m", "benchmarks.ablation", "--serve", name_or_file]
                    environment = {
                        "BPE_ENGINE_ABLATION": name,
                        "PYTHONPATH": f"{package}{os.pathsep}{ROOT}",
                    }
                else:
                    command = [str(program), name, str(spec.ranks), spec.pattern]
                    environment = {}
                workers[name] = Worker(command, environment, package if lists else None)
            figures |= _in_turn(workers, chosen, spec.name, corpora, rounds)
            for worker in workers.values():
                worker.stop()
    return figures


def _in_turn(
    workers: dict[str, Worker],
    mechanisms: list[Mechanism],
    encoding: str,
    corpora: list[Corpus],
    rounds: int,
) -> Figures:
    ratios: dict[tuple[str, str, str, str], list[float]] = {}
    for number in range(rounds):
        print(f"{encoding}: round {number + 1}/{rounds}", file=sys.stderr)
        for corpus in corpora:
            for mechanism in mechanisms:
                for row in mechanism.rows:
                    if row == "load" and corpus != corpora[0]:
                        continue
                    turn = ["", mechanism.name][:: 1 if number % 2 else -1]
                    taken = {name: workers[name].time(row, corpus.path) for name in turn}
                    name = "the file" if row == "load" else corpus.name
                    key = (mechanism.name, encoding, row, name)
                    ratios.setdefault(key, []).append(taken[mechanism.name] / taken[""])
    return {key: statistics.median(values) for key, values in ratios.items()}


def table(figures: Figures, mechanism: str) -> str:
    """Returns the figures of a mechanism as Markdown: a line per row, a column per corpus."""
    own = {key[1:]: value for key, value in figures.items() if key[0] == mechanism}
    corpora = list(dict.fromkeys(corpus for _, _, corpus in own))
    lines = [
        f"| without / with | {' | '.join(corpora)} |",
        f"|---|{'---:|' * len(corpora)}",
    ]
    for encoding, row in dict.fromkeys((encoding, row) for encoding, row, _ in own):
        cells = (f"{own[encoding, row, corpus]:.2f}" for corpus in corpora)
        lines.append(f"| {encoding}, {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ",".join(mechanism.name for mechanism in MECHANISMS)
    parser.add_argument("--only", metavar="A,B", help=f"of {names}")
    parser.add_argument("--encodings", metavar="A,B", default="o200k_base,cl100k_base")
    parser.add_argument("--corpora", type=Path, metavar="DIR", help="take the *.txt of DIR")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--render", type=Path, metavar="FILE", help="write the tables into this page"
    )
    parser.add_argument("--cache", type=Path, help="folder for what is prepared once")
    parser.add_argument(
        "--target", type=Path, default=ROOT / "target" / "ablation", help="folder to build in"
    )
    parser.add_argument("--serve", metavar="ENCODING", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = _arguments(argv)
    if arguments.serve:
        serve_lists(arguments.serve)
        return 0
    only = arguments.only.split(",") if arguments.only else None
    known = {mechanism.name: mechanism for mechanism in MECHANISMS}
    try:
        if unknown := [name for name in only or () if name not in known]:
            raise ValueError(f"No mechanism {unknown[0]!r}; there are {', '.join(known)}.")
        toolchain = shutil.which("cargo")
        if toolchain is None:
            raise ValueError("cargo is needed to build the worker: https://rustup.rs")
        cache = arguments.cache or Path(tempfile.gettempdir()) / "bpe-engine-benchmarks"
        corpora = find_corpora(arguments.corpora, cache)
        chosen = [known[name] for name in only] if only else list(MECHANISMS)
        encodings = arguments.encodings.split(",")
        builds = Builds(arguments.target.resolve(), toolchain)
        figures = measure(chosen, encodings, corpora, arguments.rounds, builds)
        if arguments.render:
            page = arguments.render.read_text(encoding="utf-8")
            for name in dict.fromkeys(key[0] for key in figures):
                page = into_page(page, f"ablation: {name}", table(figures, name))
            arguments.render.write_text(page, encoding="utf-8")
    except (ValueError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    for mechanism in (each for each in chosen if each.name in {key[0] for key in figures}):
        print(f"\n{mechanism.name}\n\n{table(figures, mechanism.name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
