"""Abilities of every tokenizer: chunks, alignment, healing, streams, arrays, drawings of tokens."""
