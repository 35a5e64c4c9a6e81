"""Extends a vocabulary: proposes words, learns their merges, and numbers the new tokens."""
