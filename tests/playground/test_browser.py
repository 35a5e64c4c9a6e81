"""Tests the playground's page in Chromium, as a user does.

Needs the package `selenium`, and Debian's packages `chromium` and `chromium-driver`.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_files import byte_level_file

import bpe_engine
from bpe_engine.playground.api import Api
from bpe_engine.playground.server import Server

webdriver = pytest.importorskip("selenium.webdriver", reason="the package selenium is missing")
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    pytest.skip("chromium or chromium-driver is not installed", allow_module_level=True)

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

VIEWS = ("tokens", "steps", "prompts")
TOOL_TEMPLATE = (
    "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.reasoning_content }}{{ m.content }}"
    "{{ (m.tool_calls or []) | tojson }}<|im_end|>{% endfor %}"
)
HOSTILE = "</textarea></script><script>window.hacked = 1</script><img src=x onerror='hacked = 1'>&lt;b&gt;"
#: Maximum number of elements drawn for a column of any text.
MOST_DRAWN = 8000


class Page:
    """A page of the playground in Chromium."""

    def __init__(self, driver: Any, server: Server):
        self.driver = driver
        self.server = server

    def open(self, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(self.server.address + fragment)
        self.until(
            lambda: self.run(
                "return names.length > 0 && document.querySelector('main > :not([hidden])') !== null"
            )
        )

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: Callable[[], Any]) -> Any:
        return WebDriverWait(self.driver, 120, poll_frequency=0.1).until(lambda _: condition())

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def view(self, name: str) -> None:
        self.find(f"#tab-{name}").click()

    def put(self, text: str) -> None:
        """Replaces the text, as by pasting."""
        self.run(
            "document.getElementById('text').focus(); document.getElementById('text').select()"
        )
        self.driver.execute_cdp_cmd("Input.insertText", {"text": text})

    def paste(self, text: str) -> None:
        """Replaces the text from the clipboard."""
        self.find("#text").send_keys(Keys.CONTROL + "a")
        self.driver.execute_cdp_cmd(
            "Browser.grantPermissions",
            {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
        )
        self.driver.execute_async_script(
            "navigator.clipboard.writeText(arguments[0]).then(arguments[1])", text
        )
        self.find("#text").send_keys(Keys.CONTROL + "v")
        units = len(text.encode("utf-16-le")) // 2
        self.until(lambda: self.run("return state.text.length") == units)

    def is_settled(self) -> bool:
        return bool(
            self.run(
                "return !sending && !dirty && sent.text === state.text && sent.special === state.special"
            )
        )

    def ids(self) -> dict[str, list[int]]:
        self.until(self.is_settled)
        return dict(
            self.run("return Object.fromEntries(columns.map(c => [c.name, Array.from(c.ids)]))")
        )

    def check_ids(self, text: str) -> None:
        for name, ids in self.ids().items():
            expected = bpe_engine.get_encoding(name).encode(text, disallowed_special=())
            assert ids == expected, name


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Api()) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def page(driver: Any, server: Server) -> Iterator[Page]:
    page = Page(driver, server)
    size = {"width": 1300, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get_log("browser")
    page.open()
    yield page
    severe = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    # An answer 400 is an error message on the page.
    assert [entry for entry in severe if "status of 400" not in entry["message"]] == []


def test_typing_encodes_each_change(page: Page) -> None:
    page.put("")
    text = page.find("#text")
    text.send_keys("Hello wörld")
    page.check_ids("Hello wörld")
    text.send_keys(Keys.HOME, Keys.RIGHT, "XY根", Keys.DELETE)
    page.driver.execute_cdp_cmd("Input.insertText", {"text": " 👩‍🚀"})
    page.check_ids("HXY根 👩‍🚀llo wörld")
    assert page.run("return state.text") == "HXY根 👩‍🚀llo wörld"
    text.send_keys(Keys.BACKSPACE * 3, Keys.END, Keys.ENTER, "x")
    page.check_ids(page.run("return document.getElementById('text').value"))


@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_colors_and_ids_equal_encode(page: Page, name: str) -> None:
    """Each token is one element with its id, and no two neighbors have one color."""
    text = "Hello  wörld, 根本不是 שלום 👩‍🚀 e\u0301.\n\n\treturn 1234567 <|endoftext|>"
    page.run("state.encodings = [arguments[0]]; state.shown = 'both'; show()", name)
    page.put(text)
    page.check_ids(text)
    drawn = page.run(
        "return Array.from(columns[0].list.querySelectorAll('.t'), t => [Number(t.querySelector('small').textContent), getComputedStyle(t).backgroundColor])"
    )
    assert [id for id, _ in drawn] == bpe_engine.get_encoding(name).encode(
        text, disallowed_special=()
    )
    colors = [color for _, color in drawn]
    assert all(one != other for one, other in zip(colors, colors[1:])) and len(set(colors)) == 4


def test_a_long_text_stays_drawable(page: Page) -> None:
    line = "The quick brown fox isn't obvious: naïve, 👩‍🚀 根本不是, 1234567.\n"
    text = line * 4_000
    page.paste(text)
    page.check_ids(text)
    drawn = "return columns.map(c => c.list.querySelectorAll('.t').length)"
    assert all(0 < count < MOST_DRAWN for count in page.run(drawn))
    # In the middle, and again.
    middle = len(text) // 2
    page.run(
        "const place = Array.from(state.text).slice(0, arguments[0]).join('').length;"
        "document.getElementById('text').setSelectionRange(place, place)",
        middle,
    )
    for typed in "xy":
        page.driver.execute_cdp_cmd("Input.insertText", {"text": typed})
    text = text[:middle] + "xy" + text[middle:]
    assert page.run("return state.text") == text
    page.check_ids(text)
    page.run("columns[0].go(columns[0].ids.length - 1)")
    page.until(lambda: page.run("return columns[0].list.querySelector('.now')?.isConnected"))
    assert page.run("return columns[0].list.querySelector('.now').textContent")
    assert all(0 < count < MOST_DRAWN for count in page.run(drawn))
    page.run("columns[0].go(Math.floor(columns[0].ids.length / 2))")
    box = page.run(
        "const [a, b] = [columns[0].list, columns[0].list.querySelector('.now')].map(e => e.getBoundingClientRect()); return [a.top, b.top, b.bottom, a.bottom]"
    )
    assert box == sorted(box)


def test_hover_shows_the_place_that_the_library_gives(page: Page) -> None:
    text = "naïve 👩‍🚀 根本"
    page.put(text)
    page.ids()
    for index, name in enumerate(["o200k_base", "cl100k_base"]):
        spans = page.run(
            "return Array.from(columns[arguments[0]].ids, (_, i) => columns[arguments[0]].spanOf(i))",
            index,
        )
        _, expected = bpe_engine.get_encoding(name).encode_with_offsets(text)
        assert [tuple(span) for span in spans] == expected
    page.run("columns[0].go(0)")
    page.until(lambda: page.find("#tip").is_displayed())
    assert f"id {bpe_engine.get_encoding('o200k_base').encode(text)[0]}" in page.find("#tip").text


def test_switching_encodings_and_views(page: Page) -> None:
    text = "Switching, 12345 times"
    page.put(text)
    page.find("#add").click()
    page.until(lambda: page.run("return columns.length") == 3)
    page.run("const s = columns[0].select; s.value = 'qwen3'; s.dispatchEvent(new Event('change'))")
    page.check_ids(text)
    assert page.run("return columns.map(c => c.name)") == ["qwen3", "cl100k_base", "gpt2"]
    for view in VIEWS[::-1]:
        page.view(view)
        shown = [name for name in VIEWS if page.find(f"#{name}").is_displayed()]
        assert shown == [view]
    page.check_ids(text)


def test_differences_are_where_the_cuts_differ(page: Page) -> None:
    text = "isn't naïve 根本不是"
    page.put(text)
    ids = page.ids()
    for name, differs in page.run("return columns.map(c => [c.name, Array.from(c.differs)])"):
        spans, others = (
            set(bpe_engine.get_encoding(each).encode_with_offsets(text)[1])
            for each in (name, *(other for other in ids if other != name))
        )
        found = bpe_engine.get_encoding(name).encode_with_offsets(text)[1]
        assert spans == set(found)
        # Spans of whole characters: two tokens of one character have the same span.
        assert all(span in others for span, mark in zip(found, differs) if not mark)
        assert any(differs)
    page.find("#next").click()
    page.until(lambda: page.run("return columns[0].differs[columns[0].current]") == 1)


def test_prompts_show_forged_control_tokens(page: Page) -> None:
    page.view("prompts")
    page.until(lambda: "forged 2 control tokens" in page.find("#prompt-out").text)
    assert len(page.driver.find_elements(By.CSS_SELECTOR, "#prompt-out .forged")) == 2
    page.find("#mask").click()
    masked = page.driver.find_elements(By.CSS_SELECTOR, ".masks .masked")
    assert "".join(token.text for token in masked) == "Hello!<|im_end|>"
    page.run(
        "const e = document.getElementById('example'); e.value = 'Full-width look-alike'; e.dispatchEvent(new Event('change'))"
    )
    page.until(lambda: "Nothing was forged" in page.find("#prompt-out").text)


def test_ids_and_text_are_copied(page: Page) -> None:
    page.driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    text = "a word,\n\tand 根本 more"
    page.put(text)
    ids = page.ids()["o200k_base"]
    copied = "const done = arguments[0]; navigator.clipboard.readText().then(done)"
    page.find(".column button[title='Copy the ids as a list']").click()
    page.until(lambda: page.driver.execute_async_script(copied) == str(ids))
    for shown, expected in (("tokens", text), ("ids", ", ".join(map(str, ids)))):
        page.run("state.shown = arguments[0]; show()", shown)
        page.run("getSelection().selectAllChildren(columns[0].list); columns[0].list.focus()")
        page.driver.switch_to.active_element.send_keys(Keys.CONTROL + "c")
        page.until(lambda: page.driver.execute_async_script(copied) == expected)  # noqa: B023


def test_models_and_folders_are_opened(page: Page, tmp_path: Path) -> None:
    page.find("#path").send_keys("gpt-4o", Keys.ENTER)
    page.until(lambda: "gpt-4o is o200k_base: shown already" in page.find("#note").text)
    names = {
        "tokenizer.json": json.dumps(byte_level_file()),
        "chat_template.jinja": "{% for m in messages %}[{{ m.content }}]{% endfor %}",
        "tokenizer_config.json": json.dumps({"bos_token": "<s>"}),
    }
    for name, contents in names.items():
        (tmp_path / name).write_text(contents, encoding="utf-8")
    page.find("#path").send_keys(str(tmp_path), Keys.ENTER)
    page.until(lambda: page.run("return columns.length") == 3)
    name = page.run("return columns[2].name")
    assert name == tmp_path.name
    page.view("prompts")
    page.until(lambda: "[" in page.find("#prompt-out").text)
    assert page.run("return [state.template, state.bos, state.promptEncoding]") == [
        names["chat_template.jinja"],
        "<s>",
        name,
    ]


def test_tools_calls_and_reasoning_in_prompts(page: Page) -> None:
    page.view("prompts")
    page.run("state.format = OWN; state.template = arguments[0]; show()", TOOL_TEMPLATE)
    page.find("#add-tools").click()
    page.until(lambda: "I·need·the·weather." in page.find("#prompt-out").text)
    shown = page.find("#prompt-out").text
    assert '"city"' in shown and '"description"' in shown and "forged 2" in shown
    page.run(
        "const e = $('prompt-tools'); e.value = '[1'; e.dispatchEvent(new Event('input'))",
    )
    page.until(lambda: "Tools: not JSON" in page.find("#problem").text)


def test_hostile_text_never_becomes_html(page: Page) -> None:
    page.put(HOSTILE)
    page.check_ids(HOSTILE)
    tokens = page.run("return columns[0].list.textContent")
    assert tokens.replace("·", " ") == HOSTILE
    page.view("steps")
    page.run("state.word = arguments[0]; show()", HOSTILE)
    page.until(
        lambda: len(page.driver.find_elements(By.CSS_SELECTOR, "#steps-out button.chip")) > 5
    )
    page.view("prompts")
    page.run(
        "state.messages = [{role: arguments[0], content: arguments[0], trusted: true}]; show()",
        HOSTILE,
    )
    page.until(lambda: "<script>" in page.find("#problem").text)
    page.run(
        "state.messages = [{role: 'user', content: arguments[0], trusted: false}]; show()", HOSTILE
    )
    page.until(lambda: page.find("#prompt-out").text.count("hacked") >= 4)
    page.run("state.encodings = [arguments[0]]; state.view = 'tokens'; show()", HOSTILE)
    page.until(lambda: "<img" in page.find("#problem").text)
    assert page.run(
        "return [window.hacked === undefined, document.images.length, document.querySelectorAll('main script, main b b').length]"
    ) == [True, 0, 0]


def test_links_keep_the_view_and_are_checked(page: Page) -> None:
    page.put("A view for a colleague: 12345")
    page.view("prompts")
    page.run("state.word = 'hello'; state.price = '2.5'; show()")
    page.driver.execute_async_script("const done = arguments[0]; writeAddress().then(done)")
    fragment = page.run("return location.hash")
    assert re.fullmatch(r"#1\.[\w-]+", fragment)
    kept = page.run("return state")
    page.open(fragment)
    assert page.run("return state") == kept
    hostile = {
        "view": "x",
        "text": 7,
        "encodings": [{}],
        "messages": [{"role": HOSTILE}],
        "__proto__": {"a": 1},
    }
    page.driver.execute_async_script(
        "const done = arguments[1]; through(new TextEncoder().encode(arguments[0]), new CompressionStream('deflate-raw'), 1e7)"
        ".then(b => { location.hash = '1.' + base64(b); setTimeout(done, 300); })",
        json.dumps(hostile),
    )
    kept = page.run("return [state.view, typeof state.text, ({}).a]")
    assert kept == ["tokens", "string", None]
    for broken in ("#1.%%%", "#2.abc", "#1." + "A" * 100_000):
        page.open(broken)
        page.until(lambda: page.run("return columns.length && columns[0].ids.length"))
    assert page.run("return window.hacked === undefined")


def test_the_keyboard_alone(page: Page) -> None:
    """From the first tab through text and column to the merges, and back by the tabs."""
    press = lambda *keys: page.driver.switch_to.active_element.send_keys(*keys)  # noqa: E731
    focused = lambda: page.run("const e = document.activeElement; return e.id || e.className")  # noqa: E731
    page.run("document.activeElement.blur()")
    page.find("body").send_keys(Keys.TAB)
    assert focused() == "link"
    press(Keys.TAB)
    assert focused() == "tab-tokens"
    for _ in range(3):
        press(Keys.TAB)
    assert focused() == "text"
    press(Keys.CONTROL + "a")
    press("keys only, unbelievable")
    page.check_ids("keys only, unbelievable")
    for _ in range(12):
        press(Keys.TAB)
        if "list" in focused():
            break
    assert focused() == "list"
    for _ in range(4):
        press(Keys.RIGHT)
    assert page.run("return columns[0].current") == 3
    page.until(lambda: page.find("#tip").is_displayed())
    press(Keys.ENTER)
    page.until(lambda: focused() == "tab-steps")
    word = page.run("return state.word")
    assert word == " unbelievable"
    ids = bpe_engine.get_encoding("o200k_base").encode(word)
    page.until(lambda: page.find("#steps-out").text.count("Join"))
    assert ", ".join(map(str, ids)) in page.find("#steps-out .verdict").text
    press(Keys.RIGHT)
    assert focused() == "tab-prompts"
    press(Keys.LEFT)
    press(Keys.LEFT)
    assert focused() == "tab-tokens"
    page.check_ids("keys only, unbelievable")


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_runs_off_a_phone(page: Page, view: str) -> None:
    size = {"width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.open()
    page.view(view)
    if view == "tokens":
        page.put("x" * 500 + " " + "根" * 300 + "\n" + HOSTILE)
        page.ids()
    wide = "return Array.from(document.querySelectorAll('*')).filter(e => e.getBoundingClientRect().right > 400).map(e => e.outerHTML.slice(0, 99))"
    assert page.run("return document.documentElement.scrollWidth") <= 400, page.run(wide)
    small = page.run(
        "return Array.from(document.querySelectorAll('button:not(.chip), select')).filter(e => e.offsetParent && e.getBoundingClientRect().height < 36).map(e => e.outerHTML)"
    )
    assert small == []
