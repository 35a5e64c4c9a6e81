"""Recognizes and opens tokenizers: names, files and folders."""
