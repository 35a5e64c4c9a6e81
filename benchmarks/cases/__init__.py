"""What is measured.

cases.py       the cases as declarations
inputs.py      which texts a case gives to an engine
corpora.py     the texts: default ones made on any machine, or a folder of your own
hostile.py     inputs that make tokenizers slow
collisions.py  words chosen to fall on one place of a hash table
encodings.py   what a rank file does not say: the pattern and the special tokens
"""
