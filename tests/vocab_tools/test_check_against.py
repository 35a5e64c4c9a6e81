"""Tests `vocab-tools check A --against B`, which reports changes since an earlier version B."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from sentencepiece_oracle import write_model
from vocab_command import run

from vocab_tools import FolderResult, check_folder
from vocab_tools.convert.conversion import convert_tokenizer
from vocab_tools.text import quoted

CHANGES = {"IDS_CHANGED", "TOKENS_CHANGED", "MERGES_CHANGED", "SETTINGS_CHANGED"}
CHANGES |= {"DECODING_CHANGED", "NOTHING_COMPARED", "TOKENIZER_GONE"}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes GPT-2's tokenizer.json, once for all tests."""
    path = tmp_path_factory.mktemp("gpt2") / "tokenizer.json"
    convert_tokenizer("gpt2", str(path)).save()
    return path


@pytest.fixture(autouse=True)
def without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)


@pytest.fixture
def folder(tmp_path: Path, gpt2: Path) -> Path:
    """Makes a folder with GPT-2's tokenizer.json."""
    (tmp_path / "model").mkdir()
    shutil.copy(gpt2, tmp_path / "model" / "tokenizer.json")
    return tmp_path / "model"


def changed(folder: Path, **fields: Any) -> Path:
    """Copies a folder, and replaces fields of its tokenizer.json."""
    contents = json.loads((folder / "tokenizer.json").read_text())
    made = folder.parent / "changed"
    made.mkdir(exist_ok=True)
    (made / "tokenizer.json").write_text(json.dumps({**contents, **fields}))
    return made


def exchanged(folder: Path, a: str, b: str) -> Path:
    """Copies a folder, and swaps the ids of two tokens."""
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    vocab = {**model["vocab"], a: model["vocab"][b], b: model["vocab"][a]}
    return changed(folder, model={**model, "vocab": vocab})


def changes(result: FolderResult) -> dict[str, list[str]]:
    """Returns the examples of each finding that reports a change."""
    return {one.code: one.examples for one in result.findings if one.code in CHANGES}


def test_two_folders(folder: Path) -> None:
    assert changes(check_folder(folder, against=folder)) == {}
    other = exchanged(folder, "Hello", "hello")
    result = check_folder(other, ["Hello there"], against=folder)
    found = changes(result)
    assert not result.ok and found.keys() == {"IDS_CHANGED", "TOKENS_CHANGED"}
    new, old = str(other / "tokenizer.json"), str(folder / "tokenizer.json")
    assert found["IDS_CHANGED"][0].startswith(f"{new} (BPE): ")
    assert f" by {old}, and " in found["IDS_CHANGED"][1]
    assert found["TOKENS_CHANGED"][1].endswith(f" by {old}, and 'hello' by {new}")
    # The caller's text is also compared.
    assert (
        result.sources[-1].compared == check_folder(folder, against=folder).sources[-1].compared + 1
    )
    assert result.sources[-1].name == f"{new} against {old}"


def test_versions_that_cannot_be_compared(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_folder(folder, against="missing")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert changes(check_folder(folder, against=empty)) == {
        "NOTHING_COMPARED": ["before: no tokenizers", "now: tokenizer.json"]
    }
    (empty / "tokenizer.json").write_text("{")
    with pytest.raises(
        ValueError, match=r"the earlier version .*empty/tokenizer\.json is not JSON"
    ):
        check_folder(folder, against=empty)


@pytest.mark.parametrize(
    "kinds, files, pairs",
    [
        (("unigram", "unigram defined"), ("a.model", "b.model"), 2),
        (("unigram", "bpe"), ("a.model", "b.model"), 1),
        (("bpe", "unigram"), ("tokenizer.model", "tokenizer.model"), 1),
        (("unigram", "unigram defined"), ("tokenizer.model", "b.model"), 2),
    ],
)
def test_models_of_sentencepiece(
    tmp_path: Path, kinds: tuple[str, str], files: tuple[str, str], pairs: int
) -> None:
    """Changed ids and tokens are found for models in folders or files, under any pair of names."""
    paths = []
    for number, (kind, file) in enumerate(zip(kinds, files)):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_model(folder, kind).replace(folder / file)
        paths.append(folder if file == "tokenizer.model" else folder / file)
    result = check_folder(paths[1], against=paths[0])
    assert changes(result).keys() >= {"IDS_CHANGED", "TOKENS_CHANGED"}
    rows = [source for source in result.sources if " against " in source.name]
    assert all(source.compared > 100 and source.differing for source in rows)
    assert len(rows) == pairs
    assert changes(check_folder(paths[0], against=paths[0])) == {}


def test_changes_that_no_text_shows(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    path = write_model(tmp_path, "bpe llama")
    convert_tokenizer(str(path), str(folder / "tokenizer.json")).save()
    contents = json.loads((folder / "tokenizer.json").read_text())
    model, added = contents["model"], contents["added_tokens"]

    def found(made: Path) -> dict[str, list[str]]:
        return changes(check_folder(made, against=folder))

    assert found(changed(folder)) == {}
    a, b = list(model["vocab"])[-2:]
    one = found(exchanged(folder, a, b))["TOKENS_CHANGED"][1]
    assert f"is {quoted(a)} by " in one and f", and {quoted(b)} by " in one
    fewer = found(changed(folder, model={**model, "merges": model["merges"][:-1]}))
    assert (
        "is there by" in fewer["MERGES_CHANGED"][1]
        and ", and missing by " in fewer["MERGES_CHANGED"][1]
    )
    begin = {"id": "<s>", "ids": [1], "tokens": ["<s>"]}
    first, second = ({"Sequence": {"id": id, "type_id": at}} for at, id in enumerate("AB"))
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, first],
        "pair": [first, second],
        "special_tokens": {"<s>": begin},
    }
    around = found(changed(folder, post_processor=template))
    assert around.keys() == {"SETTINGS_CHANGED"}
    assert around["SETTINGS_CHANGED"][0].startswith("the beginning of a text is [] by ")
    assert ", and [1] by " in around["SETTINGS_CHANGED"][0]
    cut = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    shorter = found(changed(folder, truncation=cut))
    assert shorter["SETTINGS_CHANGED"][0].startswith("truncation is not set by ")
    assert found(changed(folder, decoder={"type": "Fuse"})).keys() == {"DECODING_CHANGED"}
    plain = found(changed(folder, added_tokens=[{**token, "special": False} for token in added]))
    assert "'<unk>' is special by " in plain["MERGES_CHANGED"][1]
    assert ", and not special by " in plain["MERGES_CHANGED"][1]
    assert plain["DECODING_CHANGED"][1].startswith("without special tokens, 0 is '' by ")


def test_roles(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
    made = changed(folder)
    (made / "tokenizer_config.json").write_text('{"eos_token": "a"}')
    (line,) = changes(check_folder(made, against=folder))["SETTINGS_CHANGED"]
    assert line.startswith("eos_token is 50256 by ") and ", and 64 by " in line


def test_a_file_that_is_gone(folder: Path) -> None:
    made = changed(folder)
    write_model(folder, "bpe").rename(folder / "tokenizer.model")
    result = check_folder(made, against=folder)
    assert changes(result) == {"TOKENIZER_GONE": ["tokenizer.model"]}
    assert result.finding("TOKENIZER_GONE") and result.ok


def test_the_command(folder: Path, tmp_path: Path) -> None:
    report, corpus = str(tmp_path / "changes.html"), tmp_path / "corpus.txt"
    corpus.write_text("Hello world\n")
    before, given = str(folder), ("--corpus", str(corpus), "--json")
    same = run("check", before, "--against", before, *given)
    assert same.returncode == 0 and json.loads(same.stdout)["ok"]
    other = str(exchanged(folder, "Hello", "hello"))
    differs = run("check", other, "--against", before, "--report", report)
    assert differs.returncode == 1 and "IDS_CHANGED" in differs.stdout
    assert "IDS_CHANGED" in Path(report).read_text()
    refused = run("check", "gpt2", "--against", before)
    assert refused.returncode == 2 and "gpt2 is not a folder or a file" in refused.stderr
