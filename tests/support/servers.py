"""Stand-ins for servers: modules with the registries and classes that the plug-ins use. They record
calls; names and signatures follow vLLM 0.33 and SGLang 0.5.23."""

from __future__ import annotations

import enum
import json
import logging
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import tokenizers

from bpe_engine.read import byte_level

CONTROLS = ["<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w"), ("u", "s"), ("us", "er")]


def write_folder(folder: Path, *, refused: bool = False, **config: Any) -> str:
    """Writes the folder of a small tokenizer, which the plug-ins refuse if `refused`."""
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    merges = [*MERGES, ("e", "r")]
    vocab = {token: id for id, token in enumerate([*letters, *(a + b for a, b in merges)])}
    bpe = tokenizers.models.BPE(vocab, merges)
    made = tokenizers.Tokenizer(bpe)
    if refused:
        # The plug-ins refuse a pattern that matches the empty string: it inserts text.
        made.normalizer = tokenizers.normalizers.Replace(tokenizers.Regex("~*"), "-")
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(CONTROLS)
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", len(vocab))]
    )
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|begin|>",
        "eos_token": "<|end|>",
        "chat_template": TEMPLATE,
        "truncation_side": "left",
        **config,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return str(folder)


def _module(monkeypatch: Any, name: str, **names: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(names)
    module.__path__ = []  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)
    return module


def _forget(monkeypatch: Any, package: str) -> None:
    """Unloads the plug-in; the test then imports it again, with the stand-in."""
    for name in [name for name in sys.modules if name.startswith(package)]:
        monkeypatch.delitem(sys.modules, name)


# ---- vLLM ----


@dataclass
class Registry:
    """A registry that maps modes to classes."""

    known: dict[str, tuple[str, str]] = field(default_factory=dict)
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def tokenizers(self) -> dict[str, tuple[str, str]]:
        return self.known

    renderers = tokenizers

    def register(self, mode: str, module: str, class_name: str) -> None:
        self.calls.append((mode, module, class_name))
        self.known[mode] = (module, class_name)


@dataclass(frozen=True)
class ChatParams:
    """Settings of a request."""

    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] = field(default_factory=lambda: {"tokenize": False})

    def get_apply_chat_template_kwargs(self) -> dict[str, Any]:
        given = {"chat_template": self.chat_template, "return_dict": False}
        return self.chat_template_kwargs | {k: v for k, v in given.items() if v is not None}


class HfRenderer:
    """vLLM's renderer for text-only prompts."""

    def __init__(self, config: Any, tokenizer: Any) -> None:
        self.config, self.model_config, self.tokenizer = config, config.model_config, tokenizer

    def get_tokenizer(self) -> Any:
        return self.tokenizer

    def render_messages(self, messages: Any, params: Any) -> tuple[Any, Any]:
        kwargs = {"tokenize": True, **params.get_apply_chat_template_kwargs()}
        raw = self.tokenizer.apply_chat_template(conversation=messages, tools=None, **kwargs)
        return messages, {"prompt_token_ids" if isinstance(raw, list) else "prompt": raw}

    async def render_messages_async(self, messages: Any, params: Any) -> tuple[Any, Any]:
        return HfRenderer.render_messages(self, messages, params)

    def _tokenize_singleton_prompt(self, prompt: Any, params: Any) -> Any:
        if "prompt_token_ids" in prompt:
            return prompt
        special = params.add_special_tokens
        ids = self.tokenizer(prompt["prompt"], add_special_tokens=special)["input_ids"]
        return {**prompt, "prompt_token_ids": ids}

    async def _tokenize_singleton_prompt_async(self, prompt: Any, params: Any) -> Any:
        return HfRenderer._tokenize_singleton_prompt(self, prompt, params)


class OwnRenderer(HfRenderer):
    """A renderer for one of vLLM's other modes."""


def install_vllm(monkeypatch: Any, architecture: str = "LlamaForCausalLM") -> SimpleNamespace:
    """Installs the stand-in for vLLM. Returns its registries and its log."""
    from transformers import AutoTokenizer

    _forget(monkeypatch, "bpe_engine.serving.vllm")
    tokenizers = Registry({"hf": ("", ""), "deepseek_v4": ("", "")})
    renderers = Registry({"hf": ("", ""), "deepseek_v4": ("", "")})
    renderers.load_renderer_cls = {"hf": HfRenderer, "deepseek_v4": OwnRenderer}.__getitem__  # type: ignore[attr-defined]
    loaded: list[tuple[str, dict[str, Any]]] = []

    def cached(tokenizer: Any) -> Any:
        """Caches the vocabulary in a class, like `vllm.tokenizers.hf.get_cached_tokenizer`."""
        import copy

        other = copy.copy(tokenizer)
        vocab = tokenizer.get_vocab()

        class Cached(type(tokenizer)):  # type: ignore[misc]
            def get_vocab(self) -> Any:
                return vocab

            def __reduce__(self) -> Any:
                return cached, (tokenizer,)

        other.__class__ = Cached
        return other

    def get_tokenizer(name: Any, *args: Any, tokenizer_mode: str = "auto", **kwargs: Any) -> Any:
        loaded.append((tokenizer_mode, kwargs))
        return cached(AutoTokenizer.from_pretrained(name))

    def cached_tokenizer_from_config(config: Any) -> Any:
        return get_tokenizer(config.tokenizer)

    def init_logger(name: str) -> Any:
        logger: Any = logging.getLogger(name)
        logger.warning_once = logger.warning
        return logger

    def resolve_tokenizer_args(name: Any, *, tokenizer_mode: str, **kwargs: Any) -> Any:
        return "hf", name, (), kwargs

    _module(monkeypatch, "vllm")
    _module(monkeypatch, "vllm.logger", init_logger=init_logger)
    _module(
        monkeypatch,
        "vllm.tokenizers",
        get_tokenizer=get_tokenizer,
        cached_tokenizer_from_config=cached_tokenizer_from_config,
    )
    registry = _module(
        monkeypatch,
        "vllm.tokenizers.registry",
        TokenizerRegistry=tokenizers,
        resolve_tokenizer_args=resolve_tokenizer_args,
    )
    sys.modules["vllm.tokenizers"].registry = registry  # type: ignore[attr-defined]
    _module(monkeypatch, "vllm.renderers")
    _module(monkeypatch, "vllm.renderers.registry", RENDERER_REGISTRY=renderers)
    _module(monkeypatch, "vllm.renderers.hf", HfRenderer=HfRenderer)
    _module(monkeypatch, "vllm.transformers_utils")
    config = SimpleNamespace(architectures=[architecture])
    _module(
        monkeypatch, "vllm.transformers_utils.config", get_config=lambda *args, **kwargs: config
    )
    return SimpleNamespace(tokenizers=tokenizers, renderers=renderers, loaded=loaded)


def vllm_config(name: str) -> Any:
    """Returns the configuration that vLLM passes to a renderer."""
    model = SimpleNamespace(tokenizer=name, trust_remote_code=False, tokenizer_revision=None)
    return SimpleNamespace(model_config=model)


# ---- SGLang ----


class HookType(enum.Enum):
    """The time at which a hook runs."""

    BEFORE = "before"
    AFTER = "after"


def install_sglang(monkeypatch: Any) -> list[tuple[str, Any, HookType]]:
    """Installs the stand-in for SGLang. Returns the registered hooks."""
    _forget(monkeypatch, "bpe_engine.serving.sglang")
    hooks: list[tuple[str, Any, HookType]] = []

    class HookRegistry:
        """Hooks by the path of the hooked function."""

        _hooks: dict[str, list[tuple[HookType, Any, None]]] = {}

        @classmethod
        def register(cls, target: str, hook: Any, hook_type: HookType = HookType.AFTER) -> None:
            cls._hooks.setdefault(target, []).append((hook_type, hook, None))
            hooks.append((target, hook, hook_type))

    for name in ("sglang", "sglang.srt", "sglang.srt.plugins"):
        _module(monkeypatch, name)
    name = "sglang.srt.plugins.hook_registry"
    _module(monkeypatch, name, HookRegistry=HookRegistry, HookType=HookType)
    return hooks
