"""Tests the three ways to use this package instead of tiktoken, each in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from oracles import oracle

import bpe_engine
from bpe_engine.read.builtin import BUILTIN

# `error_of(call)` returns the error that a call raises, as in `error_of(lambda: 1 / 0)`.
BEGINNING = """
import sys
def error_of(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("no error")
"""


def run(program: str, *path: str, options: tuple[str, ...] = ()) -> None:
    program = f"{BEGINNING}sys.path[:0] = {list(map(str, path))!r}\n" + textwrap.dedent(program)
    command = [sys.executable, *options, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


USES = """
import pickle, copy
import bpe_engine
import tiktoken
import tiktoken.core, tiktoken.load, tiktoken.model, tiktoken.registry
from tiktoken import Encoding, get_encoding, _tiktoken
from tiktoken.core import Encoding as Same, raise_disallowed_special_token
from tiktoken.load import load_tiktoken_bpe, read_file_cached, dump_tiktoken_bpe
from tiktoken.registry import ENCODINGS
import tiktoken._tiktoken

assert tiktoken is bpe_engine
for name in ("core", "load", "model", "registry"):
    ours = sys.modules["bpe_engine." + name]
    assert sys.modules["tiktoken." + name] is ours is getattr(tiktoken, name)
    assert ours.__name__ == ours.__spec__.name == "bpe_engine." + name
assert Encoding is Same is bpe_engine.Encoding
assert tiktoken._tiktoken is bpe_engine._tiktoken

gpt2 = tiktoken.get_encoding("gpt2")
assert ENCODINGS["gpt2"] is gpt2 is bpe_engine.get_encoding("gpt2")
assert gpt2.encode("hello world") == [31373, 995]
assert pickle.loads(pickle.dumps(gpt2)).encode("hello") == [31373]
assert error_of(lambda: __import__("tiktoken.nonsense")).name == "tiktoken.nonsense"
"""


DATA = Path(__file__).parents[2] / "data" / "r50k_base.tiktoken"


INSTALL = "import bpe_engine\nbpe_engine.install()\n"
#: Ways to use this package in place of tiktoken, each as the first lines of a program.
WAYS = {
    "sys.modules": "import bpe_engine\nsys.modules['tiktoken'] = bpe_engine\n",
    "install, twice": INSTALL * 2,
    "over tiktoken": "import tiktoken as theirs\n" + INSTALL + "assert theirs is not bpe_engine\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_replace_tiktoken(way):
    module = "bpe_engine.core" if way == "sys.modules" else "tiktoken.core"
    run(WAYS[way] + USES + f"assert type(gpt2).__module__ == {module!r}")


def test_pickles_written_after_install_load_with_tiktoken(tmp_path):
    path = tmp_path / "pickled"
    run(
        f"""
        import bpe_engine, pickle
        bpe_engine.install()
        letters = {{bytes([byte]): byte for byte in range(256)}}
        own = bpe_engine.Encoding(
            "own", pat_str=".", mergeable_ranks=letters, special_tokens={{"<|x|>": 300}}
        )
        with open({str(path)!r}, "wb") as file:
            pickle.dump([own, bpe_engine.load_encoding({str(DATA)!r})], file)
        """
    )
    run(
        f"""
        import pickle, tiktoken
        with open({str(path)!r}, "rb") as file:
            own, gpt2 = pickle.load(file)
        assert type(own) is type(gpt2) is tiktoken.Encoding
        assert own.encode("ab<|x|>", allowed_special="all") == [97, 98, 300]
        assert gpt2.encode("hello world") == [31373, 995]
        import sys
        assert "bpe_engine" not in sys.modules
        """
    )
    run(
        f"""
        import bpe_engine, pickle
        bpe_engine.install()
        with open({str(path)!r}, "rb") as file:
            own, gpt2 = pickle.load(file)
        assert type(own) is bpe_engine.Encoding and own.encode("ab") == [97, 98]
        """
    )


def test_install_after_tiktoken_was_used():
    """tiktoken's earlier encodings cannot be pickled until `uninstall`, so `install` warns once."""
    run(
        """
        import pickle, sys, warnings
        import tiktoken, tiktoken.load
        letters = {bytes([byte]): byte for byte in range(256)}
        before = tiktoken.Encoding("own", pat_str=".", mergeable_ranks=letters, special_tokens={})
        theirs = {name: module for name, module in sys.modules.items() if "tiktoken" in name}
        import bpe_engine

        class Importing(str):  # As if another thread imports while `install` looks.
            def partition(self, separator):
                sys.modules["imported"] = sys
                return str.partition(self, separator)

        sys.modules[Importing("importing")] = sys
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            bpe_engine.install()
            bpe_engine.install()
        assert ["imported before" in str(one.message) for one in raised] == [True], raised
        assert raised[0].filename == "<string>"
        import tiktoken
        assert tiktoken is bpe_engine and bpe_engine.Encoding.__module__ == "tiktoken.core"
        bpe_engine.uninstall()
        bpe_engine.uninstall()
        import tiktoken
        assert {name: sys.modules[name] for name in theirs} == theirs
        assert isinstance(before, tiktoken.Encoding)
        assert pickle.loads(pickle.dumps(before)).encode("ab") == [97, 98]
        assert bpe_engine.Encoding.__module__ == "bpe_engine.core"
        """
    )


PLUGIN = """
def mine():
    return {"name": "%(name)s", "pat_str": ".", "mergeable_ranks": {b"a": 0},
            "special_tokens": {"<|x|>": 1}, "explicit_n_vocab": 2}
ENCODING_CONSTRUCTORS = {"%(name)s": mine}
"""


@pytest.fixture
def plugins(tmp_path):
    folder = tmp_path / "tiktoken_ext"
    folder.mkdir()

    def plugins(**modules: str) -> str:
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
        return str(tmp_path)

    return plugins


NO_NETWORK = """
import socket
def refuse(*args, **kwargs): raise RuntimeError("no network")
socket.socket = socket.create_connection = refuse
import bpe_engine
"""


def test_plugins(plugins):
    """A plugin's encodings are listed after the package's, with and without the alias."""
    path = plugins(my_plugin=PLUGIN % {"name": "plugged"})
    for prepare in ("", "sys.modules['tiktoken'] = bpe_engine\n"):
        run(
            NO_NETWORK
            + prepare
            + textwrap.dedent(
                """
                names = bpe_engine.list_encoding_names()
                assert names[-2:] == ["qwen3", "plugged"], names
                assert bpe_engine.get_encoding("plugged").encode("aa") == [0, 0]
                assert bpe_engine.get_encoding("plugged").n_vocab == 2
                assert bpe_engine.get_encoding("plugged") is bpe_engine.get_encoding("plugged")
                for name in names[:-1]:
                    assert bpe_engine.get_encoding(name).encode("hi")
                from bpe_engine import registry
                assert set(registry.ENCODING_CONSTRUCTORS) == set(names)
                """
            ),
            path,
        )


TAKEN = "Duplicate encoding name {} in tiktoken plugin tiktoken_ext.two"


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            {"one": PLUGIN % {"name": "same"}, "two": PLUGIN % {"name": "same"}},
            TAKEN.format("same"),
        ),
        ({"two": PLUGIN % {"name": "gpt2"}}, TAKEN.format("gpt2")),
        ({"empty": ""}, "tiktoken_ext.empty does not define ENCODING_CONSTRUCTORS"),
        ({"broken": "1 / 0"}, "division by zero"),
    ],
    ids=["two of a name", "a name of the package", "no constructors", "an error"],
)
def test_broken_plugins(plugins, modules, message):
    """The package's own encodings still work. Listing names, reading constructors and requesting an
    unknown encoding raise on every call."""
    run(
        f"""
        import bpe_engine
        assert bpe_engine.get_encoding("gpt2").encode("hello") == [31373]
        assert "tiktoken_ext" not in sys.modules
        for _ in range(2):
            for call in (
                bpe_engine.list_encoding_names,
                lambda: bpe_engine.registry.ENCODING_CONSTRUCTORS,
                lambda: bpe_engine.get_encoding("nope"),
            ):
                assert {message!r} in str(error_of(call))
        assert bpe_engine.get_encoding("cl100k_base").encode("hello") == [15339]
        """,
        plugins(**modules),
    )


def test_constructors_exist_after_get_encoding():
    """Programs can read and extend the constructors, as in tiktoken."""
    run(
        """
        import bpe_engine
        from bpe_engine import registry
        bpe_engine.get_encoding("gpt2")
        assert list(registry.ENCODING_CONSTRUCTORS)[:2] == ["gpt2", "r50k_base"]
        registry.ENCODING_CONSTRUCTORS["mine"] = lambda: {
            "name": "mine", "pat_str": ".", "mergeable_ranks": {b"a": 0}, "special_tokens": {}}
        assert bpe_engine.get_encoding("mine").encode("aa") == [0, 0]
        assert bpe_engine.list_encoding_names()[-1] == "mine"
        from bpe_engine.registry import ENCODING_CONSTRUCTORS
        assert ENCODING_CONSTRUCTORS is registry.ENCODING_CONSTRUCTORS
        assert not hasattr(registry, "NONSENSE")
        """
    )


FROZEN = """
import tiktoken
import tiktoken_ext.openai_public
tiktoken.registry.ENCODING_CONSTRUCTORS = {}
tiktoken.registry.ENCODING_CONSTRUCTORS.update(tiktoken_ext.openai_public.ENCODING_CONSTRUCTORS)
for name in tiktoken_ext.openai_public.ENCODING_CONSTRUCTORS:
    assert tiktoken.get_encoding(name).encode("hello")
assert tiktoken.get_encoding("cl100k_base").encode("hello world") == [15339, 1917]
assert tiktoken.get_encoding("qwen").encode("hello")
assert {"gpt2", "qwen"} <= set(tiktoken.list_encoding_names())
assert isinstance(tiktoken.registry.ENCODING_CONSTRUCTORS, dict)
"""


def test_constructors_set_by_a_program():
    """Tests the workaround for frozen programs, in which plugins cannot be found."""
    run(NO_NETWORK + "bpe_engine.install()\n" + FROZEN)


def run_without_tiktoken(program: str, tmp_path: Path) -> None:
    """Runs a program in an environment in which only this package is installed."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "bpe_engine").symlink_to(Path(bpe_engine.__file__).parent)
    program = f"sys.path.append({str(site)!r})\n" + textwrap.dedent(program)
    run(program, options=("-I", "-S"))


posix = pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")


@posix
def test_without_tiktoken(tmp_path):
    run_without_tiktoken(
        "import bpe_engine\nbpe_engine.install()\n"
        + FROZEN
        + textwrap.dedent(
            """
            from importlib import metadata, util
            assert metadata.version("tiktoken") == metadata.version("TikToken") == "0.14.0"
            assert metadata.packages_distributions()["tiktoken"] == ["tiktoken"]
            assert [d.version for d in metadata.distributions() if d.metadata["Name"] == "tiktoken"]
            assert util.find_spec("tiktoken") and util.find_spec("tiktoken_ext.openai_public")
            public = tiktoken_ext.openai_public
            assert public.ENDOFTEXT == "<|endoftext|>"
            made = tiktoken.Encoding(**public.cl100k_base())
            assert made.encode("hello world") == [15339, 1917]
            name = "tiktoken_ext.nonsense"
            assert error_of(lambda: __import__(name)).name == name
            """
        ),
        tmp_path,
    )


@posix
def test_nothing_is_replaced_before_install(tmp_path):
    run_without_tiktoken(
        """
        import bpe_engine
        from importlib import metadata
        for module in ("tiktoken", "tiktoken_ext", "tiktoken_ext.openai_public"):
            assert isinstance(error_of(lambda: __import__(module)), ModuleNotFoundError)
        error = error_of(lambda: metadata.version("tiktoken"))
        assert isinstance(error, metadata.PackageNotFoundError)
        assert not [d for d in metadata.distributions() if d.metadata["Name"] == "tiktoken"]
        """,
        tmp_path,
    )


@posix
def test_plugins_without_tiktoken(plugins, tmp_path):
    """Plugins are found even if their folder is added to the path later."""
    path = plugins(my_plugin=PLUGIN % {"name": "plugged"})
    run_without_tiktoken(
        f"""
        import bpe_engine
        bpe_engine.install()
        import tiktoken_ext.openai_public
        sys.path.append({path!r})
        import tiktoken_ext.my_plugin
        assert bpe_engine.list_encoding_names()[-1] == "plugged"
        assert bpe_engine.get_encoding("plugged").encode("aa") == [0, 0]
        """,
        tmp_path,
    )


def test_an_installed_tiktoken_keeps_its_version():
    run(
        """
        from importlib import metadata
        before = metadata.version("tiktoken")
        import bpe_engine
        bpe_engine.install()
        assert metadata.version("tiktoken") == before
        names = [d.metadata["Name"] for d in metadata.distributions()]
        assert names.count("tiktoken") == 1
        import tiktoken_ext.openai_public
        assert "bpe_engine" not in tiktoken_ext.openai_public.__name__
        """
    )


@pytest.mark.parametrize("name", [name for name in BUILTIN if not name.startswith("qwen")])
def test_replaced_plugin_has_the_same_arguments(name):
    from tiktoken_ext import openai_public as theirs

    from bpe_engine._alias import openai_public as ours

    assert list(ours.ENCODING_CONSTRUCTORS) == list(theirs.ENCODING_CONSTRUCTORS)
    public = {name for name in vars(theirs) if not name.startswith("_")}
    assert public - {"load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"} <= vars(ours).keys()
    made, expected = getattr(ours, name)(), oracle(name)
    assert made["pat_str"] == expected._pat_str
    assert made["mergeable_ranks"] == expected._mergeable_ranks
    assert made["special_tokens"] == expected._special_tokens
