"""`vocab-tools drift`: ids beside those of another folder, or of an earlier run."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from sentencepiece_oracle import write_model
from vocab_command import run

from vocab_tools import FolderResult, Frozen, check_drift, freeze
from vocab_tools.check.folder.drift import read_frozen
from vocab_tools.check.folder.tables import Table
from vocab_tools.convert import convert_tokenizer
from vocab_tools.text import quoted


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GPT-2's tokenizer.json, which is made once."""
    path = tmp_path_factory.mktemp("gpt2") / "tokenizer.json"
    convert_tokenizer("gpt2", str(path)).save()
    return path


@pytest.fixture
def folder(tmp_path: Path, gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with GPT-2's tokenizer.json."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "model").mkdir()
    shutil.copy(gpt2, tmp_path / "model" / "tokenizer.json")
    return tmp_path / "model"


def other(folder: Path) -> Path:
    """A folder whose tokenizer has two tokens in exchanged places."""
    contents = json.loads((folder / "tokenizer.json").read_text())
    vocab = contents["model"]["vocab"]
    vocab["Hello"], vocab["hello"] = vocab["hello"], vocab["Hello"]
    made = folder.parent / "other"
    made.mkdir()
    (made / "tokenizer.json").write_text(json.dumps(contents))
    return made


def test_two_folders(folder: Path) -> None:
    assert check_drift(folder, folder).ok
    result = check_drift(folder, other(folder), ["Hello there"])
    found = result.finding("IDS_CHANGED")
    assert not result.ok and found is not None
    assert found.examples[0].startswith("tokenizer.json: ")
    assert " was [" in found.examples[1] and ", and is [" in found.examples[1]
    # A text of one's own counts too.
    both = [freeze(side, ["Hello there"]) for side in (folder, folder.parent / "other")]
    assert check_drift(*both).sources[0].differing == 1


def test_results_of_an_earlier_run(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    path.write_text(freeze(folder, ["Hello", "a b"]).to_json())
    frozen = read_frozen(path)
    assert frozen is not None and frozen.texts == ["Hello", "a b"]
    assert check_drift(path, folder).ok
    assert not check_drift(path, other(folder)).ok
    assert read_frozen(folder / "tokenizer.json") is None
    path.write_text(path.read_text()[:-30])
    with pytest.raises(ValueError, match=r"ids\.json is damaged"):
        read_frozen(path)


def test_what_is_there_and_what_is_not() -> None:
    one = Frozen("a", ["x"], {"tokenizer.json": [[1]], "tekken.json": [[1]]}, {"tokenizers": "1"})
    two = Frozen("b", ["x"], {"tokenizer.json": [[1]], "AutoTokenizer": [[2]]}, {"tokenizers": "2"})
    result = check_drift(one, two)
    assert result.ok
    assert {finding.code: finding.examples for finding in result.findings} == {
        "TOKENIZER_GONE": ["tekken.json"],
        "TOKENIZER_NEW": ["AutoTokenizer"],
        "PACKAGES_CHANGED": ["tokenizers was 1, and is 2"],
    }
    with pytest.raises(ValueError, match="different texts"):
        check_drift(one, Frozen("c", ["y"], {"tokenizer.json": [[1]]}, {}))
    with pytest.raises(FileNotFoundError):
        check_drift("missing", one)


@pytest.mark.parametrize("empty", [Frozen("c", ["x"], {}, {}), Frozen("c", [], {"b": []}, {})])
def test_nothing_in_common_is_an_error(empty: Frozen) -> None:
    full = Frozen("a", empty.texts, {"b": [[1]] * len(empty.texts)}, {})
    for sides in ((full, empty), (empty, full)):
        result = check_drift(*sides)
        assert not result.ok and result.finding("NOTHING_COMPARED") is not None
    apart = Frozen("a", ["x"], {"b": [[1]], "c": [[1]]}, {})
    assert check_drift(apart, Frozen("a", ["x"], {"d": [[1]], "e": [[1]]}, {})).finding(
        "NOTHING_COMPARED"
    )


def codes(result: FolderResult) -> dict[str, list[str]]:
    """The examples of each finding."""
    return {finding.code: finding.examples for finding in result.findings}


@pytest.mark.parametrize(
    "names",
    [
        ("unigram", "unigram defined", "a.model", "b.model"),
        ("unigram", "bpe", "a.model", "b.model"),
        ("bpe", "unigram", "tokenizer.model", "tokenizer.model"),
        ("unigram", "unigram defined", "tokenizer.model", "b.model"),
    ],
)
def test_models_of_sentencepiece(
    tmp_path: Path, names: tuple[str, str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under other names, in a folder or alone, and with one source or one for each version."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    kinds, files, paths = names[:2], names[2:], []
    for number, (kind, file) in enumerate(zip(kinds, files)):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_model(folder, kind).replace(folder / file)
        paths.append(folder if file == "tokenizer.model" else folder / file)
    result = check_drift(paths[0], paths[1])
    assert not result.ok and codes(result).keys() >= {"IDS_CHANGED", "TOKENS_CHANGED"}
    assert all(source.compared > 100 and source.differing for source in result.sources)
    assert len(result.sources) == 3 - (kinds == ("bpe", "bpe"))
    assert check_drift(paths[0], paths[0]).findings == []


def changed(folder: Path, **fields: Any) -> dict[str, list[str]]:
    """Returns the findings of drift after other fields in a folder's file."""
    contents = json.loads((folder / "tokenizer.json").read_text())
    made = folder.parent / "changed"
    made.mkdir(exist_ok=True)
    (made / "tokenizer.json").write_text(json.dumps({**contents, **fields}))
    return codes(check_drift(folder, made))


def test_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes that no text of the check shows."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    folder = tmp_path / "model"
    folder.mkdir()
    path = write_model(tmp_path, "bpe llama")
    convert_tokenizer(str(path), str(folder / "tokenizer.json")).save()
    contents = json.loads((folder / "tokenizer.json").read_text())
    model, added = contents["model"], contents["added_tokens"]
    assert changed(folder) == {}
    a, b = list(model["vocab"])[-2:]
    vocab = {**model["vocab"], a: model["vocab"][b], b: model["vocab"][a]}
    found = changed(folder, model={**model, "vocab": vocab})
    assert f"is {quoted(a)} before, and {quoted(b)} now" in found["TOKENS_CHANGED"][1]
    found = changed(folder, model={**model, "merges": model["merges"][:-1]})
    assert found["MERGES_CHANGED"][1].endswith("is there before, and missing now")
    begin = {"id": "<s>", "ids": [1], "tokens": ["<s>"]}
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": begin},
    }
    found = changed(folder, post_processor=template)
    assert found.keys() == {"SETTINGS_CHANGED"}
    assert found["SETTINGS_CHANGED"][1].startswith(
        "the beginning of a text is [] before, and [1] now"
    )
    cut = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    found = changed(folder, truncation=cut)
    assert found["SETTINGS_CHANGED"][1].startswith("truncation is not set before, and {")
    assert changed(folder, decoder={"type": "Fuse"}).keys() == {"DECODING_CHANGED"}
    plain = [{**token, "special": False} for token in added]
    found = changed(folder, added_tokens=plain)
    assert "'<unk>' is special before, and not special now" in found["MERGES_CHANGED"][1]
    assert "DECODING_CHANGED" in found


def test_roles(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
    frozen = freeze(folder, ["a"])
    (folder / "tokenizer_config.json").write_text('{"eos_token": "a"}')
    found = codes(check_drift(frozen, folder))
    assert found["SETTINGS_CHANGED"][1] == "eos_token is 50256 before, and 64 now"


def test_packages_are_sources_of_their_own(folder: Path) -> None:
    names = freeze(folder, ["a"]).ids.keys()
    assert names == {"tokenizer.json", "tokenizer.json by the package tokenizers"}
    write_model(folder, "bpe").rename(folder / "tokenizer.model")
    assert "tokenizer.model by the package sentencepiece" in freeze(folder, ["a"]).ids
    # Another version of the package gives other ids; ours are the same.
    old = freeze(folder, ["a b", "c"])
    name = "tokenizer.model by the package sentencepiece"
    moved = Frozen(old.path, old.texts, {**old.ids, name: [[1], [2]]}, old.packages, old.tables)
    found = codes(check_drift(moved, folder))
    assert found["IDS_CHANGED"][0] == f"{name}: 2 of 2 texts differ"


@pytest.mark.parametrize(
    "fields, problem",
    [
        ({"texts": [1, "b"]}, "`texts` is not a list of texts"),
        ({"texts": None}, "`texts` is not a list of texts"),
        ({"ids": []}, "`ids` is not an object"),
        ({"ids": {"a": [[1], ["b"]]}}, "`ids` of a is not a list of lists of ids"),
        ({"ids": {"a": [[1]]}}, "a has the ids of 1 texts, and there are 2"),
        ({"packages": {"a": 1}}, "what is not a text"),
        ({"tables": {"a": "!"}}, "the table of a tokenizer in it cannot be read"),
        ({"path": 1}, "`path` is not a text"),
    ],
)
def test_damaged_results(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    path = tmp_path / "ids.json"
    ids, tables = {"a": [[1], [2]]}, {"a": Table(file="a", tokens={"b": 1})}
    whole = json.loads(Frozen("a", ["Hello", "a b"], ids, {}, tables).to_json())
    path.write_text(json.dumps(whole))
    assert read_frozen(path) is not None
    path.write_text(json.dumps({**whole, **fields}))
    with pytest.raises(ValueError, match=f"damaged: .*{re.escape(problem)}; write it again"):
        read_frozen(path)


def test_results_in_other_layouts(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    whole = json.loads(freeze(folder, ["Hello", "a b"]).to_json())
    for options in ({"indent": 2}, {"indent": 2, "sort_keys": True}):
        path.write_text(json.dumps(whole, **options))
        assert check_drift(path, folder).findings == []
    path.write_text(json.dumps({**whole, "bpe_engine.drift": 1}))
    with pytest.raises(ValueError, match="has results of version 1, and this reads 2"):
        read_frozen(path)
    with pytest.raises(ValueError, match="texts of their own"):
        check_drift(freeze(folder, ["a"]), folder, ["b"])


def test_the_command(folder: Path, tmp_path: Path) -> None:
    ids, report = str(tmp_path / "ids.json"), str(tmp_path / "drift.html")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("Hello world\n")
    assert run("drift", str(folder), "--freeze", ids, "--corpus", str(corpus)).returncode == 0
    same = run("drift", str(folder), "--against", ids, "--json")
    assert same.returncode == 0 and json.loads(same.stdout)["ok"]
    differs = run("drift", str(folder), str(other(folder)), "--report", report)
    assert differs.returncode == 1 and "IDS_CHANGED" in differs.stdout
    assert "IDS_CHANGED" in Path(report).read_text()
    assert run("drift", str(folder)).returncode == 2
    # A damaged file has another status than changed ids.
    Path(ids).write_text(Path(ids).read_text()[:-30])
    damaged = run("drift", str(folder), "--against", ids)
    assert damaged.returncode == 2 and "write it again with" in damaged.stderr
    whole = freeze(folder, ["a"]).to_json()
    Path(ids).write_text(whole)
    for given in ((ids, str(folder)), (str(folder), "--against", ids)):
        refused = run("drift", *given, "--corpus", str(corpus))
        assert refused.returncode == 2 and "leave out --corpus" in refused.stderr
    text = run("drift", "--help").stdout
    assert "base and extended" not in text
