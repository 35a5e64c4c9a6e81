"""`vocab-tools drift`: ids beside those of another folder, or of an earlier run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from vocab_command import run

from vocab_tools import Frozen, check_drift, freeze
from vocab_tools.check.folder.drift import read_frozen
from vocab_tools.convert import convert_tokenizer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with GPT-2's tokenizer.json."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    convert_tokenizer("gpt2", str(tmp_path / "model" / "tokenizer.json")).save()
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
