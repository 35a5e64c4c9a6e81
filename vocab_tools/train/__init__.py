"""Trains tokenizers of every model, and byte-level BPE also from counts of several machines."""
