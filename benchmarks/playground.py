"""Measures how long a key takes to show in the playground, in a text of 1 MB.

    python -m benchmarks.playground

Needs the package `selenium`, and Debian's packages `chromium` and `chromium-driver`. Prints for each
text and place of the cursor the median and the largest time from a key to the next paint, as Chromium
measures it (Event Timing, in steps of 8 ms), and the longest task of the page.
"""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from typing import Any

from bpe_engine.playground.api import Api
from bpe_engine.playground.server import Server

LINE = "The quick brown fox isn't obvious: naïve, 根本不是, 1234567."
TEXTS = {
    "short": "",
    "1 MB of lines": f"{LINE}\n" * 15_000,
    "1 MB in one line": f"{LINE} " * 15_000,
}
KEYS = "etaoinshrdlu"
SECONDS_BETWEEN_KEYS = 0.3

_OBSERVE = """
window.keys = []; window.tasks = [];
new PerformanceObserver(list => { for (const e of list.getEntries()) if (e.name === "keydown") keys.push(e.duration); })
  .observe({type: "event", durationThreshold: 16});
new PerformanceObserver(list => { for (const e of list.getEntries()) tasks.push(e.duration); }).observe({type: "longtask"});
"""


def measured(driver: Any, text: str, place: float) -> tuple[list[float], float]:
    """Types some keys at a place, from 0 to 1, in the text; returns the times and the longest task."""
    driver.execute_script(
        "const area = $('text'); state.text = arguments[0]; show(); area.focus();"
        "const at = Math.floor(area.value.length * arguments[1]); area.setSelectionRange(at, at)",
        text,
        place,
    )
    time.sleep(4)
    driver.execute_script("keys.length = tasks.length = 0")
    for key in KEYS:
        for kind in ("keyDown", "keyUp"):
            typed = {"text": key} if kind == "keyDown" else {}
            driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": key, **typed})
        time.sleep(SECONDS_BETWEEN_KEYS)
    time.sleep(1)
    times, tasks = driver.execute_script("return [keys, tasks]")
    # Keys that were shown within a frame are not listed.
    return [*times, *[8.0] * (len(KEYS) - len(times))], max(tasks, default=0.0)


def main() -> None:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with Server(Api()) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        driver = webdriver.Chrome(options=options, service=service)
        try:
            driver.get(server.address)
            time.sleep(2)
            driver.execute_script(_OBSERVE)
            print(f"{'text':18}{'place':>8}{'median ms':>12}{'most ms':>10}{'longest task':>14}")
            for name, text in TEXTS.items():
                for place in (0.0, 0.5, 1.0):
                    times, task = measured(driver, text, place)
                    middle = statistics.median(times)
                    print(f"{name:18}{place:8.1f}{middle:12.0f}{max(times):10.0f}{task:14.0f}")
        finally:
            driver.quit()
            server.shutdown()


if __name__ == "__main__":
    main()
