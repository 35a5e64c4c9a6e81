"""Checks each folder's lines of code against its cap in budget.txt. Run by `make budget`.

    python tests/support/budget.py

Counts the lines of tracked .rs, .py, .pyi, .html, .js and .css files outside data/, docs/ and
release/. Ends with status 1 if a folder has more lines than its cap, or no cap. A change that
raises a cap deletes as many lines elsewhere.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENDINGS = (".rs", ".py", ".pyi", ".html", ".js", ".css")
LEFT_OUT = ("data", "docs", "release")


def counts() -> Counter[str]:
    """Returns the number of lines of code in each folder; `.` counts the files at the root."""
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found: Counter[str] = Counter()
    for path in (Path(name) for name in names if name.endswith(ENDINGS)):
        folder = path.parts[0] if len(path.parts) > 1 else "."
        if folder not in LEFT_OUT and (ROOT / path).exists():
            found[folder] += (ROOT / path).read_text(encoding="utf-8").count("\n")
    return found


def caps() -> dict[str, int]:
    """Returns the caps of budget.txt."""
    lines = (ROOT / "budget.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {folder: int(cap.replace(",", "")) for folder, cap in rows}


def main() -> int:
    found, allowed = counts(), caps()
    for folder, lines in sorted(found.items()):
        print(f"{folder:12} {lines:8,} of {allowed.get(folder, 0):8,}")
    print(f"{'all':12} {found.total():8,} of {sum(allowed.values()):8,}")
    over = [folder for folder, lines in found.items() if lines > allowed.get(folder, 0)]
    for folder in over:
        print(
            f"{folder} has more lines than budget.txt allows: delete as many as are new",
            file=sys.stderr,
        )
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
