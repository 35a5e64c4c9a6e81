"""Tests files and arguments that ask for too much memory or work."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from hf_oracle import assert_same, both, tokenizers
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers
from tokenizers import decoders as their_decoders

from bpe_engine import hf


def made(*, added=(), **components) -> tokenizers.Tokenizer:
    """Returns a byte-level tokenizer from the package `tokenizers`."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {character: id for id, character in enumerate(alphabet)}
    theirs = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[]))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for name, value in components.items():
        setattr(theirs, name, value)
    theirs.add_tokens(list(added))
    return theirs


def in_a_process(code: str, megabytes: int = 4096) -> str:
    """Runs a program that uses `ours`, with limited memory and time; returns its output."""
    program = f"""
        import gc, resource, sys
        from bpe_engine import hf
        resource.setrlimit(resource.RLIMIT_AS, ({megabytes} << 20,) * 2)
        ours = hf.Tokenizer.from_str(sys.stdin.read())
    """
    program = textwrap.dedent(program) + textwrap.dedent(code)
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, input=made().to_str(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.mark.parametrize("pattern", [r"\b", "a*", "^", ""])
def test_inserting_is_refused_with_the_file(pattern):
    theirs = made(normalizer=normalizers.Replace(Regex(pattern) if pattern else "", "x"))
    with pytest.raises(hf.UnsupportedTokenizer, match=r"normalizer\.pattern: .*empty text"):
        hf.Tokenizer.from_str(theirs.to_str())


def test_inserting_by_lookaround_is_refused_with_the_text():
    ours = hf.Tokenizer.from_str(made(normalizer=normalizers.Replace(Regex("(?=b)"), "x")).to_str())
    assert ours.encode("aa").tokens == ["a", "a"]
    for read in (lambda: ours.encode("ab").ids, lambda: ours.normalizer.normalize_str("ab")):
        with pytest.raises(hf.UnsupportedTokenizer, match=r"normalizer\.pattern: .*empty text"):
            read()


@pytest.mark.parametrize("pattern", [r"\b", "a*", "(?=b)", "(?<=a)b?"])
def test_patterns_that_match_nothing_where_that_is_certain(pattern):
    replaced = normalizers.Replace(Regex(pattern), "")
    decoder = their_decoders.Replace(Regex(pattern), "<>")
    ours, theirs = both(made(normalizer=replaced, decoder=decoder).to_str())
    for text in ("aab b", "b", "", "éaab"):
        assert_same(ours.encode(text), theirs.encode(text), text)
        tokens = ["aab", "", "b a", "x"]
        assert ours.decoder.decode(tokens) == theirs.decoder.decode(tokens)


def test_replacements_that_double_a_text_end():
    doubling = normalizers.Sequence([normalizers.Replace("x", "xx")] * 60)
    ours = hf.Tokenizer.from_str(made(normalizer=doubling).to_str())
    assert ours.encode("a").tokens == ["a"]
    for read in (lambda: ours.encode("x").ids, lambda: ours.normalizer.normalize_str("x")):
        with pytest.raises(hf.UnsupportedTokenizer, match="bytes of a text"):
            read()
    once, theirs = both(made(normalizer=normalizers.Replace("x", "y" * 1000)).to_str())
    assert_same(once.encode("axb"), theirs.encode("axb"))


def test_decoders_that_double_a_text_end():
    doubling = their_decoders.Sequence([their_decoders.Replace("x", "xx")] * 60)
    ours = hf.Tokenizer.from_str(made(decoder=doubling).to_str())
    assert ours.decode([65]) == ours.id_to_token(65)
    for read in (lambda: ours.decode(ours.encode("x").ids), lambda: ours.decoder.decode(["x"])):
        with pytest.raises(hf.UnsupportedTokenizer, match="bytes of the tokens"):
            read()


def test_a_decoder_that_strips_more_than_there_is():
    decoder = their_decoders.Strip("x", 10**18, 0)
    ours, theirs = both(made(decoder=decoder).to_str())
    for tokens in (["x", "xxa", "axx", "", "é"], []):
        assert ours.decoder.decode(tokens) == theirs.decoder.decode(tokens)


@pytest.mark.parametrize(
    "options", [{"length": 2**50}, {"length": 2**62}, {"pad_to_multiple_of": 2**63 + 1}], ids=str
)
def test_padding_that_exceeds_memory(options):
    ours, _ = both(made().to_str())
    ours.enable_padding(**options)
    for encode in (ours.encode, lambda text: ours.encode_batch([text, text])):
        with pytest.raises(MemoryError):
            encode("ab")
    ours.no_padding()
    encoding = ours.encode("ab")
    with pytest.raises(MemoryError):
        encoding.pad(2**62)
    assert encoding.tokens == ["a", "b"]


def test_overflow_that_exceeds_memory():
    code = """
        ours.enable_truncation(2)
        try:
            ours.encode("a" * 2_800, "b" * 2_800).overflowing
        except MemoryError:
            print("MemoryError", ours.encode("abc").ids)
    """
    assert in_a_process(code, megabytes=600) == "MemoryError [64, 65]"


@pytest.mark.parametrize("megabytes", range(150, 300, 50))
def test_truncation_of_a_text_that_memory_holds_once(megabytes):
    # Overflow is made from a copy of all ids, which takes 60 MB.
    code = """
        text = "ab " * 5_000_000
        try:
            ours.encode(text)
            ours.enable_truncation(5)
            ours.encode(text)
        except MemoryError:
            ours.enable_truncation(5)
        print(ours.encode("abcabc").ids)
    """
    assert in_a_process(code, megabytes) == "[64, 65, 66, 64, 65]"


def test_looking_at_every_token_of_a_long_text():
    # Each search once took time linear in the text, an hour in total.
    encoding = hf.Tokenizer.from_str(made().to_str()).encode("a b " * 500_000)
    look = encoding.token_to_chars
    assert [look(token) for token in (0, 1, 1_999_999)] == [(0, 1), (1, 2), (1_999_999, 2_000_000)]
    for token in range(len(encoding)):
        look(token)


def test_overflow_far_longer_than_the_text_is_refused():
    ours = hf.Tokenizer.from_str(made().to_str())
    ours.enable_truncation(2)
    encoding = ours.encode("a" * 20_000, "b" * 20_000)
    assert encoding.tokens == ["a", "b"]
    for _ in range(2):
        with pytest.raises(ValueError, match="take a smaller stride, or cut one text of a pair"):
            _ = encoding.overflowing
    assert encoding.offsets == [(0, 1), (0, 1)]
    assert ours.encode("abc").ids == [64, 65]
    ours.enable_truncation(2, strategy="only_first")
    with pytest.raises(ValueError, match="too short"):
        ours.encode("a" * 20_000, "b" * 20_000)


def test_damaged_pickles_of_encodings():
    ours, _ = both(made().to_str())
    encoding = ours.encode("abc")
    ids, details, (parts, _) = encoding._state()
    for start, end in ((0, 4), (2, 1), (5, 2**64 - 1)):
        with pytest.raises(ValueError, match="range of its tokens"):
            type(encoding)._from_state(ids, details, (parts, [(0, start, end)]))


def test_a_finalizer_may_read_the_encoding_that_is_being_read():
    # Up to Python 3.11, making a list may run the finalizers of other objects.
    code = """
        class Reads:
            def __init__(self, encoding):
                self.encoding, self.itself = encoding, self
            def __del__(self):
                read.append(len(self.encoding.ids) + len(self.encoding.offsets))
        read = []
        encoding = ours.encode("abc")
        gc.set_threshold(1)
        for name in ("ids", "type_ids", "tokens", "offsets", "word_ids", "overflowing"):
            Reads(encoding)
            getattr(encoding, name)
        gc.collect()
        print(set(read))
    """
    assert in_a_process(code) == "{6}"


def test_a_long_added_token_of_one_letter():
    # A DFA for the name would take quadratic time to build: hours.
    content = "x" * 1_000_000
    ours = hf.Tokenizer.from_str(made().to_str())
    ours.add_tokens([content])
    assert ours.encode(content * 2 + "x").ids == [256, 256, 87]


@pytest.mark.parametrize("flags", [{"lstrip": True}, {"rstrip": True}], ids=str)
def test_added_tokens_of_whitespace_in_much_whitespace(flags):
    theirs = made(added=[AddedToken("  ", normalized=False, **flags)])
    ours, theirs = both(theirs.to_str())
    for text in ("     ", "a    b", "    x x   x \n\n\n", " x x x"):
        assert_same(ours.encode(text), theirs.encode(text), text)
    # Quadratic work would take hours.
    assert len(ours.encode(" " * 4_000_000).ids) == 2_000_000


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", ["t{}", "<|extra_{}|>", "{}", "{0}<{0}>"])
def test_many_added_tokens_that_begin_alike(name, special):
    # Renumbering the automaton's states took quadratic time: 40 s.
    names = [name.format(number) for number in range(100_000)]
    ours, theirs = (hf.Tokenizer.from_str(made().to_str()), made())
    add = "add_special_tokens" if special else "add_tokens"
    getattr(ours, add)(names)
    getattr(theirs, add)(names[:2000])
    # Single digits are already tokens of the model.
    assert ours.get_vocab_size() >= 256 + 99_990
    text = " ".join(names[:2000:7])
    assert ours.encode(text).ids == theirs.encode(text).ids


def test_one_long_added_token_needs_no_automaton():
    # An automaton for a name of 10 MB once took 515 MiB.
    code = """
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + (200 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        ours.add_tokens(["x" * 10**7])
        print(ours.encode("xx").ids)
    """
    assert in_a_process(code) == "[87, 87]"


def test_added_tokens_that_begin_alike():
    contents = ["<a>", "<ab", "<", "<|x|>", "<|x|>y", "<é>"]
    for chosen in (contents, contents[:2], [*contents, "a<"], ["<<", "<"]):
        added = [AddedToken(content, normalized=False) for content in chosen]
        ours, theirs = both(made(added=added).to_str())
        long = ["<|x <a" * 60, "<b" * 50 + "<a>" + "<c" * 50 + "<|x|>y", "-" * 70 + "<|x|>"]
        for text in ("<a><ab<abc<|x|>y<|x|<<<a", "<é<é><", "", "a<<a<", "<|x|><|x|>y", *long):
            assert_same(ours.encode(text), theirs.encode(text), (chosen, text))


@pytest.mark.parametrize("lengths", [range(2, 25), (2, 5, 24), (3, 24)], ids=str)
def test_added_tokens_of_runs_of_spaces(lengths):
    added = [AddedToken(" " * length, normalized=True) for length in lengths]
    ours, theirs = both(made(added=[*added, "<x>"]).to_str())
    texts = ["".join("x" * (length % 3) + " " * length for length in range(60))]
    texts += [" " * length for length in (1, 2, 23, 24, 25, 100)]
    texts += [
        "  x" * 40,
        "a b c" * 20,
        "x  <x>   <x" * 10 + " " * 30,
        "def f():\n    return 1\n" * 9,
    ]
    for text in texts:
        assert_same(ours.encode(text), theirs.encode(text), (lengths, text))
