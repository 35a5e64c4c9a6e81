"""Generates texts for comparing two tokenizers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from ..text import text_of

#: Texts with scripts, whitespace, numbers, marks, emoji, contractions, code, line ends, controls.
TEXTS = (
    "",
    " ",
    "  ",
    "Hello world",
    " leading and trailing ",
    "don't STOP, we'LL see; they'Re 'sure 'S ain't I'm I'D",
    "1 12 123 1234 12345 3.14159 1,000,000 ¹²³ ⅷ ٣٤٥ १२३ 0x1F",
    "a\tb\t\tc\n\nd\r\ne\r\rf\n \n  \n   g   \n",
    "   three   spaces   and\u00a0a\u2003few\u3000others\u200b\u2028end  ",
    "x\n",
    "x \n\n  ",
    "\n\n\n",
    " \n \n ",
    "\t\tdef f(x):\n\t\treturn x ** 2  # comment\n\n\n",
    'if (a[i] != NULL && b->c) { return &foo::bar<T>(x, "y\\n"); } // ok\n',
    "<html><body class='a-b_c'>&amp;</body></html>",
    "https://example.org/a/b?c=d&e=%20#f user@example.org",
    "C'est l’été à la plage : où ça ? Größe, Straße, ÄÖÜ, ñandú, İstanbul ıI ſ K Å",
    "Cafe\u0301 nai\u0308ve e\u0301\u0323 \u1100\u1161\u11a8 \u0958 \ufb01 \u212b \u212a",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. ΣΊΣΥΦΟΣ σίσυφος",
    "人工智能正在改变世界。2024年,他说:“你好!”",
    "吾輩は猫である。名前はまだ無い。ガギグ パピプ ・ー",
    "안녕하세요 세계, 토크나이저 시험입니다.",
    "مرحبا بالعالم، هذا اختبار. שלום עולם!",
    "नमस्ते दुनिया, यह एक परीक्षण है। ไทยไม่มีช่องว่าง สวัสดีชาวโลก",
    "ပြည်ထောင်စု ខ្មែរ ქართული հայերեն አማርኛ தமிழ் తెలుగు বাংলা",
    "👩‍👩‍👧‍👦 🇩🇪🇫🇷 ☕️ 👍🏽 \U0001d518\U0001d52b ∀x∈ℝ: ⌈x⌉ ≠ −∞ €£¥",
    "\x00\x01\x7f\x80\x9f\xad \ufeff \ufffd \ufffe \U0010ffff \ue000",
    "AaBbCC CamelCaseWord snake_case_word SCREAMING_CASE kebab-case iPhone15ProMax",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * 4,
    "=" * 100 + "-" * 33 + "*" * 7 + " " * 100 + "!",
    "!!!???...---___ ''' \"\"\" ``` ~~~ ### $$$ %%% ^^^ &&& (((()))) [[[]]] {{{}}}",
)

#: Maximum number of texts that join several tokens; there are up to ten per token.
MOST_JOINED = 20_000

#: Number of texts to compare at a time.
BLOCK = 10_000


def battery(
    tokens: Iterable[bytes], special_tokens: Iterable[str], more: Iterable[list[str]] = ()
) -> Iterator[list[str]]:
    """Yields texts in blocks: :data:`TEXTS`; special tokens within text, whole and cut short; the
    text of every token; the texts of joined tokens; and the given texts.

    >>> blocks = list(battery([b"a", b"\\xff", b"b"], ["<|end|>"]))
    >>> "x <|end|> y" in blocks[0], blocks[1]
    (True, ['a', 'b'])
    """
    first = list(TEXTS)
    for name in special_tokens:
        first += [name, f"x {name} y", f"x{name}{name}y", f"  {name}  ", f"{name}\n", name[:-1]]
    yield first
    whole = [text for token in tokens if (text := text_of(token))]
    for start in range(0, len(whole), BLOCK):
        yield whole[start : start + BLOCK]
    draw = random.Random(0)
    joined = min(10 * len(whole), MOST_JOINED)
    for start in range(0, joined, BLOCK):
        count = min(BLOCK, joined - start)
        yield ["".join(draw.choices(whole, k=draw.randint(2, 7))) for _ in range(count)]
    yield from more
