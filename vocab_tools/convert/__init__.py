"""Converts tokenizers between formats, and verifies that the ids of texts stay the same."""
