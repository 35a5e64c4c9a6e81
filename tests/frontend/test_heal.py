"""Tests `TokenTrie` and `heal` against brute force, on texts cut at every byte."""

from __future__ import annotations

import copy
import json
import pickle
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kinds import CASES, FILES, byte_level_file, texts
from seeds import seeded
from sentencepiece_oracle import write_model

import bpe_engine
from bpe_engine import hf
from bpe_engine.abilities.healing import Healed
from bpe_engine.hf import UnsupportedTokenizer
from bpe_engine.prompt import special, untrusted

KINDS = [name for name in CASES if not name.startswith("Tokenizer, ")]
#: File kinds whose tokens do not spell the text, with the reason in `heal`'s error. All other kinds
#: are healed exactly.
REFUSED = {
    "lowercase": "normalizer: it changes text",
    "WordPiece": "heal: .* a WordPiece model",
    "WordLevel": "heal: .* a WordLevel model",
    "BPE with a suffix": "heal: .* the end_of_word_suffix '</w>'",
    "Unigram": "heal: .* outside the vocabulary",
    "Unigram, split": "heal: .* outside the vocabulary",
    "SentencePiece Unigram": "heal: .* outside the vocabulary",
}
#: Names of the cases that `heal` accepts.
HEALED = [name for name in KINDS if name.partition(", ")[2] not in REFUSED]
#: Marks of several classes, composed and decomposed letters, syllables.
MARKS = ["e\u0301", "\u00e9", "\u0323", "\u0301", "q\u0323\u0301", "\u1100", "\u1161", "\u11a8", "\uac00",
         "\u0e01\u0e48", "\u05d0\u05b8\u05bc", "\u09c7\u09be", "K\u030c", " ", "a", "\u0b47", "\u212b",
         "\u0309", "\ua806", "\u0344", "\u0958", "\u0345", "\uac01", "\u0f73"]  # fmt: skip
#: Bytes of SentencePiece's token for unknown text.
UNKNOWN = " \u2047 ".encode()
#: The mark for spaces in SentencePiece-like files, and characters with the same first bytes.
SPACES = ["\u2581", "\u2581", " ", "a", "\u2580", "\u2586", "\u20ac", "the", "\u2581word"]


def bits(mask: Any, count: int) -> list[int]:
    """Returns the ids whose bits are set, computed from the definition of the layout."""
    ids = np.arange(count)
    return np.flatnonzero(mask[ids // 32] >> (ids % 32) & 1).tolist()


def ordinary(face: Any) -> list[tuple[int, bytes]]:
    """Returns the tokens that spell text, without SentencePiece's token for unknown text."""
    table = bpe_engine.TokenTable(face)
    tokens = [(id, table[id]) for id in table.ids("ordinary") if table[id]]
    return [(id, token) for id, token in tokens if token != UNKNOWN]


def agreeing(tokens: list[tuple[int, bytes]], rest: bytes) -> set[int]:
    return {id for id, token in tokens if token.startswith(rest) or rest.startswith(token)}


@pytest.fixture(params=KINDS, scope="module")
def face(request: pytest.FixtureRequest) -> Any:
    return CASES[request.param]().face


@pytest.fixture(params=HEALED, scope="module")
def healing(request: pytest.FixtureRequest) -> Any:
    return CASES[request.param]().face


def test_masks_and_next_bytes(face: Any) -> None:
    trie, tokens = bpe_engine.TokenTrie(face), ordinary(face)
    rng = seeded("trie")
    for text in [b"", b" ", b"t", *(t.encode() for t in texts(8, "trie"))]:
        start = rng.randrange(len(text) + 1)
        rest = text[start : start + rng.randrange(12)]
        mask = trie.mask(rest)
        assert len(mask) == trie.words and mask.dtype == np.int32
        assert set(bits(mask, len(mask) * 32)) == agreeing(tokens, rest)
        begin = [(token, id) for id, token in tokens if token.startswith(rest)]
        assert trie.tokens_with(rest) == [id for _, id in sorted(begin)]
        after = {token[len(rest)] for token, _ in begin if len(token) > len(rest)}
        assert trie.next_bytes(rest) == bytes(sorted(after))


def test_masks_of_the_caller() -> None:
    trie = bpe_engine.TokenTrie(bpe_engine.get_encoding("gpt2"))
    wide = np.full(trie.words + 7, -1, np.int32)
    assert trie.mask(b" a", wide) is wide and not wide[trie.words :].any()
    assert (wide[: trie.words] == trie.mask(b" a")).all()
    with pytest.raises(ValueError, match="words"):
        trie.mask(b"a", np.zeros(3, np.int32))
    for wrong in (np.zeros(9999, np.int64), b"x" * 9999, np.zeros(9999, ">i4")):
        with pytest.raises(BufferError):
            trie.mask(b"a", wrong)


def check_cut(face: Any, whole: str, at: int, ids: list[int]) -> None:
    """Checks that each mask allows the next id of `whole`, for a prompt cut at byte `at`."""
    healed = face.heal(whole.encode()[:at])
    assert ids[: len(healed.ids)] == healed.ids
    for id in ids[len(healed.ids) :]:
        if healed.done:
            break
        mask = healed.allowed()
        assert int(mask[id // 32]) >> (id % 32) & 1, (whole, at, id, healed)
        healed.advance(id)
    assert healed.done, (whole, at, healed)


def is_plain(face: Any, whole: str, ids: list[int]) -> bool:
    """Returns True for a text that has only ordinary tokens."""
    table = bpe_engine.TokenTable(face)
    has_added = "n\u00e9e" in unicodedata.normalize("NFC", whole)
    return not has_added and "<" not in whole and all(table.kind(id) == "ordinary" for id in ids)


def healable() -> list[str]:
    rng = seeded("heal")
    marks = ["".join(rng.choices(MARKS, k=6)) for _ in range(40)]
    spaces = ["".join(rng.choices(SPACES, k=5)) for _ in range(20)]
    return [text[:200] for text in [*texts(30, "heal"), *marks, *spaces]]


def test_the_whole_passes_at_every_cut(healing: Any) -> None:
    cuts, face = 0, healing
    for whole in healable():
        ids = face.encode_with_offsets(whole, disallowed_special=())[0]
        if not is_plain(face, whole, ids):
            continue
        for at in range(len(whole.encode()) + 1):
            check_cut(face, whole, at, ids)
            cuts += 1
    assert cuts > 500


def test_masks_of_healed_prompts_are_those_of_all_tokens(healing: Any) -> None:
    face, rng = healing, seeded("advance")
    tokens = ordinary(face)
    table = bpe_engine.TokenTable(face)
    refused = {*table.ids("special"), *table.ids("absent")}
    for text in ["the wor", "lorem ip", "日", "x y  ", "a\n"]:
        healed = face.heal(text)
        while not healed.done:
            allowed = healed.allowed_ids().tolist()
            assert agreeing(tokens, healed.rest) <= set(allowed)
            assert allowed == bits(healed.allowed(), len(table))
            assert not refused & set(allowed)
            if healed.rest[-1:] in b" \n":
                assert agreeing(tokens, healed.rest) == set(allowed)
            healed.advance(rng.choice(allowed))
        assert healed.rest == b""


def test_rest_and_ids_are_the_prompt() -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    for text in texts(60, "rest"):
        healed = gpt2.heal(text)
        assert gpt2.decode_bytes(healed.ids) + healed.rest == text.encode()
        assert healed.ids == bpe_engine.prompt.stable_prefix(gpt2, text, disallowed_special=())[0]
    assert gpt2.heal("a 日".encode()[:-1]).rest == " 日".encode()[:-1]


def test_segments() -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    healed = gpt2.heal([special("<|endoftext|>"), untrusted("say hel"), untrusted("lo wor")])
    assert healed.ids == [50256, *gpt2.encode("say hello")] and healed.rest == b" wor"
    assert gpt2.heal([untrusted("a"), special("<|endoftext|>")]).done
    assert gpt2.heal("a<|endoftext|>", allowed_special="all").done


def test_advancing() -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    healed = gpt2.heal("hello wor")
    other = healed.fork()
    for id in (gpt2.encode("x")[0], 50256, 10**6):
        with pytest.raises(ValueError, match="does not agree"):
            healed.advance(id)
    assert healed.rest == b" wor"
    healed.advance(995)
    assert healed.done and (healed.allowed() == -1).all() and not other.done
    assert len(healed.allowed_ids()) == 50257
    healed.advance(50256)


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("face", ["hf.Tokenizer", "Tokenizer"])
def test_kinds_whose_tokens_are_not_the_text_are_refused(face: str, kind: str) -> None:
    """Every prompt is refused, even if its tokens happen to spell the text."""
    refused = CASES[f"{face}, {kind}"]().face
    for prompt in ("the", "lorem ip", "", b"the \xe6", [untrusted("the")]):
        with pytest.raises(UnsupportedTokenizer, match=REFUSED[kind]):
            refused.heal(prompt)


def without(contents: str, change: Callable[[dict[str, Any]], Any]) -> hf.Tokenizer:
    """Returns the tokenizer of a changed file."""
    file = json.loads(contents)
    change(file)
    return hf.Tokenizer.from_str(json.dumps(file))


def drop_mark(file: dict[str, Any]) -> None:
    model = file["model"]
    del model["vocab"]["\u2581"]
    model["merges"] = [pair for pair in model["merges"] if "\u2581" not in str(pair)]


def test_files_that_lose_bytes_are_refused(tmp_path: Path) -> None:
    """Refuses files in which a byte, a mark or a word has no token, or a token has no bytes."""
    level, characters = byte_level_file(), FILES["characters, Metaspace"]()
    unigram = FILES["Unigram, bytes"]()
    lost = "characters outside the vocabulary are lost"
    for contents, change, reason in (
        (level, lambda file: file["model"]["vocab"].pop("\u0122"), lost),
        (level, lambda file: file.update(decoder=None), lost),
        (characters, lambda file: file["model"].update(byte_fallback=False), lost),
        (characters, lambda file: file["decoder"]["decoders"].pop(1), lost),
        (unigram, lambda file: file["model"]["vocab"][200].__setitem__(0, "<byte>"), lost),
        (level, lambda file: file["model"].update(dropout=0.5), "tokens are chosen at random"),
        (characters, drop_mark, "the bytes of its mark"),
    ):
        with pytest.raises(UnsupportedTokenizer, match=reason):
            without(contents, change).heal("a ")
    assert without(level, lambda file: file["model"].update(dropout=None)).heal("the")
    words = hf.Tokenizer.from_sentencepiece(write_model(tmp_path, "word"))
    with pytest.raises(UnsupportedTokenizer, match="a token is a whole word"):
        words.heal("the")


def test_names_of_bytes_in_a_prompt_are_refused() -> None:
    """Refuses `<0x7E>` if the file reads it as a byte: the canonical ids would spell `~`."""
    whole = without(
        FILES["characters, Metaspace"](), lambda file: file["model"].update(ignore_merges=True)
    )
    for tokenizer in (whole, hf.Tokenizer.from_str(FILES["Unigram, bytes"]())):
        for prompt in ("a <0x7E>", "a <0x7", "a <", [untrusted("a <0x7E>")]):
            with pytest.raises(UnsupportedTokenizer, match="the name of a byte"):
                tokenizer.heal(prompt)
        assert tokenizer.heal("a ")


def test_a_prompt_of_its_rests(healing: Any) -> None:
    for text in ["the wor", "cafe", "", "\u65e5".encode()[:2]]:
        healed = healing.heal(text)
        other = Healed.of_rests(healing, healed.rests)
        assert (other.ids, other.rests, other.done) == ([], healed.rests, healed.done)
        assert (other.allowed() == healed.allowed()).all()
    with pytest.raises(TypeError):
        Healed.of_rests(healing, ["text"])  # type: ignore[list-item]


def test_many_ends_share_their_bytes() -> None:
    """A mark may move before any mark of the prompt; alternatives share the prompt's bytes."""
    qwen = bpe_engine.get_encoding("qwen3")
    for text in (b"e\xcc", b"a" * 5000 + b"\xcc", b"\xf0", "e" + "\u0323\u0301" * 40, "\u1100"):
        rests = qwen.heal(text).rests
        assert len(set(rests)) == len(rests) > 25
        ordered = sorted(rests)
        assert not any(b.startswith(a) for a, b in zip(ordered, ordered[1:]))
        mask = qwen.heal(text).allowed_ids().tolist()
        trie = bpe_engine.TokenTrie(qwen)
        each = [set(bits(trie.mask(rest), len(trie.mask(rest)) * 32)) for rest in rests[:40]]
        assert set().union(*each) <= set(mask)
    healed = qwen.heal("e" + "\u0301" * 20_000)
    assert healed.rest == unicodedata.normalize("NFC", "e" + "\u0301" * 20_000).encode()
    assert len(repr(healed)) < 400
    with pytest.raises(ValueError, match=r"the end of the prompt, .* \(40000 bytes\)") as error:
        healed.advance(qwen.encode("x")[0])
    assert len(str(error.value)) < 400


def test_the_unknown_token_spells_no_text() -> None:
    face = CASES["hf.Tokenizer, SentencePiece BPE"]().face
    unknown = bpe_engine.TokenTable(face).ids("ordinary")[0]
    assert bpe_engine.TokenTable(face)[unknown] == UNKNOWN
    assert bpe_engine.TokenTrie(face).tokens_with(UNKNOWN) == []
    healed = face.heal("say ")
    assert unknown not in healed.allowed_ids().tolist()
    with pytest.raises(ValueError, match="does not agree"):
        Healed.of_rests(face, [UNKNOWN]).advance(unknown)


def test_copies_and_pickles() -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    healed, trie = gpt2.heal("hello wor"), bpe_engine.TokenTrie(gpt2)
    for other in (copy.copy(healed), copy.deepcopy([healed])[0]):
        other.advance(995)
        assert other.done and not healed.done
    assert copy.copy(trie) is trie and copy.deepcopy(trie) is trie
    for it, way in ((healed, "Healed.of_rests"), (trie, "make another TokenTrie")):
        with pytest.raises(TypeError, match=way):
            pickle.dumps(it)


def test_what_is_refused() -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    with pytest.raises(ValueError, match="byte 1 of the prompt is not UTF-8"):
        gpt2.heal(b"a\xffb")
    with pytest.raises(TypeError):
        gpt2.heal(7)
    for given in (bytearray(b"a wor"), memoryview(b"a wor")):
        assert gpt2.heal(given).rest == b" wor"


def test_ends_that_later_text_may_change_are_refused() -> None:
    """Refuses steps that drop characters before `ByteLevel`, and tokens that match single words."""
    drops = [
        {"type": "WhitespaceSplit"},
        {"type": "Split", "pattern": {"Regex": r"\s"}, "behavior": "Removed", "invert": False},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": True},
    ]
    for part in drops:

        def change(file: Any, part: Any = part) -> None:
            file["pre_tokenizer"] = {
                "type": "Sequence", "pretokenizers": [part, file["pre_tokenizer"]]
            }  # fmt: skip

        face = without(byte_level_file(), change)
        assert face.heal(b"the").rest == b"the"
        with pytest.raises(UnsupportedTokenizer, match="end the prompt before it"):
            face.heal("a\u3000b".encode()[:2])
    alone = without(
        byte_level_file(), lambda file: file["added_tokens"][0].update(single_word=True)
    )
    assert alone.encode("the <a>b").ids != [*alone.encode("the <a>").ids, *alone.encode("b").ids]
    assert alone.heal("the <a> ").rest == b" "
    with pytest.raises(UnsupportedTokenizer, match="'<a>' at the end .* put a space after it"):
        alone.heal("the <a>")


def test_under_form_c_a_mark_may_follow() -> None:
    qwen = bpe_engine.get_encoding("qwen2.5")
    healed = qwen.heal("caf\u0065")
    assert healed.rest == b"cafe"
    composed = [id for id, token in ordinary(qwen) if token.startswith("caf\u00e9".encode())]
    assert set(composed) <= set(healed.allowed_ids().tolist())
