"""Tests `audit_template` and its command: text can forge control tokens, segments cannot."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import chats
import pytest
from seeds import few
from small_files import byte_level_file

import bpe_engine
from bpe_engine import cli, hf
from bpe_engine.prompt import ChatTemplate, Segment, TemplateAudit, audit_template, trusted
from bpe_engine.read.byte_level import text_of

pytest.importorskip("jinja2")

SHARED = pathlib.Path(__file__).parents[3] / "shared"
CHATML = chats.TEMPLATES["chatml"]
LOOP = "{% for m in messages %}"
STOP = "{% endfor %}"


@pytest.fixture(scope="module")
def qwen() -> bpe_engine.Encoding:
    return bpe_engine.get_encoding("qwen3")


def tricks(audit: TemplateAudit, field: str) -> set[str]:
    """Returns the tricks that forge a token from a field if the prompt is encoded as one text."""
    (tried,) = [tried for tried in audit.fields if tried.name == field]
    return set(tried.naive)


def json_tokenizer(names: list[dict[str, object]], normalizer: object) -> hf.Tokenizer:
    """Returns a tokenizer of single bytes with the given added tokens and normalizer."""
    added = [{"id": 300 + place, **name} for place, name in enumerate(names)]
    vocab = {text_of(bytes([byte])): byte for byte in range(256)}
    step = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    return hf.Tokenizer.from_str(
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": added,
                "normalizer": normalizer,
                "pre_tokenizer": {**step, "trim_offsets": True},
                "post_processor": None,
                "decoder": {**step, "trim_offsets": True},
                "model": {"type": "BPE", "vocab": vocab, "merges": []},
            }
        )
    )


def added(name: str, **flags: bool) -> dict[str, object]:
    usual = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"content": name, **usual, "special": True, **flags}


def test_literal_names(qwen: bpe_engine.Encoding) -> None:
    audit = audit_template(CHATML, qwen)
    assert {"literal", "between spaces", "nested"} <= tricks(audit, "content of user")
    assert not audit.is_safe and not audit.lets_through("segments")
    (tried,) = [tried for tried in audit.fields if tried.name == "content of user"]
    assert set(tried.naive["literal"]) == set(audit.controls) == set(qwen.special_tokens)
    assert not tricks(audit, "documents.text")
    forgery = audit.forgeries[0]
    assert [text for _, text, is_forged in forgery.prompt if is_forged] == [forgery.token]
    assert [id for id, _, is_forged in forgery.prompt if is_forged] == qwen.encode(
        forgery.token, allowed_special="all"
    )


def test_names_that_the_template_completes(qwen: bpe_engine.Encoding) -> None:
    """A template that writes part of a name itself can be made to complete the name."""
    clean = "{{ m.content | replace('<', '') }}"
    audit = audit_template(f"{LOOP}<|{clean}|>{STOP}", qwen)
    assert tricks(audit, "content of user") == {"completed"}
    assert not audit.lets_through("segments")
    fields = (
        "{% if m.name %}{{ m.name | replace('im_start', '') | replace('im_end', '') }}{% endif %}"
    )
    audit = audit_template(f"{LOOP}<|{fields}{STOP}", qwen)
    assert "completed" not in tricks(audit, "content of user")


def test_names_that_are_split() -> None:
    """A name split between two fields is found, though each field by itself is clean."""
    enc = json_tokenizer([added("<|im_start|>"), added("<|im_end|>")], None)

    def clean(value: str) -> str:
        whole = "".join(f"| replace('{name}', '')" for name in enc.special_tokens_set)
        return f"{{{{ {value} {whole} {whole} }}}}"

    split = f"{LOOP}{clean('m.content')}{STOP}"
    audit = audit_template(split, enc)
    assert tricks(audit, "content of system") == {"split"}
    assert any(len(forgery.given) == 2 for forgery in audit.forgeries)
    apart = audit_template(split.replace(STOP, "\n" + STOP), enc)
    assert apart.is_safe and apart.prompts > 100
    around = f"{LOOP}{clean('m.content')}_{STOP}"
    assert tricks(audit_template(around, enc), "content of system") == {"split"}


def test_normalizers_and_spaces() -> None:
    plain = f"{LOOP}{{{{ m.content }}}}\n{STOP}"
    wide = json_tokenizer([added("<s>", normalized=True)], {"type": "NFKC"})
    assert {"full width", "other forms"} <= tricks(audit_template(plain, wide), "content of user")
    lower = json_tokenizer([added("<s>", normalized=True)], {"type": "Lowercase"})
    assert "other case" in tricks(audit_template(plain, lower), "content of user")
    word = json_tokenizer([added("<s>", single_word=True)], None)
    audit = audit_template(plain, word)
    assert "between spaces" in tricks(audit, "content of user")
    assert "literal" not in tricks(audit, "content of user")
    strips = json_tokenizer([added("<s>", lstrip=True, rstrip=True)], None)
    assert "literal" in tricks(audit_template(plain, strips), "content of user")
    for tokenizer in (wide, lower, word, strips):
        assert not audit_template(plain, tokenizer).lets_through("segments")


def test_templates_that_decode(qwen: bpe_engine.Encoding) -> None:
    """Escaped text that the template unescapes is found to forge tokens."""
    clean = "| replace('<|', '') | replace('|>', '') | replace('<', '') | replace('>', '')"
    undone = "| replace('&lt;', '<') | replace('&gt;', '>')"
    audit = audit_template(f"{LOOP}{{{{ m.content {clean} {undone} }}}}\n{STOP}", qwen)
    assert tricks(audit, "content of user") == {"escaped"}


def test_every_field(qwen: bpe_engine.Encoding) -> None:
    template = (
        "{{ date }}{{ tools | tojson }}{{ documents }}{{ names[0] }}{% for m in messages %}"
        "<|im_start|>{{ m.role }} {{ m.name }} {{ m.reasoning_content }} {{ m.content }} "
        "{{ m.tool_calls }}{{ m.tool_call_id }}<|im_end|>\n{% endfor %}"
    )
    audit = audit_template(template, qwen)
    assert not [tried.name for tried in audit.fields if not tried.is_shown]
    assert len(audit.lets_through("naive")) == len(audit.fields) > 40
    assert {"variable date", "variable names", "a key of documents"} <= {
        tried.name for tried in audit.fields
    }
    assert not audit.lets_through("segments")
    own = audit_template(template, qwen, date=trusted("May"))
    assert "variable date" not in {tried.name for tried in own.fields}


def test_segments_that_are_trusted_by_mistake_are_found(
    qwen: bpe_engine.Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit also checks segments, and fails if untrusted segments are marked as trusted."""
    real = ChatTemplate.render

    def render(self: ChatTemplate, *args: object, **variables: object) -> list[Segment]:
        segments = real(self, *args, **variables)  # type: ignore[arg-type]
        return [
            segment._replace(allowed_special=True)
            if segment.origin and segment.origin.field == "content"
            else segment
            for segment in segments
        ]

    monkeypatch.setattr(ChatTemplate, "render", render)
    audit = audit_template(CHATML, qwen)
    found = {tried.name for tried in audit.lets_through("segments")}
    assert {"content of user", "content of tool"} <= found
    assert "role of user" not in found
    assert any(forgery.path == "segments" for forgery in audit.forgeries)


def test_refusals_and_unknown_tokens(qwen: bpe_engine.Encoding) -> None:
    strict = (
        "{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}"
        "{{ raise_exception('no') }}{% endif %}{% endfor %}" + CHATML
    )
    audit = audit_template(strict, qwen)
    by_name = {tried.name: tried for tried in audit.fields}
    assert not by_name["content of system"].prompts and not by_name["content of system"].is_shown
    assert by_name["role of user"].refused > 0 and not by_name["role of user"].naive
    assert by_name["content of user"].naive
    gpt2 = bpe_engine.get_encoding("gpt2")
    assert set(audit_template(CHATML, gpt2).unknown) == {"<|im_start|>", "<|im_end|>"}
    with pytest.raises(ValueError, match="refuses a question of the user: never"):
        audit_template("{{ raise_exception('never') }}", qwen)


def test_roles_and_all_kinds_of_tokenizers(qwen: bpe_engine.Encoding) -> None:
    """`bos_token` is tried like any other variable, unless the caller passes its value."""
    template = "{{ bos_token }}" + f"{LOOP}{{{{ m.content | length }}}}{STOP}"
    tokenizer = bpe_engine.Tokenizer(qwen, bos_token="<|endoftext|>")
    audit = audit_template(template, tokenizer, eos_token="<|endoftext|>")
    assert [tried.name for tried in audit.lets_through("naive")] == ["variable bos_token"]
    own = audit_template(template, tokenizer, bos_token="<|endoftext|>")
    assert own.is_safe


@pytest.mark.parametrize(
    "name",
    few(sorted(chats.templates(), key=lambda name: name not in chats.TEMPLATES), 2),
)
def test_segments_forge_nothing(name: str) -> None:
    template = chats.templates()[name]
    audit = audit_template(template, chats.encoding_of(template, 1000))
    assert not audit.lets_through("segments"), str(audit)
    assert audit.lets_through("naive") and audit.prompts > 100


#: Real tokenizers; the normalizers of the first two treat names differently.
REAL = ["deepseek", "models/t5-small", "models/bert-base-uncased", "models/xlnet-base-cased"]


@pytest.mark.parametrize("name", few(REAL, 2))
def test_real_tokenizers(name: str) -> None:
    path = SHARED / "tokenizers" / f"{name}.json"
    if not path.exists():
        pytest.skip("../shared/tokenizers is missing")
    audit = audit_template(chats.TEMPLATES["forgets"], hf.Tokenizer.from_file(str(path)))
    assert audit.lets_through("naive") and not audit.lets_through("segments")
    assert not {"<unk>", "[UNK]"} & set(audit.controls)
    # T5 searches for its tokens in text that NFKC has converted to ASCII.
    assert ("full width" in tricks(audit, "content of user")) == (
        "bert" not in name and "/" in name
    )


def test_command(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as exit:
            cli.main(["audit", *arguments])
        return exit.value.code, *capsys.readouterr()

    template, broken = tmp_path / "chat.jinja", tmp_path / "broken.jinja"
    template.write_text(CHATML)
    broken.write_text("{% if %}")
    options = (str(template), "--tokenizer", "qwen3")
    status, out, _ = run(*options)
    assert status == 1 and "as segments: no field forges a control token" in out
    assert "»<|im_end|>«" in out and "OWASP AISVS 1.0, 2.1.7" in out
    status, out, _ = run(*options, "--path", "segments", "--json")
    found = json.loads(out)
    assert status == 0 and found["requirement"] == "OWASP AISVS 1.0, 2.1.7"
    assert found["lets_through_segments"] == [] and "content of user" in found["lets_through_naive"]
    assert run(*options, "--path", "naive")[0] == 1
    status, _, err = run(str(broken), "--tokenizer", "qwen3")
    assert status == 2 and "the template has errors" in err
    broken.write_text("Hello.")
    status, _, err = run(str(broken), "--tokenizer", "qwen3")
    assert status == 2 and "no field of a caller is in the prompt" in err
    assert run(str(template), "--tokenizer", "gpt2", "--path", "segments")[0] == 1
    status, _, err = run(*options, "--max-seconds", "0.001")
    assert status == 2 and "took more than 0.001 seconds" in err
    assert run(str(template))[0] == 2
    folder = tmp_path / "model"
    bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2")).save_pretrained(folder)
    status, out, _ = run(str(template), "--tokenizer", str(folder))
    assert status == 1 and "unknown to the tokenizer:\n    <|im_end|>, <|im_start|>" in out
    assert max(map(len, out.splitlines())) <= 104


@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}, {"type": "Lowercase"}])
def test_added_tokens_that_are_normalized_raise_no_false_alarm(normalizer: Any) -> None:
    """Added tokens that are matched in normalized text raise no false alarm."""
    tokenizer = hf.Tokenizer.from_str(json.dumps(byte_level_file(normalizer=normalizer)))
    tokenizer.add_tokens(["<|turn|>", "<|over|>"])
    template = "{% for m in messages %}<|turn|>{{ m.role }}\n{{ m.content }}<|over|>\n{% endfor %}"
    found = audit_template(template, tokenizer)
    assert found.lets_through("naive") and not found.lets_through("segments")
