"""Listing, opening and reading files of text.

`listed` has the files of a corpus, `access` opens and unpacks them. `json_row` reads one line of JSON,
`json_lines` many of them, `tables` Parquet, Arrow and CSV, `documents` plain text between separators,
`stretches` plain text of any length. `inputs` puts them together for token files, `reading` for
counting, training and comparing.
"""
