"""The result of checking a model folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..findings import Finding, WithFindings


@dataclass(frozen=True)
class CheckedSource:
    """A tokenizer of the folder, and its comparison with the first tokenizer."""

    #: File or files, or "AutoTokenizer".
    name: str
    #: Kind, such as "BPE", or the class that AutoTokenizer chose.
    kind: str
    #: Largest id plus one.
    size: int
    added_tokens: int
    #: Number of texts compared with the first source; number of texts with different ids.
    compared: int = 0
    differing: int = 0
    #: Number of texts not compared because they contain names of special tokens.
    left_out: int = 0


@dataclass(repr=False)
class FolderResult(WithFindings):
    """All findings, and the compared tokenizers."""

    #: Path of the folder.
    path: str
    findings: list[Finding]
    #: Tokenizers; each is compared with the first tokenizer.
    sources: list[CheckedSource] = field(default_factory=list)
    #: Fingerprint of the first tokenizer; None if its reader computes no fingerprint.
    fingerprint: str | None = None

    def to_plain(self) -> dict[str, Any]:
        """Returns the whole result as plain types, for JSON."""
        return {
            "ok": self.ok,
            "folder": self.path,
            "fingerprint": self.fingerprint,
            "sources": [asdict(source) for source in self.sources],
            "findings": [asdict(finding) for finding in self.findings],
        }
