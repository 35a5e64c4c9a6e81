"""Tests that the page draws the view in its address, in Chromium."""

from __future__ import annotations

import base64
import html
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser import Chromium, needs_chromium

import bpe_engine
from bpe_engine.playground.api import Api
from bpe_engine.playground.server import Server

TEXT = "Hello  wörld, 根本不是 שלום 👩‍🚀 e\u0301.\n\n\treturn 1234567 <|endoftext|>"
HOSTILE = "</textarea></script><script>window.hacked = 1</script><img src=x onerror='hacked = 1'>&lt;b&gt;"

#: Draws the page for a view or an address; returns the page's elements as HTML.
Draw = Callable[..., str]

pytestmark = needs_chromium

#: Resolves once the page has drawn the answers of its server, or an error.
DRAWN = """new Promise(done => {
  const look = () => typeof names === "object" && names.length && !sending && !dirty
    && (!$("problem").hidden || document.querySelector(OUT[state.view])) ? done() : setTimeout(look, 20);
  const OUT = {tokens: ".list .t", steps: "#steps-out .verdict", prompts: "#prompt-out .parts"};
  look();
}).then(() => document.querySelector("main").outerHTML + $("problem").outerHTML + $("note").outerHTML)"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def draw(chromium: Chromium) -> Iterator[Draw]:
    with Server(Api()) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def draw(fragment: str = "", **view: Any) -> str:
            packer = zlib.compressobj(wbits=-15)
            packed = packer.compress(json.dumps(view).encode()) + packer.flush()
            link = fragment or "1." + base64.urlsafe_b64encode(packed).decode().rstrip("=")
            chromium.open(f"{server.address}#{link}")
            return str(chromium.run(DRAWN))

        yield draw
        server.shutdown()
        thread.join()


def section(page: str, name: str) -> str:
    """Returns a section of the page, without the script."""
    return page.partition(f'<section id="{name}"')[2].partition("</section>")[0]


@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_each_token_has_its_id(draw: Draw, name: str) -> None:
    """Each token is one element with its id, and neighbors have different colors."""
    page = section(draw(encodings=[name], shown="both", text=TEXT), "tokens")
    expected = bpe_engine.get_encoding(name).encode(TEXT, disallowed_special=())
    assert [int(id) for id in re.findall(r"<small>(\d+)</small>", page)] == expected
    colors = re.findall(r'class="t c(\d)', page)
    assert len(colors) == len(expected)
    assert all(one != other for one, other in zip(colors, colors[1:]))
    assert f">{len(expected)}</b> tokens" in page


def test_a_long_text_stays_drawable(draw: Draw) -> None:
    text = "The quick brown fox isn't obvious: naïve, 👩‍🚀 根本不是, 1234567.\n" * 1_400
    page = section(draw(text=text), "tokens")
    assert 0 < page.count('class="t c') < 16_000
    count = len(bpe_engine.get_encoding("o200k_base").encode(text))
    assert f">{count:,}</b> tokens" in page


def test_tokens_that_are_cut_differently_are_marked(draw: Draw) -> None:
    same = section(draw(encodings=["gpt2", "r50k_base"], text=TEXT), "tokens")
    other = section(draw(encodings=["gpt2", "o200k_base"], text=TEXT), "tokens")
    assert "Cut differently in 0 places" in same and "differs" not in same
    assert re.search(r"Cut differently in [1-9]\d* place", other) and "differs" in other


def test_merges_step_by_step(draw: Draw) -> None:
    page = section(draw(view="steps", word=" unbelievable"), "steps")
    ids = bpe_engine.get_encoding("gpt2").encode(" unbelievable")
    verdict = re.findall(r'class="verdict">([^<]*)', page)
    assert ", ".join(map(str, ids)) in verdict[0] and page.count(". Join ") > 3


def test_prompts_show_forged_control_tokens(draw: Draw) -> None:
    page = section(draw(view="prompts", mask=True), "prompts")
    assert "Untrusted text forged 2 control tokens" in page
    assert page.count('class="t forged') == 2 and "No control token comes from untrusted" in page
    masked = re.findall(r'class="t \w+ masked">([^<]*)', page)
    assert html.unescape("".join(masked)) == "Hello!<|im_end|>"
    assert "Where the tokens go" in page and "messages" in page


def test_tools_calls_and_reasoning(draw: Draw) -> None:
    template = (
        "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.reasoning_content }}"
        "{{ m.content }}{{ (m.tool_calls or []) | tojson }}<|im_end|>{% endfor %}"
    )
    view = {"view": "prompts", "format": "a chat template", "template": template}
    calls = '[{"type": "function", "function": {"name": "weather", "arguments": {}}}]'
    message = {"role": "assistant", "content": "", "trusted": False, "reasoning": "Hm.", "calls": calls}  # fmt: skip
    page = section(draw(**view, tools='[{"name": "f"}]', messages=[message]), "prompts")
    shown = html.unescape(re.sub("<[^>]*>", "", page))
    assert "Hm." in shown and '"weather"' in shown
    assert "Tools: not JSON" in draw(**view, tools="[1", messages=[message])


@pytest.mark.parametrize("view", ["tokens", "steps", "prompts"])
def test_hostile_text_never_becomes_html(chromium: Chromium, draw: Draw, view: str) -> None:
    message = {"role": HOSTILE, "content": HOSTILE, "trusted": True}
    known = {"role": "user", "content": HOSTILE, "trusted": False}
    for messages in ([message], [known]):
        state = {"text": HOSTILE, "word": HOSTILE, "template": HOSTILE, "messages": messages}
        page = draw(view=view, encodings=["gpt2", HOSTILE], **state)
        assert "hacked" in re.sub("<[^>]*>", "", page)
        assert chromium.run("window.hacked ?? document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("fragment", ["1.%%%", "2.abc", "1." + "A" * 70_000])
def test_broken_links_leave_the_page_usable(draw: Draw, fragment: str) -> None:
    page = draw(fragment)
    assert "The view in the address cannot be read" in page and 'class="t c' in page


def test_values_of_a_link_are_checked(draw: Draw) -> None:
    wrong = {"view": "x", "text": 7, "encodings": [{}], "messages": [{"role": HOSTILE}]}
    page = draw(**wrong, shown=[], price={}, __proto__={"a": 1})
    assert 'class="t c' in section(page, "tokens") and "Token</span>" in page
