"""Tests the contents of reports, and how a real browser renders them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from browser import needs_chromium, seen_in_browser
from vocab_bases import BYTES, QWEN
from vocab_command import run

import bpe_engine
from bpe_engine.html_report.page import isolated, with_escapes
from vocab_tools import (
    CorpusEffect,
    ExtendOptions,
    TrainOptions,
    check_vocabulary,
    corpus_effect,
    embedding_plan,
    extend_vocabulary,
    learn_merges,
    open_base,
    propose_words,
    train_vocabulary,
    write_report,
)
from vocab_tools.report import render
from vocab_tools.text import in_order, token_text

#: Words of left-to-right and right-to-left scripts, and code.
WORDS = {
    "我是一只猫": 20_000_000,
    "你是一只猫": 10,
    "مرحباكتاب": 1234567,
    " getElementByNameAndClass": 40,
    "<&></": 4000,
    "zq" * 60: 777_777,
    **{f"zq{first}{second}x": 5 for first in "abcdefghijklmnop" for second in "abcdefghijklmnop"},
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    corpus = folder / "corpus.txt"
    corpus.write_text("小只猫。我是一只猫 مرحباكتاب zqaax\n" * 3, encoding="utf-8")
    result = learn_merges(QWEN, {**WORDS, "<b>&": 1, "一只": 2}, pattern="qwen")
    base = result.pattern.encoding(result.base, {})
    extended = result.pattern.encoding(result.extended, {})
    words = [path.word for path in result.words]
    effect = corpus_effect([corpus], base, extended, words, nfc=True)
    path = folder / "report.html"
    write_report(path, result, effect)
    return path


def test_the_page_is_self_contained(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!#)", text)
    assert "@import" not in text and "url(" not in text
    sections = ("summary", "words", "corpus", "conflicts", "by-products")
    order = [text.index(f'<section id="{name}"') for name in sections]
    assert order == sorted(order)
    # The conclusions come first, and the inputs last.
    assert text.index('<ul class="conclusions">') < order[0]
    assert f"bpe_engine {bpe_engine.__version__}" in text.rpartition("<footer>")[2]
    assert all(f'href="#{name}"' in text for name in ("summary", "conflicts", "words", "corpus"))


def test_token_texts_replace_ids(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert '<bdi class="chip" title="id 151' in text
    assert "小只猫" in text and "مرحباكتاب" in text
    assert "<bdi>&lt;&amp;&gt;&lt;/</bdi>" in text and "<b>&amp;" not in text


def test_tokens_are_shown_as_they_are(tmp_path: Path) -> None:
    words = {
        "it's": 1,
        " the zebra": 2,
        "ภาษาไทย": 3,
        "ที่": 4,
        "\U0001f469\u200d\U0001f4bb": 5,
        "a'\"": 6,
    }
    path = tmp_path / "r.html"
    write_report(path, learn_merges(BYTES, words, pattern="gpt2"))
    text = path.read_text(encoding="utf-8")
    cells = html.unescape(text)
    assert "\\'" not in cells and "\u00b7the" in cells and "\U0001f469\u200d\U0001f4bb" in cells
    # A combining mark at the start of a piece is shown on a dotted circle.
    assert '<bdi class="chip">\u25cc\u0e35' in text or '<bdi class="chip">\u25cc\u0e34' in text
    # Words that are cut are in the table, but not among the remarks.
    rows = re.findall(r'<section id="conflicts">(.*?)</section>', text, re.DOTALL)[0]
    assert rows.count("<bdi>it&#x27;s</bdi>") == 1


def test_a_check_has_the_same_look(tmp_path: Path) -> None:
    path = tmp_path / "check.html"
    result = check_vocabulary({**BYTES, b"xyz": 256, b"<|end|>": 300}, special_tokens={"<x>": 300})
    write_report(path, result)
    text = path.read_text(encoding="utf-8")
    assert "SPECIAL_ID" in text and 'class="tiles"' in text
    write_report(tmp_path / "check.md", result)
    assert "**error SPECIAL_ID (1)**: " in (tmp_path / "check.md").read_text(encoding="utf-8")
    write_report(tmp_path / "check.json", result)
    assert json.loads((tmp_path / "check.json").read_text(encoding="utf-8"))["ok"] is False


def test_missing_jinja2_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    result = learn_merges(BYTES, {"ab": 1}, start_id=300)
    with pytest.raises(ImportError, match=r"bpe-engine\[vocab-tools\]"):
        write_report(tmp_path / "r.html", result)
    write_report(tmp_path / "r.md", result)


#: Script that inspects every cell, and records the results.
PROBE = """
seen.narrow = [];
const wordTable = document.querySelector("#words-table");
document.querySelectorAll("td.number, td.id").forEach((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
  if (lines.size > 1 || range.getBoundingClientRect().width > cell.clientWidth + 1) {
    seen.narrow.push(cell.textContent);
  }
});
const long = [...wordTable.tBodies[0].rows].find((row) => row.cells[0].textContent.startsWith("zqzq"));
seen.highest = long.getBoundingClientRect().height;
seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const rtl = [...document.querySelectorAll("bdi")].find((one) => one.textContent === "مرحباكتاب");
seen.direction = rtl ? getComputedStyle(rtl).unicodeBidi : "none";
"""


@needs_chromium
@pytest.mark.parametrize("width", [1280, 500])
def test_in_a_browser(page: Path, tmp_path: Path, width: int) -> None:
    seen = seen_in_browser(page.read_text(encoding="utf-8"), PROBE, tmp_path, width)
    assert seen["errors"] == [] and seen["narrow"] == []
    # The page does not scroll sideways.
    assert seen["overflow"] <= 0
    # No row for a single word fills the screen.
    assert seen["highest"] < 700
    assert seen["direction"] == "isolate"


def test_reports_on_proposals_training_and_embeddings(tmp_path: Path) -> None:
    corpus = tmp_path / "text.txt"
    corpus.write_text("the lowest and the newest, שלום, ไทย\n" * 50, encoding="utf-8")
    trained = train_vocabulary(corpus, 290)
    plan = embedding_plan(BYTES, {b"low": 260, b"er": 262}, special_tokens={})
    proposal = propose_words(BYTES, [corpus], ExtendOptions(20, min_frequency=2))
    words = f"{len(proposal.words)} words with {proposal.new_ids} new ids save "
    for result, sentence in [
        (proposal, words),
        (trained, f"{len(trained.new_tokens)} tokens were learned"),
        (plan, "The table needs 263 rows, 7 more than the base has ids."),
    ]:
        for ending in (".html", ".md", ".json"):
            write_report(tmp_path / f"report{ending}", result)
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert sentence in page and html.escape(page) in str(result._repr_html_())
        json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
        assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# ")


def test_characters_that_tokens_cut_are_shown_once() -> None:
    assert in_order(["只".encode()[:1], "只".encode()[1:], b" \xe0"]) == ["只", "‥", "·\\xe0"]
    assert token_text("·‥".encode()) == "\\u00b7\\u2025"  # Both characters are text, not signs.
    plan = embedding_plan(BYTES, {"只".encode(): 260}, special_tokens={})
    page = render("r.html", plan)
    assert '<bdi class="chip" title="id 143"><bdi>‥</bdi></bdi>' in page and "\\xe5" not in page
    words = learn_merges(BYTES, {"小只": 3}, pattern="gpt2")
    assert "\\x" not in render("r.html", words).partition('id="by-products"')[0]


def test_commands_write_reports(tmp_path: Path) -> None:
    corpus, made = tmp_path / "text.txt", tmp_path / "out.tiktoken"
    corpus.write_text("the lowest and the newest 小只猫\n" * 50, encoding="utf-8")
    page = tmp_path / "report.html"
    done = run("train", corpus, "--vocab-size", 264, "-o", made, "--report", page)
    assert done.returncode == 0, done.stderr
    assert "bytes per token of the training text" in page.read_text(encoding="utf-8")
    words, found = tmp_path / "words.txt", tmp_path / "words.json"
    assert run("propose", made, corpus, "-n", 9, "-o", words, "--report", found).returncode == 0
    assert json.loads(found.read_text(encoding="utf-8"))["words"]
    extra, target = tmp_path / "extra.tiktoken", tmp_path / "new" / "tokenizer.json"
    assert run("learn", made, words, "-o", extra, "-q").returncode == 0
    plan = tmp_path / "plan.html"
    done = run("convert", made, target, "--extra", extra, "--plan", plan)
    assert done.returncode == 0 and target.exists(), done.stderr
    assert "Parts of the new tokens" in plan.read_text(encoding="utf-8")


def test_escapes_beside_letters_from_right_to_left() -> None:
    assert with_escapes("\\xd7שלום") == '<bdi dir="ltr">\\xd7</bdi>שלום'
    assert isolated("שלום \\u200d") == '<bdi>שלום</bdi> <bdi dir="ltr">\\u200d</bdi>'


def test_titles_tell_reports_apart(tmp_path: Path) -> None:
    corpus = tmp_path / "news.txt"
    corpus.write_text("lower lower slow " * 20)
    extension = extend_vocabulary(open_base(BYTES, "qwen"), [corpus, corpus], ExtendOptions(5))
    results = {
        r"\d new tokens for a vocabulary of 256 ranks, from": extension,
        r"\d words? for a vocabulary, from": extension.proposal,
        r"Check of a vocabulary of 256 ranks with \d new tokens": extension.checked,
        r"\d new rows of an embedding table of": embedding_plan(BYTES, extension.learned.tokens),
        "A trained vocabulary of 257 tokens$": train_vocabulary(
            {"ab": 9}, 257, TrainOptions(pattern="gpt2")
        ),
        "A trained vocabulary of 258 tokens, from news.txt$": train_vocabulary(corpus, 258),
        r"A trained vocabulary of [\d,]+ tokens, on top of r50k_base, from news.txt and 1 more$": (
            train_vocabulary(
                [str(corpus), corpus], 50_258, TrainOptions(min_frequency=0), base="gpt2"
            )
        ),
    }
    for start, result in results.items():
        head = render("r.md", result).splitlines()[0]
        title = re.search("<title>(.*)</title>", render("r.html", result))
        assert title is not None and head == f"# {title[1]}"
        assert re.match(start, head[2:]), head
    for result in (extension, extension.proposal):
        assert "from news.txt and 1 more" in render("r.md", result).splitlines()[0]


def test_results_without_a_report_have_none() -> None:
    assert CorpusEffect(0, 0, 0, 0, [])._repr_html_() is None
