"""Compares random files with `tokenizers`, for all models, components, flags and abilities."""

from __future__ import annotations

import itertools
import pickle
import re
from typing import Any

import pytest
from charsmaps import charsmap
from hf_components import (
    CL100K,
    added_tokens,
    decoder_chains,
    extra_texts,
    flags,
    flip,
    model,
    normalizer_chains,
    pre_tokenizer_chains,
    processor_chains,
)
from hf_models import MODELS, model_of, text_of
from hf_oracle import (
    CHARACTER_FILES,
    FIELDS,
    FILES,
    TEXTS,
    both,
    fields_of,
    same_outcome,
    texts_with_added,
    tokenizer_path,
    tokenizers,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import EXAMPLES, seeded
from tokenizers import Regex, normalizers, pre_tokenizers

import bpe_engine
from bpe_engine import hf
from bpe_engine.prompt import trusted, untrusted

KINDS = ["bytes", "bytes", "characters", *MODELS]
#: Splits and normalizers under which only the kept part of a long text is read.
PLAIN = [
    *(pre_tokenizers.ByteLevel(add_prefix_space=prefix) for prefix in (False, True)),
    pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(CL100K), "isolated"), pre_tokenizers.ByteLevel(False, False)]
    ),
]
FORMS = [None, normalizers.NFC(), normalizers.NFKD(), normalizers.Lowercase()]
WORDS = (
    "Hello world, don't STOP  12345 \n\n e\u0301 日本語。 😀 <s> </s> <mask>x <|endoftext|> a_b ﬁ "
)
REFUSED = r"added_tokens\[\d\]: .* once normalized|model.merges\[\d+\]: a merge of (a|the) token for unknown"


def made_model(kind: str, seed: int) -> Any:
    """Returns a model of this kind, with few letters or without some bytes or characters."""
    if kind in MODELS:
        return model_of(kind, seed)
    rng = seeded("pipeline", seed)
    # The candidates include the space, é, the line break and the first byte of 日.
    lacking = "".join(rng.choices("heloĠÃ©ĊæÂa1▁é日", k=rng.randrange(5) * flip(rng)))
    unknown = rng.choice([None, "<in the vocabulary>", "<u>", "a", "he"])
    is_fused, byte_tokens = flip(rng), rng.choice([256, 256, 100, 0])
    return model(
        seed, flip(rng), flip(rng), rng.randrange(61), lacking, unknown, is_fused,
        kind == "characters", byte_tokens,
    )  # fmt: skip


def pipeline(
    made: Any, added: list[Any], **parts: Any
) -> tuple[hf.Tokenizer, tokenizers.Tokenizer] | None:
    """Returns our tokenizer and theirs; None if either refuses the added tokens or merges."""
    theirs = tokenizers.Tokenizer(made)
    for name, part in parts.items():
        if part is not None:
            setattr(theirs, name, part)
    try:
        theirs.add_tokens(added)
        theirs = tokenizers.Tokenizer.from_str(theirs.to_str())
    except Exception as error:
        # Normalization makes two added tokens equal.
        assert "pattern" in str(error).lower() or "duplicate" in str(error).lower(), error
        return None
    try:
        return hf.Tokenizer.from_str(theirs.to_str()), theirs
    except hf.UnsupportedTokenizer as error:
        assert re.match(REFUSED, str(error)), error
        return None


def same_abilities(ours: hf.Tokenizer, theirs: Any, text: str, limit: int) -> None:
    """Compares ids, counts and offsets from methods other than `encode`, and decoding."""
    try:
        expected = theirs.encode(text, add_special_tokens=False)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            with pytest.raises(ValueError):
                ours.count(text)
        return
    ids = expected.ids
    assert ours.encode_to_numpy(text).tolist() == ids
    found, spans = ours.encode_with_offsets(text)
    assert found == ids
    is_whole = ours.normalizer is None and ours.post_processor is None
    if is_whole and fields_of(theirs) == FIELDS:
        assert spans == expected.offsets
    assert ours.count(text) == len(ids)
    assert ours.count_till_limit(text, limit) == (len(ids) if len(ids) <= limit else None)
    for name, start, end in ours.find_special(text):
        assert name.strip() in text[start:end] or ours.normalizer is not None
    long = (ids * 4096)[:4096]
    for skip, some in itertools.product((True, False), (ids, long)):
        assert ours.decode(some, skip) == theirs.decode(some, skip), text
    borders = {0, len(text), *(at for span in (*expected.offsets, *spans) for at in span)}
    is_apart = type(theirs.model).__name__ != "BPE"  # Unknown characters may share one offset.
    for place in cuts(ours, text, limit):
        assert place in borders or is_apart or ours.post_processor is not None, (text, place)


def cuts(ours: hf.Tokenizer, text: str, limit: int) -> list[int]:
    """Checks that parts and chunks fit their limits; returns where `truncate` cuts."""

    def count(part: str) -> int:
        return len(ours.encode(part, add_special_tokens=False).ids)

    kept, last = (ours.truncate(text, limit, side=side) for side in ("right", "left"))
    assert text.startswith(kept) and text.endswith(last)
    assert max(count(kept), count(last)) <= limit, (text, kept, last)
    if count(text) <= limit:
        assert kept == last == text
    for overlap in (0, limit // 2):
        try:
            chunks = ours.chunk_spans(text, max(limit, 1), overlap)
        except ValueError as error:
            assert "alone has more than" in str(error) or "overlap" in str(error)
            continue
        joined = chunks[0][0] if chunks else 0
        for start, end, tokens in chunks:
            assert start <= joined < end and tokens <= max(limit, 1)
            assert count(text[start:end]) == tokens
            joined = end
        assert joined == len(text)
    return [len(kept), len(text) - len(last)]


def same_truncation(pair: Any, inputs: list[Any], cut: dict[str, Any], with_words: bool) -> None:
    """Compares every field of long truncated texts, and of a few overflowing parts."""
    for given_input in inputs:
        outcomes: list[Any] = []
        for tokenizer in pair:
            tokenizer.no_truncation()
            try:
                tokenizer.enable_truncation(**cut)
                outcomes.append(tokenizer.encode(*given_input, is_pretokenized=with_words))
            except Exception as error:
                outcomes.append(str(error))
            except BaseException as error:
                assert type(error).__name__ == "PanicException"
                return
        ours, theirs = outcomes
        assert isinstance(ours, str) == isinstance(theirs, str), (cut, outcomes)
        if isinstance(ours, str):
            continue
        parts, expected = ours.overflowing, theirs.overflowing
        assert len(parts) == len(expected), cut
        few = sorted({*range(3), *range(len(parts) - 3, len(parts))} & {*range(len(parts))})
        for one, other in [(ours, theirs), *((parts[at], expected[at]) for at in few)]:
            for name in fields_of(pair[1]):
                assert getattr(one, name) == getattr(other, name), (name, cut)


def check(kind, seed, parts, added, texts, other, limit):
    pair = pipeline(made_model(kind, seed), added, **parts)
    if pair is None:
        return
    ours, theirs = pair
    assert ours.to_str() == theirs.to_str()
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.get_vocab_size() == theirs.get_vocab_size()
    rng = seeded("texts", seed)
    texts = [*texts, *(text_of(rng) for _ in range(3)), *rng.sample(TEXTS, 4)]
    for text in texts:
        if same_outcome(ours, theirs, text):
            same_abilities(ours, theirs, text, limit)
    same_outcome(ours, theirs, *texts[:2])
    same_outcome(ours, theirs, texts[0].split(" "), is_pretokenized=True)
    again = pickle.loads(pickle.dumps(ours))
    assert again.fingerprint == ours.fingerprint and again.to_str() == ours.to_str()
    # Changes components. `tokenizers` caches words, so its tokenizer is read again.
    theirs = tokenizers.Tokenizer.from_str(theirs.to_str())
    try:
        for tokenizer in (ours, theirs):
            tokenizer.pre_tokenizer = other
            if kind not in MODELS:
                tokenizer.model.unk_token = None if tokenizer.model.unk_token else "<u>"
                tokenizer.model.fuse_unk = not tokenizer.model.fuse_unk
                tokenizer.model.ignore_merges = not tokenizer.model.ignore_merges
    except hf.UnsupportedTokenizer as error:
        assert "a merge of" in str(error), error
        return
    assert ours.to_str() == theirs.to_str()
    same_outcome(ours, theirs, texts[1])


pipelines = given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    parts=st.fixed_dictionaries(
        {
            "normalizer": normalizer_chains,
            "pre_tokenizer": pre_tokenizer_chains,
            "post_processor": processor_chains,
            "decoder": decoder_chains,
        }
    ),
    added=added_tokens,
    texts=st.lists(extra_texts, min_size=2, max_size=4),
    other=pre_tokenizer_chains,
    limit=st.integers(0, 12),
)


@settings(max_examples=4 * EXAMPLES)
@pipelines
def test_every_combination(**case):
    check(**case)


def check_truncation(kind, seed, parts, added, cut, sides, with_words):
    pair = pipeline(made_model(kind, seed), added, **parts)
    if pair is None:
        return
    rng = seeded("early end", seed)
    words = [*WORDS.split(" "), " world", "、", "\u0301", "<a>", " <s>", "lo ", "\n\n", "   "]
    # The overflow of a pair combines every part of one text with every part of the other.
    long, *texts = ("".join(rng.choices(words, k=count)) for count in (900, 250, 200, 0))
    inputs: list[Any] = [(long,), *((texts[a], texts[b]) for a, b in sides)]
    if with_words:
        inputs = [tuple(text.split(" ") for text in given_input) for given_input in inputs]
    same_truncation(pair, inputs, cut, with_words)


truncations = given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    parts=st.fixed_dictionaries(
        {
            "normalizer": st.one_of(st.sampled_from(FORMS), normalizer_chains),
            "pre_tokenizer": st.one_of(st.sampled_from(PLAIN), pre_tokenizer_chains),
            "post_processor": processor_chains,
        }
    ),
    added=added_tokens,
    cut=st.fixed_dictionaries(
        {
            "max_length": st.sampled_from([301, 400, 677]),
            "stride": st.sampled_from([0, 3, 100]),
            "strategy": st.sampled_from(["longest_first", "only_first", "only_second"]),
            "direction": st.sampled_from(["right", "right", "left"]),
        }
    ),
    sides=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=2),
    with_words=flags,
)


@settings(max_examples=EXAMPLES)
@truncations
def test_truncation(**case):
    check_truncation(**case)


@pytest.mark.parametrize("name", [*FILES, *CHARACTER_FILES])
def test_real_files(name):
    path = tokenizer_path(name)
    with open(path, encoding="utf-8") as file:
        ours, theirs = both(file.read())
    for text in [*TEXTS, *texts_with_added(path), WORDS * 3]:
        for limit in (0, 7):
            same_abilities(ours, theirs, text, limit)
    same_abilities(ours, theirs, WORDS * 40, 1000)
    text = WORDS * 3000
    ids = ours.encode(text, add_special_tokens=False).ids
    assert ours.encode_to_numpy(text, num_threads=2).tolist() == ids
    for side in ("right", "left"):
        assert 990 <= ours.count(ours.truncate(text, 1000, side=side)) <= 1000
    for text in [*TEXTS, WORDS]:
        ids = theirs.encode(text, add_special_tokens=False).ids
        whole, starts = ours.decode_with_offsets(ids)
        assert whole == theirs.decode(ids, skip_special_tokens=False)
        assert len(starts) == len(ids) and sorted(starts) == starts
        if theirs.encode(whole, add_special_tokens=False).ids == ids and "<" not in text:
            assert ours.is_canonical(ids), text
    assert not ours.is_canonical(seeded("shuffled").sample(ids, len(ids)))
    for strategy in ("longest_first", "only_first", "only_second"):
        cut = {"max_length": 512, "strategy": strategy}
        same_truncation((ours, theirs), [(WORDS * 60,), (WORDS * 60, WORDS * 30)], cut, False)


def test_a_run_of_bytes_is_cut_between_characters() -> None:
    """Bytes of unknown characters are cut between characters; `tokenizers` merges their spans."""
    pieces = [("<unk>", 0.0), *((f"<0x{byte:02X}>", 0.0) for byte in range(256)), ("▁", -3.0)]
    tokenizer = hf.Tokenizer(hf.Unigram([*pieces, ("a", -2.0)], 0, True))
    text = "日本語" * 50 + " a " + "éü" * 30
    for most in (3, 7, 20):
        spans = tokenizer.chunk_spans(text, most)
        assert "".join(text[start:end] for start, end, _ in spans) == text
        assert all(count <= most for *_, count in spans)
        assert tokenizer.truncate(text, most) == text[: most // 3]
        assert tokenizer.truncate(text, most, side="left") == text[-(most // 2) :]


@pytest.mark.parametrize("has_bytes", [False, True])
def test_unknown_characters_never_become_names_in_segments(has_bytes: bool) -> None:
    """Unigram looks up a run of unknown characters, which may be the name of a special token."""
    bytes_of = [(f"<0x{byte:02X}>", 0.0) for byte in range(256)] if has_bytes else []
    pieces = [("<unk>", 0.0), ("▁", -1.0), ("a", -1.0), ("</s>", 0.0), ("#", -1.0), *bytes_of]
    theirs = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, 0, has_bytes))
    theirs.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", True)
    theirs.add_special_tokens(["</s>", "#"])
    ours, _ = both(theirs.to_str())
    for text in ("a</s>", "</s>", "a#a", "#", "日本</s>"):
        for segment in (untrusted(text), untrusted(text.replace("a", "a "))):
            ids = ours.encode_segments([segment])
            assert not {3, 4} & set(ids), (segment, ids)
            ours.audit_segments([segment]).assert_safe()
    assert ours.encode_segments([untrusted("a</s>")])[:2] == [1, 2]
    assert ours.encode_segments([trusted("a</s>")])[-1] == 3


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.Replace(tokenizers.Regex(" {2,}"), "▁"),
        normalizers.Precompiled(charsmap({"a": "", "é": "x y", "\t": ""})),
        normalizers.Replace("a", ""),
    ],
    ids=["joined", "removed by a rule", "removed"],
)
@pytest.mark.parametrize("is_cut", [False, True])
def test_beginnings_that_a_normalizer_changes(normalizer: Any, is_cut: bool) -> None:
    """Metaspace recognizes a beginning by its offset, which after joined spaces or removed text is
    the offset of their last character."""
    vocab = {"<unk>": 0, "_": 1, "▁": 2, "_b": 3, "b": 4, "y": 5, "_y": 6}
    theirs = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, "<unk>"))
    theirs.normalizer = normalizer
    metaspace = pre_tokenizers.Metaspace("_", "first")
    cut = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    theirs.pre_tokenizer = cut if is_cut else metaspace
    theirs.add_tokens(["x"])
    ours, theirs = both(theirs.to_str())
    texts = [
        "  ",
        "   a",
        "a",
        " a",
        "",
        "  a  b",
        "a  ",
        "ab",
        "ab b",
        "\tb",
        "aab",
        "aé",
        "éb",
        "xb",
    ]
    for text in texts:
        expected = theirs.encode(text).ids
        assert ours.encode(text).ids == expected
        assert ours.encode_segments([trusted(text)]) == expected
        assert bpe_engine.prompt.Conversation(ours).update(text).ids == expected
        assert ours.encode_with_offsets(text, unit="bytes")[0] == expected
