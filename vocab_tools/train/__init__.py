"""Trains tokenizers of every model, also from counts made on several machines."""
