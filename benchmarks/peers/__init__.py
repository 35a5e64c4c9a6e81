"""Adapters for the compared tokenizers, and the reference ids.

engines.py    one adapter per engine; None for missing operations
reference.py  the reference ids for every result
digest.py     a hash over ids, the same for all containers
"""
