"""Helpers for several modules: atomic writes, hints, tensors."""
