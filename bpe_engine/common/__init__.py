"""Helpers that several modules share: atomic writes, hints, tensors."""
