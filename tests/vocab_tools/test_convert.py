"""Tests conversions: `tokenizers` and tiktoken must give the same ids before and after."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hf_oracle import SHARED, tokenizer_path
from seeds import few, rounds, seeded
from small_files import write_gguf
from vocab_bases import BYTES, QWEN
from vocab_command import run
from vocab_oracle import apply_ranks

import bpe_engine
from bpe_engine import hf, patterns, vocabulary
from vocab_tools import (
    convert_tokenizer,
    dump_ranks,
    embedding_plan,
    extend_embeddings,
    learn_merges,
    load_ranks,
    read_plan,
    read_special_tokens,
)
from vocab_tools.convert.conversion import NotAlikeError
from vocab_tools.convert.definition import without_second_names
from vocab_tools.convert.pre_tokenizer import (
    pattern_of,
    pre_tokenizer_of,
    without_possessive_counts,
)
from vocab_tools.convert.rank_file import from_encoding
from vocab_tools.embedding.plan import EmbeddingPlan

tokenizers = pytest.importorskip("tokenizers")

WORDS = "low lower lowest newer wider new wide slow slower a an the then there 1999 ??! \n\n".split(
    " "
)


def random_ranks(draw: random.Random, gaps: bool = False) -> dict[bytes, int]:
    """Returns tokens in an order that training never gives; merging reaches only some tokens."""
    ranks = dict(BYTES)
    number = 256
    for _ in range(draw.randint(1, 60)):
        token = b"".join(bytes([draw.choice(b"abc d")]) for _ in range(draw.randint(2, 6)))
        if token not in ranks:
            number += draw.randint(1, 3) if gaps else 1
            ranks[token] = number
    return ranks


def test_splits_are_what_merging_joins_last() -> None:
    for turn in range(rounds(200)):
        ranks = random_ranks(seeded("splits", turn), gaps=True)
        splits = vocabulary.token_splits(ranks)
        for token in ranks:
            # Without the token, merging stops at its two parts.
            others = {other: rank for other, rank in ranks.items() if other != token}
            parts = apply_ranks(token, others)
            reached = apply_ranks(token, ranks) == (token,)
            assert (token in splits) == (reached and len(token) > 1), (turn, token)
            if token in splits:
                assert splits[token] == parts, (turn, token)


def written(folder: Path, source: str, target: str, **options: Any) -> str:
    """Converts `source`, writes the files into a folder, and returns the path of the target."""
    path = str(folder / target)
    conversion = convert_tokenizer(source, path, **options)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    for file, contents in conversion.contents.items():
        Path(file).write_bytes(contents)
    return path


def rank_file(folder: Path, ranks: dict[bytes, int], name: str = "base.tiktoken") -> str:
    path = folder / name
    path.write_bytes(dump_ranks(ranks))
    return str(path)


def test_random_ranks_become_a_tokenizer_json_with_tiktokens_ids(tmp_path: Path) -> None:
    for turn in range(8):
        draw = seeded("ranks", turn)
        ranks = random_ranks(draw, gaps=True)
        specials = {"<|end|>": max(ranks.values()) + draw.randint(1, 9)}
        encoding = tiktoken.Encoding(
            "x", pat_str=patterns.CL100K, mergeable_ranks=ranks, special_tokens=specials
        )
        (tmp_path / "special.json").write_text(json.dumps(specials))
        path = written(
            tmp_path,
            rank_file(tmp_path, ranks),
            "tokenizer.json",
            pattern="cl100k_base",
            special_tokens=specials,
        )
        theirs = tokenizers.Tokenizer.from_file(path)
        for _ in range(50):
            text = "".join(draw.choices("abc d\n1é", k=draw.randint(0, 30))) + "<|end|>"
            expected = encoding.encode(text, allowed_special="all")
            assert theirs.encode(text).ids == expected, (turn, text)
        back = written(tmp_path, path, "back.tiktoken")
        assert load_ranks(back) == load_ranks(ranks)
        assert read_special_tokens(str(tmp_path / "back.encoding.json")) == specials
        assert read_special_tokens(path) == specials


def trained(folder: Path, **settings: Any) -> str:
    """Writes a tokenizer.json trained by `tokenizers`, with ids in random order."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "</s>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    file = json.loads(tokenizer.to_str())
    if settings.pop("shuffled", False):
        vocab = file["model"]["vocab"]
        numbers = list(vocab.values())
        seeded("shuffled").shuffle(numbers)
        file["model"]["vocab"] = dict(zip(vocab, numbers))
        for token in file["added_tokens"]:
            token["id"] = file["model"]["vocab"][token["content"]]
    file["model"].update(settings.pop("model", {}))
    file.update(settings)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(file))
    return str(path)


def test_merges_with_ids_in_any_order_pass_through_gpt2_files(tmp_path: Path) -> None:
    source = trained(tmp_path, shuffled=True)
    pair = written(tmp_path, source, "gpt2/vocab.json")
    back = written(tmp_path, pair, "again.json")
    one, other = (tokenizers.Tokenizer.from_file(path) for path in (source, back))
    assert one.get_vocab() == other.get_vocab()
    assert (
        json.loads(one.to_str())["model"]["merges"] == json.loads(other.to_str())["model"]["merges"]
    )
    assert one.encode("the slowest <s> newest").ids == other.encode("the slowest <s> newest").ids
    # With only the two files of GPT-2's format, brackets mark special tokens.
    (tmp_path / "gpt2" / "vocab.encoding.json").unlink()
    conversion = convert_tokenizer(pair, str(tmp_path / "alone.json"))
    assert sorted(conversion.definition.special_tokens) == ["</s>", "<s>"]
    assert any("</s>" in note for note in conversion.notes)


def test_a_list_that_ranks_cannot_express_is_refused(tmp_path: Path) -> None:
    source = trained(tmp_path, shuffled=True)
    with pytest.raises(
        NotAlikeError, match="ids are ranks|ranks follow the ids|the list of merges does not"
    ) as error:
        convert_tokenizer(source, "x.tiktoken")
    assert error.value.conversion.differing
    assert "and would be" in str(error.value) and "--allow-differences" in str(error.value)
    allowed = convert_tokenizer(source, "x.tiktoken", allow_differences=True)
    assert not allowed.is_exact and allowed.differences[0].before != allowed.differences[0].after


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"normalizer": {"type": "Lowercase"}}, "normalizer: Lowercase"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFD"}]}},
            "normalizer: several steps",
        ),
        (
            {
                "pre_tokenizer": {
                    "type": "ByteLevel",
                    "add_prefix_space": True,
                    "trim_offsets": True,
                }
            },
            "pre_tokenizer: no single pattern",
        ),
    ],
)
def test_what_ranks_and_a_pattern_cannot_express_is_named(
    tmp_path: Path, settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        convert_tokenizer(trained(tmp_path, **settings), "x.tiktoken")


def test_flags_of_added_tokens_are_named_and_kept_in_json(tmp_path: Path) -> None:
    source = trained(tmp_path)
    file = json.loads(Path(source).read_text())
    file["added_tokens"][1]["lstrip"] = True
    Path(source).write_text(json.dumps(file))
    with pytest.raises(NotAlikeError, match="added_tokens: lstrip of </s>"):
        convert_tokenizer(source, "x.tiktoken")
    back = written(tmp_path, written(tmp_path, source, "pair/vocab.json"), "again.json")
    assert json.loads(Path(back).read_text())["added_tokens"] == file["added_tokens"]


def test_tokens_that_merging_does_not_reach(tmp_path: Path) -> None:
    """In a format of ranks, a piece with the bytes of such a token becomes that token. A
    tokenizer.json can express this, GPT-2's files cannot."""
    ranks = {**BYTES, b"ab": 300, b"bc": 301, b"abcd": 302, b"": 303}
    source = rank_file(tmp_path, ranks)
    options: Any = {"pattern": "gpt2", "special_tokens": {}}
    path = written(tmp_path, source, "tokenizer.json", **options)
    file = json.loads(Path(path).read_text())
    assert file["model"]["ignore_merges"] is True
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    assert theirs.encode("abcd abcdx").ids == [302, *theirs.encode(" abcdx").ids]
    # Every format keeps an empty token, which no piece ever becomes.
    empty = rank_file(tmp_path, {**BYTES, b"": 303}, "empty.tiktoken")
    again = written(tmp_path, empty, "pair/vocab.json", **options)
    assert load_ranks(written(tmp_path, again, "e.tiktoken"))[b""] == 303
    with pytest.raises(NotAlikeError, match="merging does not reach 'abcd'.*list of merges alone"):
        convert_tokenizer(source, "vocab.json", **options)
    # In a format with a list of merges, a piece is not looked up before merging.
    file["model"]["ignore_merges"] = False
    Path(path).write_text(json.dumps(file))
    with pytest.raises(NotAlikeError, match="merging does not reach 'abcd', and by ranks"):
        convert_tokenizer(path, "x.tiktoken")


def test_tekken_there_and_back(tmp_path: Path) -> None:
    ranks = {token: number + 10 for token, number in BYTES.items()} | {b"ab": 266, b"abc": 267}
    specials = {"<unk>": 0, "[INST]": 3}
    source = rank_file(tmp_path, ranks)
    options: Any = {"pattern": "o200k_base", "special_tokens": specials}
    path = written(tmp_path, source, "tekken.json", **options)
    encoding = bpe_engine.load_encoding(path)
    assert encoding.encode("abcb[INST]", allowed_special="all") == [267, 108, 3]
    back = written(tmp_path, path, "back.tiktoken")
    assert load_ranks(back) == load_ranks(ranks)
    assert written(tmp_path, path, "new/tokenizer.json")
    # Ids that the format's numbering does not allow raise an error, and never change silently.
    with pytest.raises(NotAlikeError, match="'!', id 0, would have the id 34"):
        convert_tokenizer("r50k_base", "tekken.json")
    with pytest.raises(ValueError, match="no place for NFC"):
        convert_tokenizer("qwen", "tekken.json")


def test_gguf_is_read(tmp_path: Path) -> None:
    source = trained(tmp_path)
    model = json.loads(Path(source).read_text())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    path = tmp_path / "model.gguf"
    kinds = [3 if token in ("<s>", "</s>") else 1 for token in tokens] + [5]
    merges = [" ".join(pair) for pair in model["merges"]]
    write_gguf(path, [*tokens, "[PAD0]"], kinds, merges)
    back = tokenizers.Tokenizer.from_file(written(tmp_path, str(path), "new/tokenizer.json"))
    theirs = tokenizers.Tokenizer.from_file(source)
    for text in [*WORDS, "the slowest <s> newest</s>", "  \n x"]:
        assert back.encode(text).ids == theirs.encode(text).ids
    assert back.get_vocab() == theirs.get_vocab()
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="GGUF file"):
        convert_tokenizer(str(path), "x.json")


def test_the_name_of_a_pattern_gives_the_pattern_alone(tmp_path: Path) -> None:
    model = json.loads(Path(trained(tmp_path)).read_text())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    names = ["<|turn|>", "<|over|>"]
    path = tmp_path / "chat.gguf"
    kinds = [3 if name in ("<s>", "</s>", *names) else 1 for name in (*tokens, *names)]
    merges = [" ".join(pair) for pair in model["merges"]]
    write_gguf(path, [*tokens, *names], kinds, merges, "default")
    for pattern in ("gpt2", "o200k_base", bpe_engine.get_encoding("o200k_base").pattern):
        made = convert_tokenizer(str(path), str(tmp_path / "o.json"), pattern=pattern)
        assert made.is_exact
        added = json.loads(made.contents[str(tmp_path / "o.json")])["added_tokens"]
        assert [token["content"] for token in added] == ["<s>", "</s>", *names]
    ranks = rank_file(tmp_path, {bytes([byte]): byte for byte in range(256)})
    made = convert_tokenizer(ranks, str(tmp_path / "o.json"), pattern="cl100k_base")
    assert made.definition.special_tokens == {} and made.definition.notes == []
    # Special tokens that are not among the ranks are kept.
    convert_tokenizer("gpt2", str(tmp_path / "back.tiktoken")).save()
    back = str(tmp_path / "back.tiktoken")
    made = convert_tokenizer(back, str(tmp_path / "o.json"), pattern="cl100k_base")
    assert made.definition.special_tokens == {"<|endoftext|>": 50256}
    assert made.definition.pattern == bpe_engine.get_encoding("cl100k_base").pattern
    learned = learn_merges(ranks, {"ab": 1}, pattern="cl100k_base")
    assert learned.tokens == {b"ab": 256} and learned.special_tokens == {}


def test_files_that_are_not_byte_level(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    with pytest.raises(ValueError, match="is not byte-level BPE, and only"):
        convert_tokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "o.json"))


@pytest.mark.parametrize("size", few([2000, 151_643]))
def test_qwen2_5_with_new_tokens_is_what_transformers_loads(tmp_path: Path, size: int) -> None:
    transformers = pytest.importorskip("transformers")
    numpy = pytest.importorskip("numpy")
    whole = dict(bpe_engine.get_encoding("qwen2.5").mergeable_ranks)
    ranks = {token: number for token, number in whole.items() if number < size}
    names = dict(bpe_engine.get_encoding("qwen2.5").special_tokens)
    specials = {name: size + place for place, name in enumerate(names)}
    qwen = vocabulary.make_encoding("x", ranks, patterns.QWEN, specials, "NFC")
    (tmp_path / "base").mkdir()
    base = str(tmp_path / "base" / "tokenizer.json")
    options: Any = {"pattern": "qwen2.5", "special_tokens": specials}
    files = convert_tokenizer(rank_file(tmp_path, ranks), base, **options).contents
    Path(base).write_bytes(files[base])
    assert read_special_tokens(base) == specials
    words = {"myocarditis": 5, " pericardium": 4, "一只猫": 3, "endocarditis": 2}
    start = size + len(specials)
    learned = learn_merges(
        ranks, words, pattern="qwen", special_tokens=read_special_tokens(base), start_id=start
    )
    extra = rank_file(tmp_path, learned.tokens, "extra.tiktoken")
    (tmp_path / "new").mkdir()
    done = run(
        "convert", tmp_path / "base", tmp_path / "new" / "tokenizer.json", "--extra", extra,
        "--plan", tmp_path / "plan.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "have the same ids before and after" in done.stdout
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}
    (tmp_path / "new" / "tokenizer_config.json").write_text(json.dumps(config))
    loaded = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "new"))
    assert len(loaded) == start + len(learned.tokens)
    extended = vocabulary.make_encoding(
        "x", {**ranks, **learned.tokens}, patterns.QWEN, specials, "NFC"
    )
    for text in ["acute myocarditis, pericardium", "一只猫<|im_end|>", "endocarditis \u00e9"]:
        ids = loaded(text)["input_ids"]
        assert ids == extended.encode(text, allowed_special="all")
        assert set(ids) & set(learned.tokens.values())
        assert loaded.decode(ids) == text
    assert loaded("e\u0301")["input_ids"] == extended.encode("\u00e9")
    plan = read_plan(tmp_path / "plan.json")
    assert plan == embedding_plan(qwen, learned.tokens)
    assert isinstance(plan, EmbeddingPlan) and plan.sizes["rows"] == len(loaded)
    table = extend_embeddings(numpy.ones((start, 2), numpy.float32), plan)
    assert table.shape == (len(loaded), 2)


def test_new_tokens_on_a_list_of_merges_with_ids_in_any_order(tmp_path: Path) -> None:
    source = trained(tmp_path, shuffled=True)
    size = len(tokenizers.Tokenizer.from_file(source).get_vocab())
    extra = {b"then": size + 1, b"the": size + 2, b"slowest": size + 5, b"owest": size + 4}
    known = {
        token
        for token in extra
        if token.decode() in json.loads(Path(source).read_text())["model"]["vocab"]
    }
    extra = {token: number for token, number in extra.items() if token not in known}
    conversion = convert_tokenizer(source, str(tmp_path / "n.json"), extra=[extra])
    assert conversion.is_exact and conversion.plan is not None
    theirs = tokenizers.Tokenizer.from_str(conversion.contents[str(tmp_path / "n.json")].decode())
    before = tokenizers.Tokenizer.from_file(source)
    for token, number in extra.items():
        assert theirs.encode(token.decode()).ids == [number]
        parts = conversion.plan[number]
        assert before.encode(token.decode()).ids == parts
    assert theirs.encode("wider new").ids == before.encode("wider new").ids
    with pytest.raises(ValueError, match=r"the id 3 of 'qq' is that of .*--start-id"):
        convert_tokenizer(source, "x.json", extra=[{b"qq": 3}])
    with pytest.raises(ValueError, match="is a token of the base already"):
        convert_tokenizer(source, "x.json", extra=[{b"a": 9999}])


def test_load_encoding_takes_the_sidecar(tmp_path: Path) -> None:
    ranks = {**BYTES, "é".encode(): 256}
    source = rank_file(tmp_path, ranks)
    path = written(tmp_path, source, "new.tiktoken", pattern="qwen", special_tokens={"<s>": 300})
    beside = json.loads((tmp_path / "new.encoding.json").read_text())
    encoding = bpe_engine.load_encoding(path, **beside)
    assert encoding.encode("e\u0301<s>", allowed_special="all") == [256, 300]
    with pytest.raises(ValueError, match="normalization must be None or"):
        bpe_engine.load_encoding(path, "qwen", normalization="NFD")
    (tmp_path / "tokenizer.json").touch()
    with pytest.raises(ValueError, match="defines the normalization"):
        bpe_engine.load_encoding(tmp_path, normalization="NFC")


def test_gpt_oss_has_the_special_tokens_of_its_published_file() -> None:
    """Each id has one name; reserved ids at the end have no name."""
    harmony = bpe_engine.get_encoding("o200k_harmony")
    definition = without_second_names(from_encoding(harmony))
    special = definition.special_tokens
    assert sorted(special.values()) == list(range(199_998, 200_019))
    assert special["<|endofprompt|>"] == 200_018 and special["<|call|>"] == 200_012
    assert special.items() <= harmony.special_tokens.items()
    assert "1,070 reserved names left out, such as <|reserved_200018|>" in definition.notes[-1]
    plain = from_encoding(bpe_engine.get_encoding("o200k_base"))
    assert without_second_names(plain) is plain


def test_no_error_names_a_temporary_file(tmp_path: Path) -> None:
    ranks = {**BYTES, b"ab": 256}
    special = {"<a>": 300, "<b>": 300}
    target = tmp_path / "new" / "tokenizer.json"
    with pytest.raises(ValueError, match="what would be written is not read") as error:
        convert_tokenizer(
            str(rank_file(tmp_path, ranks)), str(target), pattern="gpt2", special_tokens=special
        )
    assert str(target) in str(error.value) and str(error.value).count("/tokenizer.json") == 1


@pytest.mark.parametrize("pattern", [patterns.CL100K, patterns.O200K, patterns.QWEN, patterns.R50K])
def test_patterns_become_pre_tokenizers_and_come_back(pattern: str) -> None:
    component = pre_tokenizer_of(pattern)
    again = pattern_of(component)
    assert again == (pattern if pattern == patterns.R50K else without_possessive_counts(pattern))


def test_chains_that_amount_to_one_pattern() -> None:
    """DeepSeek's three splits, or digits before GPT-2's pattern, are read as one pattern."""
    draw = seeded("chains")
    digits = {"type": "Digits", "individual_digits": True}
    gpt2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    chains: list[Any] = [{"type": "Sequence", "pretokenizers": [digits, gpt2]}]
    path = SHARED / "tokenizers" / "deepseek.json"
    if path.exists():
        chains.append(json.loads(path.read_text(encoding="utf-8"))["pre_tokenizer"])
    for chain in chains:
        pattern = pattern_of(chain)
        assert pattern is not None and pre_tokenizer_of(pattern)["type"] == "Sequence"
        shell = tokenizers.Tokenizer(tokenizers.models.BPE())
        spec = {**json.loads(shell.to_str()), "pre_tokenizer": chain}
        theirs = tokenizers.Tokenizer.from_str(json.dumps(spec)).pre_tokenizer
        ours = vocabulary.make_encoding("x", BYTES, pattern, {})
        parts = [
            "a",
            "Z",
            " ",
            "  ",
            "\n",
            "1",
            "23",
            "中",
            "の",
            "゙",
            "・",
            "!",
            "'s",
            "\x00",
            "é",
            "\u0301",
            "$",
            "\u3097",
            "\t",
        ]
        for _ in range(rounds(3000)):
            text = "".join(draw.choices(parts, k=draw.randint(0, 9)))
            cut = [text[start:end] for _, (start, end) in theirs.pre_tokenize_str(text)]
            assert ours.split(text) == cut, (chain, text)


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("a.json", b"{", "JSON is broken|not a tokenizer file"),
        ("a.json", b'{"a": 1}', "name the file vocab.json"),
        ("a.json", b'{"a": "b"}', "no tokenizer.json, tekken.json or vocab.json"),
        ("a.json", b'{"model": {"type": "Neural", "vocab": {}}}', 'model.type: "Neural"'),
        ("a.json", b'{"model": {"type": "WordPiece", "vocab": {}}}', "field `unk_token`"),
        ("a.tiktoken", b"YQ== 0\n", "the pattern of .* is unknown"),
        ("vocab.json", b'{"a": 1}', "No such file or directory; it belongs to .*merges.txt"),
        ("a.gguf", b"no", "is not a GGUF file"),
        ("tekken.json", b'{"config": {}, "vocab": [{"token_bytes": ""}]}', "not a tekken.json"),
    ],
)
def test_bad_sources_are_named(tmp_path: Path, name: str, contents: bytes, message: str) -> None:
    if name.endswith(".gguf"):
        pytest.importorskip("gguf", reason="the package gguf is not installed")
    path = tmp_path / name
    path.write_bytes(contents)
    with pytest.raises((ValueError, OSError), match=message):
        convert_tokenizer(str(path), str(tmp_path / "out" / "tokenizer.json"))


@pytest.mark.parametrize(
    "model",
    [
        hf.WordPiece({"[UNK]": 0, "a": 1}),
        hf.WordLevel({"<unk>": 0, "a": 1}),
        hf.Unigram([("<unk>", 0.0), ("a", -1.0)], 0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_that_do_not_merge(tmp_path: Path, model: hf.Model) -> None:
    source = str(tmp_path / "tokenizer.json")
    hf.Tokenizer(model).save(source)
    message = f"tokenizer.json: model.type: {type(model).__name__} does not merge"
    for target in ("a.tiktoken", "tekken.json", "new/tokenizer.json", "pair/vocab.json"):
        with pytest.raises(hf.UnsupportedTokenizer, match=message):
            convert_tokenizer(source, str(tmp_path / target))
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]


def test_missing_bytes_are_named(tmp_path: Path) -> None:
    source = rank_file(tmp_path, {b"a": 0, b"b": 1, b"ab": 2})
    with pytest.raises(ValueError, match="the byte 0x00 is not a token"):
        convert_tokenizer(source, "tokenizer.json", pattern="gpt2", special_tokens={})


def test_the_command_writes_all_files_or_none(tmp_path: Path) -> None:
    target = tmp_path / "r50k.tiktoken"
    done = run("convert", "r50k_base", target)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "r50k.encoding.json",
        "r50k.tiktoken",
    ]
    spec = json.loads((tmp_path / "r50k.encoding.json").read_text())
    loaded = bpe_engine.load_encoding(target, spec["pattern"], spec["special_tokens"])
    assert loaded.encode("Hello<|endoftext|>", allowed_special="all") == [15496, 50256]
    target.unlink()
    again = run("convert", "r50k_base", target)
    assert again.returncode == 2 and "r50k.encoding.json: exists already" in again.stderr
    assert not target.exists()
    same = run("convert", tmp_path, target, "--force")
    assert same.returncode == 2 and "a folder without a tokenizer" in same.stderr
    refused = run("convert", "r50k_base", tmp_path / "tekken.json")
    assert refused.returncode == 1 and "'!', id 0, would have the id 34" in refused.stderr
    assert not (tmp_path / "tekken.json").exists()
    allowed = run("convert", "r50k_base", tmp_path / "tekken.json", "--allow-differences", "--json")
    found = json.loads(allowed.stdout)
    assert found["differing"] > 60_000 and len(found["differences"]) == 20
    assert (tmp_path / "tekken.json").exists()
    assert run("convert", "r50k_base", tmp_path).returncode == 1


def _there_and_back(folder: Path, source: str, corpora: list[str]) -> None:
    """Converts to each format and back: ids are kept, or the conversion fails with a reason."""
    own = json.loads(Path(source).read_bytes()) if source.endswith(".json") else None
    for name in ("pair/vocab.json", "x.tiktoken", "tekken.json", "new/tokenizer.json"):
        try:
            path = written(folder, source, name, corpus=corpora)
        except ValueError as error:
            assert name != "pair/vocab.json" and name != "new/tokenizer.json", error
            continue
        back = written(
            folder, path, "back.tiktoken" if own is None else "back.json", corpus=corpora
        )
        if own is None:
            assert load_ranks(back) == load_ranks(source)
        elif "added_tokens" in own:
            kept = json.loads(Path(back).read_bytes())
            assert kept["added_tokens"] == own["added_tokens"]
            one, other = (tokenizers.Tokenizer.from_file(path) for path in (source, back))
            if name != "tekken.json":
                assert one.get_vocab() == other.get_vocab()


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("corpora")
    parts = []
    for path in sorted((SHARED / "corpora").glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        part = folder / path.name
        part.write_text(text[:30_000], encoding="utf-8")
        parts.append(str(part))
    return parts


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["r50k_base", "gpt2", "whisper-tiny"])
def test_files_there_and_back_on_the_corpora(tmp_path: Path, name: str, corpora: list[str]) -> None:
    path = SHARED / "ranks" / f"{name}.tiktoken"
    _there_and_back(tmp_path, str(path) if path.exists() else tokenizer_path(name), corpora)


def test_the_note_says_what_is_used() -> None:
    from vocab_tools.convert import rank_file

    assert rank_file.load(QWEN).notes[0].endswith("its pattern and special tokens are used")
    given = rank_file.load(QWEN, special_tokens={"<|end|>": 151643})
    assert given.special_tokens == {"<|end|>": 151643}
    assert given.notes[0].endswith("recognized as qwen: its pattern is used")


def test_paths_and_one_file_of_new_tokens_are_taken(tmp_path: Path) -> None:
    new, text = tmp_path / "new.tiktoken", tmp_path / "text.txt"
    new.write_bytes(dump_ranks({b"qzxq": 60_000}))
    text.write_text("a qzxq")
    target = tmp_path / "tokenizer.json"
    found = convert_tokenizer("r50k_base", target, extra=str(new), corpus=text)
    listed = convert_tokenizer("r50k_base", str(target), extra=[new], corpus=[str(text)])
    assert found.contents == listed.contents and found.compared == listed.compared
    found.save()
    assert convert_tokenizer(target, tmp_path / "again.json").is_exact


def test_ranks_with_the_ids_of_special_tokens(tmp_path: Path) -> None:
    """Converts Whisper's ranks, which end with an empty token at GPT-2's id of <|endoftext|>."""
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"": 50256}
    path = tmp_path / "whisper.tiktoken"
    path.write_bytes(dump_ranks(ranks))
    target = tmp_path / "out" / "tokenizer.json"
    converted = convert_tokenizer(path, target, pattern="gpt2")
    assert converted.is_exact and converted.definition.special_tokens == {}
    for command in (("stats", path), ("compare", path, "gpt2")):
        answer = run(*command, "--corpus", path)
        assert answer.returncode == 1 and "add one: vocab-tools convert" in answer.stderr


@pytest.mark.parametrize("name", ["bert-base-uncased", "t5-small", "mistral-7b-v0.1"])
def test_control_tokens_are_added_without_ranks(tmp_path: Path, name: str) -> None:
    source = str(SHARED / "tokenizers" / "models" / f"{name}.json")
    target = tmp_path / "new" / "tokenizer.json"
    before = tokenizers.Tokenizer.from_file(source)
    size = before.get_vocab_size()
    options: Any = {"control_tokens": ["<|dose|>", "<|unit|>"], "descriptions": {"<|dose|>": "low"}}
    made = convert_tokenizer(source, target, **options)
    made.save()
    before.add_special_tokens(["<|dose|>", "<|unit|>"])
    ours, theirs = (json.loads(text) for text in (target.read_text("utf-8"), before.to_str()))
    assert ours == theirs and made.is_exact and made.compared > 1_000 and made.plan is not None
    before = tokenizers.Tokenizer.from_file(source)
    assert dict(made.plan) == {
        size + at: before.encode(text, add_special_tokens=False).ids
        for at, text in enumerate(["low", "<|unit|>"])
    }
    with pytest.raises(ValueError, match="has the id 0 already"):
        convert_tokenizer(source, target, control_tokens=[before.id_to_token(0)])
    for more in ({"extra": [{b"zqxjv": size}]}, {"pattern": "gpt2"}):
        with pytest.raises(ValueError, match="only BPE is|leave the options out|merging does not"):
            convert_tokenizer(source, target, control_tokens=["<a>"], **more)


def test_control_tokens_are_added(tmp_path: Path) -> None:
    source, target = trained(tmp_path), str(tmp_path / "new" / "tokenizer.json")
    size = tokenizers.Tokenizer.from_file(source).get_vocab_size()
    options: Any = {"control_tokens": ["<|dose|>", "<|unit|>"], "descriptions": {"<|dose|>": "low"}}
    made = convert_tokenizer(source, target, **options)
    made.save()
    theirs, before = tokenizers.Tokenizer.from_file(target), tokenizers.Tokenizer.from_file(source)
    assert theirs.encode("<|dose|>").ids == [size] and theirs.encode("<|unit|>").ids == [size + 1]
    assert made.is_exact and made.plan is not None
    assert dict(made.plan) == {
        size: before.encode("low", add_special_tokens=False).ids,
        size + 1: before.encode("<|unit|>", add_special_tokens=False).ids,
    }
    for name, problem in (("<s>", "has the id"), ("", "is empty"), ("<a>", "is given twice")):
        with pytest.raises(ValueError, match=problem):
            convert_tokenizer(source, target, control_tokens=["<a>", name])
    with pytest.raises(TypeError, match="give a list of names"):
        convert_tokenizer(source, target, control_tokens="<a>")
    names = tmp_path / "names.txt"
    names.write_text("<|dose|>\tlow\n\n<|unit|>\n")
    plan = tmp_path / "plan.json"
    done = run("convert", source, target, "--control-tokens", names, "--plan", plan, "--force")
    assert done.returncode == 0 and "2 new tokens; the embedding table needs" in done.stdout
    names.write_text("<a>\n<a>\n")
    done = run("convert", source, target, "--control-tokens", names, "--force")
    assert done.returncode == 1 and "line 2: '<a>' is given twice" in done.stderr
