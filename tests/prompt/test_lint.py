"""Tests the linter for chat templates and its command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import chats
import pytest
from small_files import byte_level_file, character_file

import bpe_engine
from bpe_engine import cli, hf
from bpe_engine.prompt import ChatTemplate, TemplateReport, stable_prefix_check

pytest.importorskip("jinja2")

CHATML = chats.TEMPLATES["chatml"]
START = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
STOP = "{{ '<|im_end|>\n' }}{% endfor %}"
PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
THOUGHT = "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
FORGETS = chats.TEMPLATES["forgets"]


def broken(report: TemplateReport) -> set[str]:
    return {kind for kind, what in report.continuations.items() if what}


def test_stable_templates() -> None:
    report = stable_prefix_check(CHATML)
    assert report.verdict == "stable" and report.is_clean and not broken(report)
    assert not report.has_tags and not report.writes_bos and report.unknown is None
    kept = stable_prefix_check(START + THOUGHT + "{{ m.content }}" + STOP + PROMPT)
    assert kept.verdict == "stable"
    assert not any("reasoning" in what for what in kept.dropped)


def test_templates_that_forget_reasoning() -> None:
    report = stable_prefix_check(FORGETS)
    assert report.verdict == "stable without reasoning" and not report.is_clean
    assert broken(report) == {"reasoning, user"}
    assert "earlier reasoning of assistant" in report.dropped
    assert "reasoning of assistant" not in report.dropped


def test_templates_that_treat_the_last_message_otherwise() -> None:
    template = START + "{{ m.content }}{% if loop.last %}!{% endif %}" + STOP + PROMPT
    report = stable_prefix_check(template)
    assert report.verdict == "not stable"
    assert report.continuations["user"] is not None
    assert "the question changes from '!" in report.continuations["user"]


def test_prompts_that_begin_what_history_lacks() -> None:
    forgets = "{{ m.content.split('</think>')[-1] }}"
    report = stable_prefix_check(START + forgets + STOP + PROMPT + "<think>\n")
    assert report.verdict == "not stable"
    keeps = stable_prefix_check(START + "{{ m.content }}" + STOP + PROMPT + "<think>\n")
    assert keeps.verdict == "stable"


def test_other_ends_of_the_last_message() -> None:
    template = CHATML.replace(
        "'<|im_end|>'",
        "('<|return|>' if loop.last and message.role == 'assistant' else '<|im_end|>')",
    )
    report = stable_prefix_check(template)
    assert report.continuations["user"] is not None
    assert "from '<|return|>' to '<|im_end|>'" in report.continuations["user"]


def test_tags_beginnings_and_unknown_control_tokens() -> None:
    report = stable_prefix_check(ChatTemplate(chats.TEMPLATES["thinking"]))
    assert report.has_tags
    qwen = bpe_engine.get_encoding("qwen3")
    assert stable_prefix_check(CHATML, qwen).unknown == ()
    gpt2 = bpe_engine.get_encoding("gpt2")
    report = stable_prefix_check("{{ bos_token }}" + CHATML, gpt2)
    assert report.unknown == ("<|im_end|>", "<|im_start|>") and not report.is_clean
    assert report.writes_bos
    assert stable_prefix_check("<|begin_of_text|>" + CHATML).writes_bos


def test_dropped_messages() -> None:
    template = CHATML.replace(
        "for message in messages", "for message in messages if message.role != 'tool'"
    )
    assert "earlier content of tool" in stable_prefix_check(template).dropped


@pytest.mark.parametrize("kind", ["start", "word"])
def test_control_tokens_that_are_found_in_some_places_only(kind: str) -> None:
    if kind == "start":
        # A normalizer puts a space before each text, and therefore before a normalized name.
        file = {**character_file(), "normalizer": {"type": "Prepend", "prepend": "\u2581"}}
        tokenizer = hf.Tokenizer.from_str(json.dumps(file))
        tokenizer.add_tokens(["<|im_start|>", "<|im_end|>"])
    else:
        tokenizer = hf.Tokenizer.from_str(json.dumps(byte_level_file()))
        tokenizer.add_tokens(
            [hf.AddedToken(name, single_word=True) for name in ("<|im_start|>", "<|im_end|>")]
        )
    report = stable_prefix_check(CHATML, tokenizer)
    assert report.unknown == () and report.lost and not report.is_clean
    assert any(re.match(r"<\|im_\w+\|> \(other tokens in \d+ of \d+", name) for name in report.lost)
    assert "control tokens that the tokenizer does not find: <|im_" in str(report)
    tokenizer = hf.Tokenizer.from_str(json.dumps(byte_level_file()))
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    assert stable_prefix_check(CHATML, tokenizer).lost == ()


@pytest.mark.parametrize(
    ("call", "form"),
    [
        ("{{ c.function.arguments|tojson }}", "as a dict; JSON in a string is escaped once more"),
        ("{{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}",
         "as a dict, or as JSON in a string"),
        ("{% for k, v in c.function.arguments.items() %}{{ v }}{% endfor %}", "as a dict; a string is refused"),
        ("{{ ' ' + c.function.arguments }}", "as JSON in a string; a dict is refused"),
        ("{{ c.function.name }}", "no calls in the prompt"),
        ("{% if m.content is none %}{{ ' ' + c.function.arguments }}{% endif %}",
         "as JSON in a string, in messages whose content is null; a dict is refused"),
        ("{% if m.content %}{{ c.function.arguments|tojson }}{% endif %}",
         "as a dict; JSON in a string is escaped once more"),
        ("{{ raise_exception('no calls, please') }}", "refused: no calls, please"),
    ],
)  # fmt: skip
def test_form_of_arguments(call: str, form: str) -> None:
    calls = "{% for c in m.tool_calls %}" + call + "{% endfor %}"
    report = stable_prefix_check(START + "{{ m.content }}" + calls + STOP + PROMPT)
    assert report.arguments == form and f"arguments of calls: {form}" in str(report)


def test_refusals() -> None:
    no_tools = "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no') }}{% endif %}{% endfor %}"
    report = stable_prefix_check(no_tools + CHATML)
    assert report.continuations["tool"] == "the template refuses it"
    assert report.verdict == "stable"
    with pytest.raises(ValueError, match="refuses a question of the user: never"):
        stable_prefix_check("{{ raise_exception('never') }}")


@pytest.mark.parametrize("name", chats.templates())
def test_verdicts_of_templates(name: str) -> None:
    report = stable_prefix_check(chats.templates()[name])
    assert report.verdict in str(report)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as exit:
            cli.main(["check-template", *arguments])
        return exit.value.code, *capsys.readouterr()

    good, bad, broken_file = (tmp_path / name for name in ("good", "bad", "broken"))
    good.write_text(CHATML)
    bad.write_text(FORGETS)
    broken_file.write_text("{% if %}")
    status, out, _ = run(str(good))
    assert status == 0 and out.startswith("stable\n") and "reasoning, tool" in out
    status, out, _ = run(str(bad))
    assert status == 1 and out.startswith("stable without reasoning\n")
    status, out, _ = run(str(bad), "--json")
    assert status == 1 and json.loads(out)["verdict"] == "stable without reasoning"
    status, out, err = run(str(broken_file))
    assert status == 1 and not out and "the template has errors" in err
    status, _, err = run(str(tmp_path / "missing"))
    assert status != 0 and "missing" in err
    folder = tmp_path / "model"
    bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2")).save_pretrained(folder)
    status, out, _ = run(str(good), "--tokenizer", str(folder))
    assert status == 1 and "<|im_end|>, <|im_start|>" in out
