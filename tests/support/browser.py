"""Opens pages in headless Chromium."""

from __future__ import annotations

import html
import itertools
import json
import os
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
    """Returns the object `seen` that a script fills; `seen.errors` are the page's errors."""
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


class Chromium:
    """A browser that opens pages and runs scripts in them, controlled through a DevTools pipe."""

    def __init__(self, profile: Path) -> None:
        commands, self._out = os.pipe()
        answers, into = os.pipe()
        self._answers = os.fdopen(answers, "rb")
        options = "--headless=new --no-sandbox --disable-gpu --remote-debugging-pipe"
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" {options} --user-data-dir="$1" 3<&{commands} 4>&{into}',
             str(CHROMIUM), str(profile)],
            pass_fds=(commands, into), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(into)
        self._numbers = itertools.count(1)
        self._session: dict[str, str] = {}

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._out)
        self._answers.close()

    def _call(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        asked = {"id": number, "method": method, "params": params, **self._session}
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        while True:
            read = b""
            while not read.endswith(b"\0"):
                byte = self._answers.read(1)
                assert byte, "Chromium has ended"
                read += byte
            answer = json.loads(read[:-1])
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, address: str) -> None:
        """Opens a page."""
        self._session = {}
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        self._call("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """Returns the value of an expression; awaits a promise."""
        done = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")
