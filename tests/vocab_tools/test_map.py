"""Tests `map_vocabularies` and ``vocab-tools map`` against brute force."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kinds import FILES

import bpe_engine
import vocab_tools
from bpe_engine import hf
from vocab_tools.cli.app import cli

PAIRS = [("gpt2", "qwen2.5"), ("qwen2.5", "gpt2")]


def ordinary(name: str) -> dict[int, bytes]:
    table = bpe_engine.TokenTable(bpe_engine.get_encoding(name))
    return {id: table[id] for id in table.ids("ordinary")}


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_pairs_rows_and_weights(a: str, b: str) -> None:
    found = vocab_tools.map_vocabularies(a, b)
    one, other = ordinary(a), ordinary(b)
    ids = {token: id for id, token in other.items()}
    assert found.equal.tolist() == [[i, ids[t]] for i, t in sorted(one.items()) if t in ids]
    assert found.overlap == len(found.equal) / len(one)
    assert list(found.decompositions) == [i for i, t in sorted(one.items()) if t not in ids]
    encoding = bpe_engine.get_encoding(b)
    for id, parts in found.decompositions.items():
        assert b"".join(other[part] for part in parts) == one[id]
        try:
            assert parts == encoding.encode_ordinary(one[id].decode())
        except UnicodeDecodeError:
            assert len(parts) > 1
    sources, splits, parts, weights = found.weights()
    rows = {id: parts[start:end].tolist() for id, start, end in zip(sources, splits, splits[1:])}
    assert rows == {**{i: [j] for i, j in found.equal.tolist()}, **found.decompositions}
    assert sources.tolist() == sorted(rows)
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
    middle = found.decompositions
    assert tokens(middle[257]) == ["ab", "c"] and tokens(middle[258]) == ["▁ab", "c"]
    assert middle[259] == [] and 256 not in middle


def test_rows_are_empty_where_text_becomes_unknown() -> None:
    b = hf.Tokenizer.from_str(FILES["WordPiece"]())
    b.add_special_tokens([b.id_to_token(b.encode("根").ids[0])])
    found = vocab_tools.map_vocabularies("gpt2", b)
    [unknown], ordinary = b.encode("根").ids, set(bpe_engine.TokenTable(b).ids("ordinary"))
    assert unknown not in ordinary
    rows = found.decompositions
    assert ordinary.issuperset(found.rows.values.tolist())
    assert rows[bpe_engine.get_encoding("gpt2").encode("!")[0]] == []
    assert f"cannot spell {sum(not row for row in rows.values()):,} tokens" in " ".join(
        found.conclusions()
    )
    with pytest.raises(TypeError, match="tokenizers, or their names, files or folders, not None"):
        vocab_tools.map_vocabularies(None, b)  # type: ignore[arg-type]


def test_of_several_ids_the_one_counts_that_encoding_makes() -> None:
    """A letter maps to the token that it encodes to, and not to the token for its byte."""
    b = hf.Tokenizer.from_str(FILES["characters, Metaspace"]())
    found = vocab_tools.map_vocabularies("gpt2", b)
    gpt2, ids = bpe_engine.get_encoding("gpt2"), dict(found.equal.tolist())
    for letter in "ab,.":
        id = b.token_to_id(letter)
        assert ids[gpt2.encode(letter)[0]] == id != b.token_to_id(f"<0x{ord(letter):02X}>")
    assert ids[gpt2.encode("!")[0]] == b.token_to_id("<0x21>")
    back = dict(vocab_tools.map_vocabularies(b, "gpt2").equal.tolist())
    assert back[b.token_to_id("a")] == gpt2.encode("a")[0] and b.token_to_id("<0x61>") not in back


def test_the_command(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("map.html", "map.md", "map.json")]
    command = ["map", "gpt2", "qwen2.5", *(part for name in names for part in ("--report", name))]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    found = vocab_tools.map_vocabularies("gpt2", "qwen2.5")
    assert f"{len(found.equal):,} of {len(found.ids):,} tokens of gpt2" in done.output
    page, text, plain = (Path(name).read_text(encoding="utf-8") for name in names)
    assert json.loads(plain) == found.to_plain()
    assert json.loads(CliRunner().invoke(cli, [*command[:3], "--json"]).stdout) == found.to_plain()
    # The page shows the parts of a token as separate elements.
    assert "gpt2 in qwen2.5" in page
    assert '>·Solid</bdi><bdi class="chip">Gold</bdi><bdi class="chip">Mag</bdi>' in page
    assert "# gpt2 in qwen2.5" in text
    assert CliRunner().invoke(cli, command).exit_code != 0
