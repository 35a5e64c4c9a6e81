"""The command `bpe-engine playground`: opens the playground in the browser."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Sequence

import click

from . import streams
from .group import Command, complete_vocabulary

# The fragment of a URL that encodes a view.
_STATE = re.compile(r"[^#]*#?([A-Za-z0-9_.-]+)")


@click.command(cls=Command, short_help="Open a local page that shows how text becomes tokens.")
@click.argument("link", required=False)
@click.option(
    "-e",
    "--encoding",
    "sources",
    metavar="NAME",
    shell_complete=complete_vocabulary,
    multiple=True,
    help="An encoding or model by its name, a .tiktoken file, tokenizer.json, tekken.json, or a"
    " folder with one. Up to four.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port; by default a free one."
)
@click.option("--open/--no-open", "opens", default=True, help="Open the browser.")
def playground(link: str | None, sources: Sequence[str], port: int, opens: bool) -> None:
    """Open a local page that shows tokens, merges, prompts and vocabularies.

    The page is served to this machine only, at an address with a secret, until Ctrl-C. Nothing
    leaves the machine. LINK is a view that somebody sent you, as the page's button copies it.

    \b
    bpe-engine playground
    bpe-engine playground -e o200k_base -e gpt2 -e mine.tiktoken
    bpe-engine playground --no-open --port 8765
    """
    from ..playground.api import Api
    from ..playground.server import Server
    from ..playground.texts import MAX_ENCODINGS

    state = "" if link is None else _state(link)
    if len(sources) > MAX_ENCODINGS:
        raise click.UsageError(f"at most {MAX_ENCODINGS} encodings are shown, not {len(sources)}")
    try:
        api = Api(sources)
    except LookupError as error:
        raise click.UsageError(str(error)) from None
    try:
        server = Server(api, port)
    except OSError as error:
        raise click.ClickException(
            f"cannot serve on port {port}: {error.strerror or error}; choose another --port, or "
            "none for a free one"
        ) from None
    address = server.address + state
    streams.print_line(address)
    with server:
        try:
            streams.print_note("Ctrl-C ends the playground")
            if opens and not webbrowser.open(address):
                streams.print_note("no browser was found; open the address")
            server.serve_forever()
        except KeyboardInterrupt:
            pass


def _state(link: str) -> str:
    """Returns the view encoded in a shared link; ignores the address before the view."""
    state = _STATE.fullmatch(link)
    if state is None or ("://" in link and "#" not in link):
        raise click.UsageError(
            f"{link!r} is not a link of the playground, which has a # and a view"
        )
    return f"#{state[1]}"
