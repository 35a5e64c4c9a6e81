"""Records results of `tokenizers` for made-up files, so that Rust tests can compare without Python.

    python core/tests/goldens/record.py           writes goldens.json beside this script
    python core/tests/goldens/record.py --check   exits with status 1 if `tokenizers` differs from it

A file is recorded with its vocabulary as a list, and with a few inputs: the ids, a digest of all fields
and the overflow, the text of the ids, and that text without special tokens.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2] / "tests" / "support"))

from hf_components import (  # noqa: E402
    added_tokens,
    decoder_chains,
    extra_texts,
    flags,
    model,
    normalizer_chains,
    pre_tokenizer_chains,
    processor_chains,
)
from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

FILES = 100
GOLDENS = HERE / "goldens.json"

truncations = st.one_of(
    st.none(),
    st.builds(
        dict,
        max_length=st.integers(6, 12),
        stride=st.integers(0, 2),
        strategy=st.sampled_from(["longest_first", "only_first"]),
        direction=st.sampled_from(["left", "right"]),
    ),
)
paddings = st.one_of(
    st.none(),
    st.builds(
        dict,
        length=st.integers(4, 20),
        direction=st.sampled_from(["left", "right"]),
        pad_to_multiple_of=st.sampled_from([None, 8]),
        pad_id=st.just(7),
        pad_type_id=st.just(1),
        pad_token=st.just("<pad>"),
    ),
)


def fields(encoding: Any) -> list[Any]:
    """The fields of an encoding, and at the end those of its overflow."""
    return [
        encoding.ids,
        encoding.tokens,
        encoding.offsets,
        encoding.word_ids,
        encoding.type_ids,
        encoding.sequence_ids,
        encoding.special_tokens_mask,
        encoding.attention_mask,
        [fields(part) for part in encoding.overflowing],
    ]


def digest(fields: list[Any]) -> str:
    """The FNV-1a hash of the fields as JSON, which are many times as long as the ids."""
    value = 0xCBF29CE484222325
    for byte in json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return f"{value:016x}"


def result(tokenizer: Tokenizer, first: Any, second: Any, special: bool) -> dict[str, Any]:
    """Encodes an input, which may be words, and decodes its ids."""
    words = isinstance(first, list)
    encoding = tokenizer.encode(first, second, is_pretokenized=words, add_special_tokens=special)
    return {
        "first": first,
        "second": second,
        "special": special,
        "ids": encoding.ids,
        "fields": digest(fields(encoding)),
        "decoded": [tokenizer.decode(encoding.ids, skip) for skip in (False, True)],
    }


def compact(tokenizer: Tokenizer) -> dict[str, Any]:
    """The file, with the vocabulary as a list in the order of ids."""
    contents = json.loads(tokenizer.to_str())
    vocab = contents["model"]["vocab"]
    contents["model"]["vocab"] = sorted(vocab, key=vocab.__getitem__)
    return contents  # type: ignore[no-any-return]


def restored(contents: dict[str, Any]) -> Tokenizer:
    """The tokenizer of a recorded file."""
    vocab = {token: id for id, token in enumerate(contents["model"]["vocab"])}
    return Tokenizer.from_str(
        json.dumps({**contents, "model": {**contents["model"], "vocab": vocab}})
    )


def record() -> list[dict[str, Any]]:
    """Makes files at random, and records the results for each."""
    recorded: list[dict[str, Any]] = []

    @seed(0)
    @settings(
        max_examples=4 * FILES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def make(data: st.DataObject) -> None:
        draw = data.draw
        characters = draw(flags)
        tokenizer = Tokenizer(
            model(
                draw(st.integers(0, 10**6)),
                draw(flags),
                draw(flags),
                draw(st.integers(5, 60)),
                draw(st.sampled_from(["", "", "é", "h", "ĠÃ"])),
                draw(st.sampled_from([None, "<u>"])),
                draw(flags),
                characters,
                draw(st.sampled_from([256, 100, 0])) if characters else 0,
            )
        )
        for name, chain in {
            "normalizer": normalizer_chains,
            "pre_tokenizer": pre_tokenizer_chains,
            "post_processor": processor_chains,
            "decoder": decoder_chains,
        }.items():
            part = draw(chain)
            if part is not None:
                setattr(tokenizer, name, part)
        texts = [*draw(st.lists(extra_texts, min_size=3, max_size=3)), "Hello the <a>  日本é 12"]
        truncation, padding = draw(truncations), draw(paddings)
        try:
            tokenizer.add_tokens(draw(added_tokens))
            if truncation:
                tokenizer.enable_truncation(**truncation)
            if padding:
                tokenizer.enable_padding(**padding)
            contents = compact(tokenizer)
            tokenizer = restored(contents)
            cases = [result(tokenizer, text, None, special=True) for text in texts]
            cases.append(result(tokenizer, texts[3], texts[0], special=False))
            cases.append(result(tokenizer, texts[3].split(" "), None, special=True))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return  # Refused, or a panic of theirs.
        if len(recorded) < FILES:
            recorded.append({"file": contents, "cases": cases})

    make()
    return recorded


def main() -> None:
    """Writes or checks the file."""
    if "--check" in sys.argv[1:]:
        for number, golden in enumerate(json.loads(GOLDENS.read_text("utf-8"))):
            tokenizer = restored(golden["file"])
            for case in golden["cases"]:
                if result(tokenizer, case["first"], case["second"], case["special"]) != case:
                    sys.exit(f"file {number} differs for {case['first']!r}")
        return
    lines = (json.dumps(golden, ensure_ascii=False, separators=(",", ":")) for golden in record())
    GOLDENS.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main()
