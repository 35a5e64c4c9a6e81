"""Records tiktoken's results for hard texts, so that tests can compare without tiktoken.

    python tests/engine/goldens/record.py           writes the JSON files beside this script
    python tests/engine/goldens/record.py --check   exits with status 1 if they would change

Each file holds, for one encoding, the version of tiktoken and a list of cases: the text, the ids
with every special token allowed, and the ids with none. Long texts are given as a unit and how
often it is repeated, and their ids by number and sha256 (of the ids as little-endian uint32).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from array import array
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

from oracles import ENCODINGS, normalized, oracle  # noqa: E402

TEXTS = [
    "",
    "hello world",
    "Hello, world! It's 10 o'clock; they'LL say I'D've DON'T.",
    "'s 'S '\u017f 'll'Re",
    "The quick brown fox jumps over the lazy dog. " * 3,
    "    def f(x):\n\t\treturn x ** 2  # comment\r\n\r\n\n   \n",
    "https://example.com/a/b?c=d&e=f#g // /* */ </script>\n///\n",
    "3.14159 1234567890 1,000,000 ٣١٤ ½²Ⅷ〇 0x1F",
    "CamelCaseHTMLParser snake_case ALLCAPS iPhone ǅenan ßtraße ﬀ ªº ʰʲ",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío.",
    "Съешь ещё этих мягких французских булок, да выпей же чаю.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "我是一只猫，你是一只猫。根本的问题在于汉字没有空格。",
    "いろはにほへと ちりぬるを カタカナ ｶﾀｶﾅ 々〆",
    "다람쥐 헌 쳇바퀴에 타고파 \u1112\u1161\u11ab",
    "हिन्दी क्षि தமிழ் ไทยคำ",
    "نص حكيم له سر قاطع עברית ve\u0300",
    "e\u0301\u0323 a\u030a \u0301start \u212a \u2126 <\u0338 \ufb01",
    "🤖👨\u200d👩\u200d👧\u200d👦🇺🇳 🏽👍🏽 ❤\ufe0f 1\ufe0f\u20e3",
    "\x00\x01\x1b[0m\x1c\x1d\x1e\x1f\x7f\x85\xa0\xad",
    " \u00a0\u1680\u2003\u2028\u2029\u202f\u3000\ufeff\u200b x",
    "a \n b\n \nc  \n\n  d\r e\r\n\r\nf \t g   ",
    "trailing spaces   ",
    "trailing newlines\n\n\n",
    "\U0001f600\ud83d\ude00 \ud83d x \ude00",
    "\u0295\u058b\u0888\U00010940\U0001e6c0\U00032000\U000e0041\U0010ffff\u0378",
    "zero\u200bwidth\u200djoiner \ufeffbom \ue000",
    "𝟘③½²௧ 1e-10 12345678901234567890",
    "!!!???...---***///\n",
    "<|endoftext|>",
    "hi   <|endoftext|>x",
    "<|endoftext|><|endoftext|> <|endoftext|",
    "<|<|endoftext|>|><|endofprompt|><|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
    '<|im_start|>user\nprint("<|endoftext|>")<|extra_0|><|im_end|>\n',
    "<|start|>assistant<|channel|>final<|message|>Hi<|return|><|reserved_200018|>",
]

# (unit, times, tail). A million spaces is left out: tiktoken does not survive it.
LONG = [
    ("a", 20_000, ""),
    ("的", 10_000, ""),
    ("ab", 10_000, ""),
    ("\n", 10_000, ""),
    (" ", 10_000, "x"),
]


def digest(ids: list[int]) -> str:
    numbers = array("I", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def record(name: str) -> str:
    """The contents of an encoding's file."""
    tiktoken = oracle(name)
    cases: list[dict[str, object]] = []
    for text in TEXTS:
        seen = normalized(name, text)
        cases.append(
            {
                "text": text,
                "special": tiktoken.encode(seen, allowed_special="all"),
                "ordinary": tiktoken.encode_ordinary(seen),
            }
        )
    for unit, times, tail in LONG:
        ids = tiktoken.encode_ordinary(unit * times + tail)
        case = {"unit": unit, "times": times, "tail": tail}
        cases.append({**case, "count": len(ids), "sha256": digest(ids)})
    head = {"encoding": name, "tiktoken": importlib.metadata.version("tiktoken")}
    lines = ",\n".join(json.dumps(case) for case in cases)
    return json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}\n"


def main() -> int:
    changed = 0
    for name in ENCODINGS:
        path, contents = HERE / f"{name}.json", record(name)
        if "--check" not in sys.argv:
            path.write_text(contents, encoding="ascii")
        elif not path.exists() or path.read_text(encoding="ascii") != contents:
            print(f"{path.name} would change", file=sys.stderr)
            changed = 1
    return changed


if __name__ == "__main__":
    sys.exit(main())
