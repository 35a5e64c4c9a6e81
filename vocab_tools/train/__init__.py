"""Trains vocabularies: byte-level BPE, from text or from counts of several machines, and all models."""
