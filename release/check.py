"""Checks the files to upload: tags, metadata, sizes, and installation in clean Debian roots.

    python release/check.py [--roots FOLDER] [--suite] [--release] [FILE ...]

Without `--roots`, only reads the files. With `--roots`, pip installs each wheel into each root with
a matching Python, and release/smoke.py runs in the root; a root with Debian's Rust builds the
sdist. `--suite` also runs the test suite in the roots.
`release/roots.sh FOLDER` makes the roots; both need root's rights, for chroot.
"""

from __future__ import annotations

import argparse
import email
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 16_000_000
LICENSES = {"LICENSE", "data/LICENSE-openai", "data/LICENSE-qwen"}


def main() -> None:
    """Runs all checks; ends with an AssertionError, or the status of the first failed command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--roots", type=Path, help="a folder that release/roots.sh has filled")
    parser.add_argument("--suite", action="store_true", help="run the tests in each root, too")
    parser.add_argument("--release", action="store_true", help="refuse addresses that do not exist")
    options = parser.parse_args()
    files = options.files or sorted((ROOT / "dist").glob("bpe_engine-*"))
    assert files, "nothing to check: run `make wheels`"
    run([sys.executable, "-m", "twine", "check", "--strict", *files])
    for path in files:
        check_file(path, options.release)
    if options.roots:
        for root in sorted(options.roots.iterdir()):
            check_root(root, files, options)


def check_file(path: Path, release: bool) -> None:
    """Checks the metadata of a file, and also the tag, licenses and size of a wheel."""
    metadata = read_metadata(path)
    description = metadata.get_payload()
    assert isinstance(description, str)
    assert metadata["Name"] == "bpe-engine" and metadata["Requires-Python"] == ">=3.10"
    assert metadata["Keywords"] and len(metadata.get_all("Classifier", [])) > 10
    tag = path.stem.split("-")[-1]
    relative = re.findall(r'(?:\]\(|src="|srcset=")(?!#|https?:)([^)"]*)', description)
    assert not (release and relative), f"{path.name}: relative links: {relative}"
    assert set(metadata.get_all("License-File", [])) == LICENSES, path.name
    assert metadata["Project-URL"] or not release, "give the project a home: docs/releasing.md"
    if path.suffix != ".whl":
        return
    assert path.stat().st_size < LARGEST, f"{path.name} has {path.stat().st_size} bytes"
    if "manylinux" in tag or "musllinux" in tag:
        shown = run([sys.executable, "-m", "auditwheel", "show", path], quiet=True)
        found = re.search(r'following platform\s+tag:\s+"([^"]+)"', shown)
        # Linkers and musl's loader use the same name for musl, but auditwheel uses another.
        is_musl = "musllinux" in tag and re.findall(r'"(\S+)": ', shown) == ["libc.so"]
        assert is_musl or (found and found[1] in tag.split(".")), f"{path.name}: {shown}"
    with zipfile.ZipFile(path) as wheel:
        assert any(".dist-info/sboms/" in name for name in wheel.namelist()), "SECURITY.md names it"
    print(path.name, flush=True)
    print_sizes(path)


def read_metadata(path: Path) -> Message:
    """Returns the METADATA of a wheel, or the PKG-INFO of an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
            return email.message_from_bytes(wheel.read(name))
    with tarfile.open(path) as sdist:
        file = sdist.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert file
        return email.message_from_bytes(file.read())


def print_sizes(path: Path) -> None:
    """Prints the packed and unpacked size of each part of a wheel."""
    sizes: dict[str, list[int]] = {}
    with zipfile.ZipFile(path) as wheel:
        for entry in wheel.infolist():
            kind = "native module" if entry.filename.endswith((".so", ".pyd")) else "Python"
            counts = sizes.setdefault(kind, [0, 0])
            counts[0] += entry.compress_size
            counts[1] += entry.file_size
    for kind, (packed, whole) in sizes.items():
        print(f"    {kind:14} {packed / 1e6:5.2f} MB, {whole / 1e6:5.2f} MB unpacked")


def check_root(root: Path, files: list[Path], options: argparse.Namespace) -> None:
    """Installs the file that matches a clean root's Python, and tests the installation.

    The sdist matches a root with Debian's Rust, a wheel any other root.
    """
    version = run([*within(root), "python3", "-c", VERSION], quiet=True).strip()
    machine = run([*within(root), "uname", "-m"], quiet=True).strip()
    has_rust = (root / "usr/bin/cargo").exists()
    fits = re.compile(r".*\.tar\.gz" if has_rust else rf".*-cp{version}-manylinux.*_{machine}\.whl")
    fitting = [path for path in files if fits.fullmatch(path.name)]
    if not fitting:
        print(f"== {root.name}, Python {version}, {machine}: nothing here is for it", flush=True)
        assert not options.release, "a release has a file for each root"
    for path in fitting:
        print(f"== {root.name}, Python {version}, {machine}: {path.name}", flush=True)
        with tempfile.TemporaryDirectory(dir=root / "root") as folder:
            try_in_root(root, Path(folder), path, options.suite)


VERSION = "import sys; print('%d%d' % sys.version_info[:2])"


def within(root: Path) -> list[str]:
    """Returns a command prefix that runs a command in a root, with separate /proc and terminals."""
    terminals = 'mount -t devpts devpts /dev/pts && exec "$@"'
    own = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", f"--root={root.resolve()}"]
    return [*own, "sh", "-c", terminals, "sh"]


def try_in_root(root: Path, folder: Path, path: Path, suite: bool) -> None:
    """Installs `path` into an environment below `folder`, which is inside the root.

    With `suite`, runs the tests of the last commit, or of the sdist.
    """
    shutil.copy(path, folder)
    if path.suffix == ".whl":
        repository = folder / "repository"
        repository.mkdir()
        sources = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "x", "-C", repository], input=sources.stdout, check=True)
    else:
        repository = folder / path.name.removesuffix(".tar.gz")
        run(["tar", "xzf", path, "-C", folder])
    inside = f"/{folder.relative_to(root)}"
    clone = f"{inside}/{repository.name}"
    python = f"{inside}/venv/bin/python"
    inner = [*within(root), "env", f"--chdir={clone}", f"HOME={inside}", "LC_ALL=C.UTF-8"]
    run([*inner, "python3", "-m", "venv", f"{inside}/venv"])
    what = f"{inside}/{path.name}"
    if suite:
        what = f"bpe-engine[test] @ file://{what}"
    run([*inner, python, "-m", "pip", "install", "--quiet", what])
    run([*inner, python, "release/smoke.py", "."])
    if suite:
        run([*inner, python, "-m", "pytest", "-q", "--color=no"])


def run(command: list[str | Path], quiet: bool = False) -> str:
    """Runs a command, and returns its output if `quiet`. On failure, exits with its status."""
    done = subprocess.run([str(word) for word in command], text=True, capture_output=quiet)
    if done.returncode:
        print(done.stdout or "", done.stderr or "", file=sys.stderr)
        raise SystemExit(done.returncode)
    return done.stdout or ""


if __name__ == "__main__":
    main()
