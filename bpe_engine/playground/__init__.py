"""The local page of `bpe-engine playground`: shows how text becomes tokens.

`server` serves the page to requests with the secret, `api` answers JSON requests through `texts`
(the tokens of a text), `words` (merges) and `prompts`; `vocabularies` opens encodings. `page.html`
is the page.
"""
