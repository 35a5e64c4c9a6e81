"""Tests `map_vocabularies` and ``vocab-tools map`` against brute force."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from kinds import FILES

import bpe_engine
import vocab_tools
from bpe_engine import hf
from vocab_tools.cli.app import cli

PAIRS = [("gpt2", "qwen2.5"), ("qwen2.5", "gpt2")]


def ordinary(name: str) -> dict[int, bytes]:
    table = bpe_engine.get_encoding(name).token_table()
    return {id: table[id] for id in table.ids("ordinary")}


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_pairs_and_decompositions(a: str, b: str) -> None:
    found = vocab_tools.map_vocabularies(a, b)
    one, other = ordinary(a), ordinary(b)
    ids = {token: id for id, token in other.items()}
    assert found.equal.tolist() == [[i, ids[t]] for i, t in sorted(one.items()) if t in ids]
    assert found.overlap == len(found.equal) / len(one)
    rest = [id for id, token in sorted(one.items()) if token not in ids]
    assert found.decompositions.ids.tolist() == rest == found.at_start.ids.tolist()
    encoding = bpe_engine.get_encoding(b)
    for id, parts in found.decompositions:
        assert b"".join(other[part] for part in parts) == one[id]
        try:
            assert parts == encoding.encode_ordinary(one[id].decode())
        except UnicodeDecodeError:
            assert len(parts) > 1
    assert list(found.at_start) == list(found.decompositions)


def test_weights_are_averages() -> None:
    found = vocab_tools.map_vocabularies("gpt2", "qwen2.5")
    ids, splits, parts, weights = found.weights()
    rows = {id: parts[start:end].tolist() for id, start, end in zip(ids, splits, splits[1:])}
    assert rows == {**{i: [j] for i, j in found.equal.tolist()}, **dict(found.decompositions)}
    assert ids.tolist() == sorted(rows)
    assert np.allclose(np.add.reduceat(weights, splits[:-1]), 1)


def test_a_space_before_a_text() -> None:
    letters = ["▁", "a", "b", "c", "▁a", "ab", "▁ab", "bc"]
    merges = [["▁", "a"], ["a", "b"], ["▁a", "b"], ["b", "c"]]
    contents = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False,
        },
        "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
        "model": {
            "type": "BPE", "vocab": {token: id for id, token in enumerate(letters)},
            "merges": merges,
        },
    }  # fmt: skip
    b = hf.Tokenizer.from_str(json.dumps(contents))
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {token: 256 + id for id, token in enumerate([b"ab", b"abc", b" abc", b"\xe4\xb8"])}
    a = bpe_engine.Encoding(
        "small", pat_str=r"[^\r\n]+", mergeable_ranks=ranks, special_tokens={"<s>": 300}
    )
    found = vocab_tools.map_vocabularies(a, b)
    equal = {a.decode_single_token_bytes(i): b.id_to_token(j) for i, j in found.equal.tolist()}
    assert equal[b"ab"] == "ab" and equal[b" "] == "▁"
    tokens = lambda ids: [b.id_to_token(id) for id in ids]  # noqa: E731
    middle, start = dict(found.decompositions), dict(found.at_start)
    assert tokens(middle[257]) == ["ab", "c"] and tokens(start[257]) == ["▁ab", "c"]
    assert tokens(middle[258]) == ["▁ab", "c"] and tokens(start[258]) == ["▁ab", "c"]
    assert middle[259] == []
    assert 256 not in middle and tokens(start[256]) == ["▁ab"]
    rows = {row["id"]: row for row in found.to_arrow().to_pylist()}
    assert rows[256]["equal"] == rows[256]["in_middle"][0] and tokens(rows[256]["at_start"]) == [
        "▁ab"
    ]


def test_rows_are_empty_where_text_becomes_unknown() -> None:
    b = hf.Tokenizer.from_str(FILES["WordPiece"]())
    b.add_special_tokens([b.id_to_token(b.encode("根").ids[0])])
    found = vocab_tools.map_vocabularies("gpt2", b)
    [unknown], ordinary = b.encode("根").ids, set(b.token_table().ids("ordinary"))
    assert unknown not in ordinary
    assert ordinary.issuperset(found.decompositions.values.tolist())
    rows = dict(found.decompositions)
    assert rows[bpe_engine.get_encoding("gpt2").encode("!")[0]] == []
    assert f"cannot spell {len(rows) - found.spelled:,} tokens" in " ".join(found.conclusions())
    with pytest.raises(TypeError, match="tokenizers, or their names, files or folders, not None"):
        vocab_tools.map_vocabularies(None, b)  # type: ignore[arg-type]


def test_of_several_ids_the_one_counts_that_encoding_makes() -> None:
    """A letter, and the token for its byte, which the letter never becomes."""
    b = hf.Tokenizer.from_str(FILES["characters, Metaspace"]())
    found = vocab_tools.map_vocabularies("gpt2", b)
    gpt2, ids = bpe_engine.get_encoding("gpt2"), dict(found.equal.tolist())
    for letter in "ab,.":
        id = b.token_to_id(letter)
        assert ids[gpt2.encode(letter)[0]] == id != b.token_to_id(f"<0x{ord(letter):02X}>")
    assert ids[gpt2.encode("!")[0]] == b.token_to_id("<0x21>")
    back = dict(vocab_tools.map_vocabularies(b, "gpt2").equal.tolist())
    assert back[b.token_to_id("a")] == gpt2.encode("a")[0] and b.token_to_id("<0x61>") not in back


def test_a_corpus(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("Words of a text, 根本 and more.\n" * 50, encoding="utf-8")
    found = vocab_tools.map_vocabularies("gpt2", "qwen2.5", str(file))
    text = file.read_text(encoding="utf-8")
    gpt2, qwen = bpe_engine.get_encoding("gpt2"), bpe_engine.get_encoding("qwen2.5")
    one, other = {i for i, _ in found.equal.tolist()}, {j for _, j in found.equal.tolist()}
    assert found.corpus == vocab_tools.CorpusOverlap(
        len(gpt2.encode(text)),
        sum(id in one for id in gpt2.encode(text)),
        len(qwen.encode(text)),
        sum(id in other for id in qwen.encode(text)),
    )


def test_the_command(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("map.html", "map.md", "map.json", "map.parquet")]
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("Words of a text.", encoding="utf-8")
    reports = [part for name in names[:3] for part in ("--report", name)]
    command = ["map", "gpt2", "qwen2.5", "--corpus", str(corpus), "-o", names[3], *reports]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    found = vocab_tools.map_vocabularies("gpt2", "qwen2.5")
    assert f"{len(found.equal):,} of {found.size_a:,} tokens of gpt2" in done.output
    plain = json.loads(Path(names[2]).read_text(encoding="utf-8"))
    assert plain["equal"] == found.equal.tolist()
    table = pyarrow.parquet.read_table(names[3]).to_pylist()
    assert len(table) == found.size_a
    assert {row["id"]: row["in_middle"] for row in table if row["equal"] is None} == dict(
        found.decompositions
    )
    assert "gpt2 in qwen2.5" in Path(names[0]).read_text(encoding="utf-8")
    # Parts are tokens, each in a separate mark.
    assert '"·Solid","Gold","Mag"' in Path(names[0]).read_text(encoding="utf-8")
    assert "# gpt2 in qwen2.5" in Path(names[1]).read_text(encoding="utf-8")
    again = CliRunner().invoke(cli, command)
    assert again.exit_code != 0
