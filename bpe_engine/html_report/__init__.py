"""Reports: `page` has the parts of a report and writes HTML and Markdown, `plots` draws figures.

For `bpe_engine.corpus` and `vocab_tools`.
"""
