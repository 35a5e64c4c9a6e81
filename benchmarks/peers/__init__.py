"""Adapters for the compared tokenizers, and the reference ids.

engines.py    one adapter per engine; a missing operation is None
reference.py  the reference ids for every result
digest.py     a hash of ids that is the same for all containers
"""
