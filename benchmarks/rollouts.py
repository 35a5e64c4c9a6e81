"""Compares masks with plain encoding, and a turn of a rollout with rendering and encoding it all.

    python -m benchmarks.rollouts --templates FOLDER

Everything runs in one process on one CPU, the sides of a row in turn, as in `benchmarks.prompts`. The
ids of both sides are compared before. FOLDER has chat templates, ``*.jinja``; without it, ChatML's
alone is measured. The rows of transformers need its package.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpe_engine
from bpe_engine.prompt import ChatTemplate, Rollout, special

from .prompts import CHATML, messages, ratio


def masks(
    enc: bpe_engine.Encoding, template: ChatTemplate, length: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """20 messages with a mask, and without."""
    chat = messages(20, length)
    values = {"bos_token": special("<|endoftext|>"), "eos_token": special("<|endoftext|>")}

    def plain() -> list[int]:
        return enc.encode_segments(template.render(chat, **values))

    def masked() -> tuple[list[int], list[int]]:
        audit = enc.audit_segments(template.render(chat, **values))
        return audit.ids, audit.mask()

    ids, mask = masked()
    assert ids == plain() and len(mask) == len(ids) and any(mask)
    return masked, plain


def rollout_at(enc: bpe_engine.Encoding, turns: int, length: int) -> tuple[Rollout, Any]:
    """A rollout with an answer that no message follows, and the message that is next."""
    chat = messages(2 * turns, length)
    rollout = Rollout(CHATML, enc, chat[:2])
    for place in range(2, len(chat) - 1, 2):
        rollout.sampled(enc.encode(chat[place]["content"] + "<|im_end|>", allowed_special="all"))
        if place + 2 < len(chat) - 1:
            rollout.append([chat[place + 1]])
    return rollout, [chat[-2]]


def transformers_tokenizer(enc: bpe_engine.Encoding) -> Any:
    """A tokenizer of transformers, on top of `tokenizers`, for the same vocabulary."""
    import transformers

    from .cases.encodings import spec_of, tokenizer_file

    with tempfile.TemporaryDirectory() as folder:
        path = tokenizer_file(spec_of(enc.name), Path(folder))
        return transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))


def turn(enc: bpe_engine.Encoding, turns: int, length: int) -> list[tuple[str, Any, Any]]:
    """The last turn of a rollout, beside rendering and encoding the whole."""
    rollout, more = rollout_at(enc, turns, length)
    whole = [*rollout.messages, *more]

    def append() -> Rollout:
        fork = rollout.fork()
        assert fork.append(more)
        return fork

    template = ChatTemplate(CHATML)

    def ours() -> list[int]:
        return enc.encode_segments(template.render(whole, add_generation_prompt=True))

    ids = append().ids
    assert ids == ours()
    rows = [(f"ours, the whole of {len(ids):,} ids / turn {turns}", ours, append)]
    try:
        theirs = transformers_tokenizer(enc)
    except ImportError:
        return rows

    def transformers() -> Any:
        return theirs.apply_chat_template(
            whole, chat_template=CHATML, add_generation_prompt=True, return_dict=False
        )

    assert transformers() == ids
    rows.append(
        (f"transformers, the whole of {len(ids):,} ids / turn {turns}", transformers, append)
    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--encoding", default="qwen", help="one with the tokens of ChatML")
    parser.add_argument("--templates", type=Path, metavar="FOLDER", help="*.jinja to measure")
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    enc = bpe_engine.get_encoding(arguments.encoding)
    print("| CPU time | ratio |\n|---|---:|")
    for length in (60, 600):
        found = ratio(arguments.rounds, *masks(enc, ChatTemplate(CHATML), length))
        print(f"| 20 messages of {length} words, with a mask / without | {found:.2f} |", flush=True)
    ratios = []
    for path in sorted(arguments.templates.glob("*.jinja")) if arguments.templates else []:
        try:
            sides = masks(enc, ChatTemplate(path.read_text("utf-8")), 300)
        except Exception:  # the template refuses this conversation
            continue
        ratios.append(ratio(max(3, arguments.rounds // 3), *sides))
    if ratios:
        mean = statistics.geometric_mean(ratios)
        print(
            f"| the same of 300 words, mean of {len(ratios)} templates | {mean:.2f} |", flush=True
        )
    for title, side, other in turn(enc, 20, 600):
        print(f"| {title} | {ratio(arguments.rounds, side, other):.1f} |", flush=True)


if __name__ == "__main__":
    main()
