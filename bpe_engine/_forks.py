"""Lets one thread of a forked process rebuild state that threads of the parent may have been
using."""

from __future__ import annotations

import os
import threading

#: Held by the thread that rebuilds or changes shared state. A forked process has another.
lock = threading.Lock()


def _begin_anew() -> None:
    global lock
    lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
