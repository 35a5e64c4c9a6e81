"""Reference ids: tiktoken's ids from the same rank file.

If tiktoken fails (a million spaces make it panic), the ``regex`` package cuts the text by the
pattern, and tiktoken merges each piece. If that also fails, the harness takes the ids on which most
engines agree. Each row names its reference. For a tokenizer.json, the reference is ``tokenizers``;
for a ``.model``, sentencepiece.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..cases.encodings import EncodingSpec
from ..cases.inputs import Inputs
from .digest import Digest

TIKTOKEN, PATTERN, MAJORITY = "tiktoken", "pattern", "majority"
TOKENIZERS, SENTENCEPIECE = "tokenizers", "sentencepiece"


class _FileEncoding:
    """A file opened by ``tokenizers`` or sentencepiece, with the methods of a reference."""

    def __init__(self, path: Path) -> None:
        self.encode_ordinary: Callable[[str], list[int]]
        if path.suffix == ".model":
            import sentencepiece

            self.source = SENTENCEPIECE
            self.encode_ordinary = sentencepiece.SentencePieceProcessor(model_file=str(path)).encode
        else:
            import tokenizers

            tokenizer = tokenizers.Tokenizer.from_file(str(path))
            self.source = TOKENIZERS
            self.encode_ordinary = lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def _encoding(spec: EncodingSpec) -> Any:
    if spec.file is not None:
        return _FileEncoding(spec.file)
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
    """Returns the token count, the digest and the source of the ids of each timed text, by label.

    Omits a label if neither source can encode its text.
    """
    if not inputs.timed:
        return {}
    enc = _encoding(spec)
    found = {}
    for label, item in inputs.timed.items():
        source = TIKTOKEN if spec.file is None else enc.source
        digest = Digest()
        for text in [item] if isinstance(item, str) else item:
            try:
                ids = enc.encode_ordinary(text)
            except (KeyboardInterrupt, MemoryError):
                raise
            except BaseException:  # A Rust panic in tiktoken is not an Exception.
                try:
                    ids = _by_pattern(enc, spec, text)
                except (ImportError, ValueError):
                    break
                source = PATTERN
            digest.add(ids)
        else:
            found[label] = {"tokens": digest.tokens, "digest": digest.hex(), "source": source}
    return found
