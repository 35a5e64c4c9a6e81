"""Opens pages in Chromium, without a window."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

_BEFORE = "<script>window.problems = []; onerror = (text) => problems.push(text);</script>"
_AFTER = """
document.body.innerHTML = "";
document.body.append(Object.assign(document.createElement("pre"), { textContent: JSON.stringify(seen) }));
</script>
"""


def seen_in_browser(page: str, probe: str, folder: Path, width: int) -> dict[str, Any]:
    """Results of a script in the object `seen`; `window.problems` has the errors of the page."""
    probed = folder / "probed.html"
    script = f"<script>\nconst seen = {{ errors: window.problems }};{probe}{_AFTER}"
    page = page.replace("<body>", f"<body>{_BEFORE}").replace("</body>", f"{script}</body>")
    probed.write_text(page, encoding="utf-8")
    command = [
        str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom",
        f"--user-data-dir={folder}/profile", f"--window-size={width},1000", probed.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    match = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert match is not None, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(html.unescape(match[1]))
    return found
