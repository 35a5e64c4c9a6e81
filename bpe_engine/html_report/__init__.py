"""Renders reports as HTML and Markdown, for `bpe_engine.corpus` and `vocab_tools`."""
