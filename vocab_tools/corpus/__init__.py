"""Reads corpora, counts their pieces, and measures extensions on them."""
