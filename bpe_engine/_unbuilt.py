"""Explains why the native module cannot be imported."""

from __future__ import annotations

import importlib.util
import os
import re
import sysconfig

__all__ = ["explained"]


def explained(error: ImportError) -> ImportError:
    """Returns an ImportError whose one-line message says what to do.

    A clone has no native module until it is built in place, and Python started in the clone imports
    the clone before an installed package.
    """
    name = f"{__package__}._core"
    folder = os.path.dirname(os.path.abspath(__file__))
    clone = os.path.dirname(folder)
    if importlib.util.find_spec(name) is not None:
        reason = f"does not load ({error})"
    elif others := [
        file for file in os.listdir(folder) if re.fullmatch(r"_core\..+\.(so|pyd)", file)
    ]:
        reason = f"was built for another Python ({others[0]})"
    else:
        reason = "is not built"
    if os.path.isfile(os.path.join(clone, "Cargo.toml")):
        way = f"run `pip install -e .` in {clone}, or use an installed package from another folder"
    else:
        way = "run `pip install --force-reinstall bpe-engine`"
    python = sysconfig.get_config_var("EXT_SUFFIX")
    return ImportError(
        f"the native module {name} {reason} in {folder}, for {python}: {way}", name=name
    )
