"""Trains tokenizers of every model; byte-level BPE also from counts of several machines."""
