"""Extends a vocabulary: proposes words, learns their merges, and assigns ids to new tokens."""
