"""Adds rows for new tokens to the embedding table of a model."""
