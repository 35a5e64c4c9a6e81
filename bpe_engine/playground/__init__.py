"""The local page of `bpe-engine playground`: shows how text becomes tokens.

`server` serves the page and refuses strangers, `api` turns requests into JSON by way of `texts` (the
tokens of a text), `words` (merges) and `prompts`; `vocabularies` opens encodings.
`page.html` is the page.
"""
