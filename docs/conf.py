"""Configures Sphinx: `make docs` builds the manual from docs/*.md and the docstrings.

The site loads nothing from other servers, so it can be read offline.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.ext.napoleon.docstring import GoogleDocstring

ROOT = Path(__file__).resolve().parent.parent
if not [*ROOT.glob("bpe_engine/_core*.so"), *ROOT.glob("bpe_engine/_core*.pyd")]:
    # Documents the installed package, because the sources here have no native module.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

import bpe_engine  # noqa: E402
from vocab_tools.check import explanations  # noqa: E402


def kind_of(value) -> int:
    """Returns 0 for a function, 1 for a class or a value, 2 for an error."""
    if not isinstance(value, type):
        return 0 if callable(value) else 1
    return 2 if issubclass(value, Exception) else 1


project = "bpe_engine"
release = version = bpe_engine.__version__
project_copyright = "the authors of bpe_engine"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]

# Allows attributes of pictures: `![...](...){.class}`.
myst_enable_extensions = ["attrs_inline"]
# Gives headings anchors, so that pages can link to them.
myst_heading_anchors = 3
# A `pycon` block is highlighted as Python, a `console` block as a shell session.
highlight_language = "text"

# Show inherited members (`Encoding.encode` comes from the native base class), except members of
# built-in classes.
autodoc_default_options = {
    "members": True,
    "inherited-members": "object, int, dict, list, tuple, BaseException, Exception, ValueError",
}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# A longer signature is shown with one argument per line.
maximum_signature_line_length = 80
napoleon_numpy_docstring = False

# By default, Napoleon takes the words before a colon in an attribute's docstring for a type.
GoogleDocstring._parse_attribute_docstring = lambda self: self._consume_to_end()

# Show methods without class names in a page's sidebar.
toc_object_entries_show_parents = "hide"

# The copy button copies only the input, without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"bpe_engine {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_favicon = str(ROOT / "docs" / "_static" / "favicon.svg")
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
html_copy_source = False
html_show_sphinx = False

# Search words by the page that they should find first. `index` is the start page.
SEARCH_WORDS = {
    "index": ("install", "pip install", "Windows", "macOS", "wheels"),
    "recipes/count": ("count tokens", "billing", "price", "cost", "OpenAI chat"),
    "recipes/rag": ("RAG", "retrieval", "chunks", "vector store", "Markdown"),
    "recipes/embed": ("embeddings", "embed documents", "sentence-transformers"),
    "recipes/chat": ("tool calls", "prompt injection", "forged tokens"),
    "recipes/finetune": ("loss mask", "multi-turn", "multi turn", "SFT", "fine-tuning"),
    "recipes/extend-qwen": ("new tokens", "control tokens", "embedding table", "extend Qwen"),
    "recipes/stream": ("stop strings", "streaming", "detokenizer"),
    "recipes/from-tiktoken": ("tiktoken",),
    "recipes/from-transformers": ("transformers", "AutoTokenizer"),
    "which": ("which class",),
    "guide": ("offsets", "truncate", "threads"),
    "prompts": ("chat template", "special tokens", "segments"),
    "bytes": ("token healing", "align tokenizers"),
    "tokenizer": ("padding", "packing", "batches"),
    "hf": ("Llama 3", "Llama 2", "DeepSeek", "Gemma", "Mistral", "WordPiece", "Unigram", "BERT"),
    "encodings": ("gpt-4o", "gpt-5", "gpt-oss", "models"),
    "serving-vllm": ("vLLM",),
    "serving-grammars": ("constrained decoding", "structured output", "xgrammar", "outlines"),
    "fine-tuning": ("rollouts", "reinforcement learning", "GRPO"),
    "compare": ("compare tokenizers", "fertility"),
    "notebooks": ("Jupyter", "Colab"),
    "benchmarks": ("speed", "performance"),
    "security": ("security",),
}

# Every reference in a docstring must resolve, except to types of other projects, whose
# documentation is on other servers.
nitpicky = True
nitpick_ignore_regex = [("py:class", r".*"), ("py:exc", r"jinja2\..*")]

# Imports all public names, because autodoc shows a module's attributes and some names are lazy.
# Functions come before the classes of their results, and errors last.
_reference = [
    path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")
]
for _name in re.findall(r"^\.\. automodule:: ([\w.]+)$", "".join(_reference), re.MULTILINE):
    _module = importlib.import_module(_name)
    vars(_module).update({name: getattr(_module, name) for name in _module.__all__})
    _module.__all__ = sorted(_module.__all__, key=lambda name: kind_of(getattr(_module, name)))


def check_pages(app, exception) -> None:
    """Checks that the site works offline: scripts, styles, fonts and pictures are local. Also
    checks that no attribute's sentence was split into a type and a description."""
    loads = re.compile(
        r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"https?:[^>]*>|@import[^;]*https?:"
    )
    for path in Path(app.outdir).rglob("*"):
        if path.suffix in (".html", ".css") and not exception:
            page = path.read_text(encoding="utf-8")
            if found := loads.search(page):
                raise ExtensionError(f"{path.name} loads from another server: {found[0]}")
            if 'Type<span class="colon">' in page:
                raise ExtensionError(f"{path.name} has an attribute with a field for its type")


def overview(module) -> str:
    """Returns a table of the public names of a module, with the first sentence of each
    docstring."""
    rows = []
    for name in module.__all__:
        value = getattr(module, name)
        if kind_of(value) == 1 and not isinstance(value, type):
            continue
        role = "class" if isinstance(value, type) else "func"
        role = "exc" if kind_of(value) == 2 else role
        first = re.split(r"(?<=[.:])\s|\n\n", (value.__doc__ or "").strip())[0]
        first = re.sub(r":[\w:]+:`~?([^`]*)`", r"`\1`", " ".join(first.split()))
        sentence = re.sub(r"`+([^`]*)`+", r"``\1``", first).rstrip(":")
        rows.append(f"   * - :{role}:`~{module.__name__}.{name}`\n     - {sentence}")
    head = ".. list-table::\n   :widths: 30 70\n\n"
    return head + "\n".join(rows) + "\n\n"


def add_overviews(app, name, source) -> None:
    """Inserts the overview of a module before the module's documentation."""
    if name.startswith("reference/"):
        source[0] = re.sub(
            r"^\.\. automodule:: ([\w.]+)$",
            lambda match: overview(importlib.import_module(match[1])) + match[0],
            source[0],
            flags=re.MULTILINE,
        )


def add_findings(app, name, source) -> None:
    """Adds the findings of `vocab-tools check` to their page."""
    if name == "findings":
        source[0] += explanations.sections()


def plain_signature(app, what, name, obj, options, signature, returns):
    """Removes module names and default factories from the signatures of dataclasses."""
    if not dataclasses.is_dataclass(obj) or signature is None:
        return None
    return re.sub(r"~(?:\w+\.)+", "", signature.replace("<factory>", "...")), returns


def describe(app, pagename, templatename, context, doctree) -> None:
    """Adds a page's first paragraph as its description for search engines and link previews."""
    first = next(iter(doctree.findall(nodes.paragraph)), None) if doctree else None
    if first is not None:
        text = escape(" ".join(first.astext().split())[:200], quote=True)
        title = escape(context.get("title", project), quote=True)
        context["metatags"] = context.get("metatags", "") + (
            f'<meta name="description" content="{text}">'
            f'<meta property="og:title" content="{title}">'
            f'<meta property="og:description" content="{text}">'
        )


def name_tokenizer(app, doctree) -> None:
    """Links `Tokenizer` in signatures of `bpe_engine` to the class with transformers' interface."""
    for node in doctree.findall(addnodes.pending_xref):
        if node["reftarget"] == "Tokenizer" and node.get("py:module") in (
            "bpe_engine",
            "bpe_engine.core",
        ):
            node["reftarget"] = "bpe_engine.tokenizer.Tokenizer"


def add_search_words(app, doctree) -> None:
    """Adds a page's search words to the index."""
    words = SEARCH_WORDS.get(app.env.docname, ())
    entries = [("single", word, "", "main", None) for word in words]
    doctree[0].insert(1, addnodes.index(entries=entries))


def check_search_index(app, exception) -> None:
    """Checks the search words: Sphinx drops the entries of pages that it does not rewrite."""
    index = Path(app.outdir, "searchindex.js")
    if exception or not index.exists():
        return
    found = index.read_text(encoding="utf-8")
    words = [word for page in SEARCH_WORDS.values() for word in page]
    if missing := [word for word in words if f'"{word.lower()}":[[' not in found]:
        raise ExtensionError(f"the search lacks {missing}; build with --fresh-env")


def check_search_words(app, env) -> None:
    if unknown := SEARCH_WORDS.keys() - env.found_docs:
        raise ExtensionError(f"SEARCH_WORDS has pages that do not exist: {sorted(unknown)}")


def setup(app) -> None:
    app.connect("doctree-read", add_search_words)
    app.connect("doctree-read", name_tokenizer)
    app.connect("env-check-consistency", check_search_words)
    app.connect("build-finished", check_search_index)
    app.connect("source-read", add_overviews)
    app.connect("source-read", add_findings)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("html-page-context", describe)
    app.connect("build-finished", check_pages)
