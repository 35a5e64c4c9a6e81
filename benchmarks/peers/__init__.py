"""Adapters for the compared tokenizers, and the reference ids.

engines.py    one adapter per engine; None where an engine lacks a thing
reference.py  the ids that every result is compared with
digest.py     a hash over ids, the same for all containers
"""
