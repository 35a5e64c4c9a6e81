"""Lets one thread of a forked process begin anew what threads of its parent may have been using."""

from __future__ import annotations

import os
import threading

#: Held by the thread that begins anew, or that changes what others read. A forked process has another.
lock = threading.Lock()


def _begin_anew() -> None:
    global lock
    lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
