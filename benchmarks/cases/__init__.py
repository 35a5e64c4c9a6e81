"""Benchmark cases, and their texts.

cases.py       the cases as declarations
inputs.py      the texts that a case passes to an engine
corpora.py     the texts: default texts made on any machine, or a user's folder
hostile.py     inputs that make tokenizers slow
encodings.py   the pattern and special tokens of each encoding
"""
