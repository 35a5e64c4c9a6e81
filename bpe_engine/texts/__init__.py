"""Listing, opening and reading files of text.

`listed` has the files of a corpus, `access` opens and unpacks them. `json_row` reads one line of
JSON, `json_lines` a file of such lines, `tables` Parquet, Arrow and CSV, `documents` plain text
between separators, `plain_text` plain text of any length. `inputs` joins these readers for token
files, `reading` for counting, training and comparing.
"""
