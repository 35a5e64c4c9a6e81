"""What prompts of segments cost: the rows of docs/prompts.md.

    python -m benchmarks.prompts
    python -m benchmarks.prompts --encoding qwen3 --rounds 41

Everything runs in one process on one CPU, the sides of a row in turn, and a figure is the median of
the ratios of CPU time. The ids of every side are compared first. tiktoken and transformers stand
beside ours where they are installed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpe_engine
from bpe_engine.prompt import ChatTemplate, render_chat, special

TEMPLATES = Path(__file__).resolve().parents[2] / "shared" / "chat_templates"
WORDS = (
    "The committee met again in the spring, and this time nobody was surprised that it's the "
    "budget, not the plan, which took the whole afternoon. 'We could,' said the chair, 'begin with "
    "2024 and see how far we get.' def total(rows): return sum(row.price * 1.19 for row in rows)\n"
).split(" ")

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' "
    "+ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def words(count: int, offset: int) -> str:
    """Text that does not repeat itself."""
    return " ".join(f"{WORDS[(i * 7 + offset) % len(WORDS)]}" for i in range(count))


def messages(count: int, length: int, last: int = 0) -> list[dict[str, str]]:
    """A conversation of `count` messages of `length` words each."""
    roles = ("user", "assistant")
    chat = [
        {"role": roles[i % 2], "content": words(length, 31 * i + (last if i == count - 1 else 0))}
        for i in range(count)
    ]
    return [{"role": "system", "content": "You are helpful."}, *chat]


def ratio(rounds: int, *sides: Callable[[], Any]) -> list[float]:
    """CPU time of each side over that of the last one, the medians over the rounds."""
    times: list[list[float]] = [[] for _ in sides]
    for side in sides:
        side()
    start = time.perf_counter()
    sides[-1]()
    repeat = max(1, int(0.002 / max(1e-7, time.perf_counter() - start)))
    for _ in range(rounds):
        for record, side in zip(times, sides):
            start = time.process_time()
            for _ in range(repeat):
                side()
            record.append((time.process_time() - start) / repeat)
    return [statistics.median(a / b for a, b in zip(record, times[-1])) for record in times]


def row(name: str, goal: str, value: str) -> None:
    """Prints one row."""
    print(f"| {name} | {goal} | {value} |", flush=True)


def segments(enc: bpe_engine.Encoding, rounds: int) -> None:
    """20 messages as segments, beside `encode` of the text that they are."""
    chat = render_chat(messages(20, 60), "chatml")
    text = "".join(segment.text for segment in chat)
    assert enc.encode_segments(chat) == enc.encode(text, allowed_special="all")
    ours, _ = ratio(
        rounds, lambda: enc.encode_segments(chat), lambda: enc.encode(text, allowed_special="all")
    )
    row("20 messages as segments, over encode of the text", "at most 1.2", f"{ours:.2f}")


def templates(rounds: int) -> None:
    """A template as segments, beside plain Jinja as transformers compiles it."""
    try:
        from transformers.utils.chat_template_utils import _compile_jinja_template
    except ImportError:
        return
    sources = {path.stem: path.read_text() for path in sorted(TEMPLATES.glob("*.jinja"))}
    sources["chatml"] = CHATML
    chat = messages(20, 60)
    values = {"add_generation_prompt": True, "tools": None, "documents": None, "eos_token": "</s>"}
    found = {}
    for name, source in sources.items():
        plain, ours = _compile_jinja_template(source), ChatTemplate(source)
        try:
            text = plain.render(messages=chat, bos_token="<s>", **values)
        except Exception:  # This conversation is none for that model.
            continue
        own = {**values, "bos_token": special("<s>")}
        assert "".join(s.text for s in ours.render(chat, **own)) == text, name
        found[name] = ratio(
            max(5, rounds // 4),
            lambda: ours.render(chat, **own),
            lambda: plain.render(messages=chat, bos_token="<s>", **values),
        )[0]
    mean = statistics.geometric_mean(found.values())
    worst = max(found, key=lambda name: found[name])
    value = f"{mean:.2f} (mean of {len(found)}), {found[worst]:.2f} ({worst})"
    row("render_template, over plain Jinja", "at most 3", value)


def conversation(enc: bpe_engine.Encoding, rounds: int) -> None:
    """Turn 20 of some 30,000 tokens, whose last message is new."""
    length = 30_000 * 4 // 20 // 5
    texts = []
    for last in range(2):
        chat = render_chat(messages(20, length, last * 13), "chatml")
        texts.append("".join(segment.text for segment in chat))
    head = os.path.commonprefix(texts)
    head = head[: head.rindex("<|im_start|>")]
    new = texts[1][len(head) :]
    ids = enc.encode(texts[1], allowed_special="all")
    times: dict[str, list[float]] = {"turn": [], "new": [], "whole": []}

    def timed(name: str, work: Callable[[], Any]) -> None:
        start = time.process_time()
        work()
        times[name].append(time.process_time() - start)

    state = enc.conversation(allowed_special="all")
    state.update(head)
    assert state.update(texts[1]).kept > len(ids) * 0.9
    assert state.ids == ids
    for _ in range(rounds * 4):
        state.update(head)
        timed("turn", lambda: state.update(texts[1]))
        timed("new", lambda: (enc.encode(new, allowed_special="all"), texts[1].startswith(head)))
        timed("whole", lambda: enc.encode(texts[1], allowed_special="all"))
    medians = {name: statistics.median(values) for name, values in times.items()}
    what = f"turn 20 of {len(ids):,} tokens"
    value = f"{medians['turn'] / medians['new']:.2f}"
    row(f"{what}, over encode of the new message and comparing the rest", "at most 1.5", value)
    value = f"{medians['whole'] / medians['turn']:.1f}"
    row(f"{what}: encode of the whole, over it", "at least 10", value)
    for name, encode in peers(enc):
        assert encode(texts[1]) == ids, name
        slow = ratio(
            3, lambda: encode(texts[1]), lambda: enc.encode(texts[1], allowed_special="all")
        )
        factor = slow[0] * medians["whole"] / medians["turn"]
        row(f"{what}: {name}, over it", "", f"{factor:.0f}")


def peers(enc: bpe_engine.Encoding) -> list[tuple[str, Callable[[str], Any]]]:
    """Others that can encode the whole text with the same ids."""
    found: list[tuple[str, Callable[[str], Any]]] = []
    try:
        import tiktoken

        other = tiktoken.Encoding(
            enc.name,
            pat_str=enc._pat_str,
            mergeable_ranks=enc._mergeable_ranks,
            special_tokens=enc._special_tokens,
        )
        found.append(("tiktoken", lambda text: other.encode(text, allowed_special="all")))
    except ImportError:
        pass
    try:
        from transformers import PreTrainedTokenizerFast
        from transformers.convert_slow_tokenizer import TikTokenConverter

        special = sorted(enc._special_tokens, key=lambda name: enc._special_tokens[name])
        converter = TikTokenConverter("", enc._pat_str, extra_special_tokens=special)
        converter.load_tiktoken_bpe = lambda _: enc._mergeable_ranks
        fast = PreTrainedTokenizerFast(tokenizer_object=converter.converted())
        found.append(("transformers", lambda text: fast.encode(text, add_special_tokens=False)))
    except ImportError:
        pass
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--encoding", default="qwen3", help="one with the tokens of ChatML")
    parser.add_argument("--rounds", type=int, default=21)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    enc = bpe_engine.get_encoding(arguments.encoding)
    if "<|im_start|>" not in enc.special_tokens_set:
        sys.exit(f"{enc.name} has no <|im_start|>; take qwen, qwen2.5 or qwen3")
    print("| row | goal | ratio |")
    print("|---|---|---|")
    segments(enc, arguments.rounds)
    templates(arguments.rounds)
    conversation(enc, arguments.rounds)


if __name__ == "__main__":
    main()
