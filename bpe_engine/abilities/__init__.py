"""Methods of every tokenizer: chunks, alignment, healing, streams, arrays, display of tokens."""
