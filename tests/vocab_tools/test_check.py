"""Tests `check_vocabulary`: its findings, and the classes of tokens."""

from __future__ import annotations

import base64
import dataclasses
import json
import tracemalloc
import unicodedata
from pathlib import Path

import pytest
import vocab_oracle
from hypothesis import given
from seeds import seeded
from vocab_bases import BYTES, DATA, EXAMPLE_EXTRA, EXAMPLE_WORDS, QWEN, bases, word_lists
from vocab_command import run

import bpe_engine
from vocab_tools import CheckResult, check_vocabulary, dump_ranks, learn_merges, read_words
from vocab_tools.check.explanations import explanations, sections
from vocab_tools.check.findings import RULES
from vocab_tools.check.folder.folder_rules import FOLDER_RULES


def write(path: Path, rows: list[tuple[bytes, int]]) -> Path:
    lines = [base64.b64encode(token) + b" %d\n" % number for token, number in rows]
    path.write_bytes(b"".join(lines))
    return path


def codes(result: CheckResult) -> dict[str, int]:
    return {finding.code: finding.count for finding in result.findings}


def examples(result: CheckResult, code: str) -> str:
    finding = result.finding(code)
    assert finding is not None, code
    return "\n".join(finding.examples)


@pytest.fixture(scope="module")
def o200k() -> CheckResult:
    return check_vocabulary(DATA / "o200k_base.tiktoken")


def test_o200k_base_has_twelve_tokens_that_are_never_whole(o200k: CheckResult) -> None:
    assert o200k.pattern == "o200k_base"
    assert o200k.ok
    never = o200k.finding("NEVER_WHOLE")
    assert never is not None and never.count == 12
    assert any(r"'\n//'" in example for example in never.examples)
    # Encoding produces the token "\n//" inside the longer piece "$\n//".
    encoding = bpe_engine.get_encoding("o200k_base")
    inside = [number for number, how in o200k.never_whole.items() if how == "only inside"]
    assert len(inside) == 12 and 3914 in encoding.encode("$\n//")
    for number in o200k.never_whole:
        text = encoding.decode([number])
        for before in ["", "a", "\n", " ", "1", "é", "。", "("]:
            for after in ["", "b", "\n", " ", "1", "é", "。", ")"]:
                assert text not in encoding.split(before + text + after)


def test_classes_of_o200k_base(o200k: CheckResult) -> None:
    assert o200k.round_trip_counts == {
        "OK": 198424,
        "OK_SPECIAL": 2,
        "UNREACHABLE_SINGLE_TOKEN": 0,
        "UNREACHABLE_MULTI_TOKEN": 12,
        "UNREACHABLE_SPECIAL": 0,
        "UNDECODEABLE": 1562,
    }
    assert o200k.sizes["ranks"] == 199998
    assert o200k.sizes["max_id_plus_one"] == 200019
    assert o200k.unreached == {}


@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "qwen"])
def test_classes_are_what_encoding_gives(name: str) -> None:
    result = check_vocabulary(DATA / f"{name}.tiktoken")
    assert result.ok and result.pattern in (name, "gpt2")
    assert len(result.round_trip) == result.sizes["ranks"] + result.sizes["special_tokens"]
    encoding = bpe_engine.get_encoding(name)
    chooser = seeded(name)
    odd = [number for number, found in result.round_trip.items() if found != "OK"]
    for number in [*chooser.sample(sorted(result.round_trip), 2000), *odd]:
        text = encoding.decode([number])
        ids = encoding.encode(text, allowed_special="all")
        found = result.round_trip[number]
        if ids == [number]:
            assert found == ("OK_SPECIAL" if encoding.is_special_token(number) else "OK")
        elif found == "UNDECODEABLE":
            assert "\ufffd" in text
        elif found == "UNREACHABLE_SPECIAL":
            assert text[0] in "<[" and text[-1] in ">]"
        else:
            assert found.startswith("UNREACHABLE_")
            assert found.endswith("SINGLE_TOKEN" if len(ids) == 1 else "MULTI_TOKEN")


def test_qwen_has_three_tokens_that_look_special() -> None:
    # As in "Fishing for Magikarp", the form of a special token matters more than its ids.
    classes = check_vocabulary(DATA / "qwen.tiktoken").round_trip
    special = [number for number, name in classes.items() if name == "UNREACHABLE_SPECIAL"]
    assert [bpe_engine.get_encoding("qwen").decode([number]) for number in special] == [
        "<unk>",
        "<s>",
        "</s>",
    ]
    # A token that round-trips is OK even if it looks special.
    assert classes[95232] == "OK" and bpe_engine.get_encoding("qwen").decode([95232]) == "[…]"


def test_words_of_read_words_keep_their_space() -> None:
    words = read_words([" low\t3"])
    extra = learn_merges(BYTES, words, start_id=300).tokens
    assert b" low" in extra
    assert "WORD_NOT_ONE_TOKEN" not in codes(check_vocabulary(BYTES, extra, words=words))
    lines = check_vocabulary(BYTES, extra, words=[" low"])
    assert "WORD_NOT_ONE_TOKEN" not in codes(lines)
    assert codes(check_vocabulary(BYTES, extra, words=["low"]))["WORD_NOT_ONE_TOKEN"] == 1


def test_every_rule_is_one_function_with_a_code() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES) == 23
    for rule in RULES:
        assert rule.code.isupper() and rule.look.__name__ == rule.code.lower()
        assert rule.look.__module__.startswith("vocab_tools.check.rules.")


def test_a_defective_file(tmp_path: Path) -> None:
    rows = [(bytes([byte]), byte) for byte in range(256) if byte not in (0, 7)]
    rows += [(b"ab", 256), (b"ab", 257), (b"cd", 256), (b"<|end|>", 300), (b"yz", 310)]
    path = write(tmp_path / "base.tiktoken", rows)
    path.write_bytes(path.read_bytes() + b"not a line\nYQ 5\n")
    result = check_vocabulary(path, special_tokens={"<|end|>": 311, "<|x|>": 310, "<|y|>": 311})
    assert not result.ok
    found = codes(result)
    assert found["MISSING_BYTE"] == 2
    assert examples(result, "MISSING_BYTE") == "0x00\n0x07"
    assert found["BAD_LINE"] == 2
    assert "line 260" in examples(result, "BAD_LINE")
    assert found["DUPLICATE_TOKEN"] == 1 and "'ab'" in examples(result, "DUPLICATE_TOKEN")
    assert found["DUPLICATE_ID"] == 1 and "'cd'" in examples(result, "DUPLICATE_ID")
    assert found["SPECIAL_ID"] == 2
    assert found["SPECIAL_TEXT"] == 1
    assert result.finding("ID_GAP") is not None
    assert "301 to 309" in examples(result, "ID_GAP")
    assert result.round_trip[300] == "UNREACHABLE_SPECIAL"


def test_special_tokens_fill_gaps() -> None:
    base = {**BYTES, b"ab": 257}
    assert "ID_GAP" not in codes(check_vocabulary(base, special_tokens={"<x>": 256}))
    assert codes(check_vocabulary(base, special_tokens={}))["ID_GAP"] == 1


def test_an_id_far_off_costs_no_memory(tmp_path: Path) -> None:
    far = 2**32 - 2
    tracemalloc.start()
    try:
        result = check_vocabulary({**BYTES, b"ab": far}, pattern="gpt2", special_tokens={})
        extended = check_vocabulary(BYTES, {b"ab": far}, pattern="gpt2", special_tokens={})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000
    assert codes(result)["ID_GAP"] == codes(extended)["EXTRA_GAP"] == far - 256
    assert examples(result, "ID_GAP") == f"256 to {far - 1} ({far - 256:,} ids)"
    assert result.sizes["unused_ids"] == far - 256
    row = {"first": 256, "last": far - 1, "count": far - 256}
    assert extended.to_plain()["unused_ids"] == [row]
    for number in (-1, 2**32 - 1, 2**70, 1.5, True):
        with pytest.raises(ValueError, match="not an id from 0 to 4294967294"):
            check_vocabulary({**BYTES, b"ab": number})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="'<x>': 4294967295 is not an id"):
        check_vocabulary(BYTES, special_tokens={"<x>": 2**32 - 1})
    path = write(tmp_path / "base.tiktoken", [*BYTES.items(), (b"ab", 2**32 - 1)])
    bad_line = "line 257: the rank is not a whole number from 0 to 4294967294"
    assert bad_line in examples(check_vocabulary(path), "BAD_LINE")


def test_one_extra_needs_no_list(tmp_path: Path) -> None:
    path = write(tmp_path / "extra.tiktoken", [(b"ab", 256)])
    for extra in (path, str(path), {b"ab": 256}, [path], iter([{b"ab": 256}])):
        result = check_vocabulary(BYTES, extra, special_tokens={})  # type: ignore[arg-type]
        assert result.ok and result.sizes["extra_ranks"] == 1
    for wrong in (None, 3, b"ab", [3]):
        with pytest.raises(TypeError, match="not a source of ranks"):
            check_vocabulary(BYTES, wrong)  # type: ignore[arg-type]


def test_new_parts_of_characters_change_other_text() -> None:
    part = b"\xf0\xa0\x80"
    result = check_vocabulary(QWEN, {part: 151851})
    finding = result.finding("OTHER_TEXT_CHANGES")
    assert finding is not None and finding.count == 1
    assert "has [151851] in place of [" in finding.examples[0]
    assert "xa0" in finding.examples[0]
    # Merging never makes this token, and no piece consists of its bytes.
    assert "OTHER_TEXT_CHANGES" not in codes(check_vocabulary(BYTES, {part: 151851}))


@pytest.mark.parametrize("pattern", ["qwen", "gpt2"])
def test_the_corpus_is_normalized_when_the_encoding_does_so(tmp_path: Path, pattern: str) -> None:
    extra = learn_merges(BYTES, {"cafébazé": 1}, pattern=pattern).tokens
    counts = []
    for form in ("NFC", "NFD"):
        corpus = tmp_path / f"{form}.txt"
        corpus.write_text(unicodedata.normalize(form, "café bazé cafébazé bar"), encoding="utf-8")
        effect = check_vocabulary(BYTES, extra, pattern=pattern, corpus=corpus).corpus
        assert effect is not None
        counts.append(dataclasses.replace(effect, files=[]))
    assert (counts[0] == counts[1]) == (pattern == "qwen")
    assert counts[0].tokens_after < counts[0].tokens_before


def test_merging_has_reasons() -> None:
    base = {**BYTES, b"bc": 256, b"cd": 257, b"ab": 258, b"abcd": 259, b"xyz": 260, b"xyzw": 261}
    result = check_vocabulary(base, pattern="gpt2", special_tokens={})
    assert set(result.unreached) == {259, 260, 261}
    why, stops = result.unreached[259]
    assert "lower ranks" in why and stops == [97, 256, 100]
    assert "no two tokens" in result.unreached[260][0]
    assert "reaches no two tokens" in result.unreached[261][0]
    # A whole piece with the bytes of such a token still becomes the token.
    assert result.round_trip[259] == "OK"


def test_bytes_that_are_not_text() -> None:
    longer = [b"\xe7\x8c", b" \xe7", b"\x8ca", b"\xffa", b"\x80" * 4, b"\xe7a", b"\xed\xa0"]
    base = {**BYTES, **{token: 256 + index for index, token in enumerate(longer)}}
    result = check_vocabulary(base, pattern="gpt2", special_tokens={})
    found = codes(result)
    assert found["NOT_UTF8"] == 128 + 7
    assert found["CROSSES_CHARACTER"] == 2
    assert found["NONSENSE_BYTES"] == 4
    assert "259" in examples(result, "NONSENSE_BYTES")
    assert result.round_trip[256] == "UNDECODEABLE"


def test_an_extension(tmp_path: Path) -> None:
    extra = tmp_path / "extra.tiktoken"
    extra.write_bytes(EXAMPLE_EXTRA)
    words = tmp_path / "words.txt"
    words.write_text(EXAMPLE_WORDS + "猫狗天地\t1\ncafe\u0301\t2\n", encoding="utf-8")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("小只猫。我是一只猫\n" * 3, encoding="utf-8")
    result = check_vocabulary(QWEN, [extra], words=words, corpus=corpus)
    assert result.ok
    found = codes(result)
    assert "EXTRA_GAP" not in found and "SHADOW" not in found
    assert found["WORD_SPLIT"] == 1 and "夸张的" in examples(result, "WORD_SPLIT")
    assert found["WORD_NOT_ONE_TOKEN"] == 2
    assert "'猫狗天地': " in examples(result, "WORD_NOT_ONE_TOKEN")
    assert "'cafe\u0301': NFC is 'café'" in examples(result, "NOT_NFC")
    changes = result.finding("OTHER_TEXT_CHANGES")
    assert changes is not None and changes.count == 2
    assert "'只猫' has [151852] in place of [91680, 100472]" in changes.examples[0]
    assert result.corpus is not None
    assert [(change.text, change.count) for change in result.corpus.unexpected] == [("小只猫", 3)]
    assert result.corpus.tokens_after < result.corpus.tokens_before
    assert found["CORPUS_CHANGES"] == 1


def test_a_defective_extension() -> None:
    base = {**BYTES, b"ab": 256, b"cd": 257, b"zz": 300}
    extra = {b"ab": 400, b"xy": 257, b"e\xcc\x81": 402, b"low": 280}
    result = check_vocabulary(base, [extra], special_tokens={"<x>": 401}, pattern="gpt2")
    found = codes(result)
    assert found["SHADOW"] == 1 and "'ab' has the id 256 already" in examples(result, "SHADOW")
    assert found["DUPLICATE_ID"] == 1
    assert found["BELOW_BASE"] == 1 and "280 'low'" in examples(result, "BELOW_BASE")
    assert found["NOT_NFC"] == 1
    assert "301 to 400" in examples(result, "EXTRA_GAP")


def test_without_a_list_parts_of_others_are_not_words() -> None:
    extra = learn_merges(BYTES, {"lower": 2}, start_id=256, special_tokens={}).tokens
    result = check_vocabulary(BYTES, [extra], special_tokens={})
    finding = result.finding("OTHER_TEXT_CHANGES")
    assert finding is not None and finding.count == len(extra) - 1


@given(word_lists, bases)
def test_what_learn_writes_passes(words: dict[str, int], base: dict[bytes, int]) -> None:
    extra = learn_merges(base, words, start_id=max(base.values()) + 1, special_tokens={})
    result = check_vocabulary(base, [extra.tokens], words=list(words), special_tokens={})
    assert result.ok
    found = codes(result)
    assert found.get("WORD_SPLIT", 0) == len(extra.refused)
    assert not {"WORD_NOT_ONE_TOKEN", "EXTRA_GAP", "SHADOW"} & set(found)
    for number in extra.tokens.values():
        assert result.round_trip[number] in ("OK", "UNDECODEABLE")


@given(word_lists, bases)
def test_unreached_tokens_are_those_that_a_naive_merge_misses(
    words: dict[str, int], base: dict[bytes, int]
) -> None:
    ranks = dict(base)
    for word in words:
        ranks.setdefault(word.encode(), len(ranks))
    result = check_vocabulary(ranks, special_tokens={})
    for token, number in ranks.items():
        assert (number in result.unreached) == (vocab_oracle.apply_ranks(token, ranks) != (token,))


def test_the_plain_form_is_json(o200k: CheckResult) -> None:
    plain = json.loads(json.dumps(o200k.to_plain()))
    assert plain["round_trip"]["counts"]["OK"] == 198424
    assert len(plain["round_trip"]["ids"]["UNDECODEABLE"]) == 1562
    assert {finding["code"] for finding in plain["findings"]} <= {rule.code for rule in RULES}
    assert {"id": 3914, "inside_a_longer_piece": True} in plain["never_whole"]


def test_nothing_at_all(tmp_path: Path) -> None:
    path = tmp_path / "empty.tiktoken"
    path.write_bytes(b"")
    result = check_vocabulary(path)
    assert not result.ok and codes(result)["MISSING_BYTE"] == 256


def test_what_is_new_comes_first(tmp_path: Path) -> None:
    extra = tmp_path / "extra.tiktoken"
    extra.write_bytes(dump_ranks({b"zq\xff": 151851, "e\u0301q".encode(): 151852}))
    result = check_vocabulary(QWEN, extra)
    finding = result.finding("NOT_UTF8")
    assert finding is not None and finding.counted == "1,449, 1 of them new"
    assert finding.examples[0].startswith("151851 ")
    warnings = [finding for finding in result.findings if finding.severity == "warning"]
    new = [finding.new == 0 for finding in warnings]
    assert new == sorted(new)
    shown = run("check", QWEN, extra).stdout
    assert "NOT_NFC (249, 1 of them new)" in shown
    assert "special tokens 208, max id plus one 151,853" in shown


def test_the_count_of_a_corpus_is_that_of_changes(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("ab ab cd")
    result = check_vocabulary(BYTES, {b"ab": 256}, special_tokens={}, corpus=corpus)
    finding = result.finding("CORPUS")
    # Adding "ab" also changes " ab".
    assert finding is not None and finding.count == 2 and "of 3" in finding.message
    same = check_vocabulary(BYTES, {b"xy": 256}, special_tokens={}, corpus=corpus)
    finding = same.finding("CORPUS")
    assert finding is not None and finding.count == 0


def test_every_finding_is_explained() -> None:
    codes = [rule.code for rule in [*RULES, *FOLDER_RULES]]
    assert [found.code for found in explanations()] == codes
    assert all(found.why and found.remedy for found in explanations())
    assert len(set(codes)) == len(codes)
    assert [code for code in codes if f"### {code}\n" not in sections()] == []


def test_the_command_that_explains() -> None:
    shown = run("explain", "never_whole").stdout
    assert shown.startswith("NEVER_WHOLE (warning): ") and "--pattern" in shown
    assert len(run("explain").stdout.splitlines()) == len(explanations())
    wrong = run("explain", "NEVER_HOLE")
    assert wrong.returncode == 2 and "Did you mean 'NEVER_WHOLE'?" in wrong.stderr
