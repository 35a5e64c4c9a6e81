"""Benchmark cases, and their texts.

cases.py       the cases as declarations
inputs.py      the texts that a case passes to an engine
corpora.py     the texts: default texts made on any machine, or a folder of the user
hostile.py     inputs that make tokenizers slow
encodings.py   pattern and special tokens for a rank file
"""
