"""The class for TensorRT-LLM: ``--custom_tokenizer bpe_engine.serving.tensorrt_llm.Tokenizer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_llm.logger import logger

from .. import __version__
from .._core import UnsupportedTokenizer
from ..hf.transformers import as_transformers
from .served import load_with_ours

if TYPE_CHECKING:

    class TransformersTokenizer:
        """Stands in where a type checker does not find TensorRT-LLM."""

        from_pretrained: Any

else:
    from tensorrt_llm.tokenizer import TransformersTokenizer

__all__ = ["Tokenizer"]

#: The arguments with which TensorRT-LLM loads tokenizers itself.
_DEFAULTS = {"legacy": False, "padding_side": "left", "truncation_side": "left", "use_fast": True}


class Tokenizer(TransformersTokenizer):
    """A tokenizer of transformers around ours.

    Where ours cannot be exact, the tokenizer is that of transformers, and one line in the log says
    why.
    """

    @classmethod
    def from_pretrained(cls, pretrained_model_dir: Any, **kwargs: Any) -> Any:
        """Loads a tokenizer. Arguments are those of ``AutoTokenizer.from_pretrained``."""
        load = super().from_pretrained
        options = {**_DEFAULTS, **kwargs}
        loaded = load_with_ours(lambda: load(pretrained_model_dir, **options))
        try:
            inner = as_transformers(loaded.tokenizer)._tokenizer
        except (UnsupportedTokenizer, TypeError, ValueError) as error:
            logger.warning(
                f"bpe_engine does not serve {pretrained_model_dir}, transformers' tokenizer does: "
                f"{error}"
            )
        else:
            logger.info(f"bpe_engine {__version__} serves {pretrained_model_dir}: {inner!r}")
        return loaded
