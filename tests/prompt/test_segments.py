"""Tests the ids of segments, policies, audits, and malformed segments."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seeds import rounds, seeded
from strategies import texts
from work import work

import bpe_engine
from bpe_engine.prompt import ControlString, Segment, special, tokens, trusted, untrusted

NAMES = ["gpt2", "cl100k_base", "o200k_harmony", "qwen"]


@pytest.fixture(params=NAMES)
def enc(request: pytest.FixtureRequest) -> bpe_engine.Encoding:
    return bpe_engine.get_encoding(request.param)


def holds_a_name(enc: bpe_engine.Encoding, text: str) -> bool:
    return bool(enc.find_special(text))


def special_count(enc: bpe_engine.Encoding, ids: list[int]) -> int:
    return sum(map(enc.is_special_token, ids))


segment_lists = st.lists(st.tuples(texts, st.booleans()), max_size=8)


@given(st.sampled_from(NAMES), segment_lists)
def test_ids_are_those_of_the_rendered_text(name: str, segments: list[tuple[str, bool]]) -> None:
    enc = bpe_engine.get_encoding(name)
    # U+0338 would combine with the > of a special token before it; see below.
    segments = [(text.replace("\u0338", ""), trust) for text, trust in segments]
    rendered = "".join(text for text, _ in segments)
    ids = enc.encode_segments(segments)
    assert bpe_engine.prompt.encode_segments_to_numpy(enc, segments).tolist() == ids
    assert bpe_engine.prompt.count_segments(enc, segments) == len(ids)
    assert enc.audit_segments(segments).ids == ids
    apart = sum(holds_a_name(enc, text) for text, _ in segments)
    if apart == 0 and not holds_a_name(enc, rendered):
        assert ids == enc.encode(rendered, disallowed_special=())
    if segments and all(trust for _, trust in segments) and len(segments) == 1:
        assert ids == enc.encode(rendered, allowed_special="all")
    # Untrusted names are text; trusted names are special tokens.
    expected = sum(
        special_count(enc, enc.encode(text, allowed_special="all"))
        for text, trust in segments
        if trust
    )
    assert special_count(enc, ids) == expected
    apart_ids = [
        id
        for text, trust in segments
        for id in enc.encode(text, allowed_special="all" if trust else set(), disallowed_special=())
    ]
    assert enc.encode_segments(segments, join=False) == apart_ids or any(
        "\ud800" <= c <= "\udfff" for c in rendered
    )


def test_chats_of_random_pieces_equal_the_rendered_text(enc: bpe_engine.Encoding) -> None:
    """Checks random prompts of each encoding, cut into segments anywhere except inside names."""
    rng = seeded("segments", enc.name)
    # o200k_harmony has an id with two names; decoding returns the name that is not used here.
    names = [name for name in sorted(enc.special_tokens_set) if "200018" not in name][:20]
    pieces = ["a", " the", "\n", "\n\n", "  ", "'s", "é", "e\u0301", "\u0301", "的", "1", "12", "<|", "|>", "!", "K", "\u212a", "🦀", "ſ"]  # fmt: skip
    for _ in range(rounds(4000)):
        segments: list[Any] = []
        rendered = []
        for _ in range(rng.randrange(1, 9)):
            kind = rng.random()
            text = "".join(rng.choices(pieces, k=rng.randrange(5)))
            if kind < 0.3:
                name = rng.choice(names)
                segments.append(special(name) if kind < 0.15 else (name, {name}))
                rendered.append(name)
            elif kind < 0.5:
                name = rng.choice(names)
                segments.append(trusted(text + name + "x"))
                rendered.append(text + name + "x")
            else:
                segments.append(untrusted(text))
                rendered.append(text)
        ids = enc.encode_segments(segments)
        assert ids == enc.encode("".join(rendered), allowed_special="all"), segments
        audit = enc.audit_segments(segments)
        assert audit.ids == ids
        audit.assert_safe()
        check_origins(enc, segments, audit)


def check_origins(enc: bpe_engine.Encoding, segments: list[Any], audit: Any) -> None:
    starts, at = [], 0
    for text, *_ in segments:
        starts.append(at)
        at += len(text.encode())
    if enc.name == "qwen":
        assert audit.segments == sorted(audit.segments)
        return
    at = 0
    for id, segment, is_special in zip(audit.ids, audit.segments, audit.special):
        end = starts[segment] + len(segments[segment][0].encode())
        assert starts[segment] <= at < end
        assert is_special == enc.is_special_token(id)
        at += len(enc.decode_single_token_bytes(id))


def test_nothing_is_special_across_a_border(enc: bpe_engine.Encoding) -> None:
    name = sorted(enc.special_tokens_set)[0]
    for cut in range(1, len(name)):
        for flags in [(True, True), (True, False), (False, True)]:
            segments = [(name[:cut], flags[0]), ("", False), (name[cut:], flags[1])]
            assert special_count(enc, enc.encode_segments(segments)) == 0
            assert special_count(enc, enc.encode_segments(segments, join=False)) == 0


def test_nothing_that_normalization_makes_is_special() -> None:
    ranks = {bytes([i]): i for i in range(256)}
    core = bpe_engine._tiktoken.CoreBPE(ranks, {"<|K|>": 300, "<|é|>": 301}, r"\w+|\W", "NFC")
    enc = bpe_engine.Encoding._from_core(
        "nfc",
        core,
        pat_str=r"\w+|\W",
        special_tokens={"<|K|>": 300, "<|é|>": 301},
        normalization="NFC",
    )
    assert enc.encode("<|\u212a|>", allowed_special="all") == [300]
    for trust in (True, False):
        for text in ["<|\u212a|>", "<|e\u0301|>"]:
            segments = [(text, trust)]
            assert not {300, 301} & set(enc.encode_segments(segments))
            assert enc.audit_segments(segments).special.count(True) == 0
    # The check still finds the name.
    with pytest.raises(ValueError, match=r"control string '<\|K\|>'.*segments\[0\], character 2"):
        enc.encode_segments([("x <|\u212a|>", False)], on_control="raise")
    assert enc.encode_segments([("x<|\u212a|>y", False)], on_control="strip") == [120, 121]


def test_untrusted_text_does_not_remove_a_special_token() -> None:
    qwen = bpe_engine.get_encoding("qwen")
    segments = [special("<|im_start|>"), untrusted("\u0338 hi")]
    assert qwen.encode_segments(segments)[0] == qwen.encode_single_token("<|im_start|>")
    # Inside one trusted text, names are recognized as in `encode`.
    text = "<|im_start|>\u0338"
    assert qwen.encode_segments([trusted(text)]) == qwen.encode(text, allowed_special="all")


def test_sets_of_names() -> None:
    gpt4 = bpe_engine.get_encoding("cl100k_base")
    text = "<|endoftext|><|fim_prefix|>"
    assert gpt4.encode_segments([(text, {"<|fim_prefix|>"})]) == gpt4.encode(
        text, allowed_special={"<|fim_prefix|>"}, disallowed_special=()
    )


def test_tokens_stay_as_they_are(gpt2: bpe_engine.Encoding) -> None:
    segments = [trusted("Hello"), tokens([64, 50256]), tokens([]), trusted(" world")]
    assert gpt2.encode_segments(segments) == [15496, 64, 50256, 995]
    audit = gpt2.audit_segments(segments)
    assert audit.segments == [0, 1, 1, 3] and audit.special == [False, False, True, False]


# ---- Policies ----


def test_raise_names_token_segment_and_offset(gpt2: bpe_engine.Encoding) -> None:
    with pytest.raises(ValueError, match=r"'<\|endoftext\|>'.*segments\[1\], character 2"):
        gpt2.encode_segments(
            [special("<|endoftext|>"), untrusted("a <|endoftext|>")], on_control="raise"
        )
    # Untrusted neighbors form one text.
    with pytest.raises(ValueError, match=r"segments\[1\], character 1"):
        gpt2.encode_segments(
            [(".", True), (".<|end", False), ("oftext|>", False)], on_control="raise"
        )
    gpt2.encode_segments([("<|end", False), ("of", True), ("text|>", False)], on_control="raise")


def test_strip_removes_names_that_a_removal_forms(gpt2: bpe_engine.Encoding) -> None:
    text = "a<|endof<|endoftext|>text|>b"
    assert gpt2.encode_segments([untrusted(text)], on_control="strip") == gpt2.encode("ab")
    parts = [(text[:4], False), (text[4:13], False), (text[13:], False), ("<|endoftext|>", True)]
    stripped = gpt2.encode_segments(parts, on_control="strip")
    assert stripped == [*gpt2.encode("ab"), 50256]


def test_a_function_returns_the_replacement(gpt2: bpe_engine.Encoding) -> None:
    seen: list[ControlString] = []

    def replace(found: ControlString) -> str:
        seen.append(found)
        return f"[{len(seen)}]"

    segments = [untrusted("x<|endoftext|><think>y<th"), untrusted("ink>z")]
    ids = gpt2.encode_segments(segments, on_control=replace, control=["<think>"])
    assert gpt2.decode(ids) == "x[1][2]y[3]z"
    assert seen == [("<|endoftext|>", 0, 1), ("<think>", 0, 14), ("<think>", 0, 22)]
    # Text returned by the policy is untrusted.
    ids = gpt2.encode_segments(segments, on_control=lambda found: "<|endoftext|>")
    assert 50256 not in ids
    with pytest.raises(TypeError, match="must return a str, not NoneType"):
        gpt2.encode_segments(segments, on_control=lambda found: None)  # type: ignore[arg-type,return-value]


@given(st.lists(st.tuples(texts, st.booleans()), max_size=6), st.sampled_from(NAMES))
def test_policies_lose_no_other_text(segments: list[tuple[str, bool]], name: str) -> None:
    enc = bpe_engine.get_encoding(name)
    whole = enc.decode(enc.encode_segments(segments))
    found = enc.audit_segments(segments).controls
    same = enc.encode_segments(segments, on_control=lambda found: found.token)
    if unicodedata.is_normalized("NFC", whole):
        assert enc.decode(same) == whole
    stripped = enc.decode(enc.encode_segments(segments, on_control="strip"))
    if not found:
        assert enc.encode_segments(segments, on_control="raise") == enc.encode_segments(segments)
        assert stripped == whole
        return
    with pytest.raises(ValueError, match="control string"):
        enc.encode_segments(segments, on_control="raise")
    assert len(stripped) <= len(whole) - sum(len(control.token) for control in found[:1])
    rest = iter(whole)
    assert all(character in rest for character in stripped), "some text is not of the prompt"


def test_strip_refuses_control_strings_nested_deeply(gpt2: bpe_engine.Encoding) -> None:
    given = [untrusted("a" + "<|endof" * 15 + "text|>" * 15 + "b")]
    assert gpt2.encode_segments(given, on_control="strip") == gpt2.encode("ab")
    qwen = bpe_engine.get_encoding("qwen")
    for encoding, text, control in (
        (gpt2, "<|endof" * 16 + "text|>" * 16, ()),
        (gpt2, "<|endof" * 50_000 + "text|>" * 50_000, ()),
        (qwen, "<e" * 50_000 + "<\u00e9>" + "\u0301>" * 50_000, ["<\u00e9>"]),
    ):
        for segments in ([untrusted(text)], [untrusted(text[:9]), untrusted(text[9:])]):
            with pytest.raises(ValueError, match='nested more than 15 deep.*on_control="raise"'):
                encoding.encode_segments(segments, on_control="strip", control=control)


@pytest.mark.parametrize("policy", ["strip", lambda found: ""])
def test_policies_take_linear_work_in_segments(gpt2: bpe_engine.Encoding, policy: Any) -> None:
    segments = [untrusted("x<|endoftext|>"), untrusted("<|endof"), untrusted("text|>y")]

    def encode(count: int) -> None:
        ids = gpt2.encode_segments(segments * count, on_control=policy)
        assert gpt2.decode(ids) == "xy" * count

    assert work(lambda: encode(20_000)) < 5 * work(lambda: encode(5_000))


def test_strip_removes_what_normalization_makes() -> None:
    qwen = bpe_engine.get_encoding("qwen")
    control = ["<\u00e9>"]
    nested = "<e" * 14 + "<\u00e9>" + "\u0301>" * 14
    marks = "x" + "<e<\u00e9>\u0301>\u0301<\u00e9>\u0323" * 5000
    for segments in (
        [untrusted(nested)],
        [untrusted(nested[: len(nested) // 2]), untrusted(nested[len(nested) // 2 :])],
        [untrusted(character) for character in nested],
    ):
        assert qwen.encode_segments(segments, on_control="strip", control=control) == []
    rest = qwen.encode_segments([untrusted(marks)], on_control="strip", control=control)
    assert not {"<", ">"} & set(qwen.decode(rest))


def test_strip_sees_what_normalization_makes_across_borders() -> None:
    qwen = bpe_engine.get_encoding("qwen")

    def stripped(*texts: str, control: str = "<\u00e9>") -> str:
        segments = [untrusted(text) for text in texts]
        ids = qwen.encode_segments(segments, on_control="strip", control=[control])
        assert qwen.audit_segments(segments, control=[control]).controls or texts == ("ab",)
        return qwen.decode(ids)

    assert stripped("ab") == "ab"
    assert stripped("ab<e", "\u0301>", "z") == "abz"
    assert stripped("abe", "\u0301<\u00e9>", "z") == "ab\u00e9z"
    assert stripped("x<e", "<e\u0301>", "", "\u0301>y", "<e\u0301>") == "xy"
    assert stripped("\u1100", "<\u00e9>\u1161", "\u11a8") == "\uac01"


@pytest.mark.parametrize("name", ["<e\u0301>", "<\u00e9>", "<\u212b>"])
def test_names_of_control_strings_are_normalized_as_texts_are(name: str) -> None:
    qwen = bpe_engine.get_encoding("qwen3")
    for text in (name, unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)):
        segments = [untrusted("a" + text)]
        with pytest.raises(
            ValueError, match=rf"control string {name!r}: segments\[0\], character 1"
        ):
            qwen.encode_segments(segments, on_control="raise", control=[name])
        with pytest.raises(ValueError, match="control string"):
            qwen.audit_segments(segments, control=[name]).assert_safe()
        assert qwen.encode_segments(segments, on_control="strip", control=[name]) == [64]
    # Without normalization, a name matches only its exact text.
    gpt2 = bpe_engine.get_encoding("gpt2")
    found = gpt2.audit_segments([untrusted("<e\u0301><\u00e9>")], control=[name]).controls
    assert len(found) == (name != "<\u212b>")


BETWEEN: list[Any] = [
    trusted(""),
    tokens([]),
    ("", True),
    ("", {"<|endoftext|>"}),
    ("", False),
    trusted("", role="system", source="program"),
]


@pytest.mark.parametrize("between", BETWEEN)
def test_policies_see_names_across_empty_segments(gpt2: bpe_engine.Encoding, between: Any) -> None:
    segments = [trusted("x"), untrusted("a<|endof"), between, between, untrusted("text|>b")]
    with pytest.raises(ValueError, match=r"segments\[1\], character 1"):
        gpt2.encode_segments(segments, on_control="raise")
    stripped = gpt2.encode_segments(segments, on_control="strip")
    assert gpt2.decode(stripped) == "xab"
    replaced = gpt2.encode_segments(segments, on_control=lambda found: f"[{found.offset}]")
    assert gpt2.decode(replaced) == "xa[1]b"
    assert gpt2.audit_segments(segments).controls == [ControlString("<|endoftext|>", 1, 1)]
    think = [untrusted("<thi"), between, untrusted("nk>")]
    with pytest.raises(ValueError, match="control string '<think>'"):
        gpt2.audit_segments(think, control=["<think>"]).assert_safe()
    # Text or ids between the two segments separate the halves of the name.
    for apart in (trusted(" "), tokens([1]), special("<|endoftext|>")):
        some = [untrusted("<|endof"), apart, untrusted("text|>")]
        gpt2.encode_segments(some, on_control="raise")


def test_both_halves_of_a_surrogate_pair_are_one_character(enc: bpe_engine.Encoding) -> None:
    high, low = "\ud83d", "\ude00"
    whole = enc.encode("a" + high + low + "b", disallowed_special=())
    for flags in [(False, False), (True, False), (False, True), (True, True)]:
        for between in [[], [("", False)], [tokens([]), ("", True)]]:
            segments = [("a" + high, flags[0]), *between, (low + "b", flags[1])]
            assert enc.encode_segments(segments) == whole
            assert bpe_engine.prompt.Conversation(enc).update(segments).ids == whole
            audit = enc.audit_segments(segments)
            assert audit.ids == whole and audit.segments[0] == 0
            assert audit.segments[-1] == len(segments) - 1
    apart = enc.encode("a" + high, disallowed_special=()) + enc.encode(low + "b")
    assert enc.encode_segments([("a" + high, False), (low + "b", False)], join=False) == apart
    given = [("a" + high, False), tokens([1]), (low + "b", False)]
    assert enc.encode_segments(given) == [
        *enc.encode("a" + high), 1, *enc.encode(low + "b")
    ]  # fmt: skip
    for text in (high + low, high + high + low, low + high, high + low + low, "\U0001f600" + low):
        segments = [(character, False) for character in text]
        assert enc.encode_segments(segments) == enc.encode(text)
        ids = enc.encode_segments([*segments, ("<|endoftext|>", False)], on_control="strip")
        assert ids == enc.encode(text)


def test_control_strings_that_are_not_special_tokens(gpt2: bpe_engine.Encoding) -> None:
    segments = [trusted("<think>"), untrusted("a</think>b", source="mail")]
    audit = gpt2.audit_segments(segments, control=["<think>", "</think>"])
    assert audit.controls == [ControlString("</think>", 1, 1)]
    with pytest.raises(ValueError, match="control string '</think>'"):
        audit.assert_safe()
    gpt2.audit_segments(segments).assert_safe()
    stripped = gpt2.encode_segments(segments, on_control="strip", control=["</think>"])
    assert gpt2.decode(stripped) == "<think>ab"


# ---- Audits ----


def test_mask(gpt2: bpe_engine.Encoding) -> None:
    segments = [
        trusted("<|endoftext|>User:"),
        untrusted(" what", role="user"),
        trusted(" ", role=None),
        untrusted("it is", role="assistant"),
        untrusted("", role="user"),
        untrusted(" so", role="assistant"),
        special("<|endoftext|>", role="assistant"),
    ]
    audit = gpt2.audit_segments(segments)
    # The token " it" begins with the space of another segment.
    texts_of = [gpt2.decode([id]) for id in audit.ids]
    masked = [text for text, bit in zip(texts_of, audit.mask()) if bit]
    assert masked == [" is", " so", "<|endoftext|>"]
    assert [t for t, bit in zip(texts_of, audit.mask("user")) if bit] == [" what"]
    given = [tokens([1, 2], role="user"), tokens([3], role="assistant"), tokens([4])]
    assert gpt2.audit_segments(given).mask() == [0, 0, 1, 0]


# ---- Malformed segments ----


@pytest.mark.parametrize(
    ("segments", "error", "message"),
    [
        ("text", TypeError, r"segments must be a list of segments, not str"),
        (None, TypeError, r"segments must be a list of segments, not NoneType"),
        (b"text", TypeError, r"segments must be a list of segments, not bytes"),
        ({"a": True}, TypeError, r"segments must be a list of segments, not dict"),
        (5, TypeError, r"segments must be a list of segments, not int"),
        (["text"], TypeError, r"segments\[0\] must be a tuple \(text, allowed_special\), not str"),
        ([("a", True), None], TypeError, r"segments\[1\] must be a tuple.*not NoneType"),
        ([["a", True]], TypeError, r"segments\[0\] must be a tuple.*not list"),
        ([[("a", True)]], TypeError, r"segments\[0\] must be a tuple.*not list"),
        ([("a",)], TypeError, r"segments\[0\] must be a tuple \(.*\), not a tuple of 1"),
        ([()], TypeError, r"segments\[0\] must be a tuple \(.*\), not a tuple of 0"),
        ([("a", ["<|endoftext|>"])], TypeError, r"allowed_special of segments\[0\].*not list"),
        ([("a", {"<|endoftext|>": 1})], TypeError, r"allowed_special of segments\[0\].*not dict"),
        ([Segment("a", True, kind="bogus")], ValueError, r"kind of segments\[0\].*'bogus'"),  # type: ignore[arg-type]
        ([Segment("a", True, kind=5)], ValueError, r"kind of segments\[0\].*not the int 5"),  # type: ignore[arg-type]
        ([Segment("", False, None, None, "tokens", (1.5,))], TypeError, r"segments\[0\]"),  # type: ignore[arg-type]
        ([("a", True), (b"b", True)], TypeError, r"text of segments\[1\] must be a str, not bytes"),
        ([(None, True)], TypeError, r"text of segments\[0\] must be a str, not NoneType"),
        ([("a", 1)], TypeError, r"allowed_special of segments\[0\] must be True.*not int"),
        ([("a", None)], TypeError, r"allowed_special of segments\[0\].*not NoneType"),
        ([("a", "all")], TypeError, r"allowed_special of segments\[0\].*not str"),
        ([("a", {1})], TypeError, r"allowed_special of segments\[0\].*contains int"),
        ([("a", {"<|no_such|>"})], ValueError, r"segments\[0\] asks for the special token"),
        ([("a", True), special("<|no_such|>")], ValueError, r"segments\[1\] asks for .*no_such"),
        ([tokens([50257])], ValueError, r"segments\[0\] contains the id 50257"),
        ([("a", True), tokens([-1])], ValueError, r"segments\[1\]"),
        ([tokens([1 << 40])], ValueError, r"segments\[0\]"),
    ],
)
def test_wrong_shapes(
    gpt2: bpe_engine.Encoding, segments: Any, error: type[Exception], message: str
) -> None:
    for policy in ("encode", "raise", "strip", str):
        with pytest.raises(error, match=message):
            gpt2.encode_segments(segments, on_control=policy)
    for function in (
        bpe_engine.prompt.count_segments,
        bpe_engine.prompt.encode_segments_to_numpy,
        bpe_engine.Encoding.audit_segments,
    ):
        with pytest.raises(error, match=message):
            function(gpt2, segments)
    if not isinstance(segments, str):
        with pytest.raises(error, match=message):
            bpe_engine.prompt.Conversation(gpt2).update(segments)


def test_wrong_arguments(gpt2: bpe_engine.Encoding) -> None:
    for make in (special, trusted, untrusted):
        with pytest.raises(TypeError, match="takes a str, not bytes"):
            make(b"x")  # type: ignore[arg-type]
    for ids, place in [(["a"], "0 is 'a'"), ([1, 1.5], "1 is 1.5"), ([1, 2, [1]], r"2 is \[1\]")]:
        with pytest.raises(TypeError, match=f"each an int, but the one at index {place}"):
            tokens(ids)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes ids, not NoneType"):
        tokens(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes ids, not str"):
        tokens("ab")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_control must be"):
        gpt2.encode_segments([], on_control="drop")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="control must be a collection of str"):
        gpt2.encode_segments([], on_control="raise", control="<think>")
    wrong = [
        (None, TypeError, "not None"),
        (5, TypeError, "not 5"),
        ([[1]], TypeError, r"not \[1\]"),
        ([b"x"], TypeError, "not b'x'"),
        ([""], TypeError, "not ''"),
        (["\ud800"], ValueError, r"holds '\\ud800', which has half a character"),
    ]
    for control, error, message in wrong:
        for policy in ("encode", "raise", "strip"):
            with pytest.raises(error, match=f"control .*{message}"):
                gpt2.encode_segments([("a", False)], on_control=policy, control=control)  # type: ignore[arg-type]
        with pytest.raises(error, match=f"control .*{message}"):
            gpt2.audit_segments([], control=control)  # type: ignore[arg-type]


def test_generators_are_segments(gpt2: bpe_engine.Encoding) -> None:
    ids = gpt2.encode_segments(iter([("a", True), ("b", False)]))
    assert ids == gpt2.encode("ab")
    assert bpe_engine.prompt.encode_segments_to_numpy(gpt2, [("a", True)]).dtype == np.uint32
    with pytest.raises(TypeError, match=r"segments\[1\] must be a tuple"):
        gpt2.encode_segments(iter([("a", True), "b"]))  # type: ignore[list-item]
