"""The ids that every row is compared with: tiktoken's, from the same rank file.

Where tiktoken fails (a million spaces make it panic) the ids come from the meaning of the
pattern: the ``regex`` package cuts the text, tiktoken merges each piece by itself. Where that
cannot be had either, the harness takes what most engines agree on. Each row says which it was.
"""

from __future__ import annotations

from typing import Any

from ..cases.encodings import EncodingSpec
from ..cases.inputs import Inputs
from .digest import Digest

TIKTOKEN, PATTERN, MAJORITY = "tiktoken", "pattern", "majority"


def _encoding(spec: EncodingSpec) -> Any:
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    return tiktoken.Encoding(
        spec.name,
        pat_str=spec.pattern,
        mergeable_ranks=load_tiktoken_bpe(str(spec.ranks)),
        special_tokens=spec.special_tokens,
    )


def _by_pattern(enc: Any, spec: EncodingSpec, text: str) -> list[int]:
    import regex

    pieces = regex.findall(spec.pattern, text, flags=regex.V0)
    if "".join(pieces) != text:
        raise ValueError("The pattern does not cover the text.")
    return [id_ for piece in pieces for id_ in enc._encode_single_piece(piece)]


def reference(inputs: Inputs, spec: EncodingSpec) -> dict[str, dict[str, Any]]:
    """For each timed label: the token count, the digest, and the source of the ids.

    A label is left out when neither source can encode its text.
    """
    enc = _encoding(spec)
    found = {}
    for label, item in inputs.timed.items():
        source = TIKTOKEN
        digest = Digest()
        for text in [item] if isinstance(item, str) else item:
            try:
                ids = enc.encode_ordinary(text)
            except (KeyboardInterrupt, MemoryError):
                raise
            except BaseException:  # a panic of tiktoken is no Exception
                try:
                    ids = _by_pattern(enc, spec, text)
                except (ImportError, ValueError):
                    break
                source = PATTERN
            digest.add(ids)
        else:
            found[label] = {"tokens": digest.tokens, "digest": digest.hex(), "source": source}
    return found
