"""The command `bpe-engine account`: shows the tokens of each prompt part, and the share that a
cache reuses."""

from __future__ import annotations

import json
import math
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import click
from rich.console import Console

from ..prompt.account import Account, Part, Step, account_prompt, follow, part_rows
from ..prompt.openai_count import count_chat_tokens
from . import streams
from .group import Command
from .options import JSON
from .templates import TEMPLATE, open_model, read_template, show, takes_tokenizer, template_errors

_PRICE = click.FloatRange(0, 1e6)
# Time limit for rendering a request: long logs of agents are rendered on busy machines.
_MAX_SECONDS = 60.0
_COST = "cost: {cost:.6g}; {cost_without_cache:.6g} without a cache"
# Errors of a request or its template, besides Jinja's own errors.
_REFUSALS = (TypeError, ValueError, ArithmeticError, LookupError, RuntimeError)
# Request keys that the servers of open models pass to the template.
_TEMPLATE_KEYS = ("documents", "add_generation_prompt")
# Names that are not template variables.
_TAKEN = {"prompt", "messages", "tools", "tokenizer", "template", "model", "max_seconds"}


@click.command("account", cls=Command, short_help="Show what each part of a prompt costs.")
@TEMPLATE
@click.option("--before", metavar="FILE", help="An earlier request, to compare with.")
@click.option("--template", "template_path", metavar="FILE", help="The model's chat template.")
@takes_tokenizer("The model's tokenizer; a folder may have the template")
@click.option("-m", "--model", metavar="NAME", help="A chat model of OpenAI, such as gpt-4o.")
@click.option("--price-in", type=_PRICE, metavar="N", help="The price of a million tokens.")
@click.option(
    "--price-cached", type=_PRICE, metavar="N", help="The price of a million cached tokens."
)
@JSON
def account(
    path: str,
    before: str | None,
    as_json: bool,
    price_in: float | None,
    price_cached: float | None,
    **choice: Any,
) -> None:
    """Show how many tokens each part of a prompt takes, and how many a prompt cache reuses.

    FILE has a request of OpenAI's API ("messages", "tools"), a list of messages, or a log: requests in
    lines or in a list, each compared with the earlier one with which it shares most tokens.

    \b
    bpe-engine account request.json --tokenizer ./model
    bpe-engine account request.json --tokenizer qwen3 --template chat.jinja
    bpe-engine account now.json --before earlier.json --model gpt-4o
    bpe-engine account log.jsonl --tokenizer ./m --price-in 2 --price-cached 0.2
    """
    if price_cached is not None and price_in is None:
        raise click.UsageError("--price-cached needs --price-in")
    prices = price_in, price_in if price_cached is None else price_cached
    if math.isnan(sum(price or 0 for price in prices)):
        raise click.UsageError("nan is not a price")
    source = _source(**choice)
    accounts = (_account(*request, source) for request in _requests(path))
    found = list(islice(accounts, 2))
    if not found:
        raise ValueError(f"{path} has no request")
    if before is None and len(found) > 1:
        return _show_log(follow(chain(found, accounts)), prices, as_json)
    earlier = [_account(*request, source) for request in _requests(before)] if before else []
    if before and len(found) + len(earlier) != 2:
        raise click.UsageError("--before compares two files with one request each")
    compared = found[0].compare(earlier[0]) if earlier else None
    cost = _cost(found[0].total, compared.billed_as_cached if compared else 0, prices)
    if as_json:
        more = {"comparison": compared.to_dict()} if compared else {}
        return streams.print_json({**found[0].to_dict(), **more, **cost})
    show(*_table("prompt, estimated" if found[0].estimates else "prompt", found[0].parts))
    reasons: dict[str, list[str]] = {}
    for where, _, reason in (it.partition(": ") for it in found[0].estimates):
        reasons.setdefault(reason, []).append(where)
    for reason, [first, *rest] in reasons.items():
        show(f"estimate, {reason}: {first}{f' and {len(rest):,} more' if rest else ''}")
    if compared:
        show("", *str(compared).split("\n"))
    if cost:
        show(_COST.format_map(cost))


def _source(
    tokenizer_name: str | None, template_path: str | None, model: str | None
) -> dict[str, Any]:
    if (model is None) == (tokenizer_name is None):
        raise click.UsageError("give --tokenizer, or --model for a closed model of OpenAI")
    if model is not None:
        if template_path is not None:
            raise click.UsageError("--template needs --tokenizer")
        try:
            count_chat_tokens([], model)
        except (KeyError, ValueError):
            raise click.UsageError(
                f"{model!r} is not a chat model of OpenAI; for an open model give --tokenizer"
            ) from None
        return {"model": model}
    tokenizer = open_model(str(tokenizer_name))
    if template_path is None:
        if not getattr(tokenizer, "chat_template", None):
            raise click.UsageError(f"{tokenizer_name} has no chat template; give --template")
        return {"tokenizer": tokenizer}
    template = read_template(template_path)
    with template_errors():
        from ..prompt.template import ChatTemplate

        is_read = "bos_token" in ChatTemplate(template).variables
    if is_read and not hasattr(tokenizer, "special_tokens_map"):
        streams.print_note("the template reads bos_token, which only a model's folder names")
    return {"tokenizer": tokenizer, "template": template}


def _requests(path: str) -> Iterator[tuple[str, Any]]:
    contents = streams.read_bytes(path)
    try:
        text = contents.decode(json.detect_encoding(contents))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not {error.encoding}, as JSON must be: byte {error.start}"
        ) from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            place = f"{path}, line {number}"
            try:
                if line.strip():
                    yield place, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(
                    f"{place} is not JSON: {error}; a file has one request, or one in each line"
                ) from None
        return
    if isinstance(value, list) and any(map(_is_request, value)):
        yield from ((f"{path}, item {number}", it) for number, it in enumerate(value, 1))
    else:
        yield path, value


def _account(place: str, value: Any, source: dict[str, Any]) -> Account:
    # A line of an OpenAI batch file has the request in "body".
    request = value.get("body", value) if _is_object(value) else {"messages": value}
    messages = request.get("messages") if _is_object(request) else None
    if not messages or not isinstance(messages, list) or not all(map(_is_object, messages)):
        raise ValueError(f"{place}: give a list of messages, or an object with one as 'messages'")
    tools = request.get("tools") or request.get("functions")
    more: dict[str, Any] = {}
    if "tokenizer" in source:
        messages = [_as_served(message) for message in messages]
        given = request.get("chat_template_kwargs") or {}
        if not _is_object(given) or _TAKEN & given.keys():
            names = ", ".join(sorted(_TAKEN))
            raise ValueError(f"{place}: 'chat_template_kwargs' must be an object without {names}")
        more = {key: request[key] for key in _TEMPLATE_KEYS if request.get(key) is not None}
        more |= {**given, "max_seconds": _MAX_SECONDS}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A note was printed already.
            return account_prompt(messages, tools=tools, **{**more, **source})
    except Exception as error:
        is_of_template = "jinja2" in type(error).__module__ or isinstance(error, ArithmeticError)
        if not is_of_template and not isinstance(error, _REFUSALS):
            raise
        reason = error.args[0] if isinstance(error, KeyError) else error
        parts = [at for at, it in enumerate(messages) if isinstance(it.get("content"), list)]
        if "tokenizer" in source and (is_of_template or isinstance(error, TypeError)) and parts:
            reason = f"{reason}; does the template take a list, as the content of messages[{parts[0]}] is?"
        raise ValueError(f"{place}: {'the template: ' * is_of_template}{reason}") from None


def _is_request(value: Any) -> bool:
    return _is_object(value) and ("messages" in value or "body" in value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _as_served(message: dict[str, Any]) -> dict[str, Any]:
    """Changes a message as servers do before rendering: missing content becomes "", a single text
    part becomes a string, and call arguments become objects."""
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text", content)
    message["content"] = "" if content is None else content
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        with suppress(ValueError, TypeError, KeyError):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"] or "{}")
    return message


def _show_log(steps: Iterable[Step], prices: Any, as_json: bool) -> None:
    lost, sums, rows = Counter[str](), Counter[str](), []
    groups: dict[str, Counter[str]] = {}
    with Console(stderr=True).status("") as status:
        if sys.stdout.isatty():
            status.stop()
        if not as_json:
            show(f"{'request':>7} {'tokens':>10} {'kept':>10} {'share':>7} {'cached':>10}  change")
        for number, (account, compared, change) in enumerate(steps, 1):
            status.update(f"{number:,} requests")
            kept, cached = (compared.kept, compared.billed_as_cached) if compared else (0, 0)
            what = f"{change.kind}: {change.part}" if change else ""
            if compared and change:
                lost[what] += compared.before.total - kept
            row = {"tokens": account.total, "kept": kept, "cached": cached}
            sums.update(row)
            rows.append({**row, "change": change and change._asdict()})
            for part in account.parts:
                inner = part.parts if part.name in ("tools", "messages") else ()
                for each in inner or (part,):
                    name = each.label if inner else part.name
                    groups.setdefault(part.name, Counter())[name or part.name] += each.tokens
            if not as_json:
                share = kept / max(account.total, 1)
                figures = f"{number:7,} {account.total:10,} {kept:10,} {share:7.1%} {cached:10,}"
                show(f"{figures}  {what}".rstrip())
    parts = []
    for name, labels in groups.items():
        few = [Part(*it) for it in labels.most_common()] if [*labels] != [name] else []
        parts.append(Part(name, labels.total(), parts=tuple(few)))
    parts.sort(key=lambda part: -part.tokens)
    most, name = max(
        (each.tokens, each.name + f" ({part.name})" * bool(part.parts))
        for part in parts or [Part("template", 0)]
        for each in part.parts or (part,)
    )
    cost = _cost(sums["tokens"], sums["cached"], prices)
    if as_json:
        data = {"requests": rows, **sums, "parts": [part.to_dict() for part in parts]}
        data |= {"costliest": name, "lost": dict(lost.most_common()), **cost}
        return streams.print_json(data)
    total = max(sums["tokens"], 1)
    show("", *_table(f"{len(rows):,} requests", parts), "")
    show(f"most tokens: {name}, {most / total:.1%}")
    show(f"kept of an earlier prompt: {sums['kept'] / total:.1%}")
    show(*(f"computed again for {it}: {count:,} tokens" for it, count in lost.most_common(5)))
    if cost:
        show(_COST.format_map(cost))


def _table(title: str, parts: Iterable[Part]) -> list[str]:
    is_wide = (sys.stdout.encoding or "").lower().startswith("utf")
    width = shutil.get_terminal_size().columns
    return part_rows(title, tuple(parts), width, "█" if is_wide else "#")


def _cost(total: int, cached: int, prices: tuple[float | None, float | None]) -> dict[str, float]:
    if prices[0] is None or prices[1] is None:
        return {}
    cost = ((total - cached) * prices[0] + cached * prices[1]) / 1e6
    return {"cost": cost, "cost_without_cache": total * prices[0] / 1e6}
