"""Tests text with new pieces, which are merged in groups and then cached."""

from __future__ import annotations

import pytest
from oracles import ENCODINGS
from pairs import Pair, pair
from seeds import seeded

# Letters for words that no vocabulary has as tokens.
ALPHABETS = {
    "latin": "etaoinshrdlucmfwypvbgkjqxz",
    "cyrillic": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф",
    "greek": "αοιετσνηυρπκμλςδγφχβξωζψ",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "hindi": "कखगघचछजझटठडढतथदधनपफबभमयरलवशषसहािीुूेैोौ्",
    "thai": "กขคงจชซญดตถทธนบปพฟมยรลวศสหอฮะาิีึืุูเแโใไ",
    "korean": "가각간갈감갑값갓강개객거건걸검것게겨결경계고곡곤골공과",
    "kana": "あいうえおかきくけこさしすせそたちつてとなにぬねのアイウエオカキクケコー",
    "chinese": "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从",
    "emoji": "😀😁😂🤣😃🎉🚀👍👨👩👧‍🏳️🌈",
}
LEADS = ["", " ", " ", "\n", " (", ", ", "。", "、", "\u00a0", "「", "\u3000", '"', "-", "\t"]


def words(seed: int, count: int) -> list[str]:
    """Returns words in one or two scripts, each of 1 to 16 (or 40) letters after a prefix."""
    draw = seeded("words", seed)
    found = []
    for _ in range(count):
        letters = "".join(
            ALPHABETS[draw.choice(list(ALPHABETS))] for _ in range(draw.choice([1, 1, 1, 2]))
        )
        length = draw.choice([*range(1, 17), 40])
        found.append(draw.choice(LEADS) + "".join(draw.choices(letters, k=length)))
    return found


@pytest.mark.parametrize("name", ENCODINGS)
def test_new_then_known_then_in_another_order(name: str) -> None:
    both = pair(name)
    both.ours.clear_cache()
    for seed in range(3):
        new = words(seed, 4000)
        for _ in range(2):
            text = "".join(new)
            assert both.ours.encode(text, disallowed_special=()) == both.expected(text)
            seeded("order", seed).shuffle(new)


def test_runs_of_chinese_of_any_length(family: Pair) -> None:
    """A run of Chinese is cut into many pieces, some of them new."""
    draw = seeded("chinese")
    common = ALPHABETS["chinese"]
    for length in [1, 2, 5, 6, 255, 256, 257, 510, 511, 512, 513, 1023, 1024, 1025, 4000]:
        for before in (0, 1, 300, 511, 512):
            rare = "".join(chr(draw.randrange(0x4E00, 0x9FA5)) for _ in range(length))
            text = "a " * before + "".join(draw.choices(common, k=length)) + "." + rare + " end"
            assert family.ours.encode(text) == family.expected(text), (length, before)


def test_pieces_of_every_length(family: Pair) -> None:
    """Pieces have few or many ids, so that they fill every table of the cache."""
    draw = seeded("lengths")
    vowels, rulers = "aeiou", ["-+", "=|", "~-", "_."]
    pieces = []
    for length in range(1, 140):
        for letters in (ALPHABETS["latin"], ALPHABETS["cyrillic"], ALPHABETS["thai"]):
            pieces += [" " + "".join(draw.choices(letters, k=length)) for _ in range(2)]
        pieces.append(" " + "".join(draw.choices(vowels, k=length)))
        ruler = "".join(draw.choice(draw.choice(rulers)) for _ in range(max(1, length // 9)))
        pieces.append(
            " " + "".join(character * draw.randint(1, 17) for character in ruler)[:length]
        )
    family.ours.clear_cache()
    text = "".join(pieces)
    for _ in range(4):
        assert family.ours.encode(text, disallowed_special=()) == family.expected(text)
        # Known pieces, and a few that are new or in another table.
        draw.shuffle(pieces)
        text = " the" * draw.randrange(1000) + (" of the" * 200).join(pieces[:40])
        assert family.ours.encode(text, disallowed_special=()) == family.expected(text)
        text = "".join(pieces)


def test_new_pieces_that_recur_at_once(family: Pair) -> None:
    """Pieces recur before and after they are cached, nearby and thousands of pieces later."""
    draw = seeded("again at once")
    for known in (0, 3, 40):
        pieces: list[str] = []
        for new in words(known, 3000):
            pieces += [" the"] * draw.randint(0, known)
            again = draw.choice([1, 1, 2, 5, 60, 300, 4096])
            pieces.append(draw.choice(pieces[-again:]) if pieces and draw.random() < 0.4 else new)
        family.ours.clear_cache()
        for text in ("".join(pieces), "".join(reversed(pieces))):
            assert family.ours.encode(text, disallowed_special=()) == family.expected(text)


def test_more_pieces_than_the_cache_keeps(gpt2) -> None:
    """Evicting and reinserting pieces does not change ids."""
    texts = [
        " ".join(format(i * 7919 + 1_000_003 * j, "x") for i in range(60_000)) for j in range(4)
    ]
    both = pair("gpt2")
    expected = [both.expected(text) for text in texts]
    for turn in (0, 1, 2, 3, 0, 3, 1):
        assert gpt2.encode(texts[turn]) == expected[turn]


def test_one_odd_character_among_ascii(gpt2) -> None:
    """One character decides whether Python stores one, two or four bytes per character."""
    both = pair("gpt2")
    for length in (63, 64, 65, 128, 200):
        for odd in ("\ud800", "é", "世", "😀"):
            for place in {0, 1, 15, 16, 62, 63, 64, length - 1} & set(range(length)):
                text = "a" * place + odd + "b" * (length - place - 1)
                assert gpt2.encode(text) == both.expected(text)
                wide = text + "😀"
                assert gpt2.encode(wide) == both.expected(wide)
