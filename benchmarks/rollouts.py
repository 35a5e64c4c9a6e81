"""Compares masks with plain encoding, and a turn of a rollout with rendering and encoding it all.

    python -m benchmarks.rollouts --templates FOLDER

Everything runs in one process on one CPU, the sides of a row in turn, as in `benchmarks.prompts`. The
ids of both sides are compared before. FOLDER has chat templates, ``*.jinja``; without it, ChatML's
alone is measured. The rows of transformers need its package.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import bpe_engine
from bpe_engine.prompt import ChatTemplate, Rollout, special

from .harness.sides import Call, Row, arguments, begin_table, print_row, print_rows, ratio
from .prompts import CHATML, messages


def masks(enc: bpe_engine.Encoding, template: ChatTemplate, length: int) -> tuple[Call, Call]:
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


def turn(enc: bpe_engine.Encoding, turns: int, length: int) -> list[Row]:
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
    rows: list[Row] = [(f"ours, the whole of {len(ids):,} ids / turn {turns}", ours, append)]
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
    parser = arguments(__doc__, rounds=11)
    parser.add_argument("--encoding", default="qwen", help="one with the tokens of ChatML")
    parser.add_argument("--templates", type=Path, metavar="FOLDER", help="*.jinja to measure")
    options = parser.parse_args()
    enc, rounds = bpe_engine.get_encoding(options.encoding), options.rounds
    begin_table()
    for length in (60, 600):
        title = f"20 messages of {length} words, with a mask / without"
        print_rows(rounds, [(title, *masks(enc, ChatTemplate(CHATML), length))])
    ratios = []
    for path in sorted(options.templates.glob("*.jinja")) if options.templates else []:
        try:
            sides = masks(enc, ChatTemplate(path.read_text("utf-8")), 300)
        except Exception:  # the template refuses this conversation
            continue
        ratios.append(ratio(max(3, rounds // 3), *sides))
    if ratios:
        mean = statistics.geometric_mean(ratios)
        print_row(f"the same of 300 words, mean of {len(ratios)} templates", mean)
    print_rows(rounds, turn(enc, 20, 600))


if __name__ == "__main__":
    main()
