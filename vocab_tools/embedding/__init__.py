"""Adds rows for new tokens to a model's embedding table."""
