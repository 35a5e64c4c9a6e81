"""A readable byte-level BPE in one page, with the ids of the fast engine.

Text becomes ids in four steps, each a function or method below:

1. special tokens: find the spans of the text that become control tokens (the caller decides which
may);
2. split: cut the text between special tokens into pieces by a pattern;
3. merge: turn a piece into bytes, and merge neighboring tokens by rank while possible;
4. look-up: replace each token by its id.

The tests compare the two engines. The readable engine is slow (the merge looks at every pair again
after each step), and needs the package `regex`.

The fast engine's patterns have the meaning of Rust's regex engines with Unicode 16. Here `regex`
does the matching, and `_translate` and `_STAND_INS` even out the differences that matter to
tokenizers. Differences that remain: `\\b` and `\\w` at joiners, case-insensitive matching of
letters that fold to two (`(?i:ss)` against "ß"), patterns with a character of a later Unicode
version, and patterns that match nothing at all.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

try:
    import regex
except ImportError as _error:
    raise ImportError(
        "this module needs the package `regex`: pip install 'bpe-engine[reference]'"
    ) from _error

# Characters that are unassigned in Unicode 16 and have a class in later versions, as ranges.
_AFTER_UNICODE_16 = """
558 58B-58C 5C8-5C9 88F B53-B54 C5C CDC 1ACF-1AF0 208F 209D-209F 20C1-20C4 2B96 2E60-2E63 A7CE-A7CF
A7D2 A7D4 A7DD-A7F1 AB6C-AB6D FBC3-FBD2 FD90-FD91 FDC8-FDCE 107BB-107BF 10940-10959 10EC5-10EFB
11B0A-11B67 11DB0-11DF1 1246F 12475-1247F 12550-12686 16EA0-16ED3 16FF2-16FF6 187F8-187FF
18CD6-18CDA 18D09-191D2 1B123-1B128 1B168 1CCFA-1CCFC 1CEBA-1CEFD 1D127-1D128 1D1EB-1D1FF
1D250-1D281 1D6A6 1DB00-1DB1C 1DF1F-1DF24 1DF2B-1DFFF 1E6C0-1E6FF 1F1AE 1F6D8-1F6D9 1F777-1F77A
1F7DA-1F7DB 1F7F1-1F7FF 1F8D0-1F8D8 1FA54-1FA57 1FA8A-1FA8E 1FAC8-1FACD 1FADD 1FAEA-1FAEF
1FAF9-1FAFA 1FBFA 2B73A-2B73F 2B81E 2CEA2-2CEAD 323B0-3FC3F"""

# Characters replaced for the pattern: the characters above by a code point unassigned in every
# version, and U+0295, caseless since Unicode 17, by a lowercase letter.
_STAND_INS = {0x295: 0x250}
for _range in _AFTER_UNICODE_16.split():
    _first, _, _last = _range.partition("-")
    _STAND_INS.update(dict.fromkeys(range(int(_first, 16), int(_last or _first, 16) + 1), 0x378))


def _translate(pattern: str) -> str:
    """Translates `pattern` for the package `regex`, whose `$` also matches before a final newline:
    `$` and `\\z` become the end of the text."""
    tokens = regex.compile(r"\\(?s:.)|\[\^?\]?(?:\\(?s:.)|[^\]\\])*+\]|\$")
    return str(tokens.sub(lambda m: r"\Z" if m[0] in ("$", r"\z") else m[0], pattern))


def repair_surrogates(text: str) -> str:
    """Joins surrogate pairs into characters; lone surrogates become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def merge(piece: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """Merges a piece: starting from single bytes, joins the adjacent pair whose concatenation has
    the lowest rank, leftmost on ties, until no concatenation is a token.

    >>> merge(b"abab", {b"a": 0, b"b": 1, b"ab": 2})
    [b'ab', b'ab']
    """
    if piece in ranks:  # A token is one id, even if merging would never produce it.
        return [piece]
    *_, tokens = merge_steps(piece, ranks)
    return tokens


def merge_steps(piece: bytes, ranks: dict[bytes, int]) -> Iterator[list[bytes]]:
    """Yields the steps of `merge`: the single bytes, then the parts after each merge.

    >>> list(merge_steps(b"aba", {b"a": 0, b"b": 1, b"ab": 2}))
    [[b'a', b'b', b'a'], [b'ab', b'a']]
    """
    parts = [bytes([byte]) for byte in piece]
    while True:
        yield parts
        pairs = [(ranks.get(a + b), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
        candidates = [(rank, i) for rank, i in pairs if rank is not None]
        if not candidates:
            return
        _, i = min(candidates)
        parts = [*parts[:i], parts[i] + parts[i + 1], *parts[i + 2 :]]


def _search_names(names: Iterable[str]) -> regex.Pattern[str]:
    """Compiles a pattern that finds the leftmost and longest of `names`."""
    longest_first = sorted(names, key=len, reverse=True)
    return regex.compile("|".join(map(regex.escape, longest_first)) or r"(?!)")


class Encoding:
    """The readable engine. Arguments and ids are as in `bpe_engine.Encoding`.

    >>> ranks = {bytes([i]): i for i in range(256)} | {b"lo": 256, b"hel": 257, b"he": 258}
    >>> specials = {"<s>": 300}
    >>> enc = Encoding("e", pat_str=r"\\w+", mergeable_ranks=ranks, special_tokens=specials)
    >>> enc.encode("<s>hello", allowed_special={"<s>"})
    [300, 257, 256]
    >>> enc.decode([257, 256])
    'hello'
    """

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
        normalization: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None,
    ) -> None:
        self.name = name
        self._ranks = mergeable_ranks
        self._special_tokens = special_tokens
        self._normalization = normalization
        self._pattern = regex.compile(_translate(pat_str), regex.V1)
        self._bytes_of = {id: token for token, id in mergeable_ranks.items()}
        if len(self._bytes_of) != len(mergeable_ranks):
            raise ValueError(f"{name}: two tokens share a rank")
        if "" in special_tokens or b"" in mergeable_ranks:
            raise ValueError(f"{name}: a token is empty")
        for special, id in special_tokens.items():
            if id in self._bytes_of:
                raise ValueError(f"{name}: the id {id} of {special!r} is the rank of a token")
        # Two names may share an id, as in o200k_harmony; the id decodes to the first name.
        names = {id: special.encode() for special, id in reversed(special_tokens.items())}
        self._bytes_of |= names
        self.max_token_value: int = max(self._bytes_of)
        sizes = (len(mergeable_ranks) + len(special_tokens), self.max_token_value + 1)
        if explicit_n_vocab and sizes != (explicit_n_vocab, explicit_n_vocab):
            raise ValueError(f"{name}: explicit_n_vocab is {explicit_n_vocab}, not {sizes}")

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """Returns the ids of `text`. Names in `allowed_special` become their special tokens; a name
        in `disallowed_special` ("all": every other name) raises ValueError; the rest is text."""
        every = self._special_tokens.keys()
        allowed = every if allowed_special == "all" else every & allowed_special
        disallowed = every - allowed if disallowed_special == "all" else disallowed_special
        text = self._prepare(text)
        if found := _search_names(disallowed).search(text):
            raise ValueError(f"text contains disallowed special token {found[0]!r}")
        ids: list[int] = []
        position = 0
        # Names that are not allowed are also searched for: they are text, but an allowed name may
        # begin inside them (hence `overlapped`).
        for found in _search_names(every).finditer(text, overlapped=True):
            if found[0] in allowed and found.start() >= position:
                ids += self._encode_part(text[position : found.start()])
                ids.append(self._special_tokens[found[0]])
                position = found.end()
        return ids + self._encode_part(text[position:])

    def encode_ordinary(self, text: str) -> list[int]:
        """Returns the ids of `text`, in which names of special tokens are ordinary text."""
        return self._encode_part(self._prepare(text))

    def split(self, text: str) -> list[str]:
        """Returns the pieces of `text`; text that the pattern does not match is dropped."""
        text = self._prepare(text)
        matches = self._pattern.finditer(text.translate(_STAND_INS))
        return [text[m.start() : m.end()] for m in matches if m.end() > m.start()]

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Decodes `tokens` to text; `errors` decides the treatment of bytes that are not UTF-8."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Joins the bytes of `tokens`."""
        return b"".join(map(self.decode_single_token_bytes, tokens))

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Returns the bytes of one token."""
        if token not in self._bytes_of:
            raise KeyError(f"Invalid token for decoding: {token}")
        return self._bytes_of[token]

    def _prepare(self, text: str) -> str:
        text = repair_surrogates(text)
        return unicodedata.normalize(self._normalization, text) if self._normalization else text

    def _encode_part(self, text: str) -> list[int]:
        """Encodes text between special tokens; the pattern sees this text on its own."""
        tokens = [
            token for piece in self.split(text) for token in merge(piece.encode(), self._ranks)
        ]
        for token in tokens:
            if token not in self._ranks:
                raise ValueError(f"the byte {token!r} is not a token of {self.name}")
        return [self._ranks[token] for token in tokens]
