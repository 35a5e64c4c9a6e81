"""Helpers of several modules: files written in one step, hints, tensors."""
