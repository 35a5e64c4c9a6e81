"""Records ids, fields, renderings and public names of a build, and compares two records.

    python release/freeze.py record before.json --shared FOLDER
    python release/freeze.py compare before.json after.json

A record has a digest for each file and ability, over documents drawn from the shared corpora, so a
refactoring that preserves behavior changes no line. `compare` prints the lines that differ, and
exits with status 1 if a digest differs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import json
import pkgutil
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TEXTS = 160
ODD = [
    "", " ", "  \n\t ", "re\u0301sume\u0301 nai\u0308ve", "\u1112\u1161\u11ab\u1100\u1173\u11af ok", "\ufdfa",
    "a\u3000b\u0085c\u2028d", "<|endoftext|> <s></s> [CLS] <unk> <0x41>", "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "it's 1234567 don't\r\n\r\n  x", "\ud83d lone", "0" * 400, "a" * 3000, " " * 3000, "\u00bd\ufb01\u2126",
]  # fmt: skip


def texts(shared: Path) -> list[str]:
    """Returns documents of 20 to 4,000 characters from each corpus, and unusual texts."""
    rng = random.Random(24)
    found = list(ODD)
    for path in sorted((shared / "corpora").glob("*.txt")):
        text = path.read_text("utf-8")
        for _ in range(TEXTS):
            start, size = rng.randrange(len(text)), int(20 * 200 ** rng.random())
            found.append(text[start : start + size])
    return found


def digest(results: Iterator[Any]) -> str:
    """Hashes results; an exception contributes its type."""
    hashed = hashlib.sha256()
    for result in results:
        hashed.update(repr(result).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()[:16]


def attempts(work: Callable[[str], Any], documents: list[str]) -> Iterator[Any]:
    for document in documents:
        try:
            yield work(document)
        except Exception as error:
            yield type(error).__name__


def plain(encoding: Any) -> Any:
    return encoding if isinstance(encoding, list) else encoding.ids


def abilities(tokenizer: Any) -> dict[str, Callable[[str], Any]]:
    """Returns functions by name that call the abilities of every class with explicit arguments."""
    from bpe_engine.prompt import special, trusted, untrusted

    names = sorted(tokenizer.special_tokens_set)[:2]

    def segments(text: str) -> Any:
        parts = [special(name) for name in names[:1]] + [untrusted(text), trusted(" next: ")]
        return tokenizer.encode_segments([*parts, untrusted(text[::-1])])

    def stable(tokenizer: Any, text: str) -> Any:
        from bpe_engine import prompt

        if hasattr(tokenizer, "stable_prefix"):  # A method that exists only before 0.1.0.
            return tokenizer.stable_prefix(text)
        return prompt.stable_prefix(tokenizer, text)

    def stream(text: str) -> Any:
        decoder = tokenizer.stream_decoder()
        ids = plain(tokenizer.encode(text))
        return [decoder.push(id) for id in ids], decoder.finish()

    def heal(text: str) -> Any:
        healed = tokenizer.heal(text[: len(text) // 2])
        return list(healed.ids), healed.rest if hasattr(healed, "rest") else None

    return {
        "encode": lambda text: plain(tokenizer.encode(text)),
        "ordinary": lambda text: tokenizer.encode_to_numpy(text, allowed_special=()).tolist(),
        "offsets": lambda text: tokenizer.encode_with_offsets(text),
        "offsets in bytes": lambda text: tokenizer.encode_with_offsets(text, unit="bytes"),
        "count": lambda text: (tokenizer.count(text), tokenizer.count_till_limit(text, 20)),
        "truncate": lambda text: [
            tokenizer.truncate(text, 17, side=side) for side in ("left", "right")
        ],
        "chunk": lambda text: (
            tokenizer.chunk(text, 29, 5),
            [tuple(span) for span in tokenizer.chunk_spans(text, 31, 4)],
        ),
        "segments": segments,
        "stable": lambda text: stable(tokenizer, text),
        "decode": lambda text: (
            tokenizer.decode(plain(tokenizer.encode(text))),
            tokenizer.decode_bytes(plain(tokenizer.encode(text))),
        ),
        "decode with offsets": lambda text: tokenizer.decode_with_offsets(
            plain(tokenizer.encode(text))
        ),
        "canonical": lambda text: tokenizer.is_canonical(plain(tokenizer.encode(text))[::-1]),
        "stream": stream,
        "heal": heal,
        "find": lambda text: tokenizer.find_special(text),
    }


def fields(tokenizer: Any) -> dict[str, Callable[[str], Any]]:
    """Returns functions by name that only a Hugging Face file supports."""

    def encoding(text: str, pair: str | None = None) -> Any:
        found = tokenizer.encode(text, pair)
        return [
            found.ids, found.offsets, found.type_ids, found.attention_mask, found.tokens,
            found.special_tokens_mask, found.word_ids, found.sequence_ids,
        ]  # fmt: skip

    return {
        "fields": encoding,
        "pairs": lambda text: encoding(text[: len(text) // 2], text[len(text) // 2 :]),
        "skip": lambda text: tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=True),
    }


def tokenizers(shared: Path) -> Iterator[tuple[str, Any]]:
    import bpe_engine
    from bpe_engine import hf

    for name in bpe_engine.list_encoding_names():
        yield name, bpe_engine.get_encoding(name)
    files = sorted((shared / "tokenizers").rglob("*.*"))
    for path in files:
        name = str(path.relative_to(shared / "tokenizers"))
        if path.name == "tekken.json" or path.suffix == ".tiktoken":
            pattern = {} if path.suffix == ".json" else {"pattern": "gpt2"}
            yield name, bpe_engine.load_encoding(path, **pattern)
        elif path.suffix == ".json":
            yield name, hf.Tokenizer.from_file(str(path))
        elif path.suffix == ".model":
            yield name, hf.Tokenizer.from_sentencepiece(str(path))
        elif path.name.endswith("vocab.txt"):
            yield name, hf.Tokenizer.from_wordpiece(str(path))


def renderings(shared: Path) -> Iterator[tuple[str, str]]:
    from bpe_engine.prompt import render_template

    call = {
        "type": "function",
        "function": {"name": "add", "arguments": {"a": 1, "b": "<|im_end|>"}},
    }
    tool = {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
        },
    }
    user, last = {"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "Two."}
    chats: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
        ([user], {"add_generation_prompt": True}),
        ([{"role": "system", "content": "Be <s>brief</s>."}, user, last], {}),
        (
            [
                user,
                {"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", **call}]},
                {"role": "tool", "content": "2", "tool_call_id": "call00001", "name": "add"},
                last,
            ],
            {"tools": [tool]},
        ),
    ]

    def rendered(template: str, number: int) -> Any:
        messages, more = chats[number]
        try:
            return [tuple(segment) for segment in render_template(template, messages, **more)]
        except Exception as error:
            return type(error).__name__

    for path in sorted((shared / "chat_templates").glob("*.jinja")):
        template = path.read_text("utf-8")
        yield path.name, digest(rendered(template, number) for number in range(len(chats)))


def public_names() -> Iterator[tuple[str, str]]:
    """Yields the names in public modules and their public classes, with signatures."""
    modules = []
    for package in ("bpe_engine", "vocab_tools"):
        modules.append(package)
        found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        modules.extend(info.name for info in found)

    def signature(value: Any) -> str:
        try:
            return str(inspect.signature(value))
        except (TypeError, ValueError):
            return type(value).__name__

    for name in sorted(modules):
        if any(part.startswith("_") for part in name.split(".")):
            continue
        try:
            module = importlib.import_module(name)
        except Exception:
            continue
        for public in sorted(getattr(module, "__all__", ())):
            value = getattr(module, public)
            yield f"{name}.{public}", signature(value)
            if inspect.isclass(value):
                for member in sorted(vars(value)) if not hasattr(value, "_ignored") else ():
                    if not member.startswith("_"):
                        yield f"{name}.{public}.{member}", signature(getattr(value, member))


def record(shared: Path) -> dict[str, dict[str, str]]:
    warnings.simplefilter("ignore")
    documents = texts(shared)
    digests: dict[str, str] = {}
    for name, tokenizer in tokenizers(shared):
        calls = abilities(tokenizer)
        if not hasattr(tokenizer, "mergeable_ranks"):
            calls |= fields(tokenizer)
        for ability, work in calls.items():
            digests[f"{name}: {ability}"] = digest(attempts(work, documents))
        print(name, file=sys.stderr)
    return {
        "digests": digests,
        "renderings": dict(renderings(shared)),
        "names": dict(public_names()),
    }


def compare(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> int:
    for kind in before:
        old, new = before[kind], after[kind]
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                print(f"{kind}: {name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}")
    same = all(before[kind] == after[kind] for kind in ("digests", "renderings"))
    print("digests and renderings are equal" if same else "digests or renderings differ")
    return not same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--shared", type=Path, required=True)
    comparing = commands.add_parser("compare")
    comparing.add_argument("files", type=Path, nargs=2)
    options = parser.parse_args()
    if options.command == "record":
        options.file.write_text(json.dumps(record(options.shared), indent=1), "utf-8")
        return 0
    return compare(*(json.loads(path.read_text("utf-8")) for path in options.files))


if __name__ == "__main__":
    sys.exit(main())
