"""Writes goldens.json: ids recorded from tiktoken, so that a change on either side shows.

Run it as `python tests/record_goldens.py` after adding a text.
"""

from __future__ import annotations

import json
import pathlib

from oracles import normalized, oracle

GOLDENS = pathlib.Path(__file__).parent / "goldens.json"

TEXTS = [
    "",
    " ",
    "hello world",
    "Hello, World! How's it going? I'LL SAY IT'S FINE.",
    "   leading, trailing   ",
    "tabs\tand\n\nnewlines\r\n  \r\n",
    "0 1 12 123 1234 12345678901234567890 3.14159 1e-10",
    "def f(x: int) -> list[str]:\n    return [str(i) for i in range(x)]  # comment\n",
    "camelCase PascalCase snake_case SCREAMING_CASE HTMLParser iPhone ǅungla",
    "https://example.com/path/to/page?query=1&other=2#fragment",
    "El veloz murciélago hindú comía feliz cardillo y kiwi.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "الخط العربي جميل جدًا ١٢٣",
    "नमस्ते दुनिया क्षि",
    "敏捷的棕色狐狸跳过了懒狗。",
    "いろはにほへと ちりぬるを ﾊﾝｶｸ",
    "키스의 고유조건은 입술끼리 만나야 하고",
    "สวัสดีชาวโลก",
    "👨‍👩‍👧‍👦 🇺🇳 🤖🏽 ❤️",
    "e\u0301 vs é, A\u030a vs Å, \u1100\u1161\u11a8 vs 각",
    "\u212a \ufb01 \u2126 <\u0338",
    "zero\u200bwidth\u200djoiner \ufeffbom",
    "\x00\x01\x1c\x1d\x1e\x1f\x7f\x85\xa0",
    "<|endoftext|> <|endofprompt|> <|im_start|>user<|im_end|> <|fim_prefix|>",
    "<|endoftext|",
    "''''s 's 'S '\u017f 'll 'LL don't DON'T",
    "!!!???...---***///\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\u3000\u2003\u00a0 mixed spaces",
    "½ ² ⅷ ௧ 𝟘 ③",
    "\U0010ffff\U000e0001\ue000",
]


def record() -> dict[str, list[dict[str, object]]]:
    from conftest import ENCODINGS

    return {
        name: [
            {
                "text": text,
                "ordinary": oracle(name).encode_ordinary(normalized(name, text)),
                "all": oracle(name).encode(normalized(name, text), allowed_special="all"),
            }
            for text in TEXTS
        ]
        for name in ENCODINGS
    }


if __name__ == "__main__":
    GOLDENS.write_text(json.dumps(record(), indent=None, separators=(",", ":")) + "\n")
