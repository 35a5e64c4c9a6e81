"""Makes the pictures of the README and the manual from real output: `make pictures`.

    python docs/pictures.py [NAME ...]

Writes to docs/_static: `show.svg`, the output of `bpe-engine show`; `speed-light.svg` and
`speed-dark.svg`, rows of docs/benchmarks.csv; `report.png` and `report-dark.png`, a report of
`vocab-tools compare`; `map.png` and `map-dark.png`, a report of `vocab-tools map`; `notebook.png`,
a notebook; `playground.png`, `prompts.png` and their dark variants, views of `bpe-engine
playground`. The PNG files need Chromium and Pillow, and the notebook nbconvert and ipykernel.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib
from html import escape
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "_static"

SHOWN = "It isn't magic: 根本不是, Straßenbahn, 한국어!<|endoftext|>"

CHIPS = "It isn't magic: 根本不是, Straßenbahn, नमस्ते, 🦜.<|endoftext|>"

#: The titles of the chart's rows, by corpus in docs/benchmarks.csv.
TEXTS = {"en": "English", "code": "Code", "multi": "Many languages", "zh": "Chinese"}

#: Colors of the engines' bars, the background, text, and secondary text.
LIGHT = (("#2a6fdb", "#7f8a99", "#9aa4b2", "#b9c1cc", "#d3d8df"), "#ffffff", "#1f2430", "#5d6675")
DARK = (("#6ea8ff", "#8f99a8", "#7d8796", "#5f6877", "#474f5c"), "#0d1117", "#e6e9ef", "#9aa4b2")

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"

TERMINAL = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: {char_height}px; line-height: {line_height}px }}
.{unique_id}-title {{ font: 18px {FONT} }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
""".replace("{FONT}", FONT)

THEME = TerminalTheme((22, 27, 34), (230, 233, 239), [(0, 0, 0)] * 8, [(120, 130, 145)] * 8)


def show() -> None:
    """Draws a terminal with the output of `bpe-engine show`."""
    options = ["--color", "always", "--width", "90", "--allow-special", "all"]
    shown = run([sys.executable, "-m", "bpe_engine", "show", *options, SHOWN])
    console = Console(record=True, width=92, file=open(os.devnull, "w"), force_terminal=True)
    console.print(Text(f'$ bpe-engine show --allow-special all "{SHOWN}"\n'))
    console.print(Text.from_ansi(shown))
    drawn = console.export_svg(
        title="bpe-engine show", theme=THEME, code_format=TERMINAL, unique_id="show"
    )
    # rich gives wide characters the length of narrow characters; the viewer measures correctly.
    drawn = re.sub(r' textLength="[\d.]+"(?=[^>]*>[^<]*[\u1100-\uffdc])', "", drawn)
    (OUT / "show.svg").write_text(drawn, encoding="utf-8")


def speed() -> None:
    """Draws the throughput of each engine on unseen text, for light and dark pages."""
    with open(ROOT / "docs" / "benchmarks.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["encoding"] == "o200k_base"]
    engines = [
        name for name in rows[0] if name not in ("encoding", "row", "unit", "tokens", "ratio")
    ]
    found = {row["row"]: row for row in rows}
    values = {
        title: [float(found[f"text -> list, first, {corpus}"][engine]) for engine in engines]
        for corpus, title in TEXTS.items()
    }
    for name, colors in (("light", LIGHT), ("dark", DARK)):
        drawn = chart("MB/s to lists, one thread, new text, o200k_base", engines, values, *colors)
        (OUT / f"speed-{name}.svg").write_text(drawn, encoding="utf-8")


def chart(
    title: str,
    engines: list[str],
    values: dict[str, list[float]],
    bars: tuple[str, ...],
    page: str,
    ink: str,
    quiet: str,
) -> str:
    """Returns groups of horizontal bars as SVG, with a legend above them."""
    left, room, thick, gap, top = 132, 510, 15, 14, 60
    highest = max(map(max, values.values()))
    height = top + len(values) * (len(engines) * thick + gap)
    parts = [f'<text x="16" y="26" fill="{ink}" font-weight="600">{escape(title)}</text>']
    at = 16
    for engine, color in zip(engines, bars):
        parts.append(f'<rect x="{at}" y="37" width="11" height="11" rx="2" fill="{color}"/>')
        parts.append(f'<text x="{at + 16}" y="47" fill="{quiet}">{engine}</text>')
        at += 34 + 8 * len(engine)
    for group, (text, numbers) in enumerate(values.items()):
        y = top + group * (len(engines) * thick + gap) + gap / 2
        middle = y + len(engines) * thick / 2 + 4
        parts.append(
            f'<text x="{left - 12}" y="{middle}" fill="{ink}" text-anchor="end">{text}</text>'
        )
        for number, color in zip(numbers, bars):
            width = round(number / highest * room, 1)
            strong = ' font-weight="600"' if color == bars[0] else ""
            parts.append(
                f'<rect x="{left}" y="{y}" width="{width}" height="{thick - 2}" rx="2" fill="{color}"/>'
                f'<text x="{left + width + 6}" y="{y + 11}" fill="{ink if strong else quiet}" '
                f'font-size="11"{strong}>{number:.0f}</text>'
            )
            y += thick
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {height}" role="img" '
        f'font-family="{FONT}" font-size="13"><title>{escape(title)}</title>'
        f'<rect width="700" height="{height}" rx="8" fill="{page}"/>{"".join(parts)}</svg>\n'
    )


def report() -> None:
    """Takes a screenshot of the top of a report that compares four encodings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        texts = [ROOT / "benchmarks" / "cases" / "texts" / name for name in ("multi.txt", "zh.txt")]
        texts.append(ROOT / "docs" / "guide.md")
        corpus = [word for text in texts for word in ("--corpus", str(text))]
        names = ["gpt2", "cl100k_base", "o200k_base", "qwen"]
        run(
            [sys.executable, "-m", "vocab_tools", "compare", *names, *corpus, "--report", str(path)]
        )
        for name, dark in (("report", False), ("report-dark", True)):
            screenshot(path.as_uri(), OUT / f"{name}.png", 1000, 660, dark)


def vocabulary_map() -> None:
    """Takes a screenshot of the top of a report that maps one encoding to another."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.html"
        names = ["qwen", "o200k_base", "--report", str(path)]
        run([sys.executable, "-m", "vocab_tools", "map", *names])
        for name, dark in (("map", False), ("map-dark", True)):
            screenshot(path.as_uri(), OUT / f"{name}.png", 1000, 1100, dark)


#: Views of the playground, as encoded in its address, and the height of the window.
VIEWS = {
    "playground": (
        {"shown": "both", "text": "Tokenization isn't obvious: naïve, 根本不是, שלום, 👩‍🚀.\n"
         "def main():\n    return 1234567"},
        646,
    ),
    "prompts": ({"view": "prompts"}, 768),
}  # fmt: skip


def playground() -> None:
    """Takes screenshots of two views of the playground, light and dark."""
    from bpe_engine.playground.api import Api
    from bpe_engine.playground.server import Server

    with Server(Api()) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, (view, height) in VIEWS.items():
            address = f"{server.address}#{_link(view)}"
            for suffix, dark in (("", False), ("-dark", True)):
                screenshot(address, OUT / f"{name}{suffix}.png", 1100, height, dark)
        server.shutdown()


def _link(view: dict[str, str]) -> str:
    """Returns a view of the playground as the fragment of its address."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(json.dumps(view).encode()) + packer.flush()
    return "1." + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def notebook() -> None:
    """Runs a notebook that shows a text as chips and a comparison, and takes a screenshot."""
    cells = [
        f'import bpe_engine\n\nenc = bpe_engine.get_encoding("gpt2")\nenc.show({CHIPS!r}, allowed_special="all")',
        "from vocab_tools import compare_tokenizers\n\n"
        'compare_tokenizers(["gpt2", "o200k_base", "qwen"], ["multi.txt"])',
    ]
    contents = {
        "cells": [
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
             "id": f"cell-{number}", "source": cell}
            for number, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notebook.ipynb"
        path.write_text(json.dumps(contents), encoding="utf-8")
        shutil.copy(ROOT / "benchmarks" / "cases" / "texts" / "multi.txt", folder)
        run([sys.executable, "-m", "nbconvert", "--execute", "--to", "html", str(path)])
        screenshot(path.with_suffix(".html").as_uri(), OUT / "notebook.png", 1000, 790)


def screenshot(address: str, picture: Path, width: int, height: int, dark: bool = False) -> None:
    """Takes a screenshot of a page in a window of this size, in 64 colors: a third of the bytes."""
    from PIL import Image, ImageOps

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        sys.exit("pictures of pages need Chromium (`apt install chromium`)")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    if dark:
        options += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
    options += ["--virtual-time-budget=8000", f"--window-size={width},{height}"]
    run([browser, *options, f"--screenshot={picture}", address])
    frame = "#353d48" if dark else "#d1d9e0"
    framed = ImageOps.expand(Image.open(picture).convert("RGB"), border=1, fill=frame)
    framed.quantize(64).save(picture, optimize=True)


def run(command: list[str]) -> str:
    """Runs a command, and returns its output."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


PICTURES = {
    "show": show,
    "speed": speed,
    "report": report,
    "map": vocabulary_map,
    "notebook": notebook,
    "playground": playground,
}

if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
