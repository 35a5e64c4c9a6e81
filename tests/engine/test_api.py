"""Compares names, arguments and defaults with tiktoken's, and lists additions."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pathlib
import subprocess
import sys
import types
from unittest import mock

import numpy as np
import pytest
import tiktoken
import tiktoken.core
import tiktoken.load
import tiktoken.model
import tiktoken.registry
from oracles import ENCODINGS

import bpe_engine

MODULES = ["core", "load", "model", "registry"]


def public_functions(module: types.ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__.startswith("tiktoken.")
    ]


def parameters(function: object) -> list[tuple[str, object, object]]:
    signature = inspect.signature(function)
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


# Additional parameters after tiktoken's, keyword-only and with a default.
ADDED = {
    "Encoding": ["normalization"],
    "__init__": ["normalization"],
    "encode_to_numpy": ["num_threads"],
    "read_file": ["max_bytes"],
    "read_file_cached": ["max_bytes"],
    "load_tiktoken_bpe": ["max_bytes"],
    "data_gym_to_mergeable_bpe_ranks": ["max_bytes"],
}


def assert_added(extra: list[tuple[str, object, object]], names: list[str]) -> None:
    assert [name for name, _, _ in extra] == names
    for _, kind, default in extra:
        assert kind is inspect.Parameter.KEYWORD_ONLY
        assert default is not inspect.Parameter.empty


@pytest.mark.parametrize("module", ["", *MODULES])
def test_functions(module):
    theirs = importlib.import_module(f"tiktoken.{module}".rstrip("."))
    ours = importlib.import_module(f"bpe_engine.{module}".rstrip("."))
    names = public_functions(theirs)
    assert names
    for name in names:
        expected, found = parameters(getattr(theirs, name)), parameters(getattr(ours, name))
        assert found[: len(expected)] == expected, name
        assert_added(found[len(expected) :], ADDED.get(name, []))


ENCODING_NAMES = [
    name
    for name in vars(tiktoken.Encoding)
    if not name.startswith("__") or name in ("__init__", "__repr__")
]


# Native methods that have no Python wrapper.
NATIVE = [
    "encode",
    "encode_ordinary",
    "encode_to_numpy",
    "encode_with_unstable",
    "encode_single_token",
    "decode",
    "decode_bytes",
    "decode_single_token_bytes",
    "decode_tokens_bytes",
    "decode_with_offsets",
    "token_byte_values",
    "_encode_single_piece",
    "_encode_bytes",
]


@pytest.mark.parametrize("name", ENCODING_NAMES)
def test_encoding(name):
    theirs = inspect.getattr_static(tiktoken.Encoding, name)
    ours = inspect.getattr_static(bpe_engine.Encoding, name)
    if name != "special_tokens_set":  # A property that type checkers see as an attribute.
        assert type(ours) is (types.MethodDescriptorType if name in NATIVE else type(theirs))
    if inspect.isfunction(theirs):
        # Parameters after `self`, which is positional-only in native methods.
        theirs, ours = parameters(theirs)[1:], parameters(ours)[1:]
        if name in NATIVE:
            # The signature of a native method cannot show an empty set.
            theirs = [(name, kind, () if d == set() else d) for name, kind, d in theirs]
        if name == "encode_to_numpy":
            # None selects the class's default handling, as in `encode`.
            theirs = [
                (name, kind, None if name.endswith("special") else d) for name, kind, d in theirs
            ]
        assert ours[: len(theirs)] == theirs
        assert_added(ours[len(theirs) :], ADDED.get(name, []))


def test_the_number_of_public_names():
    assert len([name for name in dir(bpe_engine.Encoding) if not name.startswith("_")]) <= 47


def test_native_class():
    from tiktoken._tiktoken import CoreBPE as Theirs

    for name in dir(Theirs):
        if not name.startswith("__"):
            theirs = list(inspect.signature(getattr(Theirs, name)).parameters)
            ours = inspect.signature(getattr(bpe_engine._tiktoken.CoreBPE, name)).parameters
            assert list(ours)[: len(theirs)] == theirs
            for extra in list(ours)[len(theirs) :]:
                assert ours[extra].default is None


def test_instance_attributes():
    theirs = tiktoken.Encoding("x", pat_str=".", mergeable_ranks={b"a": 0}, special_tokens={"b": 1})
    ours = bpe_engine.Encoding("x", pat_str=".", mergeable_ranks={b"a": 0}, special_tokens={"b": 1})
    assert set(vars(theirs)) <= set(vars(ours))
    for name in set(vars(theirs)) - {"_core_bpe"}:
        assert vars(ours)[name] == vars(theirs)[name]


def test_modules_are_imported_when_asked_for():
    code = (
        "import sys, bpe_engine\n"
        "late = {'load', 'tokenizer', 'hf', 'ragged', 'columns', 'reference', 'vocabulary'}\n"
        "assert not {f'bpe_engine.{name}' for name in late} & set(sys.modules)\n"
        "from bpe_engine import load\n"
        "assert bpe_engine.load is load and bpe_engine.load_encoding is load.load_encoding\n"
        "import bpe_engine.hf, bpe_engine.prompt as prompt\n"
        "assert {'Tokenizer', 'hf', 'prompt', 'load', 'load_encoding'} <= {*dir(bpe_engine)}\n"
        "assert {'render_chat', 'render_template', 'FORMATS'} <= {*dir(prompt)}\n"
        "assert 'patch_transformers' in dir(bpe_engine.hf)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import bpe_engine; bpe_engine.hf.Tokenizer, bpe_engine.prompt.render_chat"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_exports():
    assert all(hasattr(bpe_engine, name) for name in bpe_engine.__all__)
    assert set(bpe_engine.__all__) <= set(dir(bpe_engine))
    assert bpe_engine.list_encoding_names() == [*ENCODINGS, "qwen2.5", "qwen3"]


def test_models():
    assert bpe_engine.model.MODEL_TO_ENCODING == tiktoken.model.MODEL_TO_ENCODING
    prefixes = bpe_engine.model.MODEL_PREFIX_TO_ENCODING
    assert list(prefixes.items()) == list(tiktoken.model.MODEL_PREFIX_TO_ENCODING.items())
    names = [*tiktoken.model.MODEL_TO_ENCODING, *(f"{p}2024" for p in prefixes), "gpt-4-0314"]
    for name in names:
        expected = tiktoken.encoding_name_for_model(name)
        assert bpe_engine.encoding_name_for_model(name) == expected
        assert bpe_engine.encoding_for_model(name).name == expected


def test_return_types(gpt2):
    assert type(gpt2.encode("a b")) is list
    assert all(type(id) is int for id in gpt2.encode("a b"))
    array = gpt2.encode_to_numpy("a b")
    assert type(array) is np.ndarray
    assert array.dtype == np.uint32
    assert gpt2.encode_to_numpy("").shape == (0,)
    stable, completions = gpt2.encode_with_unstable("hello fan")
    assert type(stable) is list
    assert type(completions) is list
    assert all(type(sequence) is list for sequence in completions)
    assert type(gpt2.decode_bytes([1])) is bytes
    assert type(gpt2.special_tokens_set) is set
    assert type(gpt2.token_byte_values()) is list


def test_numpy_arrays_belong_to_the_caller(gpt2):
    """Arrays are writable, and later calls do not change them."""
    first = gpt2.encode_to_numpy("hello world")
    first += 1
    assert first.tolist() == [31374, 996]
    assert gpt2.encode_to_numpy("hello world").tolist() == [31373, 995]
    arrays = [gpt2.encode_to_numpy(f"number {i}") for i in range(100)]
    assert [gpt2.decode(array) for array in arrays] == [f"number {i}" for i in range(100)]


def test_lists_hold_right_ints(gpt2):
    """Lists share Python's small ints, and hold new objects for larger ints."""
    big = bpe_engine.Encoding(
        "big",
        pat_str="(?s).",
        mergeable_ranks={bytes([i]): i * 10_000_000 for i in range(256)},
        special_tokens={"<|x|>": 2**32 - 1},
    )
    text = "".join(map(chr, range(128))) + "<|x|>"
    expected = [i * 10_000_000 for i in range(128)] + [2**32 - 1]
    for _ in range(3):
        assert big.encode(text, allowed_special="all") == expected
    assert big.decode(expected) == text
    assert big.decode(np.array(expected, dtype=np.uint32)) == text


def test_no_leak_of_ints(gpt2):
    ids = gpt2.encode("hello world " * 1000)
    before = sys.getrefcount(ids[0])
    for _ in range(20):
        gpt2.encode("hello world " * 1000)
    after = sys.getrefcount(ids[0])
    assert after == before


def test_definition_is_public_and_read_only():
    for name in bpe_engine.list_encoding_names():
        encoding = bpe_engine.get_encoding(name)
        assert encoding.pattern == encoding._pat_str
        assert encoding.special_tokens == encoding._special_tokens
        assert encoding.mergeable_ranks == encoding._mergeable_ranks
        assert encoding.normalization == ("NFC" if name.startswith("qwen") else None)
        for names, new in ((encoding.special_tokens, "<x>"), (encoding.mergeable_ranks, b"x")):
            with pytest.raises(TypeError, match="does not support item assignment"):
                names[new] = 0
        for attribute in ("pattern", "special_tokens", "mergeable_ranks", "normalization"):
            with pytest.raises(AttributeError):
                setattr(encoding, attribute, None)


def test_constructors_describe_their_encodings():
    """An encoding made from a constructor's arguments has the same normalization and ids."""
    for name, constructor in bpe_engine.registry.ENCODING_CONSTRUCTORS.items():
        made, shared = bpe_engine.Encoding(**constructor()), bpe_engine.get_encoding(name)
        text = "e\u0301 \u212a <|endoftext|> naïve"
        assert made.normalization == shared.normalization
        assert made.encode(text, allowed_special="all") == shared.encode(
            text, allowed_special="all"
        )


def test_optional_packages_are_not_imported():
    program = (
        "import sys, bpe_engine\n"
        "bpe_engine.get_encoding('gpt2').encode('hello <|x|>')\n"
        "bpe_engine.list_encoding_names\n"
        "for name in ('numpy', 'regex', 'requests', 'blobfile', 'tiktoken', 'tiktoken_ext', 'click', 'rich'):\n"
        "    assert name not in sys.modules, name\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


PACKAGE = pathlib.Path(bpe_engine.__file__).parent
DOCUMENTED = [
    ".".join(("bpe_engine", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.stem not in ("__init__", "__main__")
]


@pytest.mark.parametrize("name", ["bpe_engine", *DOCUMENTED])
@pytest.mark.usefixtures("undo_install")
def test_docstrings(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        # The server that loads this plug-in is not installed.
        assert name.startswith("bpe_engine.serving."), error
        pytest.skip(str(error))
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_docstrings_of_native_methods():
    """Public names have docstrings in Rust; the stub has none."""
    stub = pathlib.Path(bpe_engine._core.__file__).with_name("_core.pyi").read_text()
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            assert ast.get_docstring(node) is None, node.name
    finder = doctest.DocTestFinder(recurse=False)
    tested = 0
    public = ("StreamPool", "StreamStop", "TokenTable")
    for name in ("Pipeline", "Encoding", "Tokenizer", "HfEncoding", *public):
        kind = getattr(bpe_engine._core, name)
        assert inspect.getdoc(kind), name
        for member_name, member in vars(kind).items():
            if member_name.startswith("_"):
                continue
            assert inspect.getdoc(member), (name, member_name)
            for test in finder.find(member, member_name, globs={}):
                tested += len(test.examples) > 0
                assert doctest.DocTestRunner().run(test).failed == 0, (name, member_name)
    assert tested >= 20


def test_a_subclass():
    class Mine(bpe_engine.Encoding):
        def __init__(self, suffix):
            super().__init__("m", pat_str=".", mergeable_ranks={b"a": 0}, special_tokens={"b": 1})
            self.suffix = suffix

        def encode(self, text, **options):
            return super().encode(text + self.suffix, **options)

    mine = Mine("a")
    assert mine.encode("a") == [0, 0]
    assert mine.encode("b", allowed_special={"b"}) == [1, 0]
    assert mine.encode_ordinary("a") == [0]
    mine.__init__("aa")
    assert mine.encode("a") == [0, 0, 0]


@pytest.mark.parametrize("Encoding", [bpe_engine.Encoding, tiktoken.Encoding])
def test_a_class_like_any_other(Encoding):
    class Mixin:
        def __new__(cls, *args):
            self = super().__new__(cls)
            self.made_with = args
            return self

    class Mine(Encoding, Mixin):
        def __init__(self, other):
            self.__dict__.update(other.__dict__)

    small = {"pat_str": ".", "mergeable_ranks": {b"a": 0}, "special_tokens": {"b": 1}}
    other = Encoding("x", **small)
    mine = Mine(other)
    assert mine.made_with == (other,)
    assert mine.encode("a") == mine.encode_ordinary("a") == [0]
    assert Encoding.encode(mine, "b", allowed_special="all") == [1]
    with mock.patch.object(Encoding, "encode", return_value=[7]):
        assert mine.encode("a") == [7]
    for call in (object.__new__(Encoding).encode, Encoding.__new__(Encoding).encode_ordinary):
        with pytest.raises(AttributeError, match="has no attribute '_"):
            call("a")
    with pytest.raises((TypeError, AttributeError)):
        Encoding.encode(5, "a")
    with pytest.raises(TypeError, match=r"Encoding\.encode\(\) takes . positional .* given"):
        mine.encode("a", set())
    with pytest.raises(TypeError, match=r"Encoding\.encode\(\) missing 1 required .*'text'"):
        mine.encode()
    with pytest.raises(TypeError, match=r"Encoding\.encode\(\) got an unexpected .*'special'"):
        mine.encode("a", special=())
    with pytest.raises(TypeError, match=r"Encoding\.encode_ordinary\(\) takes . positional"):
        mine.encode_ordinary("a", 1, 2)


@pytest.mark.thorough
def test_stub(tmp_path):
    """Checks the stub of the native module with mypy's stubtest."""
    pytest.importorskip("mypy")
    allowed = tmp_path / "allowed"
    # Python 3.12 added these names for the buffer protocol.
    allowed.write_text(
        "bpe_engine._core.TokenBuffer.__buffer__\nbpe_engine._core.TokenBuffer.__release_buffer__\n"
        # The signature shows `()` for a set.
        "bpe_engine._core.Encoding.encode\n"
        # At run time, the signature accepts any arguments.
        "bpe_engine._core.RowSource.__call__\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "bpe_engine._core", "--concise",
         "--ignore-unused-allowlist", "--allowlist", str(allowed)],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
