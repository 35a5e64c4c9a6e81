"""Converts tokenizers between formats, and verifies that texts keep their ids."""
