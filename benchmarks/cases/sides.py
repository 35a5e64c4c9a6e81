"""Rows that compare two calls with the same result: a baseline, and this project's call.

Each function takes the :class:`~benchmarks.harness.measures.Run` of a case, checks that both calls
return the same result, and yields a title, the baseline and our call. The measure ``sides`` divides
their CPU times. The chat templates are the ``*.jinja`` files in the folder that the environment
variable ``BENCHMARK_TEMPLATES`` names; without the variable, ChatML's template.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpe_engine
from bpe_engine import hf
from bpe_engine.prompt import ChatTemplate, Rollout, account_prompt, render_chat, special

from ..harness.sides import Call
from . import corpora
from .encodings import EncodingSpec, tokenizer_file

if TYPE_CHECKING:
    from ..harness.measures import Run

Rows = Iterator[tuple[str, Call, Call]]

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
    return " ".join(WORDS[(7 * word + offset) % len(WORDS)] for word in range(count))


def messages(count: int, length: int, last: int = 0) -> list[dict[str, str]]:
    """Makes ``count`` messages of ``length`` words each; ``last`` varies the last message."""
    chat = [
        {
            "role": ("user", "assistant")[i % 2],
            "content": words(length, 31 * i + last * (i == count - 1)),
        }
        for i in range(count)
    ]
    return [{"role": "system", "content": "You are helpful."}, *chat]


def _templates() -> dict[str, str]:
    folder = os.environ.get("BENCHMARK_TEMPLATES")
    paths = sorted(Path(folder).glob("*.jinja")) if folder else []
    return {path.stem: path.read_text("utf-8") for path in paths} or {"ChatML": CHATML}


def _file(spec: EncodingSpec, cache: Path) -> Path:
    return spec.file or tokenizer_file(spec, cache)


def _english(run: Run, limit: int) -> str:
    named = {path.stem: path for path in run.corpora}
    return corpora.read(named.get("en", run.corpora[0]), limit)


def prompts(run: Run) -> Rows:
    """Compares encoding segments with encoding their joined text, and adding turn 20 to a
    conversation with encoding the whole conversation."""
    enc = bpe_engine.get_encoding(run.spec.name)
    chat = render_chat(messages(20, 60), "chatml")
    text = "".join(segment.text for segment in chat)
    assert enc.encode_segments(chat) == enc.encode(text, allowed_special="all")
    yield (
        "encode of a text / 20 messages as its segments",
        lambda: enc.encode(text, allowed_special="all"),
        lambda: enc.encode_segments(chat),
    )
    turns = [
        "".join(segment.text for segment in render_chat(messages(20, 300, last * 13), "chatml"))
        for last in range(2)
    ]
    state = bpe_engine.prompt.Conversation(enc, allowed_special="all")
    cycle = itertools.cycle(turns)
    state.update(turns[0])
    ids = enc.encode(turns[1], allowed_special="all")
    assert state.update(turns[1]).kept > len(ids) * 0.9 and state.ids == ids
    yield (
        f"encode of the whole / turn 20 of {len(ids):,} tokens",
        lambda: enc.encode(turns[1], allowed_special="all"),
        lambda: state.update(next(cycle)),
    )


def masks(run: Run) -> Rows:
    """Renders and encodes 20 messages with each template, without and with a mask."""
    enc = bpe_engine.get_encoding(run.spec.name)
    values: Any = dict.fromkeys(("bos_token", "eos_token"), special("<|endoftext|>"))
    for name, source in _templates().items():
        template, chat = ChatTemplate(source), messages(20, 300)

        def plain() -> list[int]:
            return enc.encode_segments(template.render(chat, **values))

        def masked() -> tuple[list[int], list[int]]:
            audit = enc.audit_segments(template.render(chat, **values))
            return audit.ids, audit.mask()

        try:
            ids, mask = masked()
        except Exception:  # The template rejects this conversation.
            continue
        assert ids == plain() and len(mask) == len(ids)
        yield f"20 messages without a mask / with a mask, {name}", plain, masked


def rollouts(run: Run) -> Rows:
    """Compares turn 20 of a rollout with rendering and encoding the whole conversation, here and in
    transformers."""
    enc = bpe_engine.get_encoding(run.spec.name)
    chat = messages(40, 600)
    rollout = Rollout(CHATML, enc, chat[:2])
    for place in range(2, len(chat) - 1, 2):
        rollout.sampled(enc.encode(chat[place]["content"] + "<|im_end|>", allowed_special="all"))
        if place + 2 < len(chat) - 1:
            rollout.append([chat[place + 1]])
    more = [chat[-2]]
    whole, template = [*rollout.messages, *more], ChatTemplate(CHATML)

    def turn() -> Rollout:
        fork = rollout.fork()
        assert fork.append(more)
        return fork

    def ours() -> list[int]:
        return enc.encode_segments(template.render(whole, add_generation_prompt=True))

    ids = turn().ids
    assert ids == ours()
    yield f"the whole of {len(ids):,} ids / turn 20 of a rollout", ours, turn
    theirs = _transformers(_file(run.spec, run.cache))

    def other() -> Any:
        return theirs.apply_chat_template(
            whole, chat_template=CHATML, add_generation_prompt=True, return_dict=False
        )

    assert other() == ids
    yield f"transformers, the whole of {len(ids):,} ids / turn 20 of a rollout", other, turn


def _transformers(path: Path, **options: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    made: Any = PreTrainedTokenizerFast
    return made(tokenizer_file=str(path), **options)


def _tool(number: int) -> dict[str, Any]:
    properties = {
        name: {"type": kind, "description": words(9, number)}
        for name, kind in (("path", "string"), ("lines", "integer"), ("names", "array"))
    }
    parameters = {"type": "object", "properties": properties, "required": ["path"]}
    function = {"name": f"tool_{number}", "description": words(30, number)}
    return {"type": "function", "function": {**function, "parameters": parameters}}


def _calls(count: int) -> list[dict[str, Any]]:
    """Makes a conversation of a question and ``count`` tool calls with results and reasoning."""
    chat: list[dict[str, Any]] = [{"role": "user", "content": words(100, 5)}]
    for number in range(count):
        name, id = f"tool_{number % 30}", f"call{100_000 + number}"[-9:]
        given = {"path": f"src/part_{number}.py", "lines": number, "names": ["a", f"b{number}"]}
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": given}}
        thought = words(20, number)
        chat.append(
            {"role": "assistant", "content": "", "thinking": thought, "reasoning_content": thought,
             "tool_calls": [call]}
        )  # fmt: skip
        content = words(45, number)
        chat.append({"role": "tool", "name": name, "tool_call_id": id, "content": content})
    return chat


def _shapes(chat: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yields the conversation in the shapes that templates expect."""
    as_json = copy.deepcopy(chat)
    for call in (call for message in as_json for call in message.get("tool_calls", ())):
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    for shape in (chat, as_json):
        for left_out in ((), ("thinking",), ("thinking", "reasoning_content")):
            yield [{k: v for k, v in each.items() if k not in left_out} for each in shape]


def templates(run: Run) -> Rows:
    """Compares rendering to segments with plain Jinja as compiled by transformers."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    enc = bpe_engine.get_encoding(run.spec.name)
    kinds = {
        "200 messages": (messages(199, 405), None),
        "1,000 calls": (_calls(1000), [_tool(number) for number in range(30)]),
    }
    texts = {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
    segments: dict[str, Any] = {name: special(text) for name, text in texts.items()}
    for (name, source), (kind, (chat, tools)) in itertools.product(
        _templates().items(), kinds.items()
    ):
        compiled = _compile_jinja_template(source)
        template = ChatTemplate(source, max_seconds=100)
        more: dict[str, Any] = {"tools": tools, "add_generation_prompt": True, "documents": None}
        last = chat[-1]["content"].strip()
        for shape in _shapes(chat):

            def plain() -> str:
                return str(compiled.render(messages=shape, **texts, **more))

            def ours() -> Any:
                return template.render(shape, **segments, **more)

            def encoded() -> list[int]:
                return enc.encode_segments(ours())

            def account(chat: Any = shape) -> Any:
                return account_prompt(chat, enc, template=source, **segments, **more)

            try:
                text = plain()
            except Exception as error:  # A template may raise any exception.
                if missing := re.fullmatch(r"'(\w+)' is undefined", str(error)):
                    more[missing[1]] = "[]"
                continue
            if last in text:
                assert "".join(part.text for part in ours()) == text
                yield f"plain Jinja / render, {name}, {kind}", plain, ours
                old = account([*shape[:-1], {**shape[-1], "content": "It is else."}])
                calls = {
                    "account": lambda: account().parts,
                    "compare": lambda: account().compare(old).first,
                }
                for title, call in calls.items():
                    yield f"render and encode / {title}, {name}, {kind}", encoded, call
                break


def calls(run: Run) -> Rows:
    """Compares warm calls of transformers with ``Tokenizer``, and with transformers patched to use
    our engine."""
    path = _file(run.spec, run.cache)
    tokens = [token["content"] for token in json.loads(path.read_bytes())["added_tokens"]]
    pad = next((token for token in tokens if "pad" in token.lower()), None) or tokens[0]
    names = ["input_ids", "token_type_ids", "attention_mask"]
    options: dict[str, Any] = {
        "pad_token": pad,
        "model_input_names": names if "bert" in path.name else names[::2],
    }
    theirs = _transformers(path, **options)
    sides: dict[str, Any] = {
        "ours inside": hf.as_transformers(copy.deepcopy(theirs)),
        "Tokenizer": bpe_engine.Tokenizer(hf.Tokenizer.from_file(path), **options),
    }
    text = "The quick brown fox jumps over the lazy dog and sleeps."
    first = [" ".join(WORDS[place % 40 : place % 40 + 5 + place * 7 % 26]) for place in range(64)]
    cut = {"truncation": True, "max_length": 128}
    arrays = {"padding": True, "return_tensors": "np"}
    kinds: dict[str, Callable[[Any], Any]] = {
        "one text": lambda it: it(text),
        "one text, 128 tokens at most": lambda it: it(text, **cut),
        "64 sentences, padded, numpy": lambda it: it(first, **arrays),
        "64 sentences, padded and cut, numpy": lambda it: it(first, **arrays, **cut),
        "64 sentences, lists": lambda it: it(first),
        "64 pairs, padded, numpy": lambda it: it(first, first[::-1], **arrays),
    }

    def plain(batch: Any) -> dict[str, Any]:
        return {
            name: getattr(value, "tolist", lambda v=value: v)() for name, value in batch.items()
        }

    for (title, call), (side, own) in itertools.product(kinds.items(), sides.items()):
        assert plain(call(own)) == plain(call(theirs)), title
        yield f"transformers / {side}, {title}", lambda: call(theirs), lambda: call(own)


def streams(run: Run) -> Rows:
    """Decodes 256 requests, one id each per step: a `DecodeStream` per request against a pool."""
    import numpy as np
    import tokenizers

    path = str(_file(run.spec, run.cache))
    ours, theirs = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    ids = np.array(ours.encode(_english(run, 2_000_000), add_special_tokens=False).ids)
    steps = np.ascontiguousarray(np.resize(ids, (256, 256)).T)
    pool = bpe_engine.StreamPool(ours)
    for stop in ([], ["\n\nUser:", "</answer>", "<|im_end|>", "###"]):

        def own() -> list[list[str]]:
            slots = [pool.open(stop=stop) for _ in range(256)]
            texts = [pool.step(slots, step)[0] for step in steps]
            return [*texts, [pool.close(slot) for slot in slots]]

        def other() -> list[list[str]]:
            made = [tokenizers.decoders.DecodeStream() for _ in range(256)]
            return [
                [stream.step(theirs, id) or "" for stream, id in zip(made, step)]
                for step in steps.tolist()
            ]

        # A DecodeStream withholds the last token if it ends inside a character.
        for mine, expected in zip(zip(*own()), zip(*other()), strict=True):
            assert "".join(mine).startswith("".join(expected))
        yield f"256 requests: DecodeStream / stream pool, {len(stop)} stop strings", other, own


def truncation(run: Run) -> Rows:
    """Truncates 2 MB of text to 8,192 tokens: tokenizers against this project."""
    import tokenizers

    path = str(_file(run.spec, run.cache))
    ours, theirs = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    text = _english(run, 2_000_000)
    for kind, part in (("ASCII", text.encode("ascii", "ignore").decode()), ("other text", text)):
        whole = part[:2_000_000]
        for tokenizer in (ours, theirs):
            tokenizer.enable_truncation(8192)
        assert ours.encode(whole).ids == theirs.encode(whole).ids
        yield (
            f"2 MB of {kind}, 8,192 tokens kept: tokenizers / ours",
            lambda: theirs.encode(whole).ids,
            lambda: ours.encode(whole).ids,
        )


def conversations(run: Run) -> Rows:
    """Encodes all prompts of 100 conversations of 20 turns: whole, or by `ConversationCache`."""
    from bpe_engine.serving import ConversationCache

    enc = bpe_engine.get_encoding(run.spec.name)
    text, each = _english(run, 2_000_000), 3_000
    kinds = {
        "special tokens": ("<|im_start|>", "<|im_end|>\n", 0),
        "a document": ("<|im_start|>", "<|im_end|>\n", 100_000),
        "no special tokens": ("", "\n\n", 0),
    }
    for kind, (start, end, document) in kinds.items():
        by_session = []
        for session in range(100):
            rng = random.Random(session)
            prompt = f"{start}system\n{text[:500]}{end}"
            by_session.append([prompt])
            for turn in range(20):
                for role in ("user", "assistant"):
                    length = document or each if turn == 0 and role == "user" else each
                    at = rng.randrange(max(1, len(text) - length))
                    prompt += f"{start}{role}\n{text[at : at + length]}{end}"
                by_session[-1].append(prompt)
        in_turn = [prompt for turn in zip(*by_session) for prompt in turn]

        def whole() -> list[bytes]:
            return [enc.encode_to_numpy(it, allowed_special="all").tobytes() for it in in_turn]

        def cached() -> list[bytes]:
            cache = ConversationCache(enc, max_bytes=1 << 34, allowed_special="all")
            return [cache.encode_to_numpy(it).tobytes() for it in in_turn]

        assert whole() == cached()
        yield f"100 conversations, {kind}: encode the whole / ConversationCache", whole, cached


def corpus(run: Run) -> Rows:
    """Encodes the documents of a file to arrays, and a corpus to token files."""
    from bpe_engine.corpus import make_plan, run_plan

    enc = bpe_engine.get_encoding(run.spec.name)
    texts = corpora.documents(_english(run, 2_000_000), 4096) * 8
    folder = Path(tempfile.mkdtemp(dir=run.cache))
    source = folder / "in.jsonl"
    source.write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts), "utf-8")
    numbers = itertools.count()

    def arrays() -> int:
        with source.open("rb") as file:
            return sum(len(enc.encode_to_numpy(json.loads(line)["text"])) for line in file)

    def written() -> None:
        plan = make_plan([source], run.spec.name, folder / str(next(numbers)), format="megatron")
        run_plan(plan, processes=1)

    yield "documents to arrays / to a corpus", arrays, written


ROWS: dict[str, Callable[[Run], Rows]] = {
    rows.__name__: rows
    for rows in (
        prompts, masks, rollouts, templates, calls, streams, truncation, conversations, corpus,
    )
}  # fmt: skip
