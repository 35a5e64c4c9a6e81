"""Tests which requests the playground's server answers, and the command that starts it."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from bpe_engine.cli.playground import playground
from bpe_engine.playground.api import Api
from bpe_engine.playground.server import MAX_BODY, Server

ASKED = json.dumps({"encoding": "gpt2", "text": "hi"})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Api()) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: Server,
    path: str,
    method: str = "POST",
    body: str | bytes | None = ASKED,
    **headers: str,
) -> tuple[int, dict[str, str], bytes]:
    """Sends one request, and returns the status, the headers and the body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with_type = {"Content-Type": "application/json"} | named
    connection.request(method, path, None if method == "GET" else body, with_type)
    answer = connection.getresponse()
    contents = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), contents


def test_the_page_needs_nothing_from_outside(server: Server) -> None:
    status, headers, page = ask(server, f"/{server.secret}/", "GET")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    nonce = re.search(r"script-src 'nonce-([\w-]+)'", policy)[1]  # type: ignore[index]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer"
    text = page.decode()
    assert server.secret not in text and "@nonce@" not in text
    assert text.count(f'nonce="{nonce}"') == text.count("<style") + text.count("<script nonce")
    # The page contains no URLs, and no calls that turn text into elements.
    assert not re.search(
        r"https?://|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text
    )
    other = ask(server, f"/{server.secret}/", "GET")[1]["Content-Security-Policy"]
    assert other != policy


@pytest.mark.parametrize(
    "line, length, status",
    [
        ("GET http://[ HTTP/1.1", "1", 400),
        ("POST {}/api/steps HTTP/1.1", "9" * 5000, 413),
        ("POST {}/api/steps HTTP/1.1", "0" * 30 + "3", 400),
        ("POST {}/api/steps HTTP/1.1", "-1", 411),
    ],
)
def test_malformed_requests_are_answered(
    server: Server, capfd: pytest.CaptureFixture[str], line: str, length: str, status: int
) -> None:
    lines = [
        line.format(f"/{server.secret}"),
        f"Host: 127.0.0.1:{server.server_port}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", "abc"]).encode())
        answer = connection.makefile("rb").readline()
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert capfd.readouterr().err == ""


def test_only_this_machine_can_connect(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address.startswith("http://127.0.0.1:") and len(server.secret) >= 32


def test_requests_with_the_secret_are_answered(server: Server) -> None:
    port = server.server_port
    for headers in (
        {},
        {"Host": f"localhost:{port}"},
        {"Origin": f"http://127.0.0.1:{port}", "Sec_Fetch_Site": "same-origin"},
    ):
        status, _, body = ask(server, f"/{server.secret}/api/steps", **headers)
        assert status == 200 and json.loads(body)["ids"] == [5303]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_requests_without_the_secret_are_refused(server: Server, method: str) -> None:
    wrong = ["/", "/api/steps", "//api/steps", f"/{'x' * 32}/api/steps", f"/{server.secret}", "/é/"]
    wrong += [f"/{server.secret[:-1]}/api/steps", f"/x/../{server.secret}/api/steps"]
    for path in wrong:
        path = path.encode().decode("latin-1") if path.isascii() else "/%C3%A9/"
        status, _, body = ask(server, path, method)
        assert status == 403, path
        assert server.secret.encode() not in body


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.com"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": "localhost.example.com:{port}"},
        {"Origin": "http://example.com"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Host": "localhost:{port}", "Origin": "http://127.0.0.1:{port}"},
    ],
    ids=str,
)
def test_other_hosts_and_origins(server: Server, method: str, headers: dict[str, str]) -> None:
    """Refuses requests from another origin, or for another name that resolves to this machine."""
    filled = {name: value.format(port=server.server_port) for name, value in headers.items()}
    path = f"/{server.secret}/" + ("api/steps" if method == "POST" else "")
    assert ask(server, path, method, **filled)[0] == 403


def test_requests_from_another_site_are_refused(server: Server) -> None:
    for site in ("cross-site", "same-site"):
        assert ask(server, f"/{server.secret}/api/steps", Sec_Fetch_Site=site)[0] == 403


@pytest.mark.parametrize(
    "body, status",
    [
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"", 400),
        (b"[" * 200_000, 400),
        (b"[]", 400),
        (b'{"encoding": "gpt2"}', 400),
    ],
    ids=["open", "not UTF-8", "empty", "deep", "list", "lacks a field"],
)
def test_bad_json(server: Server, body: bytes, status: int) -> None:
    found, headers, answer = ask(server, f"/{server.secret}/api/steps", body=body)
    assert found == status and headers["Content-Type"] == "application/json"
    assert json.loads(answer)["error"]


def test_other_refusals(server: Server) -> None:
    secret = server.secret
    assert ask(server, f"/{secret}/api/eval")[0] == 404
    assert ask(server, f"/{secret}/steps")[0] == 404
    assert ask(server, f"/{secret}/api/steps", "GET")[0] == 404
    assert ask(server, f"/{secret}/page.html", "GET")[0] == 404
    assert ask(server, f"/{secret}/api/steps", "PUT")[0] == 501
    assert ask(server, f"/{secret}/api/steps", Content_Type="text/plain")[0] == 415
    assert ask(server, f"/{secret}/api/steps", body=None, Content_Length="x")[0] == 411
    # The request is refused before its body is read.
    assert (
        ask(server, f"/{secret}/api/steps", body=None, Content_Length=f"{MAX_BODY + 1}")[0] == 413
    )


def test_a_large_text_is_answered(server: Server) -> None:
    asked = {"text": "根本 word\n" * 100_000, "encodings": ["gpt2"], "special": False}
    status, _, body = ask(server, f"/{server.secret}/api/tokens", body=json.dumps(asked))
    assert status == 200 and len(json.loads(body)["columns"]["gpt2"]["ids"]) > 400_000


def test_one_connection_serves_many_requests(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    for _ in range(3):
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/{server.secret}/api/steps", ASKED, headers)
        assert json.loads(connection.getresponse().read())["ids"] == [5303]
    connection.close()


@pytest.mark.usefixtures("ctrl_c")
def test_the_command_serves_until_it_is_interrupted() -> None:
    command = [
        sys.executable,
        "-m",
        "bpe_engine",
        "playground",
        "--no-open",
        "-e",
        "gpt2",
        "x#1.abc",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        address = urlsplit(process.stdout.readline().strip())
        assert address.hostname == "127.0.0.1" and address.fragment == "1.abc"
        assert "Ctrl-C" in process.stderr.readline()
        connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=60)
        connection.request(
            "POST", address.path + "api/start", "{}", {"Content-Type": "application/json"}
        )
        assert json.loads(connection.getresponse().read())["chosen"] == ["gpt2"]
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["-e", "gpt_2"], 2, "Did you mean 'gpt2'"),
        (["-e", "gpt2"] * 5, 2, "at most 4 encodings"),
        (["http://127.0.0.1:1/x/"], 2, "not a link of the playground"),
        (["#1.<script>"], 2, "not a link of the playground"),
        (["--port", "70000"], 2, "70000"),
    ],
)
def test_command_lines_that_are_refused(arguments: list[str], status: int, message: str) -> None:
    result = CliRunner().invoke(playground, ["--no-open", *arguments])
    assert result.exit_code == status and message in result.output


def test_a_port_in_use_is_refused(server: Server) -> None:
    result = CliRunner().invoke(playground, ["--no-open", "--port", str(server.server_port)])
    assert result.exit_code == 1 and f"cannot serve on port {server.server_port}" in result.output
