"""Lists, opens and reads files of text.

`listed` finds the files of a corpus, `access` opens and decompresses them. `json_row` reads one
line of JSON, `json_lines` a file of such lines, `tables` Parquet, Arrow and CSV, `documents` plain
text between separators, `plain_text` plain text of any length. `inputs` combines these readers for
token files, `reading` for counting, training and comparing.
"""
