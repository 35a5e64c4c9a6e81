"""Defines hypothesis strategies for texts that are hard to tokenize."""

from __future__ import annotations

from hypothesis import strategies as st

SPECIAL_NAMES = [
    "<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|im_start|>", "<|extra_0|>",
    "<|extra_20|>", "<|reserved_200018|>", "<|start|>",
]  # fmt: skip

FRAGMENTS = [
    *SPECIAL_NAMES, *(name[:-1] for name in SPECIAL_NAMES), *(name[2:] for name in SPECIAL_NAMES),
    "<|<|endoftext|>|>", "<|endoftext|", "'s", "'LL", "'\u017f", "don't", " I'VE", "e\u0301", "\u212a",
    "<\u0338", "\u0301\u0323", "\u1100\u1161\u11a8", "क्षि", "你好，世界", "根本的", "こんにちは", "한국어",
    "🤖👨‍👩‍👧‍👦🇺🇳", "\ud83d\ude00", "\ud83d", "\ude00", "  ", "   \n\n  ", "\r\n", "\t", "\u00a0", "\u3000",
    "\u0085", "\u001c\u001f", "\x00", "\u200b\u200d", "123456789", "٣١٤", "½²", "CamelCaseHTML", "ǅ",
    "https://example.com/a/b?c=d", "////\n/", "!!!...", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", " " * 40,
]  # fmt: skip
texts = st.lists(
    st.one_of(
        st.sampled_from(FRAGMENTS),
        st.text(max_size=8),
        st.text(st.characters(categories=["Cs", "Cc", "Mn", "Zs", "So", "Lo"]), max_size=4),
        st.text(alphabet="ab '\n1<|>", max_size=8),
    ),
    max_size=10,
).map("".join)
