"""Converts tokenizers between formats, and verifies the result by encoding text with both."""
