"""The look of HTML reports: `page` has the parts of a page, `charts` and `plots` draw.

For `bpe_engine.corpus` and `vocab_tools`.
"""
