"""Compares the rendering of chat templates with plain Jinja, on long conversations.

    python -m benchmarks.templates FOLDER

FOLDER has chat templates, ``*.jinja``. Each renders 200 messages of some 108,000 tokens, and 1,000
tool calls with their results, reasoning and 30 tools, to segments with origins; plain Jinja renders
them to a text as transformers compiles it. Everything runs in one process on one CPU, the sides in
turn; the texts are compared. A ratio is the median of the ratios of CPU time. Then come the time in
which a session renders the next turn (two messages more, segments compared), how often that goes into
rendering it whole, the time in which a `ConversationCache` encodes it, and the first rendering of the
session, which it records, with rendering whole as 1. At the end, a `TemplateCache`
finds one of 1,000 conversations, whose first 400 messages are the same.

    python -m benchmarks.templates FOLDER --only NAME --tokenizer FILE --bos TOKEN --eos TOKEN

A ``tokenizer.json`` gives the whole way from messages to ids instead, for turn 20 of a conversation of
some 30,000 tokens: rendering and a `ConversationCache`, beside ``apply_chat_template`` of
transformers, ids compared.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bpe_engine
import bpe_engine.hf
from bpe_engine.prompt import ChatTemplate, special
from bpe_engine.serving import ConversationCache, TemplateCache

from .harness.sides import on_one_cpu, ratio, seconds
from .prompts import CHATML, WORDS, messages

_NUMBER = 100_000


def _words(count: int, offset: int) -> str:
    return " ".join(WORDS[(7 * word + offset) % len(WORDS)] for word in range(count))


def _tool(number: int) -> dict[str, Any]:
    properties = {
        name: {"type": kind, "description": _words(9, number + place)}
        for place, (name, kind) in enumerate(
            [("path", "string"), ("lines", "integer"), ("all", "boolean"), ("names", "array")]
        )
    }
    parameters = {"type": "object", "properties": properties, "required": ["path"]}
    function = {"name": f"tool_{number}", "description": _words(30, number)}
    return {"type": "function", "function": {**function, "parameters": parameters}}


def calls(count: int) -> list[dict[str, Any]]:
    """Makes a conversation of a question and ``count`` tool calls with results and reasoning."""
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": _words(200, 0)},
        {"role": "user", "content": _words(100, 5)},
    ]
    for number in range(count):
        name, id = f"tool_{number % 30}", f"call{_NUMBER + number}"[-9:]
        arguments = {
            "path": f"src/part_{number}.py", "lines": number, "all": number % 2 == 0,
            "names": ["a", f"b{number}"],
        }  # fmt: skip
        function = {"name": name, "arguments": arguments}
        thought = _words(20, number)
        chat += (
            {
                "role": "assistant", "content": "", "thinking": thought,
                "reasoning_content": thought,
                "tool_calls": [{"id": id, "type": "function", "function": function}],
            },
            {"role": "tool", "name": name, "tool_call_id": id, "content": _words(45, number)},
        )  # fmt: skip
    return chat


def _as_json(chat: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Writes the arguments of calls as JSON, which some templates ask for."""
    import json

    chat = copy.deepcopy(chat)
    for message in chat:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    return chat


def _without(chat: list[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in each.items() if key not in keys} for each in chat]


def _variants(chat: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yields the conversation in the shapes that templates ask for."""
    for shape in (chat, _as_json(chat)):
        for keys in ((), ("thinking",), ("thinking", "reasoning_content")):
            yield _without(shape, *keys)
            yield _without(shape[1:], *keys)


class Side:
    """A template that plain Jinja and `ChatTemplate` render, with the variables that it asks for."""

    def __init__(self, source: str):
        from transformers.utils.chat_template_utils import _compile_jinja_template

        self._plain, self.template = _compile_jinja_template(source), ChatTemplate(source)
        self._texts = {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
        self._segments: dict[str, Any] = {name: special(text) for name, text in self._texts.items()}
        self._more: dict[str, Any] = {"add_generation_prompt": True, "documents": None}

    def plain(self, chat: Any, tools: Any) -> str:
        return str(self._plain.render(messages=chat, tools=tools, **self._texts, **self._more))

    def ours(self, chat: Any, tools: Any, renderer: Any = None) -> Any:
        renderer = self.template if renderer is None else renderer
        return renderer.render(chat, tools=tools, **self._segments, **self._more)

    def accepted(self, chat: Any, tools: Any, wanted: str) -> Any:
        """Returns the first shape of a conversation that the template renders with all in it.

        Raises:
            ValueError: The template refuses all.
        """
        reason = "the last result is missing"
        for shape in _variants(chat):
            while True:
                try:
                    text = self.plain(shape, tools)
                except Exception as error:  # templates refuse in many ways
                    reason = str(error)
                    missing = re.fullmatch(r"'(\w+)' is undefined", reason)
                    if missing and missing[1] not in self._more:
                        self._more[missing[1]] = "[]"
                        continue
                    break
                if wanted in text:
                    assert "".join(part.text for part in self.ours(shape, tools)) == text
                    return shape
                break
        raise ValueError(reason)


def next_turn(enc: bpe_engine.Encoding, render: Callable[[Any], Any], chat: Any) -> float:
    """Returns the seconds in which a cache encodes a prompt whose last two messages are new."""
    cache = ConversationCache(enc, allowed_special="all")
    cache.encode_to_numpy(render(chat[:-2]))
    times = []
    for number in range(5):
        last = {**chat[-1], "content": f"{number} {chat[-1]['content']}"}
        segments = render([*chat[:-1], last])
        times.append(seconds(lambda: cache.encode_to_numpy(segments)))
    return statistics.median(times)


def session_turn(side: Side, chat: Any, tools: Any, rounds: int) -> tuple[float, float]:
    """Returns the seconds in which a session renders the next turn, and how often they go into
    those of rendering it whole."""
    session = side.template.session()
    times, ratios = [], []
    for left in range(rounds, -1, -1):
        part = chat[: len(chat) - 2 * left]
        found: list[Any] = []
        took = seconds(lambda: found.append(side.ours(part, tools, session)))
        whole = seconds(lambda: found.append(side.ours(part, tools)))
        assert found[0] == found[1]
        times.append(took)
        ratios.append(whole / took)
    return statistics.median(times[1:]), statistics.median(ratios[1:])


def found_again(count: int, rounds: int) -> dict[str, float]:
    """Returns the seconds of the next turn of one of many conversations: in a cache that finds it among
    them, in a session of its own, and rendered whole."""
    shared = messages(400, 40)
    chats = [
        [*shared, *({**it, "content": f"{number} {it['content']}"} for it in messages(100, 40))]
        for number in range(count)
    ]
    cache, template = TemplateCache(), ChatTemplate(CHATML)
    for chat in chats:
        cache.render(CHATML, chat)
    session, chat = template.session(), chats[count // 2]
    sides = {
        "in a cache": lambda: cache.render(CHATML, chat),
        "in a session": lambda: session.render(chat),
        "whole": lambda: template.render(chat),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 2):
        chat += messages(2, 40, number)
        found: list[Any] = []
        for name, render in sides.items():
            times[name].append(seconds(lambda: found.append(render())))
        assert found[0] == found[1] == found[2]
    return {name: statistics.median(each[2:]) for name, each in times.items()}


def pipeline(source: str, file: Path, tokens: dict[str, str], rounds: int) -> tuple[float, float]:
    """Returns the seconds from messages to ids at turn 20, and how much longer transformers takes."""
    from transformers import PreTrainedTokenizerFast

    theirs: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_file=str(file), **tokens
    )
    tokenizer = bpe_engine.hf.Tokenizer.from_file(file)
    template, cache = ChatTemplate(source), ConversationCache(tokenizer)
    named: dict[str, Any] = {name: special(text) for name, text in tokens.items()}
    chats = itertools.cycle([messages(39, 600, last) for last in range(2)])

    def ours() -> Any:
        segments = template.render(next(chats), add_generation_prompt=True, **named)
        return cache.encode_to_numpy(segments)

    def plain() -> Any:
        return theirs.apply_chat_template(
            next(chats), chat_template=source, add_generation_prompt=True, return_dict=False
        )

    for _ in range(2):
        ids = ours()
        next(chats)
        assert ids.tolist() == plain()
        next(chats)
        next(chats)
    print(f"\n{len(ids):,} tokens")
    times = ratio(rounds, plain, ours)
    return seconds(ours, 20) / 20, times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("templates", type=Path, metavar="FOLDER", help="has *.jinja")
    parser.add_argument("--only", default="", help="templates whose names hold this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--encoding", default="qwen3")
    parser.add_argument("--tokenizer", type=Path, metavar="FILE", help="a tokenizer.json")
    parser.add_argument("--bos", help="its token that begins a text")
    parser.add_argument("--eos", help="its token that ends one")
    options = parser.parse_args()
    enc = bpe_engine.get_encoding(options.encoding)
    paths = [
        path for path in sorted(options.templates.glob("*.jinja")) if options.only in path.stem
    ]
    sources = {"ChatML": CHATML, **{path.stem: path.read_text("utf-8") for path in paths}}
    tools = [_tool(number) for number in range(30)]
    agent = calls(1000)
    kinds: dict[str, tuple[Any, Any, str]] = {
        "200 messages": (messages(199, 405), None, _words(405, 31 * 198).strip()),
        "1,000 calls": (agent, tools, agent[-1]["content"].strip()),
    }
    on_one_cpu()
    if options.tokenizer:
        tokens = {f"{name}_token": getattr(options, name) for name in ("bos", "eos")}
        tokens = {name: token for name, token in tokens.items() if token}
        print("| messages to ids, turn 20 | ms | transformers / this |\n|---|---:|---:|")
        for name, source in list(sources.items())[1:]:
            own, times = pipeline(source, options.tokenizer, tokens, options.rounds)
            print(f"| {name} | {own * 1e3:.2f} | {times:.1f} |", flush=True)
        return
    refused = []
    for kind, (chat, given, wanted) in kinds.items():
        print(
            f"\n| {kind} | plain Jinja, ms | render, ms | ratio | next turn in a session, ms "
            "| whole / session | its ids, ms | first in a session / whole |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        found: dict[str, float] = {}
        parts: dict[str, float] = {}
        firsts: dict[str, float] = {}
        for name, source in sources.items():
            side = Side(source)
            try:
                shape = side.accepted(chat, given, wanted)
            except ValueError as error:
                refused.append(f"{name} ({kind}): {error}")
                continue
            plain = seconds(lambda: side.plain(shape, given))
            found[name] = ratio(
                options.rounds, lambda: side.ours(shape, given), lambda: side.plain(shape, given)
            )
            turn, parts[name] = session_turn(side, shape, given, options.rounds)
            firsts[name] = ratio(
                options.rounds,
                lambda: side.ours(shape, given, side.template.session()),
                lambda: side.ours(shape, given),
            )
            ids = next_turn(enc, lambda chat: side.ours(chat, given), shape)
            own = plain * found[name]
            print(
                f"| {name} | {plain * 1e3:.2f} | {own * 1e3:.2f} | {found[name]:.2f} "
                f"| {turn * 1e3:.2f} | {parts[name]:.1f} | {ids * 1e3:.2f} | {firsts[name]:.2f} |",
                flush=True,
            )
        means = [statistics.geometric_mean(each.values()) for each in (found, parts, firsts)]
        worst = max(found.values()), min(parts.values()), max(firsts.values())
        for title, (mean, times, first) in ((f"mean of {len(found)}", means), ("the worst", worst)):
            print(f"| {title} | | | {mean:.2f} | | {times:.1f} | | {first:.2f} |")
    count = 1000
    turn = found_again(count, options.rounds)
    print(f"\n| the next turn of one of {count:,} conversations | ms |\n|---|---:|")
    for name, took in turn.items():
        print(f"| {name} | {took * 1e3:.2f} |")
    print(f"| of the cache, finding it | {(turn['in a cache'] - turn['in a session']) * 1e3:.2f} |")
    print("\nRefused by plain Jinja:\n")
    print("\n".join(refused))


if __name__ == "__main__":
    main()
