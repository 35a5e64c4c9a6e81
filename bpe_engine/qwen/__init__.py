"""`QwenTokenizer`: replaces the tokenizer class that comes with Qwen-7B."""

from .tokenizer import QwenTokenizer

__all__ = ["QwenTokenizer"]
