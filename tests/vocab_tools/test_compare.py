"""Tests statistics of a tokenizer on text, and comparisons of several tokenizers."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path

import pytest
from browser import needs_chromium, seen_in_browser
from hf_oracle import SHARED, tokenizer_path
from seeds import rounds, seeded
from vocab_command import run

import bpe_engine
from bpe_engine import hf, vocabulary
from bpe_engine.texts import plain_text
from vocab_tools import ExtendOptions, propose_words
from vocab_tools.compare import compare_texts, compare_tokenizers, load_subject, renyi_efficiency
from vocab_tools.compare.segments import segments_of
from vocab_tools.compare.subjects import RankSubject, Subject, of_tokenizer
from vocab_tools.report.comparison_page import readable_cut

TEXT = """The quick brown fox jumps over the lazy dog.
It's 12,345 times; \t don't   ask!

  indented
人工智能正在改变世界。猫和狗
Съешь же ещё этих мягких французских булок
مرحبا بالعالم هذا اختبار
é n\u0303 👩‍💻 end
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT * 20, encoding="utf-8")
    return path


def test_tokens_are_those_of_the_whole_text(corpus: Path) -> None:
    names = ["gpt2", "cl100k_base", "o200k_base", "qwen"]
    text = corpus.read_text(encoding="utf-8")
    found = compare_tokenizers([load_subject(name) for name in names], [corpus])
    for name, row in zip(names, found.rows):
        ids = bpe_engine.get_encoding(name).encode_ordinary(text)
        assert row.tokens == len(ids) == sum(row.scripts.values())
        assert row.times == Counter(ids)
    total = found.total
    assert total.bytes == len(text.encode()) and total.characters == len(text)
    assert total.words == len(text.split())
    assert {"latin", "cjk", "cyrillic", "arabic"} <= found.scripts.keys()
    assert sum(size.bytes for size in found.scripts.values()) == total.bytes


def test_paragraphs_that_are_lines_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text is read in several blocks, which have the same tokens as the whole text."""
    monkeypatch.setattr(plain_text, "BLOCK_CHARACTERS", 64)
    path = tmp_path / "text.txt"
    text = "It's a long paragraph that ends in a full stop, not in a word.\n\n" * 60
    path.write_text(text)
    for name in ("gpt2", "o200k_base", "qwen"):
        found = compare_tokenizers([load_subject(name)], [path])
        assert found.total.texts > 5 and found.total.characters == len(text)
        ids = bpe_engine.get_encoding(name).encode_ordinary(text)
        assert found.rows[0].times == Counter(ids)


def test_segments_are_the_text() -> None:
    draw = seeded("segments")
    for _ in range(rounds(2000)):
        text = "".join(draw.choices("a中\n\r .1!", k=draw.randint(0, 20)))
        assert "".join(segments_of([text])) == text


def test_every_published_pattern_cuts_between_segments() -> None:
    draw = seeded("cuts")
    encodings = [bpe_engine.get_encoding(name) for name in bpe_engine.list_encoding_names()]
    for _ in range(rounds(500)):
        text = "".join(draw.choices(["a", "中", "\n", "\r", " ", ".", "1", "/", "'s"], k=12))
        segments = segments_of([text])
        for encoding in encodings:
            ids = [number for part in segments for number in encoding.encode_ordinary(part)]
            assert ids == encoding.encode_ordinary(text), (encoding.name, text)


def test_figures_of_a_vocabulary_that_is_known_by_hand(tmp_path: Path) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"aa": 256, b"\xc3\xa9": 257}
    encoding = vocabulary.make_encoding("x", ranks, r"\S+|\s+", {"<s>": 300})
    path = tmp_path / "a.txt"
    path.write_text("aa aa a é ñ\n", encoding="utf-8")
    [row] = compare_tokenizers([RankSubject("x", encoding)], [path]).rows
    # The tokens are aa, space, aa, space, a, space, é, space, the two bytes of ñ, newline.
    assert row.tokens == 11
    assert row.single_bytes == row.broken == 2
    assert row.subject.size == 259 and row.used_share == 7 / 259
    assert row.longest()[0] == (b"aa", 2)
    assert {token for token, _ in row.rarest()[:5]} == {"é".encode(), b"\xc3", b"\xb1", b"a", b"\n"}
    shares = [n / 11 for n in (2, 4, 1, 1, 1, 1, 1)]
    entropy = math.log(sum(share**2.5 for share in shares)) / -1.5
    assert row.renyi_efficiency == pytest.approx(entropy / math.log(259))
    assert renyi_efficiency({}, 10) == 0.0


def test_texts_that_differ_most_come_first(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(
        "A plain line of English text, and no more.\n" * 3 + "Η γρήγορη αλεπού πηδάει\n"
    )
    found = compare_tokenizers([load_subject("o200k_base"), load_subject("gpt2")], [path])
    assert found.differing[0].text.startswith("Η γρήγορη")
    for text in found.differing:
        assert [b"".join(cut).decode() for cut in text.cuts] == [text.text] * 2
    assert len({text.text for text in found.differing}) == len(found.differing)


def test_models_trained_on_nine_lines_of_ten(tmp_path: Path) -> None:
    draw = seeded("lines")
    words = "the a of learning tokens subword model trains on text with many words".split()
    lines = [" ".join(draw.choices(words, k=9)) + "." for _ in range(400)]
    lines[9] = "a ☃ of learning tokens on text with many words."
    path = tmp_path / "lines.txt"
    # A single line is also a paragraph.
    path.write_text("\n\n".join(lines), encoding="utf-8")
    models = ["bpe", "wordpiece", "unigram"]
    done = run(
        "compare", "--train", *models, "gpt2", "--vocab-size", 320, "--corpus", path, "--json"
    )
    found = json.loads(done.stdout)
    rows = {row["name"]: row for row in found["tokenizers"]}
    assert list(rows) == [*models, "gpt2"] and found["text"]["texts"] == 40
    # A snowman becomes bytes in byte-level BPE, and an unknown token in the other models.
    assert rows["bpe"]["unknown"] == 0 and rows["bpe"]["method"] == "byte-level BPE"
    assert rows["wordpiece"]["unknown"] == 1 and rows["unigram"]["unknown"] >= 1
    assert all(row["vocabulary"] <= 320 for row in rows.values() if row["name"] != "gpt2")
    path.write_text("one line\n")
    done = run("compare", "--train", "bpe", "--corpus", path)
    assert done.returncode == 1 and "1 line; at least 10" in done.stderr


@pytest.mark.parametrize("name", ["gpt2", "qwen", "wordpiece"])
def test_lines_of_a_paragraph_count_for_their_scripts(tmp_path: Path, name: str) -> None:
    english, chinese = "A line of English ends here.\n\n", "还有一行中文。\n\n"
    path = tmp_path / "a.txt"
    # Contains text that qwen normalizes, and lines without letters.
    path.write_text("e\u0301 " + (english + chinese + "(12 + 30)\n\n") * 5, encoding="utf-8")
    subject = _wordpiece() if name == "wordpiece" else load_subject(name)
    found = compare_tokenizers([subject], [path])
    assert {script: size.bytes for script, size in found.scripts.items()} == {
        "latin": 5 * len(english) + 4,
        "cjk": 5 * len(chinese.encode()) + 5 * len("(12 + 30)\n\n"),
    }
    (row,) = found.rows
    assert sum(row.scripts.values()) == row.tokens
    of_chinese = sum(subject.count([chinese.rstrip() + "\n\n", "(12 + 30)\n\n"])[0])
    if name != "gpt2":  # The pattern cuts between two line ends before a letter.
        assert row.scripts["cjk"] == 5 * of_chinese


def _wordpiece() -> Subject:
    tokenizers = pytest.importorskip("tokenizers")
    vocab = {"[UNK]": 0, "A": 1, "line": 2, ".": 3, "中": 4, "12": 5}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return of_tokenizer("wordpiece", made)


def test_lines_of_long_paragraphs_are_texts_that_differ(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("还有一行中文，比这一行更长。\n\n" * 40, encoding="utf-8")
    found = compare_tokenizers([load_subject("gpt2"), load_subject("qwen")], [path])
    assert [differing.text for differing in found.differing] == ["还有一行中文，比这一行更长。\n\n"]


@pytest.mark.parametrize("name", ["phi-3-mini.sentencepiece-like", "mistral-7b-v0.3", "gpt2"])
def test_tokenizer_files_of_either_package(tmp_path: Path, corpus: Path, name: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = tokenizer_path(name)
    subject: Subject = load_subject(path)
    theirs = tokenizers.Tokenizer.from_file(path)
    found = compare_tokenizers([subject], [corpus])
    segments = segments_of([corpus.read_text(encoding="utf-8")])
    encoded = theirs.encode_batch(segments, add_special_tokens=False)
    assert found.rows[0].tokens == sum(len(encoding.ids) for encoding in encoded)
    assert subject.size == theirs.get_vocab_size()
    if name != "gpt2":
        other = of_tokenizer(name, theirs)
        assert (subject.method, subject.unknown) == (other.method, other.unknown) == ("BPE", 0)
        ids = theirs.get_vocab().values()
        assert [subject.token(id) for id in ids] == [other.token(id) for id in ids]


def test_models_of_either_package(tmp_path: Path, corpus: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    models, words = (
        tokenizers.models,
        ["<unk>", "A", "line", "ligne", "li", "##ne", "\u2581of", "."],
    )
    vocab = {word: id for id, word in enumerate(words)}
    for model in (
        models.WordPiece(vocab, unk_token="<unk>"),
        models.WordLevel(vocab, unk_token="<unk>"),
        models.Unigram([(word, -1.0 - id) for word, id in vocab.items()], 0, False),
    ):
        theirs = tokenizers.Tokenizer(model)
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        name = type(model).__name__
        path = str(tmp_path / f"{name}.json")
        theirs.save(path)
        subject, other = load_subject(path), of_tokenizer(name, theirs)
        assert isinstance(subject._tokenizer, hf.Tokenizer)
        assert (subject.name, subject.method, subject.unknown) == (name, name, 0)
        assert (other.method, other.unknown, other.size) == (name, 0, subject.size)
        assert [subject.token(id) for id in range(8)] == [other.token(id) for id in range(8)]
        ours, same = (compare_tokenizers([each], [corpus]).rows[0] for each in (subject, other))
        assert (ours.tokens, ours.unknown) == (same.tokens, same.unknown) and ours.unknown > 0


def test_the_commands(tmp_path: Path, corpus: Path) -> None:
    done = run("stats", "gpt2", "--corpus", corpus, "--report", tmp_path / "s.md")
    assert done.returncode == 0, done.stderr
    assert "By script" in done.stdout and "per word" in done.stdout
    assert "| latin |" in (tmp_path / "s.md").read_text(encoding="utf-8")
    found = json.loads(run("compare", "gpt2", "qwen", "--corpus", corpus, "--json").stdout)
    rows = {row["name"]: row for row in found["tokenizers"]}
    assert rows["qwen"]["tokens"] < rows["gpt2"]["tokens"]
    assert rows["gpt2"]["files"][str(corpus)]["per_byte"] == pytest.approx(
        rows["gpt2"]["tokens"] / found["text"]["bytes"]
    )
    assert found["differing"][0]["tokens"].keys() == {"gpt2", "qwen"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "gpt2"], "two tokenizers or more"),
        (["compare", "gpt2", "--train"], "--train needs models"),
        (["compare", "bpe", "--train", "--vocab-size", "10"], "no room for"),
        (["compare", "gpt2", "qwne"], "qwne: No such file or directory, and unknown encoding"),
        (["stats", "gpt2", "--report", "x.pdf"], "ends in .html, .json or .md"),
        (["stats", "gpt2", "--report", "CORPUS"], "a report ends in|is an input"),
    ],
)
def test_what_is_refused(corpus: Path, arguments: list[str], message: str) -> None:
    arguments = [str(corpus) if argument == "CORPUS" else argument for argument in arguments]
    done = run(*arguments, "--corpus", corpus)
    assert done.returncode in (1, 2) and re.search(message, done.stderr), done.stderr


def test_text_that_cannot_be_measured(tmp_path: Path) -> None:
    empty, broken = tmp_path / "empty.txt", tmp_path / "broken.txt"
    empty.write_bytes(b"")
    broken.write_bytes(b"abc\xff")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"body": "x"}\n')
    for path, message in [
        (empty, "no text to measure"),
        (broken, "is not UTF-8"),
        (rows, "the field 'text' is missing"),
    ]:
        with pytest.raises(ValueError, match=message):
            compare_tokenizers([load_subject("gpt2")], [path])


def test_folders_and_bytes_that_are_not_text(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("one text\n")
    (folder / "b.txt").write_bytes(b"another \xff\n")
    strict = run("stats", "gpt2", "--corpus", folder)
    assert strict.returncode == 1 and "b.txt is not UTF-8" in strict.stderr
    done = run("stats", "gpt2", "--corpus", folder, "--errors", "replace", "--json")
    found = json.loads(done.stdout)
    assert [Path(path).name for path in found["files"]] == ["a.txt", "b.txt"]
    missing = run("stats", "gpt2", "--corpus", tmp_path / "*.nothing")
    assert missing.returncode == 2 and "matches no file" in missing.stderr


#: Script that finds numbers wrapped over several lines.
PROBE = """
seen.narrow = [];
document.querySelectorAll("td.number, td.id").forEach((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
  if (lines.size > 1) seen.narrow.push(cell.textContent);
});
seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
"""


@needs_chromium
@pytest.mark.parametrize("width", [1280, 500])
def test_the_report_in_a_browser(tmp_path: Path, corpus: Path, width: int) -> None:
    page = tmp_path / "page.html"
    done = run("compare", "gpt2", "qwen", "o200k_base", "--corpus", corpus, "--report", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "http" not in text
    seen = seen_in_browser(text, PROBE, tmp_path, width)
    assert seen["errors"] == [] and seen["narrow"] == []
    assert seen["overflow"] <= 0


CORPORA = sorted((SHARED / "corpora").glob("*.txt"))


@pytest.mark.thorough
@pytest.mark.skipif(not CORPORA, reason="the shared corpora are missing")
def test_the_corpora() -> None:
    names = ["o200k_base", "qwen"]
    found = compare_tokenizers([load_subject(name) for name in names], CORPORA)
    for name, row in zip(names, found.rows):
        encoding = bpe_engine.get_encoding(name)
        for path in CORPORA:
            text = path.open(encoding="utf-8", newline="").read()
            assert row.files[str(path)] == len(encoding.encode_ordinary(text))


def test_conclusions_and_the_best_of_each_script() -> None:
    text = ["A line of English text.\n", "还有一行中文。\n", "Это строка по-русски.\n"]
    names = ["gpt2", "o200k_base", "qwen"]
    found = compare_texts([load_subject(name) for name in names], "text", text)
    fewest = {
        script: {
            row.name
            for row in found.rows
            if row.scripts[script] == min(other.scripts[script] for other in found.rows)
        }
        for script in found.scripts
    }
    assert {script: set(best) for script, best in found.best_by_script().items()} == fewest
    first, second, last = found.ranking
    assert first.tokens <= second.tokens <= last.tokens
    assert found.conclusions()[0] == (
        f"{first.name} needs {1 - first.tokens / second.tokens:.0%} fewer tokens than {second.name} "
        f"and {1 - first.tokens / last.tokens:.0%} fewer than {last.name} on this text."
    )
    assert found.to_plain()["conclusions"] == found.conclusions()


def test_a_tokenizer_that_knows_nothing_does_not_win(tmp_path: Path) -> None:
    """An unknown word is one WordPiece token, so few tokens alone must not win the ranking."""
    text = ["A line of English text.\n", "还有一行中文。\n", "Это строка по-русски.\n"] * 20
    model = hf.WordPiece({"[UNK]": 0, "[SEP]": 1})
    nothing = hf.Tokenizer(model)
    nothing.pre_tokenizer = hf.pre_tokenizers.BertPreTokenizer()
    unknown = of_tokenizer("nothing", nothing)
    subjects = [load_subject("gpt2"), unknown, load_subject("qwen")]
    found = compare_texts(subjects, "text", text)
    assert found.rows[1].tokens < found.rows[2].tokens and found.rows[1].unknown_share == 1
    assert [row.name for row in found.ranking] == ["qwen", "gpt2"]
    assert "nothing" not in {name for names in found.best_by_script().values() for name in names}
    first, *_, last = found.conclusions()
    assert first.startswith("qwen needs ") and "nothing" not in first
    assert last == "100% of the tokens of nothing stand for unknown text, so it is not ranked."
    found.save(tmp_path / "compared.html")
    assert "tokens, nothing: 100.0% unknown" in (tmp_path / "compared.html").read_text("utf-8")
    one = compare_texts(subjects[:2], "text", text).conclusions()
    assert one[0].startswith("gpt2 needs a token for ") and one[-1] == last
    alone = compare_texts([unknown], "text", text).conclusions()
    assert alone[0].startswith("nothing needs a token for ")
    assert alone[-1] == "100% of the tokens of nothing stand for unknown text."


def test_texts_that_differ_are_of_each_script_and_not_alike() -> None:
    english = [
        f"ⓐ ⓑ ⓒ ⓓ word number {number} of a line that repeats itself.\n" for number in range(30)
    ]
    other = ["Это строка по-русски, которая довольно длинная.\n"]
    found = compare_texts(
        [load_subject("gpt2"), load_subject("o200k_base")], "text", english + other
    )
    assert [one.text.split()[0] for one in found.differing].count("ⓐ") == 1
    assert other[0] in [one.text for one in found.differing]


def test_names_encodings_and_one_path(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("hello world\n")
    expected = compare_tokenizers([load_subject("gpt2"), load_subject("qwen")], [path])
    sources = ["gpt2", bpe_engine.get_encoding("qwen")]
    for corpus in (path, str(path)):
        found = compare_tokenizers(sources, corpus)
        assert [row.tokens for row in found.rows] == [row.tokens for row in expected.rows]
        assert [row.name for row in found.rows] == ["gpt2", "qwen"]
    assert propose_words("gpt2", path, ExtendOptions(2, min_frequency=1)).tokens_before == 3


def test_cuts_show_each_character_once() -> None:
    gpt2 = load_subject("gpt2")
    for text in ("根本不是", "👩‍💻 שלום", "ไทย"):
        shown = "".join(readable_cut(gpt2.cut(text)))
        assert shown.replace("‥", "").replace("◌", "").replace("\\u200d", "\u200d") == text
    assert readable_cut([b"##ing", b"\xff\xfe"]) == ["##ing", "\\xff\\xfe"]


def test_one_tokenizer_and_one_text_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("One text of some words.\n")
    for one in ("gpt2", bpe_engine.get_encoding("gpt2")):
        assert compare_tokenizers(one, path).rows[0].name == "gpt2"
