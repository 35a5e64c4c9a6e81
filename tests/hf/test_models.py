"""Compares random models of every type except BPE with `tokenizers`, in every pipeline."""

from __future__ import annotations

import codecs
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hf_models import MODELS, model_of, text_of
from hf_oracle import assert_same, both, same_outcome, tokenizers
from kinds import LEVEL
from seeds import rounds, seeded

import bpe_engine
from bpe_engine import hf

KINDS = sorted(MODELS)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces(kind):
    for seed in range(rounds(150)):
        model = model_of(kind, seed)
        ours, theirs = both(tokenizers.Tokenizer(model).to_str())
        rng = seeded("pieces", seed)
        for text in [text_of(rng) for _ in range(20)]:
            try:
                expected = [token.as_tuple() for token in theirs.model.tokenize(text)]
            except Exception:
                with pytest.raises(ValueError, match=r"model\.unk_"):
                    ours.model.tokenize(text)
                continue
            assert [token.as_tuple() for token in ours.model.tokenize(text)] == expected, text
            if not text:
                continue
            ids = ours.encode(text).ids
            assert ids == [id for id, *_ in expected]
            ours.set_caching(False)
            assert ours.encode(text).ids == ids
            ours.set_caching(True)


FIELDS = {
    "merges": [],
    "unk_token": "a",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "unk_id": 0,
    "byte_fallback": False,
}


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_files_without_a_type(is_list, seed):
    rng = seeded("fields", seed)
    fields = {name: value for name, value in FIELDS.items() if rng.random() < 0.7}
    if rng.random() < 0.3:
        fields[rng.choice(sorted(FIELDS))] = rng.choice([None, 3, "x"])
    vocab = [["a", 0], ["b", -1.5]] if is_list else {"a": 0, "b": 1}
    contents = json.dumps({"model": {**fields, "vocab": vocab}})
    try:
        theirs = tokenizers.Tokenizer.from_str(contents)
    except Exception:
        with pytest.raises(ValueError):
            hf.Tokenizer.from_str(contents)
        return
    ours = hf.Tokenizer.from_str(contents)
    assert ours.to_str() == theirs.to_str()
    same_outcome(ours, theirs, "ab b ba")


@pytest.mark.parametrize(
    "more", [{}, {"continuing_subword_prefix": "##", "max_input_chars_per_word": 3}]
)
@pytest.mark.parametrize(
    "fields",
    [
        {"merges": [["a"]]},
        {"merges": ["a b c"]},
        {"merges": 5},
        {"merges": [["a", "c"]]},
        {"merges": [], "dropout": 2.0},
        {"merges": [], "fuse_unk": "x"},
    ],
)
def test_a_model_that_cannot_be_bpe_is_of_the_next_type(fields, more):
    contents = {"vocab": {"a": 0, "b": 1, "##b": 2}, **fields, **more}
    ours, theirs = both(json.dumps({"model": {**contents, "unk_token": "a"}}))
    assert type(ours.model).__name__ == ("WordPiece" if more else "WordLevel")
    same_outcome(ours, theirs, "ab b ba")
    for model in (contents, {**contents, "type": "BPE", "unk_token": "a"}):
        for reads in (tokenizers, hf):
            with pytest.raises(Exception, match="match|erge|ropout|boolean|vocab|without a type"):
                reads.Tokenizer.from_str(json.dumps({"model": model}))


def test_byte_level_files_without_a_byte():
    level = {**LEVEL, "trim_offsets": True}
    for vocab in ({"☺": 0}, {"": 0}, {"☺": 3, "<unk>": 1}, {"<u>☺": 0}):
        model = {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>"}
        for split in (level, None):
            contents = {"pre_tokenizer": split, "decoder": split, "model": model}
            ours, theirs = both(json.dumps(contents))
            assert ours.to_str() == theirs.to_str()
            assert ours.encode("").ids == theirs.encode("").ids == []
            for text in ("a", "☺", "é ☺"):
                same_outcome(ours, theirs, text)


def test_versions():
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    assert both(json.dumps({"model": model}))[0].encode("a").ids == [0]
    for version in (None, 1.0, 1, "2.0"):
        for reads in (tokenizers, hf):
            with pytest.raises(Exception, match="version|null|float|integer"):
                reads.Tokenizer.from_str(json.dumps({"version": version, "model": model}))


def test_templates_that_cannot_be_filled():
    """Reading succeeds; only filling a template with a missing part fails."""

    def token(name):
        return {"SpecialToken": {"id": name, "type_id": 0}}

    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    known = {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}
    cases = [
        ([token("[CLS]"), first], [token("[SEP]"), first, second]),
        ([token("[SEP]"), first], [first, second]),
        ([second], [first, second]),
        ([first, second], [first, second]),
    ]
    vocab = {"a": 0, "[CLS]": 1, "b": 2}
    for single, pair in cases:
        template = {"single": single, "pair": pair, "special_tokens": known}
        contents = {
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": {"type": "TemplateProcessing", **template},
            "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "a"},
        }
        ours, theirs = both(json.dumps(contents))
        assert ours.to_str() == theirs.to_str()
        assert ours.num_special_tokens_to_add(False) == theirs.num_special_tokens_to_add(False)
        failed = 0
        for more in ((), ("b",)):
            for add in (True, False):
                try:
                    expected = theirs.encode("a b", *more, add_special_tokens=add)
                except BaseException as error:
                    assert type(error).__name__ == "PanicException"
                    with pytest.raises(ValueError, match="post_processor: the template"):
                        ours.encode("a b", *more, add_special_tokens=add)
                    with pytest.raises(ValueError, match="post_processor: the template"):
                        ours.encode_batch(
                            [("a b", *more) if more else "a b"], add_special_tokens=add
                        )
                    failed += 1
                    continue
                assert_same(ours.encode("a b", *more, add_special_tokens=add), expected)
        assert failed == (2 if second in single else 1)


SPLITS = [
    None,
    {"type": "WhitespaceSplit"},
    {"type": "Whitespace"},
    {"type": "BertPreTokenizer"},
    *(
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": is_split}
        for scheme in ("always", "first", "never")
        for is_split in (True, False)
    ),
]
SPLITS.append({"type": "Sequence", "pretokenizers": [SPLITS[1], SPLITS[4]]})


def unigram_file(rng, letters):
    """Returns the JSON of a Unigram model over few letters; text may contain the unknown piece."""
    pieces = {
        "".join(rng.choices(letters, k=rng.randrange(1, 8)))
        for _ in range(rng.choice([3, 20, 200]))
    }
    pieces |= {letter for letter in letters if rng.random() < 0.6}
    pieces |= {"▁" + piece for piece in sorted(pieces)[:60] if rng.random() < 0.5}
    score = rng.choice(
        [lambda: -float(rng.randrange(5)), lambda: -rng.uniform(0, 15), lambda: rng.uniform(-1, 1)]
    )
    rows = [(piece, score()) for piece in sorted(pieces - {"<unk>"})]
    rng.shuffle(rows)
    has_bytes = rng.random() < 0.3
    if has_bytes:
        rows += [(f"<0x{byte:02X}>", -9.0) for byte in range(rng.choice([0, 64]), 256)]
    place = rng.choice([0, 0, len(rows) // 2, len(rows)])
    rows.insert(place, ("<unk>", score()))
    normalizers = [None, None, {"type": "NFKC"}, {"type": "Lowercase"}]
    normalizers.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return json.dumps(
        {
            "normalizer": rng.choice(normalizers),
            "pre_tokenizer": rng.choice(SPLITS),
            "model": {
                "type": "Unigram",
                "unk_id": place,
                "vocab": rows,
                "byte_fallback": has_bytes,
            },
        }
    )


@pytest.mark.parametrize("letters", ["xyz<>", "<unk>", "ab", "aé中", "ab▁", "a1-.,"])
def test_the_unknown_piece_in_a_text(letters):
    """The piece fuses with adjacent unknown characters, on every code path."""
    rng = seeded("unknown pieces", letters)
    parts = (
        ["<unk>"] * 4 + [*letters] * 2 + [" ", "  ", "☃", "{", ".", "\n", "é", "<unk", "unk>", "\t"]
    )
    for _ in range(rounds(60)):
        ours, theirs = both(unigram_file(rng, letters))
        texts = ["<unk>{", "{<unk>", "<unk><unk>", "<unk> <unk>", " <unk>", "☃<unk>☃"]
        for size in [*range(12), 60, 400, 3000]:
            texts.append("".join(rng.choice(parts) * rng.choice([1, 1, 2, 9]) for _ in range(size)))
        for text in texts:
            expected = theirs.encode(text)
            assert ours.count(text) == len(expected.ids), text
            assert_same(ours.encode(text), expected, text)
        ids = [found.ids for found in theirs.encode_batch(texts)]
        assert [found.ids for found in ours.encode_batch(texts)] == ids
        assert [row.tolist() for row in ours.encode_batch_to_numpy(texts)] == ids


def test_unknown_characters_of_a_sample_fuse():
    pieces = [("<unk>", 0.0), ("a", -1.0), ("b", -2.0)]
    ours = hf.Tokenizer(hf.models.Unigram(pieces, unk_id=0, alpha=0.5, seed=1))
    assert [ours.encode(text).ids for text in ("axyzb", "xy")] == [[1, 0, 2], [0]]


def test_the_longest_word_is_counted_in_characters():
    pieces = {"[UNK]": 0, "é": 1, "##é": 2}
    model = tokenizers.models.WordPiece(pieces, unk_token="[UNK]", max_input_chars_per_word=5)
    ours, theirs = both(tokenizers.Tokenizer(model).to_str())
    for size in range(1, 12):
        assert_same(ours.encode("é" * size), theirs.encode("é" * size), size)


@pytest.mark.parametrize("kind", KINDS)
def test_long_pieces_are_linear(kind):
    ours, theirs = both(tokenizers.Tokenizer(model_of(kind, 1)).to_str())
    for letter in ("a", "日", "x"):
        same_outcome(ours, theirs, letter * 3000)
        try:
            ours.encode(letter * 10**6)
        except ValueError as error:
            assert "unk_" in str(error)


# ---- Files ----

TWO_TOKENS_OF_ONE_ID = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>", "<s>"]}},
}
SMALL: dict[str, Any] = {"vocab": {"a": 0, "b": 1, "ab": 2, "<u>": 3}, "merges": [["a", "b"]]}


@pytest.mark.parametrize(
    ("part", "value", "start"),
    [
        ("model", {**SMALL, "type": "SuperBPE"}, "model.type"),
        ("pre_tokenizer", {"type": "FixedLength", "length": 0}, "pre_tokenizer.length"),
        (
            "normalizer",
            {"type": "Replace", "pattern": {"Regex": "^"}, "content": "x"},
            "normalizer",
        ),
        ("post_processor", TWO_TOKENS_OF_ONE_ID, "post_processor"),
    ],
)
def test_unsupported_parts_are_named(part, value, start):
    with pytest.raises(hf.UnsupportedTokenizer) as caught:
        hf.Tokenizer.from_str(json.dumps({"model": SMALL, part: value}))
    assert str(caught.value).startswith(start) and isinstance(caught.value, ValueError)


MALFORMED = ["", "{", "[]", "{}", '{"model": 3}', "null", '{"model": {}}']


@pytest.mark.parametrize("text", [*MALFORMED, json.dumps({"model": SMALL, "models": {}})])
def test_malformed_files(text):
    for read in (tokenizers.Tokenizer.from_str, hf.Tokenizer.from_str):
        with pytest.raises(Exception):  # noqa: B017
            read(text)


def test_merges_of_the_unk_token_and_two_spellings():
    model = {**SMALL, "merges": [["a", "b"], ["<u>", "a"]], "unk_token": "<u>"}
    model["vocab"] = {**SMALL["vocab"], "<u>a": 4}
    ours, theirs = both(json.dumps({"model": {**model, "type": "BPE"}}))
    for text in ("ab<u>a", "Aa", "AAab", "aAa"):
        assert_same(ours.encode(text), theirs.encode(text), text)
    spelled = {**model, "merges": ["a b", "<u> a"]}
    spelled |= dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"))
    for each in both(json.dumps({"model": spelled})):
        assert each.to_str() == ours.to_str()


def test_spaces_belong_to_one_token_only():
    _, theirs = both(json.dumps({"model": SMALL}))
    theirs.add_tokens(
        [tokenizers.AddedToken("_", rstrip=True), tokenizers.AddedToken("  ", lstrip=True)]
    )
    ours, theirs = both(theirs.to_str())
    for text in ("_  ", "a  _", "  _"):
        assert_same(ours.encode(text), theirs.encode(text), text)
    # `tokenizers` panics here.
    assert ours.encode("_    a").tokens == ["_    ", "a"]


def test_threads_encode_while_tokens_are_added():
    ours, _ = both(json.dumps({"model": SMALL}))
    expected, failures, stop = ours.encode("abab").ids, [], threading.Event()

    def encode():
        while not stop.is_set():
            if (ids := ours.encode("abab").ids) != expected:
                failures.append(ids)

    threads = [threading.Thread(target=encode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(50):
        ours.add_tokens([f"<{number}>"])
        ours.enable_truncation(100)
        ours.no_truncation()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures and ours.token_to_id("<49>") is not None


@pytest.mark.parametrize("name", ["vocab.txt", "merges.txt", "vocab.json", "tokenizer.json"])
def test_byte_order_marks_are_refused_by_name(tmp_path: Path, name: str) -> None:
    """A byte order mark is refused, because it would become part of the first token."""
    contents = {
        "vocab.txt": "[PAD]\n[UNK]\n",
        "vocab.json": '{"a": 0, "b": 1, "ab": 2}',
        "merges.txt": "#version: 0.2\na b\n",
        "tokenizer.json": '{"model": {"type": "BPE", "vocab": {}, "merges": []}}',
    }
    for file, text in contents.items():
        mark = codecs.BOM_UTF8 if file == name else b""
        (tmp_path / file).write_bytes(mark + text.encode())
    readers = {"vocab.txt": hf.Tokenizer.from_wordpiece, "tokenizer.json": hf.Tokenizer.from_file}
    path = tmp_path / name
    with pytest.raises(ValueError, match=f"{name} begins with a byte order mark; save it as UTF-8"):
        if name in readers:
            readers[name](path)
        else:
            hf.BPE.from_file(tmp_path / "vocab.json", tmp_path / "merges.txt")
    with pytest.raises(ValueError, match="byte order mark"):
        bpe_engine.open_tokenizer(path)
    if name == "tokenizer.json":
        text = path.read_text("utf-8-sig")
        for read, given, problem in (
            (hf.Tokenizer.from_buffer, path.read_bytes(), "begins with a byte order mark"),
            (hf.Tokenizer.from_str, f"\ufeff{text}", "begins with a byte order mark"),
            (hf.Tokenizer.from_buffer, text.encode("utf-16"), "is UTF-16 or UTF-32; convert it"),
            (hf.Tokenizer.from_buffer, text.encode("utf-16-le"), "is UTF-16 or UTF-32; convert it"),
        ):
            with pytest.raises(ValueError, match=f"the tokenizer file {problem}"):
                read(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["tokenizer_config.json", "chat_template.jinja", "additional_chat_templates/x.jinja"]
)
def test_byte_order_marks_in_a_folder_are_refused_by_name(tmp_path: Path, name: str) -> None:
    """A byte order mark is refused, because it would begin every prompt of a template."""
    bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2")).save_pretrained(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("\ufeff{}", encoding="utf-8")
    with pytest.raises(ValueError, match=f"{name} begins with a byte order mark; save it as UTF-8"):
        bpe_engine.Tokenizer.from_pretrained(tmp_path)


def test_json_that_is_no_path() -> None:
    for text, is_path in (("[]", False), ("null", False), ("tokenizer.json", True)):
        with pytest.raises(ValueError) as refused:
            hf.Tokenizer(text)
        assert ("from_file takes its path" in str(refused.value)) == is_path
    with pytest.raises(
        TypeError, match="or a model, not the .*Path.*; Tokenizer.from_file takes a"
    ):
        hf.Tokenizer(Path("tokenizer.json"))
    with pytest.raises(TypeError, match="or a model, not the int 5$"):
        hf.Tokenizer(5)


def test_files_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\n\xff\n")
    for read in (hf.WordPiece.from_file, hf.Tokenizer.from_wordpiece, bpe_engine.open_tokenizer):
        with pytest.raises(ValueError, match=r"vocab.txt is not UTF-8 \(byte 6\)"):
            read(path)


def test_numbers_are_no_paths() -> None:
    """An int as a path is refused, not read as a file descriptor."""
    for read in (
        hf.Tokenizer.from_file,
        hf.Tokenizer.from_sentencepiece,
        hf.Tokenizer.from_wordpiece,
        hf.Tokenizer.from_pretrained,
        hf.WordPiece.from_file,
        hf.WordLevel.from_file,
        lambda number: hf.BPE.from_file(number, number),
        bpe_engine.open_tokenizer,
    ):
        with pytest.raises(TypeError, match="int"):
            read(0)


def test_tokens_that_no_file_can_hold(tmp_path: Path) -> None:
    """`tokenizers` would write a file that it cannot read back."""
    for token in (" c", "c\n", "#version"):
        model = hf.BPE({token: 0, "a": 1, token + "a": 2}, [(token, "a")])
        with pytest.raises(ValueError, match=r"merges.txt cannot hold the token .*Tokenizer.save"):
            model.save(tmp_path)
    for vocab in ({"[UNK]": 0, "a": 2}, {"[UNK]": 0, "a ": 1}, {"[UNK]": 0, "a\nb": 1}):
        with pytest.raises(ValueError, match=r"vocab.txt cannot hold the token .*Tokenizer.save"):
            hf.WordPiece(vocab).save(tmp_path)
    assert not list(tmp_path.iterdir())


TEKKEN: dict[str, Any] = {
    "config": {"default_num_special_tokens": 1, "default_vocab_size": 3, "pattern": "."},
    "vocab": [{"rank": 0, "token_bytes": "YQ=="}, {"rank": 1, "token_bytes": "Yg=="}],
    "special_tokens": [{"rank": 0, "token_str": "<s>"}],
}


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (("vocab", 0, "rank"), 1.0, "floating point `1.0`, expected u32"),
        (("vocab", 0, "rank"), -1, "integer `-1`, expected u32"),
        (("vocab", 0), None, "null, expected struct Token"),
        (("vocab", 0, "token_bytes"), "!!!!", r"vocab\[0\].token_bytes: bad base64"),
        (("vocab", 0, "token_bytes"), "", r"vocab\[0\].token_bytes: a token without bytes"),
        (("vocab", 0, "token_bytes"), None, "null, expected a string"),
        (("vocab",), {"token_bytes": ""}, "map, expected a sequence"),
        (("config",), [], "invalid length 0, expected struct Config"),
        (("config", "default_num_special_tokens"), -5, "integer `-5`, expected u32"),
        (("config", "default_num_special_tokens"), 5, "vocab_size, 3, is below the special"),
        (("config", "default_vocab_size"), "3", 'string "3", expected u32'),
        (("config", "pattern"), 5, "integer `5`, expected a string"),
        (("special_tokens", 0, "rank"), 1.0, "floating point `1.0`"),
        (("special_tokens", 0, "token_str"), 5, "integer `5`, expected a string"),
        (("special_tokens",), 5, "integer `5`, expected a sequence"),
        ((), '{"token_bytes":', "EOF while parsing"),
        ((), '{"token_bytes":' + "[" * 100_000, "EOF while parsing"),
        ((), '{"token_bytes":' + "9" * 5_000, "EOF while parsing"),
    ],
)  # fmt: skip
def test_malformed_tekken_files(
    tmp_path: Path, place: tuple[Any, ...], value: Any, problem: str
) -> None:
    """`place` holds the keys that lead to a field; it is empty for the whole file."""
    whole = holder = json.loads(json.dumps(TEKKEN))
    for key in place[:-1]:
        holder = holder[key]
    if place:
        holder[place[-1]] = value
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(whole) if place else value, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"tekken.json: not a tekken.json: .*{problem}"):
        bpe_engine.open_tokenizer(path)


def test_ranks_order_the_vocabulary_of_tekken(tmp_path: Path) -> None:
    """The vocabulary is the first `default_vocab_size` tokens in rank order."""
    found = []
    more = [*TEKKEN["vocab"], {"rank": 2, "token_bytes": "Yw=="}]
    for vocab in (more, more[::-1]):
        path = tmp_path / "tekken.json"
        path.write_text(json.dumps({**TEKKEN, "vocab": vocab}), encoding="utf-8")
        found.append(bpe_engine.open_tokenizer(path).encode("abba"))
    assert found == [[1, 2, 2, 1]] * 2


# ---- Models from the package `tokenizers` ----


def test_reprs_and_numbers_below_zero() -> None:
    pieces = [(letter, -1.0) for letter in "abcdefgh"]
    assert repr(hf.Unigram(pieces, 0)) == repr(tokenizers.models.Unigram(pieces, 0))
    assert hf.Tokenizer(model=tokenizers.models.Unigram(pieces, 0)).get_vocab_size() == len(pieces)
    for module in (hf, tokenizers.models):
        model = module.Unigram(pieces, 0)
        with pytest.raises(OverflowError):
            model.nbest_size = -1
        with pytest.raises(OverflowError):
            module.WordPiece({"a": 0}, max_input_chars_per_word=-1)
