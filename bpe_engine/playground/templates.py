"""Reads the chat template in a tokenizer's folder, for the playground's prompts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..tokenizer.files import TOKENIZER, read_config, settings_of

__all__ = ["template_of"]


def template_of(path: str) -> dict[str, str] | None:
    """Returns the ``template`` in a folder, or next to a ``tokenizer.json``, with its ``bos`` and
    ``eos``; None if it has no template, or its files are malformed."""
    folder = Path(path) if os.path.isdir(path) else Path(path).parent
    if not os.path.isdir(path) and os.path.basename(path) != TOKENIZER:
        return None
    try:
        settings = settings_of(folder, read_config(folder))
    except (ValueError, OSError):
        return None
    template = settings.get("chat_template")
    if isinstance(template, list):
        template = {entry["name"]: entry["template"] for entry in template}
    if isinstance(template, dict):
        template = template.get("default")
    if not isinstance(template, str):
        return None
    bos, eos = (_text(settings.get(name)) for name in ("bos_token", "eos_token"))
    return {"template": template, "bos": bos, "eos": eos}


def _text(token: Any) -> str:
    return str(getattr(token, "content", token) or "")
