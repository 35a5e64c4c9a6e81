"""The tokenizer mode that vLLM chooses automatically."""

from __future__ import annotations

from typing import Any

__all__ = ["ARCHITECTURES", "mode_of_model"]

#: Modes that vLLM chooses by model architecture. Other models get "hf", or "mistral" if the folder
#: has Mistral's files.
ARCHITECTURES = {
    "Alpamayo2Super": "alpamayo2_super",
    "MoonshotKimiaForCausalLM": "kimi_audio",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV4ForConditionalGeneration": "deepseek_v4",
    "DeepseekV41ForCausalLM": "deepseek_v41",
    "InklingForCausalLM": "inkling",
    "InklingForConditionalGeneration": "inkling",
}


def mode_of_model(name: Any, **arguments: Any) -> str:
    """Returns the tokenizer mode that vLLM chooses for a model with ``--tokenizer-mode auto``.

    Args:
        name: The name or folder of the model's tokenizer.
        arguments: Arguments of `vllm.tokenizers.get_tokenizer`.
    """
    from vllm.tokenizers import registry
    from vllm.transformers_utils.config import get_config

    try:
        config: Any = get_config(
            name,
            trust_remote_code=arguments.get("trust_remote_code", False),
            revision=arguments.get("revision"),
        )
    except (ValueError, OSError):
        config = None  # The folder has a tokenizer but no model configuration.
    for architecture in getattr(config, "architectures", None) or ():
        mode = ARCHITECTURES.get(architecture)
        if mode in registry.TokenizerRegistry.tokenizers:
            return str(mode)
    given = {key: arguments[key] for key in ("revision", "token") if key in arguments}
    return str(registry.resolve_tokenizer_args(name, tokenizer_mode="auto", **given)[0])
