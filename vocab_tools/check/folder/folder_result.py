"""The result of the check of a model folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..findings import Finding, WithFindings


@dataclass(frozen=True)
class CheckedSource:
    """A further tokenizer of the folder."""

    #: The file or files, or "AutoTokenizer".
    name: str
    #: Its kind, such as "BPE", or the class that AutoTokenizer chose.
    kind: str
    #: The largest id plus one.
    size: int
    added_tokens: int
    #: Texts that were compared with the first source, and those with other ids.
    compared: int = 0
    differing: int = 0
    #: Number of texts not compared because they contain names of special tokens.
    left_out: int = 0


@dataclass(repr=False)
class FolderResult(WithFindings):
    """All findings, and the tokenizers that were compared."""

    #: The folder.
    path: str
    findings: list[Finding]
    #: The tokenizers. The first one is what the others are compared with.
    sources: list[CheckedSource] = field(default_factory=list)
    #: The fingerprint of the first tokenizer; None if its file does not give one.
    fingerprint: str | None = None

    def to_plain(self) -> dict[str, Any]:
        """Returns everything as plain types, for JSON."""
        return {
            "ok": self.ok,
            "folder": self.path,
            "fingerprint": self.fingerprint,
            "sources": [asdict(source) for source in self.sources],
            "findings": [asdict(finding) for finding in self.findings],
        }
