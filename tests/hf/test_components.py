"""Compares component classes with `tokenizers`: constructors, attributes, pickles."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from typing import Any

import pytest
from charsmaps import charsmap
from hf_oracle import assert_same, both, outcome, tokenizers

from bpe_engine import hf

#: For each kind of component, the module that has its classes.
MODULES = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pre_tokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}

#: Each class, with positional arguments and a new value for an attribute.
CALLS: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("normalizer", "BertNormalizer", (), {}),
    ("normalizer", "BertNormalizer", (False, True, True, False), {"strip_accents": None}),
    ("normalizer", "BertNormalizer", (True, True, "x"), {}),
    ("normalizer", "ByteLevel", (), {}),
    ("normalizer", "Lowercase", (), {}),
    ("normalizer", "Lowercase", (1,), {}),
    ("normalizer", "NFC", (), {}),
    ("normalizer", "NFD", (), {}),
    ("normalizer", "NFKC", (), {}),
    ("normalizer", "NFKD", (), {}),
    ("normalizer", "Nmt", (), {}),
    ("normalizer", "Precompiled", (charsmap({"é": "e"}),), {}),
    ("normalizer", "Precompiled", (b"\1\0\0",), {}),
    ("normalizer", "Precompiled", ("text",), {}),
    ("normalizer", "Prepend", (), {"prepend": "x"}),
    ("normalizer", "Prepend", ("_",), {"prepend": 3}),
    ("normalizer", "Replace", ("a", "b"), {"content": "c"}),
    ("normalizer", "Replace", ("a", "b"), {"pattern": "c"}),
    ("normalizer", "Replace", (3, "b"), {}),
    ("normalizer", "Strip", (), {"left": False}),
    ("normalizer", "Strip", (False, True), {"right": 1}),
    ("normalizer", "StripAccents", (), {}),
    ("normalizer", "Sequence", (3,), {}),
    ("pre_tokenizer", "BertPreTokenizer", (), {}),
    ("pre_tokenizer", "ByteLevel", (), {"use_regex": False}),
    ("pre_tokenizer", "ByteLevel", (False, False, False), {"trim_offsets": None}),
    ("pre_tokenizer", "CharDelimiterSplit", ("é",), {"delimiter": "x"}),
    ("pre_tokenizer", "CharDelimiterSplit", ("",), {}),
    ("pre_tokenizer", "CharDelimiterSplit", (3,), {}),
    ("pre_tokenizer", "Digits", (), {"individual_digits": True}),
    ("pre_tokenizer", "FixedLength", (), {"length": 7}),
    ("pre_tokenizer", "FixedLength", (3,), {"length": -1}),
    ("pre_tokenizer", "FixedLength", ("x",), {}),
    ("pre_tokenizer", "Metaspace", (), {"replacement": "_"}),
    ("pre_tokenizer", "Metaspace", ("x", "first", False), {"prepend_scheme": "never"}),
    ("pre_tokenizer", "Metaspace", ("x", "second"), {}),
    ("pre_tokenizer", "Punctuation", (), {"behavior": "removed"}),
    ("pre_tokenizer", "Punctuation", ("contiguous",), {"behavior": "x"}),
    ("pre_tokenizer", "Split", ("a", "merged_with_next"), {"invert": True}),
    ("pre_tokenizer", "Split", ("a", "merged_with_previous", True), {"behavior": "isolated"}),
    ("pre_tokenizer", "Split", ("a", "x"), {}),
    ("pre_tokenizer", "UnicodeScripts", (), {}),
    ("pre_tokenizer", "Whitespace", (), {}),
    ("pre_tokenizer", "WhitespaceSplit", (), {}),
    ("pre_tokenizer", "Sequence", ([3],), {}),
    ("post_processor", "BertProcessing", (("a", 1), ("b", 2)), {"sep": ("c", 3)}),
    ("post_processor", "BertProcessing", (("a", 1), ("b", 2)), {"cls": ("c", 3)}),
    ("post_processor", "BertProcessing", (["a", 1], ("b", 2)), {}),
    ("post_processor", "ByteLevel", (), {"add_prefix_space": False}),
    ("post_processor", "ByteLevel", (None, False, None), {}),
    ("post_processor", "RobertaProcessing", (("a", 1), ("b", 2)), {"trim_offsets": False}),
    ("post_processor", "TemplateProcessing", (), {"single": "$B"}),
    ("post_processor", "TemplateProcessing", ("$", "$a:2 $b", []), {}),
    ("post_processor", "TemplateProcessing", ("a $3 b:1", "$A $B $1:4", [("a", 1), (2, "b")]), {}),
    ("post_processor", "TemplateProcessing", (["a b", "$A"], None, [("a b", 1)]), {}),
    ("post_processor", "TemplateProcessing", ("a",), {}),
    ("post_processor", "TemplateProcessing", ("$A", "$A"), {}),
    ("post_processor", "TemplateProcessing", ("$A:",), {}),
    ("post_processor", "TemplateProcessing", ("$C",), {}),
    ("post_processor", "TemplateProcessing", ("$A  $A",), {}),
    ("decoder", "BPEDecoder", (), {"suffix": "x"}),
    ("decoder", "ByteFallback", (), {}),
    ("decoder", "ByteLevel", (), {}),
    ("decoder", "CTC", (), {"cleanup": False}),
    ("decoder", "CTC", ("a", "b", True), {"word_delimiter_token": "c"}),
    ("decoder", "Fuse", (), {}),
    ("decoder", "Metaspace", (), {"split": False}),
    ("decoder", "Replace", ("a", "b"), {}),
    ("decoder", "Strip", (), {"stop": 4}),
    ("decoder", "Strip", ("x", 1, 2), {"content": "yz"}),
    ("decoder", "WordPiece", (), {"prefix": "@@"}),
    ("decoder", "WordPiece", ("x", False), {"cleanup": True}),
    ("decoder", "Sequence", ([],), {}),
]


BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_matches_in_a_row_are_cut_by_their_behavior(behavior):
    theirs = [tokenizers.pre_tokenizers.Punctuation(behavior)]
    for pattern in (tokenizers.Regex("[0-9]{1,2}"), "a", "aa", " "):
        for invert in (False, True):
            theirs.append(tokenizers.pre_tokenizers.Split(pattern, behavior, invert))
    for part in theirs:
        ours = hf.Component("pre_tokenizer", part.__getstate__().decode())
        for text in ("", "12345", "x12345a", "aaa!!aab1a", "  a  12 3!", "!a! ?"):
            assert ours.pre_tokenize_str(text) == part.pre_tokenize_str(text), (ours, text)


SEQUENCES: dict[str, list[tuple[str, tuple[Any, ...]]]] = {
    "normalizer": [("NFC", ()), ("Lowercase", ())],
    "pre_tokenizer": [("Digits", (True,)), ("ByteLevel", (True, True, False))],
    "post_processor": [("ByteLevel", ()), ("BertProcessing", (("b", 2), ("a", 1)))],
    "decoder": [("Fuse", ()), ("Strip", ("a", 1, 0))],
}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]}-{call[1]}{call[2]!r:.40}")
def test_constructors_and_attributes(call):
    kind, name, arguments, change = call
    ours = getattr(getattr(hf, MODULES[kind]), name)
    theirs = getattr(getattr(tokenizers, MODULES[kind]), name)
    if outcome(lambda: theirs(*arguments))[0] == "raised":
        with pytest.raises((TypeError, ValueError)):
            ours(*arguments)
        return
    a, b = ours(*arguments), theirs(*arguments)
    for attribute, value in change.items():
        read = [outcome(lambda: getattr(part, attribute)) for part in (a, b)]
        assert read[0] == read[1] or {read[0][0], read[1][0]} == {"raised"}
        kinds = [outcome(lambda: setattr(part, attribute, value))[0] for part in (a, b)]
        assert kinds[0] == kinds[1]
    assert repr(a) == repr(b)
    assert a.__getstate__() == b.__getstate__()
    assert isinstance(a, theirs) and isinstance(a, ours) and isinstance(a, hf.Component)
    assert type(a.to_tokenizers()) is theirs
    assert a.to_tokenizers().__getstate__() == a.__getstate__()
    assert pickle.loads(pickle.dumps(a)) == a == copy.deepcopy(a)
    with pytest.raises(AttributeError):
        a.no_field = True


def test_sequences_have_parts():
    for kind, module in MODULES.items():
        package = getattr(hf, module)
        parts = [getattr(package, name)(*given) for name, given in SEQUENCES[kind]]
        found = package.Sequence(parts)
        theirs = getattr(tokenizers, module).Sequence([part.to_tokenizers() for part in parts])
        assert found.__getstate__() == theirs.__getstate__() and repr(found) == repr(theirs)
        assert len(found) == 2 and found[-1] == found[1] == parts[1] and bool(found)
        assert type(pickle.loads(pickle.dumps(found))[0]) is type(parts[0])
        with pytest.raises(IndexError):
            found[2]
        for problem in (lambda: found[0][0], lambda: len(found[0])):  # noqa: B023
            with pytest.raises(TypeError, match="is not subscriptable|has no len"):
                problem()
        assert found[0]


def test_every_class_has_a_case():
    for kind, module in MODULES.items():
        names = {name for name, value in vars(getattr(tokenizers, module)).items()
                 if isinstance(value, type)}  # fmt: skip
        bases = {"Normalizer", "PreTokenizer", "PostProcessor", "Decoder", "DecodeStream"}
        assert names - bases == {call[1] for call in CALLS if call[0] == kind} | {"Sequence"}
        assert names <= vars(getattr(hf, module)).keys()


def test_regular_expressions():
    for regex in (hf.Regex("a+"), tokenizers.Regex("a+")):
        ours = hf.pre_tokenizers.Split(regex, "isolated")
        theirs = tokenizers.pre_tokenizers.Split(tokenizers.Regex("a+"), "isolated")
        assert ours.__getstate__() == theirs.__getstate__()
    with pytest.raises(ValueError):
        hf.pre_tokenizers.Split(hf.Regex("("), "isolated")


def test_a_change_reaches_every_tokenizer():
    parts = hf.normalizers
    strip, lower = parts.Strip(), parts.Lowercase()
    chain = parts.Sequence([strip, parts.Sequence([lower])])
    first, second = (hf.Tokenizer('{"model":{"vocab":{},"merges":[]}}') for _ in range(2))
    first.normalizer = second.normalizer = chain
    strip.left = False
    for tokenizer in (first, second):
        assert tokenizer.normalizer.normalize_str(" A ") == " a"
        assert json.loads(tokenizer.to_str())["normalizer"] == json.loads(chain.__getstate__())
    second.normalizer[0].right = False
    second.normalizer[1][0] = parts.Prepend("x")
    for tokenizer in (first, second):
        assert tokenizer.normalizer.normalize_str(" A ") == "x A "
    # Replacing a component of one tokenizer does not affect the other.
    first.normalizer = parts.NFC()
    strip.right = True
    assert repr(first.normalizer) == "NFC()"
    assert second.normalizer.normalize_str(" A ") == "x A"
    copied = copy.copy(second)
    strip.right = False
    assert copied.normalizer.normalize_str("A ") == "xA"
    del first, second
    gc.collect()
    strip.right = True


def test_parts_of_a_file_are_changed_in_place():
    contents = {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "FixedLength", "length": 5},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"vocab": {letter: id for id, letter in enumerate("abAB ")}, "merges": []},
    }
    ours, theirs = both(json.dumps(contents))
    for tokenizer in (ours, theirs):
        tokenizer.normalizer.lowercase = False
        tokenizer.pre_tokenizer.length = 2
        tokenizer.decoder.prefix = "a"
    assert ours.to_str() == theirs.to_str()
    assert_same(ours.encode("ABab a"), theirs.encode("ABab a"))
    assert ours.decode([1, 0, 1]) == theirs.decode([1, 0, 1])


def test_a_change_that_fails_changes_nothing():
    tokenizer = hf.Tokenizer('{"model":{"vocab":{},"merges":[]}}')
    tokenizer.pre_tokenizer = hf.pre_tokenizers.FixedLength(3)
    part = tokenizer.pre_tokenizer
    with pytest.raises(hf.UnsupportedTokenizer, match="length"):
        part.length = 0
    assert part.length == 3 and tokenizer.pre_tokenizer.length == 3


def test_python_objects_are_refused_by_name():
    for make in (
        hf.normalizers.Normalizer.custom,
        hf.pre_tokenizers.PreTokenizer.custom,
        hf.decoders.Decoder.custom,
    ):
        with pytest.raises(hf.UnsupportedTokenizer, match="in Python"):
            make(object())


def spellings(kind: str) -> list[tuple[str, Any]]:
    """Returns components as in older files: without a type, with a different type, as a list."""
    found = []
    for of_kind, name, arguments, _ in CALLS:
        make = getattr(getattr(tokenizers, MODULES[kind]), name, None) if of_kind == kind else None
        if make is None or outcome(lambda: make(*arguments))[0] == "raised":
            continue
        spec = json.loads(make(*arguments).__getstate__())
        fields = {key: value for key, value in spec.items() if key != "type"}
        for other in ("Bert", "Delimiter", "Strip", "Unknown", "Sequence", "Metaspace", 3):
            found.append((name, {**fields, "type": other}))
        found += [(name, spec), (name, fields), (name, list(fields.values()))]
        found += [(name, {key: spec[key] for key in spec if key != lacking}) for lacking in fields]
        found += [(name, {**spec, "sep": ["b", 2], "cls": ["a", 1], "content": "x"})]
    return found


@pytest.mark.parametrize("kind", MODULES)
def test_components_of_older_files(kind):
    field = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}.get(kind)
    field = field or {"post_processor": "processors", "decoder": "decoders"}[kind]
    for name, spec in spellings(kind):
        for part in (spec, {"type": "Sequence", field: [spec]}, {field: [spec]}):
            contents = json.dumps(
                {"version": "1.0", kind: part, "model": {"vocab": {"a": 0}, "merges": []}}
            )
            theirs = outcome(lambda: tokenizers.Tokenizer.from_str(contents).to_str())
            ours = outcome(lambda: hf.Tokenizer.from_str(contents).to_str())
            assert ours[0] == theirs[0], (name, part, ours)
            if theirs[0] == "returned":
                assert json.loads(ours[1])[kind] == json.loads(theirs[1])[kind], (name, part)
