"""Builds the package with maturin; rejects a Rust toolchain that is too old, and names a remedy.

Old versions of cargo fail on the edition of the sources, without naming the required version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Any

import maturin
from maturin import build_editable, build_sdist, build_wheel, prepare_metadata_for_build_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Returns maturin's requirements, which include a package that fetches a missing toolchain."""
    check_toolchain()
    return maturin.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Returns the same requirements as for a wheel."""
    check_toolchain()
    return maturin.get_requires_for_build_editable(config_settings)


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    """Returns the same requirements as for a wheel."""
    check_toolchain()
    return maturin.get_requires_for_build_sdist(config_settings)


def check_toolchain() -> None:
    """Raises SystemExit if the toolchain on the path is older than `rust-version`."""
    compiler = os.environ.get("RUSTC") or shutil.which("rustc")
    if not compiler or not shutil.which("cargo"):
        return  # Without cargo, maturin fetches a toolchain.
    with open("Cargo.toml", encoding="utf-8") as file:
        needed = re.search(r'^rust-version = "([\d.]+)"', file.read(), re.MULTILINE)
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True)
    found = re.match(r"rustc (\d+\.\d+\.\d+)", done.stdout)
    if needed and found and numbers(found[1]) < numbers(needed[1]):
        raise SystemExit(
            f"bpe-engine is built with Rust {needed[1]} or later, and {compiler} is {found[1]}. "
            "Install a newer toolchain (https://rustup.rs), or remove this one from PATH: pip then "
            "fetches one for the build. A wheel needs no Rust: "
            "pip install --only-binary bpe-engine bpe-engine"
        )


def numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version, for comparison."""
    return tuple(map(int, version.split(".")))
