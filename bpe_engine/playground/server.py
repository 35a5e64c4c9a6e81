"""Serves the page to this machine only, and only to requests with the secret."""

from __future__ import annotations

import hmac
import json
import secrets
import sys
import traceback
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from urllib.parse import urlsplit

from .api import Api

__all__ = ["MAX_BODY", "Server"]

#: Maximum size of a request in bytes: a text of maximum size with every character escaped.
MAX_BODY = 1 << 24
# Idle timeout of a connection, in seconds.
_PATIENCE = 60
# Headers of every answer: no caching, embedding or referrer.
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Serves the page at `address` on 127.0.0.1, each connection on a new thread.

    Args:
        api: Answers the requests.
        port: The port; 0 for a free one.

    Raises:
        OSError: The port is in use.
    """

    daemon_threads = True

    def __init__(self, api: Api, port: int = 0):
        self.api = api
        self.secret: str = secrets.token_urlsafe(24)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """The address of the page, with the secret."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/"

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Allowed Host headers; any other header indicates DNS rebinding."""
        return frozenset(f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost"))


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "bpe-engine"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Sends the page."""
        path = self._allowed_path()
        if path == "":
            nonce = secrets.token_urlsafe(16)
            page = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
            policy = (
                f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
                "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'"
            )
            html = page.replace("@nonce@", nonce).encode()
            self._send(200, html, "text/html; charset=utf-8", {"Content-Security-Policy": policy})
        elif path is not None:
            self._error(404, "not found")

    def do_POST(self) -> None:
        """Answers a request from the page."""
        # A connection with an unread body cannot be reused.
        self.close_connection = True
        path = self._allowed_path()
        if path is None:
            return
        if not path.startswith("api/"):
            return self._error(404, "not found")
        if self.headers.get_content_type() != "application/json":
            return self._error(415, "requests are application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return self._error(411, "the request needs its Content-Length")
        # Python refuses to parse very long numbers.
        if len(length.lstrip("0")) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
            return self._error(413, f"the request is larger than {MAX_BODY} bytes")
        body = self.rfile.read(int(length))
        self.close_connection = False
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            return self._error(400, "the request is not JSON")
        try:
            answer = self.server.api.call(path.removeprefix("api/"), request)
        except LookupError as error:
            return self._error(404, str(error.args[0]))
        except ValueError as error:
            return self._error(400, str(error))
        except Exception as error:
            traceback.print_exc()
            return self._error(500, f"{type(error).__name__}: {error}")
        contents = json.dumps(answer, separators=(",", ":")).encode()
        self._send(200, contents, "application/json")

    def _allowed_path(self) -> str | None:
        """Returns the path after the secret; None after refusing a request that is not allowed."""
        host, origin = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        site = self.headers.get("Sec-Fetch-Site", "none")
        try:
            secret, slash, path = urlsplit(self.path).path.lstrip("/").partition("/")
        except ValueError:
            self._error(400, "the request line has no valid address")
            return None
        known = hmac.compare_digest(secret.encode("utf-8", "replace"), self.server.secret.encode())
        if len(host) != 1 or host[0] not in self.server.hosts:
            self._error(403, "the request is for another host")
        elif origin and origin != [f"http://{host[0]}"]:
            self._error(403, "the request is from another origin")
        elif not known or not slash:
            self._error(403, "the address lacks the secret that `bpe-engine playground` printed")
        elif self.command != "GET" and site not in ("same-origin", "none"):
            self._error(403, "the request is from another site")
        else:
            return path
        return None

    def _error(self, status: int, message: str) -> None:
        self._send(status, json.dumps({"error": message}).encode(), "application/json")

    def _send(
        self, status: int, contents: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        if status >= 400:
            self.close_connection = True
        self.send_response(status)
        lengths = {"Content-Type": kind, "Content-Length": str(len(contents))}
        if self.close_connection:
            lengths["Connection"] = "close"
        for name, value in {**_HEADERS, **lengths, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(contents)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing, because log lines would reveal the secret."""

    def handle(self) -> None:
        """Handles the connection; reports a connection that ends early in one line."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            print("bpe-engine: a connection ended early", file=sys.stderr)
