"""Tests segments, pools and unknown ids in each tokenizer class, and in unusual files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hf_oracle import tokenizer_path, tokenizers
from kinds import FLAGS, METASPACE, PREPEND, REPLACE, byte_level_file, characters_file
from seeds import rounds, seeded

import bpe_engine
from bpe_engine import hf
from bpe_engine.prompt import special, tokens, trusted, untrusted
from bpe_engine.qwen import QwenTokenizer
from vocab_tools.convert import formats, tokenizer_json

CHAT = ["<|im_start|>", "<|im_end|>"]
NAMES = ["<|endoftext|>", *CHAT]


def gpt2_faces() -> list[Any]:
    base = bpe_engine.get_encoding("gpt2")
    ids = {name: 50256 + place for place, name in enumerate(NAMES)}
    encoding = bpe_engine.Encoding(
        "chat",
        pat_str=base._pat_str,
        mergeable_ranks=base._mergeable_ranks,
        special_tokens=ids,
    )
    file = hf.Tokenizer.from_file(tokenizer_path("gpt2"))
    file.add_special_tokens(CHAT)
    return [
        encoding,
        file,
        bpe_engine.Tokenizer(encoding),
        bpe_engine.Tokenizer(base, extra_special_tokens=CHAT),
        bpe_engine.Tokenizer(file),
    ]


@cache
def qwen_faces() -> list[Any]:
    encoding = bpe_engine.get_encoding("qwen2.5")
    file = hf.Tokenizer(tokenizer_json.dump(formats.load(formats.locate_source("qwen2.5"))))
    return [encoding, file, bpe_engine.Tokenizer(encoding), bpe_engine.Tokenizer(file)]


def qwen_7b_faces() -> list[Any]:
    return [bpe_engine.get_encoding("qwen"), QwenTokenizer()]


FACES = {"gpt2": gpt2_faces, "qwen2.5": qwen_faces, "qwen": qwen_7b_faces}


@pytest.fixture(scope="module", params=FACES)
def faces(request: pytest.FixtureRequest) -> list[Any]:
    return FACES[request.param]()


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except (ValueError, TypeError) as error:
        return type(error), str(error)


def same(faces: list[Any], act: Any, note: object) -> Any:
    first, *others = [outcome(act, face) for face in faces]
    for face, other in zip(faces[1:], others):
        assert other == first, (face, note)
    return first


def test_names_that_overlap_are_found_the_same() -> None:
    """A name that a segment does not allow never hides another name."""
    names = ["<|endoftext|>", "<qq", "qq>", "<qq>b", "q>b<"]
    base = bpe_engine.get_encoding("gpt2")
    ids = {name: 50256 + place for place, name in enumerate(names)}
    ranks = base._mergeable_ranks
    encoding = bpe_engine.Encoding(
        "overlaps", pat_str=base._pat_str, mergeable_ranks=ranks, special_tokens=ids
    )
    file = hf.Tokenizer.from_file(tokenizer_path("gpt2"))
    file.add_special_tokens(names[1:])
    made = [encoding, file, bpe_engine.Tokenizer(encoding), bpe_engine.Tokenizer(file)]
    for number in range(1, 1 << len(names)):
        allowed = frozenset(name for bit, name in enumerate(names) if number >> bit & 1)
        for given in ("<qq>", "<qq>b<qq>b", "x<<qq>b<", "qq>b<qq", "<qq" * 9 + ">b<"):
            segments = [(given, allowed), untrusted("<qq>")]
            same(made, lambda face: face.encode_segments(segments), segments)


def test_a_mark_that_changes_the_end_of_a_name() -> None:
    """Encodings find names after normalization; files find names earlier, as `tokenizers` does."""
    encoding, file, by_encoding, by_file = qwen_faces()
    given = "a<|im_end|>\u0338b"
    normal = encoding.encode("a<|im_end|\u226fb")
    theirs = tokenizers.Tokenizer.from_str(file.to_str()).encode(given).ids
    assert theirs != normal == encoding.encode(given, allowed_special="all")
    for face in (encoding, by_encoding):
        assert face.encode_segments([trusted(given)]) == normal
    for face in (file, by_file):
        assert face.encode_segments([trusted(given)]) == theirs
    # Appended text never removes a token.
    parts = [trusted("a<|im_end|>"), untrusted("\u0338b")]
    for face in (encoding, file, by_encoding, by_file):
        assert face.encode_segments(parts) == theirs


# ---- Files whose steps depend on neighboring text ----

MORE: list[dict[str, Any]] = [
    {"content": "<a>b", "special": True, **FLAGS},
    {"content": "<w>", "special": True, **FLAGS, "single_word": True},
    {"content": "Uqq", "special": True, **FLAGS, "normalized": True, "lstrip": True},
]
NORMALIZERS: list[Any] = [
    None,
    {"type": "NFC"},
    {"type": "NFKD"},
    {"type": "Lowercase"},
    {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]},
    {"type": "Prepend", "prepend": "_"},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Replace", "pattern": {"String": " "}, "content": "_"},
]
WORDS = [
    "a", "b", " ", "  ", "the word ", "née", "ne\u0301e", "Uqq", "uqq", "<a>", "<a", ">", "<a>b", "<l>", "<r>",
    "<w>", "<", "r>", "\n", "1", "é", "\u0301", "x" * 50, "some text, and more. " * 80,
]  # fmt: skip


def with_more(contents: str, **parts: Any) -> hf.Tokenizer:
    """Returns the tokenizer for a file with changed parts, and with the added tokens of `MORE`."""
    file = {**json.loads(contents), **parts}
    added = file["added_tokens"]
    first = added[0]["id"] + len(added)
    added += [{"id": first + place, **token} for place, token in enumerate(MORE)]
    return hf.Tokenizer.from_str(json.dumps(file))


def odd_files() -> Iterator[tuple[str, hf.Tokenizer]]:
    for number, normalizer in enumerate(NORMALIZERS):
        for prefix in (False, True):
            yield f"{number} {prefix}", with_more(byte_level_file(normalizer, prefix=prefix))


def character_files() -> Iterator[tuple[str, hf.Tokenizer]]:
    """Yields character-level files: with byte fallback, with an unknown token, and with neither."""
    split = {"type": "Split", "pattern": {"String": " "}, "invert": False}
    kinds: list[dict[str, Any]] = [
        {"pre_tokenizer": {**METASPACE, "prepend_scheme": scheme, "split": is_split}}
        for scheme in ("first", "never", "always")
        for is_split in (True, False)
    ]
    kinds.append(
        {"pre_tokenizer": {**split, "behavior": "MergedWithPrevious"}, "normalizer": REPLACE}
    )
    kinds.append({"normalizer": PREPEND})
    for number, parts in enumerate(kinds):
        contents = characters_file(**parts)
        model = json.loads(contents)["model"]
        for options in ({}, {"byte_fallback": False, "unk_token": "xxx"}, {"byte_fallback": False}):
            name = f"characters {number} {options}"
            yield name, with_more(contents, model={**model, **options})


@pytest.mark.parametrize("files", [odd_files, character_files])
def test_odd_files_keep_the_promise(
    files: Callable[[], Iterator[tuple[str, hf.Tokenizer]]],
) -> None:
    for name, tokenizer in files():
        rng = seeded(name)
        added = set(tokenizer.get_added_tokens_decoder())
        conversation = bpe_engine.prompt.Conversation(tokenizer)
        growing = bpe_engine.prompt.Conversation(tokenizer)
        appended, longer_text = (
            bpe_engine.prompt.Conversation(tokenizer),
            bpe_engine.prompt.Conversation(tokenizer),
        )
        every: list[Any] = []
        all_text = ""
        old = ""
        for _ in range(rounds(32)):
            parts = ["".join(rng.choices(WORDS, k=rng.randrange(6))) for _ in range(4)]
            whole = tokenizer.encode("".join(parts), add_special_tokens=False).ids
            one = [trusted("".join(parts))]
            assert tokenizer.encode_segments(one) == whole, (name, parts)
            # A text that lacks the characters of added tokens contains no added token.
            plain = [part.translate(dict.fromkeys(map(ord, "<>nNuUéab"), "x")) for part in parts]
            plain_whole = tokenizer.encode("".join(plain), add_special_tokens=False).ids
            assert tokenizer.encode_segments([untrusted(part) for part in plain]) == plain_whole
            mixed = [
                trusted(plain[0] + "<a>"),
                untrusted(plain[1]),
                trusted("<l> <r>"),
                untrusted(plain[2]),
            ]
            joined = "".join(part.text for part in mixed)
            assert (
                tokenizer.encode_segments(mixed)
                == tokenizer.encode(joined, add_special_tokens=False).ids
            ), (name, mixed)
            # No part of untrusted text is an added token.
            ids = tokenizer.encode_segments([untrusted(part) for part in parts])
            assert not added & set(ids), (name, parts)
            segments = [
                (rng.choice([trusted, untrusted]))(part, role=rng.choice("xy")) for part in parts
            ]
            audit = tokenizer.audit_segments(segments)
            audit.assert_safe()
            assert audit.ids == tokenizer.encode_segments(segments)
            growing.update(segments)
            assert growing.ids == audit.ids, (name, segments)
            every += segments
            appended.append(segments)
            assert appended.ids == tokenizer.encode_segments(every), (name, every)
            longer_text.append("".join(parts))
            all_text += "".join(parts)
            assert longer_text.ids == tokenizer.encode(all_text, add_special_tokens=False).ids, name
            old = old[: rng.randrange(len(old) + 1)] + "".join(parts[:2])
            conversation.update(old)
            assert conversation.ids == tokenizer.encode(old, add_special_tokens=False).ids, (
                name,
                old,
            )
            stable, _ = bpe_engine.prompt.stable_prefix(tokenizer, old)
            longer = tokenizer.encode(old + parts[3], add_special_tokens=False).ids
            assert longer[: len(stable)] == stable, (name, old, parts[3])


def control_file(content: str, normalizer: Any = None, **model: Any) -> hf.Tokenizer:
    """Returns GPT-2's tokenizer with an added token, which is normalized if there is a
    normalizer."""
    file = json.loads(Path(tokenizer_path("gpt2")).read_text("utf-8"))
    lacking = model.pop("lacking", "")
    vocab = {token: id for token, id in file["model"]["vocab"].items() if lacking not in token}
    file["model"].update(model, vocab=vocab if lacking else file["model"]["vocab"])
    if lacking:
        file["model"]["merges"] = []
    if model:
        file["model"]["vocab"].setdefault(content, 50257)
    id = file["model"]["vocab"].get(content, 50257)
    flags = {**FLAGS, "normalized": normalizer is not None}
    file["added_tokens"] = [{"id": id, "content": content, "special": True, **flags}]
    file["normalizer"] = normalizer
    return hf.Tokenizer.from_str(json.dumps(file))


def replace(old: str, new: str) -> Any:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def chain(*parts: Any) -> Any:
    return {"type": "Sequence", "normalizers": list(parts)}


NFC, NFD = {"type": "NFC"}, {"type": "NFD"}


@pytest.mark.parametrize(
    ("content", "normalizer", "segments"),
    [
        ("é", NFC, [trusted("e"), untrusted("\u0301")]),
        ("é", NFC, [untrusted("e"), trusted("\u0301")]),
        # The last mark composes with the letter; the mark between them remains.
        ("ḃ", NFC, [trusted("b\u0327"), untrusted("\u0307x")]),
        # Normalization puts the mark below before the mark above.
        ("e\u0323", NFD, [trusted("e\u0301"), untrusted("\u0323x")]),
        ("\u0301", NFD, [untrusted("e\u0301"), trusted("\u0323x")]),
        ("\u0301", NFD, [untrusted("é"), trusted("\u0323x")]),
        ("가", NFC, [trusted("\u1100"), untrusted("\u1161")]),
        ("가", NFC, [untrusted("\u1100"), trusted("\u1161")]),
        ("<a>", replace("XY", "<a>"), [untrusted("X"), trusted("Y")]),
        ("<a>", replace("XY", "<a>"), [trusted("X"), untrusted("Y")]),
        ("é", chain(replace("X", "\u0301"), NFC), [trusted("e"), untrusted("X")]),
    ],
)
def test_normalizing_across_a_border_makes_no_token(
    content: str, normalizer: Any, segments: list[Any]
) -> None:
    tokenizer = control_file(content, normalizer)
    [id] = tokenizer.get_added_tokens_decoder()
    whole = "".join(segment.text for segment in segments)
    assert id in tokenizer.encode(whole).ids
    assert id in tokenizer.encode_segments([trusted(whole)])
    assert id not in tokenizer.encode_segments(segments)
    assert id not in tokenizer.encode_segments([untrusted(whole)])
    conversation = bpe_engine.prompt.Conversation(tokenizer)
    conversation.update(segments)
    assert id not in conversation.ids
    assert tokenizer.audit_segments(segments).ids == conversation.ids


def test_control_strings_follow_the_normalizer() -> None:
    tokenizer = hf.Tokenizer.from_file(tokenizer_path("gpt2"))
    segments = [untrusted("<e\u0301>")]
    for normalizer, count in ((None, 0), (tokenizers.normalizers.NFC(), 1), (None, 0)):
        tokenizer.normalizer = normalizer
        audit = tokenizer.audit_segments(segments, control=["<\u00e9>"])
        assert len(audit.controls) == count


@pytest.mark.parametrize("content", ["<u>", "<\uff5cu\uff5c>"])
@pytest.mark.parametrize("fuse_unk", [False, True])
def test_an_unk_token_of_untrusted_text_is_refused(content: str, fuse_unk: bool) -> None:
    tokenizer = control_file(content, unk_token=content, fuse_unk=fuse_unk, lacking="A")
    [id] = tokenizer.get_added_tokens_decoder()
    assert tokenizer.encode("bAc").ids[1] == id
    assert tokenizer.encode_segments([trusted("bAc")]) == tokenizer.encode("bAc").ids
    assert id not in tokenizer.encode_segments([untrusted("bc")])
    for act in (tokenizer.encode_segments, bpe_engine.prompt.Conversation(tokenizer).update):
        with pytest.raises(ValueError, match="cannot be kept out of untrusted text"):
            act([untrusted("bAc")])


def test_whole_pieces_of_untrusted_text_are_refused() -> None:
    for content, lacking in (("Ahello", "A"), ("Ġzzqzz", "")):
        tokenizer = control_file(content, ignore_merges=True, lacking=lacking)
        [id] = tokenizer.get_added_tokens_decoder()
        given = content.replace("Ġ", " ")
        assert tokenizer.encode(given).ids == [id]
        for segments in ([untrusted(given)], [untrusted(given[:1]), trusted(given[1:])]):
            with pytest.raises(ValueError, match="cannot be kept out of untrusted text"):
                tokenizer.encode_segments(segments)


def test_many_segments_take_linear_time() -> None:
    """With quadratic work, this would take minutes, longer than a test is allowed."""
    tokenizer = control_file("<a>", NFC)
    [id] = tokenizer.get_added_tokens_decoder()
    segments = [special("<a>"), trusted("b"), untrusted("<a>")] * 200_000
    ids = tokenizer.encode_segments(segments)
    assert ids.count(id) == 200_000
    assert bpe_engine.prompt.count_segments(tokenizer, [trusted("b")] * 200_000) > 0


# ---- Ids without a token ----


def test_no_two_added_tokens_share_an_id() -> None:
    base = bpe_engine.get_encoding("gpt2")
    largest = 2**32 - 1
    for id, count in ((largest, 0), (largest - 2, 2)):
        encoding = bpe_engine.Encoding(
            "large ids",
            pat_str=base._pat_str,
            mergeable_ranks=base._mergeable_ranks,
            special_tokens={"<s>": id},
        )
        tokenizer = bpe_engine.Tokenizer(encoding)
        assert tokenizer.add_tokens([f"<{number}>" for number in range(count)]) == count
        with pytest.raises(ValueError, match='no id is free for "<x>"'):
            tokenizer.add_tokens(["<x>"])
        ids = tokenizer.encode("<s>" + "".join(f"<{number}>" for number in range(count)))
        assert ids == [*range(id, largest + 1)]


def test_unknown_ids_in_every_tokenizer_class() -> None:
    encoding, file, by_encoding, _, by_file = gpt2_faces()
    qwen = QwenTokenizer()
    unknown = 10**6
    for act in (encoding.decode, by_encoding.decode, qwen.decode):
        with pytest.raises(KeyError, match="Invalid token for decoding: 1000000"):
            act([unknown])
    assert file.decode([unknown, 64]) == by_file.decode([unknown, 64]) == "a"
    assert file.id_to_token(unknown) is None
    assert by_encoding.convert_ids_to_tokens(unknown) is None
    assert by_file.convert_ids_to_tokens([unknown, 64]) == [None, "a"]
    with pytest.raises(ValueError, match="unknown ids: 1000000"):
        qwen.convert_ids_to_tokens(unknown)
    for face in (encoding, file, by_encoding, by_file, qwen):
        with pytest.raises(ValueError, match="id 1000000"):
            face.encode_segments([tokens([unknown])])
    for face in (encoding, by_encoding, qwen):
        with pytest.raises(KeyError, match="1000000"):
            face.stream_decoder().push(unknown)
    assert by_file.stream_decoder().push(unknown) == ""
    for face in (encoding, file, by_encoding, by_file, qwen):
        with pytest.raises(OverflowError):
            face.decode([-1])


def test_pools_and_tables_of_the_faces_agree(faces: list[Any]) -> None:
    rng = seeded("pools")
    tables = [bpe_engine.TokenTable(face) for face in faces]
    assert all(list(table) == list(tables[0]) for table in tables)
    assert all(bytes(table.kinds) == bytes(tables[0].kinds) for table in tables)
    ids = [*tables[0].ids("ordinary"), *(tables[0].ids("special")[:3] * 5000)]
    for skips in (False, True):
        pools = [bpe_engine.StreamPool(face) for face in faces]
        slots = [pool.open(stop=["st\n"], skip_special_tokens=skips) for pool in pools]
        for _ in range(200):
            step = rng.choice(ids)
            results = [pool.step([slot], [step]) for pool, slot in zip(pools, slots, strict=True)]
            assert all(result == results[0] for result in results)
