"""This package in tiktoken's place: three ways, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


def run(program: str, *path: str) -> None:
    program = f"import sys; sys.path[:0] = {list(map(str, path))!r}\n" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
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
assert tiktoken._tiktoken is bpe_engine._core

gpt2 = tiktoken.get_encoding("gpt2")
assert ENCODINGS["gpt2"] is gpt2 is bpe_engine.get_encoding("gpt2")
assert gpt2.encode("hello world") == [31373, 995]
assert pickle.loads(pickle.dumps(gpt2)).encode("hello") == [31373]
try:
    import tiktoken.nonsense
except ModuleNotFoundError as error:
    assert error.name == "tiktoken.nonsense"
else:
    raise AssertionError
"""


def test_import_as():
    run(
        """
        import bpe_engine as tiktoken
        assert tiktoken.encoding_for_model("gpt-4o").encode("hello world") == [24912, 2375]
        assert tiktoken.core.Encoding is tiktoken.Encoding
        assert "tiktoken" not in sys.modules
        """
    )


def test_sys_modules():
    run("import bpe_engine\nsys.modules['tiktoken'] = bpe_engine\n" + USES)


def test_install():
    run("import bpe_engine\nbpe_engine.install()\nbpe_engine.install()\n" + USES)


def test_install_over_the_other():
    run(
        "import tiktoken as theirs\nimport bpe_engine\nbpe_engine.install()\n"
        "assert theirs is not bpe_engine\n" + USES
    )


def test_a_library_that_imports_tiktoken(tmp_path):
    (tmp_path / "library.py").write_text(
        "import tiktoken\n"
        "from tiktoken.model import MODEL_TO_ENCODING\n"
        "def count(text): return len(tiktoken.get_encoding('gpt2').encode(text))\n"
    )
    run(
        """
        import bpe_engine
        bpe_engine.install()
        import library
        assert library.count("hello world") == 2
        import importlib.util
        assert importlib.util.find_spec("tiktoken") is not None
        """,
        tmp_path,
    )


def test_the_other_is_left_alone():
    """Importing this package does not touch a real tiktoken."""
    run(
        """
        import bpe_engine
        import tiktoken, tiktoken.core, tiktoken.load
        assert tiktoken is not bpe_engine
        assert tiktoken.Encoding is not bpe_engine.Encoding
        assert tiktoken.core.__name__ == "tiktoken.core"
        assert bpe_engine.core.__name__ == "bpe_engine.core"
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
    """A plugin's encodings come after the package's, also beside tiktoken's own plugin."""
    path = plugins(my_plugin=PLUGIN % {"name": "plugged"})
    for prepare in ("", "sys.modules['tiktoken'] = bpe_engine\n"):
        run(
            NO_NETWORK
            + prepare
            + textwrap.dedent(
                """
                names = bpe_engine.list_encoding_names()
                assert names[7:] == ["qwen", "plugged"], names
                assert bpe_engine.get_encoding("plugged").encode("aa") == [0, 0]
                assert bpe_engine.get_encoding("plugged").n_vocab == 2
                assert bpe_engine.get_encoding("plugged") is bpe_engine.get_encoding("plugged")
                for name in names[:8]:
                    assert bpe_engine.get_encoding(name).encode("hi")
                from bpe_engine import registry
                assert set(registry.ENCODING_CONSTRUCTORS) == set(names)
                """
            ),
            path,
        )


def test_constructors_are_callable():
    run(
        """
        import bpe_engine
        from bpe_engine import registry
        bpe_engine.list_encoding_names()
        for name, constructor in registry.ENCODING_CONSTRUCTORS.items():
            if name != "qwen":  # normalization is no argument of Encoding
                made = bpe_engine.Encoding(**constructor())
                assert made.encode("hi there") == bpe_engine.get_encoding(name).encode("hi there")
        """
    )


def test_plugins_that_collide(plugins):
    path = plugins(one=PLUGIN % {"name": "same"}, two=PLUGIN % {"name": "same"})
    run(
        """
        import bpe_engine
        for _ in range(2):
            try:
                bpe_engine.list_encoding_names()
            except ValueError as error:
                message = "Duplicate encoding name same in tiktoken plugin tiktoken_ext.two"
                assert str(error) == message, error
            else:
                raise AssertionError
        assert bpe_engine.get_encoding("gpt2").encode("hello") == [31373]
        """,
        path,
    )


def test_a_plugin_that_takes_a_name_of_the_package(plugins):
    path = plugins(thief=PLUGIN % {"name": "gpt2"})
    run(
        """
        import bpe_engine
        try:
            bpe_engine.list_encoding_names()
        except ValueError as error:
            message = "Duplicate encoding name gpt2 in tiktoken plugin tiktoken_ext.thief"
            assert str(error) == message
        else:
            raise AssertionError
        """,
        path,
    )


def test_a_plugin_without_constructors(plugins):
    path = plugins(empty="")
    run(
        """
        import bpe_engine
        try:
            bpe_engine.get_encoding("nope")
        except ValueError as error:
            assert "tiktoken_ext.empty does not define ENCODING_CONSTRUCTORS" in str(error)
        else:
            raise AssertionError
        """,
        path,
    )
