"""Benchmark cases, and the texts they run on.

cases.py       the cases as declarations
inputs.py      the texts that a case passes to an engine
corpora.py     the texts: default ones made on any machine, or a folder of your own
hostile.py     inputs that make tokenizers slow
collisions.py  words chosen to collide in a hash table
encodings.py   what a rank file lacks: the pattern and the special tokens
"""
