"""Tests `check_folder`: small folders made here lead to each finding."""

from __future__ import annotations

import base64
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from sentencepiece_oracle import T5, write_class, write_model
from small_files import added_token, character_file, write_gguf
from vocab_command import run

from bpe_engine import patterns
from bpe_engine.hf import Tokenizer
from bpe_engine.read import byte_level
from vocab_tools import FolderResult, check_folder
from vocab_tools.check.folder.model_folder import ModelFolder
from vocab_tools.convert.conversion import convert_tokenizer

SHARED = Path(__file__).resolve().parents[2].parent / "shared"

MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w"), ("Ġw", "o")]
CONTROLS = ["<|begin|>", "<|end|>", "<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>' if false else '' }}"
    "{% if m.role == 'assistant' %}<|assistant|>{% generation %}{{ m.content }}<|end|>"
    "{% endgeneration %}{% else %}<|user|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
)


def vocabulary() -> dict[str, int]:
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    return {token: id for id, token in enumerate([*letters, *(a + b for a, b in MERGES)])}


def tokenizer_json() -> dict[str, Any]:
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    vocab = vocabulary()
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added_token(len(vocab) + at, name) for at, name in enumerate(CONTROLS)],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocab, "merges": [f"{a} {b}" for a, b in MERGES]},
    }


def config() -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|begin|>",
        "eos_token": "<|end|>",
        "chat_template": TEMPLATE,
    }


def write(folder: Path, name: str, contents: Any) -> None:
    text = contents if isinstance(contents, str) else json.dumps(contents, ensure_ascii=False)
    (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a folder without findings. AutoTokenizer has separate tests."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    write(tmp_path, "tokenizer.json", tokenizer_json())
    write(tmp_path, "tokenizer_config.json", config())
    ids = {"vocab_size": 266, "bos_token_id": 262, "eos_token_id": 263}
    write(tmp_path, "config.json", {"model_type": "llama", **ids})
    return tmp_path


def found(result: FolderResult) -> dict[str, list[str]]:
    """Returns the examples of each finding except NOT_COMPARED (transformers is missing here)."""
    return {
        finding.code: finding.examples
        for finding in result.findings
        if finding.code != "NOT_COMPARED"
    }


def changed(folder: Path, name: str, **fields: Any) -> None:
    write(folder, name, {**json.loads((folder / name).read_text(encoding="utf-8")), **fields})


def test_a_sound_folder(folder: Path) -> None:
    result = check_folder(folder)
    assert result.ok and found(result) == {}
    assert [(source.name, source.size, source.added_tokens) for source in result.sources] == [
        ("tokenizer.json", 266, 4)
    ]
    skipped = result.finding("NOT_COMPARED")
    assert skipped is not None and skipped.examples == [
        "AutoTokenizer: transformers is not installed"
    ]


def test_no_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    write(tmp_path, "notes.txt", "")
    result = check_folder(tmp_path)
    assert not result.ok and found(result) == {"NO_TOKENIZER": ["the folder has notes.txt"]}
    with pytest.raises(FileNotFoundError, match="is not a folder on this machine"):
        check_folder(tmp_path / "missing")


@pytest.mark.parametrize(
    "name, contents",
    [
        ("tokenizer.json", "{"),
        ("tokenizer.json", "[]"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": 3}}'),
        ("tokenizer_config.json", "nothing"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"x": {"content": "<a>"}}}'),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"5": 6}}'),
        ("config.json", "[1]"),
        ("generation_config.json", "\ufeff{"),
        ("chat_template.jinja", "\ufeff{{ messages[0].content }}"),
        ("special_tokens_map.json", "null"),
        ("tekken.json", "{}"),
        ("ranks.tiktoken", "no ranks"),
        ("tokenizer.model", "IQ== 0\nIQ== 1\n"),
    ],
)
def test_broken_files_are_named(folder: Path, name: str, contents: str) -> None:
    write(folder, name, contents)
    result = check_folder(folder)
    assert not result.ok
    assert any(name in example for example in found(result)["BAD_FILE"])


def write_beside(folder: Path, name: str, is_wrong: bool) -> None:
    """Writes the tokenizer.json's vocabulary in a different format, with an error if `is_wrong`."""
    tokens = [byte_level.try_bytes_of(token) or b"" for token in vocabulary()]
    ids = list(range(len(tokens)))
    if name == "vocab.json":
        write(folder, name, vocabulary())
        lines = ["#version: 0.2", *(f"{a} {b}" for a, b in MERGES)]
        write(folder, "merges.txt", "\n".join(lines[:-1] if is_wrong else lines))
    elif name == "tekken.json":
        rows = [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ]
        # Control tokens come first, so two control tokens move all other ids.
        special = 2 * is_wrong
        head = {
            "pattern": patterns.R50K, "num_vocab_tokens": len(rows), "version": "v3",
            "default_vocab_size": len(rows) + special, "default_num_special_tokens": special,
        }  # fmt: skip
        write(folder, name, {"config": head, "vocab": rows})
    else:
        ids[:2] = [1, 0] if is_wrong else [0, 1]
        lines = [f"{base64.b64encode(token).decode()} {id}" for token, id in zip(tokens, ids)]
        write(folder, name, "\n".join(lines) + "\n")


@pytest.mark.parametrize("name", ["vocab.json", "ranks.tiktoken", "tokenizer.model", "tekken.json"])
def test_other_formats_beside_the_file(folder: Path, name: str) -> None:
    write_beside(folder, name, False)
    result = check_folder(folder)
    assert found(result) == {} and result.sources[1].name.startswith(name)
    assert result.sources[1].compared > 100 and result.sources[1].differing == 0
    write_beside(folder, name, True)
    first, second, *_ = found(check_folder(folder, ["hello world"]))["FILES_DIFFER"]
    assert first.startswith(name) and "(BPE; read by " in first
    assert "by tokenizer.json, and" in second


#: A Unigram model of three pieces, in which two ways to cut "aa" have the same score.
MODEL = (
    b"\n\x09\n\x05<unk>\x18\x02\n\x08\n\x01a\x15\x00\x00\x80\xbf"
    b"\n\x09\n\x02aa\x15\x00\x00\x00\xc0\n\x0a\n\x03\xe2\x96\x81\x15\x00\x00\x80\xbf"
)


def test_a_sentencepiece_model_is_compared_by_both_versions(folder: Path) -> None:
    (folder / "tokenizer.model").write_bytes(MODEL)
    result = check_folder(folder)
    differ = result.finding("FILES_DIFFER")
    names = [source.name for source in result.sources]
    assert names[1:3] == [
        "tokenizer.model by sentencepiece 0.2.2 and later",
        "tokenizer.model by sentencepiece up to 0.2.1",
    ]
    assert differ is not None and any(line.startswith("in tokens: [") for line in differ.examples)
    assert any("; read by sentencepiece, mistral-common" in line for line in differ.examples)
    (folder / "tokenizer.model").write_bytes(MODEL[:20])
    bad = check_folder(folder).finding("BAD_FILE")
    assert bad is not None and "not a SentencePiece model" in bad.examples[0]


def model_folder(folder: Path, name: str = "tokenizer.model") -> tuple[Path, dict[str, Any]]:
    """Adds a SentencePiece model, and the tokenizer.json converted from the model, to a folder."""
    (folder / "config.json").unlink()
    write(folder, "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})
    path = write_model(folder, "bpe llama")
    convert_tokenizer(str(path), str(folder / "tokenizer.json")).save()
    path.replace(folder / name)
    return folder / name, json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


def test_tokens_merges_and_types_of_a_model(folder: Path) -> None:
    """The comparison of tables finds a moved token that occurs in no text of the check."""
    path, contents = model_folder(folder)
    assert found(check_folder(folder)) == {}
    vocab, merges = contents["model"]["vocab"], contents["model"]["merges"]
    names = list(vocab)

    def lines(code: str, **model: Any) -> list[str]:
        write(folder, "tokenizer.json", {**contents, "model": {**contents["model"], **model}})
        return found(check_folder(folder))[code]

    a, b = names[-2:]
    swapped = {**vocab, a: vocab[b], b: vocab[a]}
    _, line = lines("TOKENS_DIFFER", vocab=swapped)
    assert line.startswith(f"{vocab[a]} is ") and line.endswith(" by tokenizer.model")
    _, line = lines("MERGES_DIFFER", merges=[merges[-1], *merges[:-1]])
    assert "is merged before" in line and "and after it by tokenizer.model" in line
    control = [{**token, "id": token["id"]} for token in contents["added_tokens"]]
    control[1]["id"], control[2]["id"] = control[2]["id"], control[1]["id"]
    one, two = control[1]["content"], control[2]["content"]
    vocab = {**vocab, one: vocab[two], two: vocab[one]}
    model = {**contents["model"], "vocab": vocab}
    write(folder, "tokenizer.json", {**contents, "added_tokens": control, "model": model})
    assert found(check_folder(folder))["TOKENS_DIFFER"][1].endswith(" by tokenizer.model")
    # An added token that the model lacks, and an added token that is an ordinary piece there.
    more = [*contents["added_tokens"], added_token(len(names), "<|im_start|>")]
    write(folder, "tokenizer.json", {**contents, "added_tokens": more})
    result = check_folder(folder)
    assert result.ok and "no token by tokenizer.model" in found(result)["TOKENS_MISSING"][1]
    more = [*contents["added_tokens"], added_token(len(names) - 1, names[-1], special=False)]
    write(folder, "tokenizer.json", {**contents, "added_tokens": more})
    assert (
        "is not special by tokenizer.json, and ordinary"
        in found(check_folder(folder))["MERGES_DIFFER"][1]
    )
    assert path.exists()


def test_scores_of_a_unigram_model(folder: Path) -> None:
    rows = [["<unk>", 0.0], ["a", -1.0], ["aa", -2.0], ["▁", -1.5]]
    contents = {
        **tokenizer_json(),
        "added_tokens": [],
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": rows},
    }
    write(folder, "tokenizer.json", contents)
    (folder / "tokenizer.model").write_bytes(MODEL)
    line = found(check_folder(folder))["MERGES_DIFFER"][1]
    assert line.startswith("the score of '▁' is -1.5 by tokenizer.json, and -1 by tokenizer.model")


def test_decoding_and_truncation(folder: Path) -> None:
    _, contents = model_folder(folder)
    cut = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    write(folder, "tokenizer.json", {**contents, "decoder": {"type": "Fuse"}, "truncation": cut})
    result = check_folder(folder)
    assert result.ok and found(result).keys() == {"DECODING_DIFFERS", "CUTS_TEXTS"}
    assert found(result)["CUTS_TEXTS"][0].startswith('tokenizer.json: truncation is {"direction"')


@pytest.mark.parametrize(
    "name", ["spiece.model", "sentencepiece.bpe.model", "tokenizer.model.v3", "source.spm"]
)
def test_models_under_other_names(folder: Path, name: str) -> None:
    path, _ = model_folder(folder, name)
    assert check_folder(folder).sources[1].name == name
    assert check_folder(path).sources[0].name == name
    write_model(folder, "bpe").replace(path)
    assert found(check_folder(folder)).keys() >= {"FILES_DIFFER", "TOKENS_DIFFER"}


def test_a_model_whose_pieces_are_moved(folder: Path) -> None:
    """Shifted ids that the transformers class expects, as for XLM-RoBERTa, are not a finding."""
    path, contents = model_folder(folder, "sentencepiece.bpe.model")
    vocab = {token: id + 1 for token, id in contents["model"]["vocab"].items()}
    model = {**contents["model"], "vocab": {"<pad>": 0, **vocab}}
    moved = [{**token, "id": token["id"] + 1} for token in contents["added_tokens"]]
    write(folder, "tokenizer.json", {**contents, "model": model, "added_tokens": moved})
    result = check_folder(folder)
    skipped = result.finding("NOT_COMPARED")
    assert found(result) == {} and skipped is not None
    assert skipped.examples[0].startswith(
        f"{path.name}: tokenizer.json has each of its pieces at its id +1"
    )


def test_half_width_kana_are_probed(folder: Path) -> None:
    model_folder(folder)
    write_model(folder, "bpe").replace(folder / "tokenizer.model")
    texts = [text for block in ModelFolder(folder).probes for text in block]
    assert any("ﾊﾟ" in text and "ｶﾞ" in text for text in texts)


@pytest.mark.parametrize("name", ["tokenizer.model", "tokenizer.json", "vocab.txt", "a.tiktoken"])
def test_files_that_are_not_there(folder: Path, name: str) -> None:
    write(folder, name, "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n")
    assert "pointer of Git LFS" in found(check_folder(folder))["BAD_FILE"][0]
    write(folder, name, "")
    assert f"{name} is empty" in found(check_folder(folder))["BAD_FILE"][0]


def test_texts_with_names_of_special_tokens(folder: Path) -> None:
    """Texts are compared line by line, after names of special tokens are removed."""
    model_folder(folder)
    write_model(folder, "bpe").replace(folder / "tokenizer.model")
    none = check_folder(folder).sources[1]
    lines = ["the tokens", "", "<s>other</s>", "tokens"]
    whole = check_folder(folder, "\n".join(lines)).sources[1]
    apart = check_folder(folder, lines).sources[1]
    assert whole.compared == apart.compared == none.compared + 3
    assert whole.differing == apart.differing == none.differing + 3
    assert whole.left_out == 0


def test_names_that_cannot_be_left_out(folder: Path) -> None:
    path, contents = model_folder(folder)
    more = [*contents["added_tokens"], added_token(contents["model"]["vocab"]["▁"], " ")]
    write(folder, "tokenizer.json", {**contents, "added_tokens": more})
    none, one = (check_folder(folder, texts).sources[1] for texts in ([], ["a b", "c"]))
    assert (one.compared, one.left_out) == (none.compared + 1, none.left_out + 1)
    assert path.name == one.name


def test_what_a_gguf_adds(folder: Path) -> None:
    vocab = vocabulary()
    kinds = [1] * len(vocab) + [3] * len(CONTROLS)
    merges = [f"{a} {b}" for a, b in MERGES[:-1]]
    more = {"bos_token_id": 262, "eos_token_id": 264, "add_bos_token": True}
    write_gguf(folder / "m.gguf", [*vocab, *CONTROLS], kinds, merges, **more)
    result = found(check_folder(folder))
    assert result["BOS_POLICY"] == ["before a text: nothing by tokenizer.json, <|begin|> by m.gguf"]
    assert "264 ('<|user|>') in m.gguf" in result["MODEL_ID_DISAGREES"][0]
    assert result["MERGES_DIFFER"] == [
        "m.gguf (BPE; read by llama.cpp, Ollama, LM Studio): 1 difference",
        "merge 5, 'Ġw o', is there by tokenizer.json, and missing by m.gguf",
    ]


def test_a_word_list_beside_the_file(folder: Path) -> None:
    words = ["[UNK]", "the", "##n", "a"]
    contents = tokenizer_json()
    prefix = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    model = {"type": "WordPiece", "unk_token": "[UNK]", **prefix}
    vocab = {word: id for id, word in enumerate(words)}
    parts = {"post_processor": None, "decoder": None, "added_tokens": []}
    white = {"pre_tokenizer": {"type": "Whitespace"}}
    write(
        folder, "tokenizer.json", {**contents, **parts, **white, "model": {**model, "vocab": vocab}}
    )
    write(folder, "vocab.txt", "\n".join(words))
    assert "FILES_DIFFER" not in found(check_folder(folder))
    write(folder, "vocab.txt", "\n".join([*words[:2], "a", "##n"]))
    assert found(check_folder(folder))["FILES_DIFFER"][0].startswith(
        "vocab.txt (WordPiece; read by "
    )


def test_a_word_list_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BERT's ``vocab.txt`` is the tokenizer of a folder that has no other tokenizer file."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "w", "##orld"]
    write(tmp_path, "vocab.txt", "\n".join(names))
    result = check_folder(tmp_path)
    assert result.ok and [source.name for source in result.sources] == ["vocab.txt"]
    tokenizer = Tokenizer.from_wordpiece(tmp_path / "vocab.txt")
    tokenizer.save(tmp_path / "tokenizer.json")
    assert check_folder(tmp_path).ok
    write(tmp_path, "vocab.txt", "\n".join([*names[:5], "w", "hello", "##orld"]))
    assert not check_folder(tmp_path).ok


def around(contents: dict[str, Any]) -> dict[str, Any]:
    """Returns the file with a template that puts a token before every text."""
    single = [
        {"SpecialToken": {"id": "<|begin|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ]
    special = {"<|begin|>": {"id": "<|begin|>", "ids": [262], "tokens": ["<|begin|>"]}}
    template = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": single,
        "special_tokens": special,
    }
    return {**contents, "post_processor": template}


CONFIG, MODEL_CONFIG, GENERATION = "tokenizer_config.json", "config.json", "generation_config.json"
PLAIN = TEMPLATE.replace("{% generation %}", "").replace("{% endgeneration %}", "")
OTHER_END = {CONFIG: {"chat_template": TEMPLATE.replace("<|end|>", "<|user|>")}}

TOO_LARGE = {
    "VOCAB_TOO_LARGE": ["the largest id of tokenizer.json is 265, and config.json has 260 rows"]
}


def with_a_token(name: str) -> dict[str, Any]:
    """Returns a file whose model has one more ordinary token."""
    contents = tokenizer_json()
    contents["model"]["vocab"][name] = 266
    return contents


#: Contents or changed fields of files by name, and the findings they lead to.
FINDINGS: list[tuple[dict[str, Any], dict[str, list[str]]]] = [
    (
        {CONFIG: {"added_tokens_decoder": {"262": added_token(262, "<|begin|>"), "300": added_token(300, "<|end|>")}}},
        {"ADDED_TOKEN_ID": ["'<|end|>' is 263 in tokenizer.json, and 300 in tokenizer_config.json"]},
    ),
    (
        {CONFIG: {"added_tokens_decoder": {"263": added_token(263, "<|x|>")}}},
        {"ADDED_TOKEN_ID": ["263 is '<|end|>' in tokenizer.json, and '<|x|>' in tokenizer_config.json"]},
    ),
    (
        {"added_tokens.json": {"<|extra|>": 266}},
        {"ADDED_TOKEN_MISSING": ["'<|extra|>', 266 in added_tokens.json"]},
    ),
    (
        {CONFIG: {"added_tokens_decoder": {"263": added_token(263, "<|end|>", lstrip=True, special=False)}}},
        {"ADDED_TOKEN_FLAGS": ["'<|end|>': lstrip is False, and True in tokenizer_config.json; special "
                               "is True, and False in tokenizer_config.json"]},
    ),
    (
        {CONFIG: {"pad_token": "<|pad|>"}, "special_tokens_map.json": {"eos_token": {"content": "<|user|>"}}},
        {
            "SPECIAL_TOKEN_UNKNOWN": ["pad_token '<|pad|>' of tokenizer_config.json"],
            "SPECIAL_TOKENS_DISAGREE": ["eos_token is '<|end|>' in tokenizer_config.json and '<|user|>' "
                                        "in special_tokens_map.json"],
        },
    ),
    (
        {MODEL_CONFIG: {"eos_token_id": 264}, GENERATION: {"eos_token_id": [263, 264], "bos_token_id": 9}},
        {"MODEL_ID_DISAGREES": ["bos_token is 262 ('<|begin|>'), and 9 in generation_config.json",
                                "eos_token is 263 ('<|end|>'), and 264 ('<|user|>') in config.json"]},
    ),
    (
        {"tokenizer.json": around(tokenizer_json())},
        {"DOUBLE_BOS": ["'<|begin|>' at the start, by tokenizer.json"]},
    ),
    (
        {CONFIG: {"add_bos_token": True, "add_eos_token": False}},
        {"BOS_POLICY": ["add_bos_token is true, and tokenizer.json does not add '<|begin|>'"]},
    ),
    (
        {CONFIG: {"add_bos_token": True, "add_eos_token": False}, "tokenizer.json": around(tokenizer_json())},
        {"DOUBLE_BOS": ["'<|begin|>' at the start, by tokenizer.json"]},
    ),
    (OTHER_END, {"TURN_END_NOT_STOP": ["'<|user|>' (264); the ids of eos_token are [263]"]}),
    ({**OTHER_END, GENERATION: {"eos_token_id": [263, 264]}}, {}),
    # Only the template's own text counts: the probe messages contain no control tokens.
    ({CONFIG: {"chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}<|end|>{% endfor %}"
                                "{% generation %}{% endgeneration %}"}}, {}),
    ({"chat_template.jinja": TEMPLATE + "\n"}, {}),
    (
        {"chat_template.jinja": TEMPLATE + "<|end|>"},
        {"TEMPLATES_DIFFER": ["chat_template.jinja and tokenizer_config.json"]},
    ),
    ({CONFIG: {"chat_template": PLAIN}}, {"NO_GENERATION_TAG": ["tokenizer_config.json"]}),
    ({MODEL_CONFIG: {"vocab_size": 260}}, TOO_LARGE),
    ({MODEL_CONFIG: {"vocab_size": None, "text_config": {"vocab_size": 260}}}, TOO_LARGE),
    (
        {MODEL_CONFIG: {"vocab_size": 320}},
        {"ROWS_UNUSED": ["config.json has 320 rows, and ids end at 265: 54 rows more"]},
    ),
    # AutoTokenizer adds <|pad|>, an ordinary token of the file, with the same id.
    (
        {"tokenizer.json": with_a_token("<|pad|>"), CONFIG: {"pad_token": "<|pad|>"},
         MODEL_CONFIG: {"vocab_size": 267, "bos_token_id": 263, "eos_token_id": 264}},
        {},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("files", "findings"), FINDINGS, ids=range(len(FINDINGS)))
def test_findings(folder: Path, files: dict[str, Any], findings: dict[str, list[str]]) -> None:
    for name, contents in files.items():
        if (folder / name).exists() and isinstance(contents, dict):
            changed(folder, name, **contents)
        else:
            write(folder, name, contents)
    result = check_folder(folder)
    assert found(result) == findings
    errors = {"ADDED_TOKEN_ID", "SPECIAL_TOKEN_UNKNOWN", "VOCAB_TOO_LARGE"}
    assert result.ok == errors.isdisjoint(findings)
    counts = {"VOCAB_TOO_LARGE": 6, "ROWS_UNUSED": 54}
    for finding in result.findings:
        assert finding.count == counts.get(finding.code, len(finding.examples))


ENCODER = {"max_position_embeddings": 128, "type_vocab_size": 2}


@pytest.mark.parametrize(
    ("own", "embedder", "truncation", "config", "lines"),
    [
        (512, 256, 16, {"max_position_embeddings": 512},
         ["is 512", "truncation of tokenizer.json has 16", "json has 256", "config.json has 512"]),
        (None, 512, None, {"max_position_embeddings": 514},
         ["is missing", "json has 512", "config.json has 514"]),
        (512, 256, None, {}, ["is 512", "json has 256"]),
        (1e30, None, 128, {"max_position_embeddings": 512},
         ["is missing", "json has 128", "config.json has 512"]),
        (256, 256, 256, {"max_position_embeddings": 512}, []),
        (512, None, None, {"max_position_embeddings": 514}, []),
        (131_072, None, None, {"max_position_embeddings": 32_768, "rope_theta": 1e6}, []),
        (131_072, None, None, {"max_position_embeddings": 32_768, "architectures": ["GPTForCausalLM"]}, []),
        # DistilBERT has no token types. Positions of MPNet and RoBERTa begin after the padding id.
        (None, None, None, {"max_position_embeddings": 512}, ["is missing", "config.json has 512"]),
        (514, None, None, {"model_type": "mpnet", "max_position_embeddings": 514},
         ["is 514", "config.json has 512"]),
        (1024, None, None, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 3},
         ["is 1024", "config.json has 510"]),
        (512, None, None, {"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}, []),
        (1024, None, None, {"model_type": "gpt2", "n_positions": 512}, ["is 1024", "config.json has 512"]),
        (None, None, None, ENCODER, ["is missing", "config.json has 128"]),
        (512, None, None, ENCODER, ["is 512", "config.json has 128"]),
        (128, None, None, ENCODER, []),
    ],
)  # fmt: skip
def test_limits_of_texts(
    folder: Path, own: Any, embedder: Any, truncation: Any, config: dict[str, int], lines: list[str]
) -> None:
    """If files set different limits, the smallest limit counts."""
    if own is not None:
        changed(folder, "tokenizer_config.json", model_max_length=own)
    if embedder is not None:
        write(folder, "sentence_bert_config.json", {"max_seq_length": embedder})
    if truncation is not None:
        cut = {"direction": "Right", "strategy": "LongestFirst", "stride": 0}
        changed(folder, "tokenizer.json", truncation={**cut, "max_length": truncation})
    changed(folder, "config.json", **config)
    finding = check_folder(folder).finding("LIMITS_DIFFER")
    examples = [] if finding is None else finding.examples
    assert len(examples) == len(lines)
    assert all(line in example for line, example in zip(lines, examples))


def test_control_tokens_that_are_unknown(folder: Path) -> None:
    changed(
        folder, "tokenizer_config.json", chat_template=TEMPLATE.replace("<|user|>", "<|human|>")
    )
    result = check_folder(folder)
    (example,) = found(result)["TEMPLATE_TOKEN_UNKNOWN"]
    assert not result.ok and example.startswith("'<|human|>' becomes 9 tokens: [")


def test_control_tokens_that_are_found_at_the_start_only(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_str(
        json.dumps({**character_file(), "normalizer": {"type": "Prepend", "prepend": "\u2581"}})
    )
    tokenizer.add_tokens(["<|turn|>", "<|over|>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})
    (tmp_path / "chat_template.jinja").write_text(
        "{% for m in messages %}<|turn|>{{ m.role }}{{ m.content }}<|over|>{% endfor %}"
    )
    lost = found(check_folder(tmp_path))["TEMPLATE_TOKEN_UNKNOWN"]
    assert any(example.startswith("'<|over|>' becomes other tokens in ") for example in lost)


def test_control_tokens_of_branches_that_are_not_rendered(folder: Path) -> None:
    more = "{% if images is defined %}{{ '<|image|>' }}{% endif %}{% if 'a' == '<|looked_for|>' %}{% endif %}"
    changed(folder, "tokenizer_config.json", chat_template=TEMPLATE + more)
    (example,) = found(check_folder(folder))["TEMPLATE_TOKEN_UNKNOWN"]
    assert "<|image|>" in example


@pytest.mark.parametrize(
    "template", ["{{ nothing.at.all }}", "{% if %}", "{{ raise_exception('no') }}"]
)
def test_broken_templates(folder: Path, template: str) -> None:
    changed(folder, "tokenizer_config.json", chat_template=template)
    result = check_folder(folder)
    assert not result.ok and "tokenizer_config.json: " in found(result)["TEMPLATE_BROKEN"][0]


def test_tags(folder: Path) -> None:
    contents = tokenizer_json()
    contents["added_tokens"].append(added_token(266, "<think>", special=False))
    write(folder, "tokenizer.json", contents)
    changed(folder, "config.json", vocab_size=267)
    changed(folder, "tokenizer_config.json", chat_template=TEMPLATE + "<think></think>[DONE]")
    result = check_folder(folder)
    assert result.ok
    (half,) = found(result)["HALF_A_TAG"]
    assert half.startswith("'<think>' is [266], and '</think>' is [")
    assert found(result)["TAGS_AS_TEXT"] == ["</think>", "[DONE]"]


def test_the_command(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    done = run("check", folder)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "no errors"
    assert "tokenizer.json: BPE, ids up to 265, 4 added tokens" in done.stdout
    changed(folder, "config.json", vocab_size=260)
    done = run("check", folder, "--json")
    plain = json.loads(done.stdout)
    assert done.returncode == 1 and plain["ok"] is False
    assert {"ok", "folder", "fingerprint", "sources", "findings"} == plain.keys()
    assert plain["findings"][0]["code"] == "VOCAB_TOO_LARGE"
    reports = tmp_path_factory.mktemp("reports")
    names = ["check.md", "check.json", *(["check.html"] if shutil.which("true") else [])]
    options = [word for name in names for word in ("--report", reports / name)]
    assert run("check", folder, *options).returncode == 1
    for name in names:
        assert "VOCAB_TOO_LARGE" in (reports / name).read_text(encoding="utf-8")


def test_the_command_takes_texts(folder: Path, tmp_path: Path) -> None:
    write(folder, "vocab.json", vocabulary())
    write(folder, "merges.txt", "\n".join(f"{a} {b}" for a, b in MERGES))
    before = check_folder(folder).sources[1].compared
    texts = tmp_path / "texts.txt"
    texts.write_text("one\ntwo\n", encoding="utf-8")
    done = run("check", folder, "--json", "--corpus", texts)
    assert json.loads(done.stdout)["sources"][1]["compared"] > before


@pytest.mark.parametrize("option", [["--pattern", "qwen"], ["--words", "WORDS"], ["EXTRA"]])
def test_options_for_rank_files_are_refused(folder: Path, option: list[str]) -> None:
    file = folder / "words.txt"
    file.write_text("a\t1\n", encoding="utf-8")
    given = [file if word in ("WORDS", "EXTRA") else word for word in option]
    done = run("check", folder, *given)
    assert done.returncode == 2 and "is checked as a folder" in done.stderr


# ---- AutoTokenizer ----


def write_real(folder: Path, **fields: Any) -> None:
    write(folder, "tokenizer.json", tokenizer_json())
    write(folder, "tokenizer_config.json", {**config(), **fields})


def test_auto_tokenizer_gives_the_same_ids(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_real(tmp_path)
    result = check_folder(tmp_path)
    assert found(result) == {}
    assert result.sources[1].name == "AutoTokenizer" and result.sources[1].compared > 100


def test_auto_tokenizer_gives_other_ids(tmp_path: Path) -> None:
    """A class that builds its components without reading the file is reported."""
    pytest.importorskip("transformers")
    write_real(tmp_path, tokenizer_class="Qwen2Tokenizer")
    result = check_folder(tmp_path)
    lines = found(result)["TRANSFORMERS_DIFFERS"]
    assert not result.ok and lines[0].startswith("AutoTokenizer (Qwen2Tokenizer of transformers")


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5"])
def test_auto_tokenizer_without_a_vocabulary(tmp_path: Path, kind: str) -> None:
    """Some versions of transformers make a tokenizer with only special tokens; others fail."""
    pytest.importorskip("transformers")
    write(tmp_path, "config.json", {"model_type": kind})
    result = check_folder(tmp_path)
    line, *made = found(result)["NO_TOKENIZER"]
    assert not result.ok and line == "the folder has config.json"
    assert result.sources == [] or made == ["AutoTokenizer makes an empty tokenizer of it"]


@pytest.mark.parametrize("model", [tokenizers.models.BPE(), tokenizers.models.Unigram()])
def test_files_without_a_vocabulary(folder: Path, model: Any) -> None:
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.add_special_tokens(["<s>", "<a>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    example = "tokenizer.json has added tokens, and no vocabulary"
    assert found(check_folder(folder))["NO_TOKENIZER"] == [example]


def test_auto_tokenizer_fails(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_real(tmp_path, eos_token=5)
    (line,) = found(check_folder(tmp_path))["TRANSFORMERS_FAILS"]
    assert line.startswith("transformers ")


def test_auto_tokenizer_with_a_part_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pre-tokenizer in Python is compared, though `to_str` raises a bare Exception (RoFormer)."""
    transformers = pytest.importorskip("transformers")
    load = transformers.AutoTokenizer.from_pretrained

    class Whole:
        def pre_tokenize(self, _: Any) -> None: ...

    def made(*given: Any, **options: Any) -> Any:
        tokenizer = load(*given, **options)
        part = tokenizers.pre_tokenizers.PreTokenizer.custom(Whole())
        tokenizer.backend_tokenizer.pre_tokenizer = part
        return tokenizer

    write_real(tmp_path)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", made)
    assert "TRANSFORMERS_DIFFERS" in found(check_folder(tmp_path))


def test_auto_tokenizer_runs_no_code_of_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_real(tmp_path, tokenizer_class="Own", auto_map={"AutoTokenizer": ["own.Own", None]})
    write(tmp_path, "own.py", "raise SystemExit('this must not run')")
    assert found(check_folder(tmp_path)).keys() <= {"TRANSFORMERS_FAILS"}


# ---- Real files ----

REAL = [
    ("gpt2.json", None, set()),
    ("deepseek.json", "deepseek-ai-DeepSeek-V3.1.jinja", {"NO_GENERATION_TAG"}),
    ("phi-2.json", "Qwen-Qwen3-0.6B.jinja", {"TEMPLATE_TOKEN_UNKNOWN", "TAGS_AS_TEXT", "NO_GENERATION_TAG"}),
    ("mistral-7b-v0.3.json", None, set()),
    ("phi-3-mini.sentencepiece-like.json", None, set()),
    ("tekken.json", None, set()),
]  # fmt: skip


@pytest.mark.parametrize("name, template, codes", REAL, ids=[name for name, *_ in REAL])
def test_real_files(
    name: str,
    template: str | None,
    codes: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = SHARED / "tokenizers" / name
    if not source.exists():
        pytest.skip(f"{source} is missing")
    monkeypatch.setitem(sys.modules, "transformers", None)
    is_tekken = name == "tekken.json"
    shutil.copy(source, tmp_path / (name if is_tekken else "tokenizer.json"))
    if template is not None:
        shutil.copy(SHARED / "chat_templates" / template, tmp_path / "chat_template.jinja")
    assert found(check_folder(tmp_path)).keys() == codes


def test_models_that_a_class_changes(tmp_path: Path) -> None:
    """A spiece.model alone is not compared, because its class shifts the ids of pieces."""
    path = write_class(tmp_path / "model", "T5Tokenizer", "spiece.model", T5, {})
    result = check_folder(path)
    codes = {finding.code for finding in result.findings}
    assert not codes & {"NO_TOKENIZER", "TRANSFORMERS_DIFFERS", "FILES_DIFFER"}
    assert [source.name for source in result.sources] == ["AutoTokenizer"]
    notes = [f.examples[0] for f in result.findings if f.code == "NOT_COMPARED"]
    assert notes[0].startswith("spiece.model: it is the only tokenizer file")
