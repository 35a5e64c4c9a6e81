"""Cases x engines: how fast and how exact each public tokenizer is, in one table.

The rooms, in the order of the flow:

    encodings.py   what a rank file does not say: the pattern and the special tokens
    corpora.py     the texts: default ones made on any machine, or a folder of your own
    hostile.py     inputs that make tokenizers slow
    collisions.py  words chosen to fall on one place of a hash table
    engines.py     one adapter per engine; None where an engine lacks a thing
    cases.py       the cases as declarations
    measures.py    what is done with an engine and a text inside the clock
    worker.py      one process: one engine, one case, one round
    run.py         engines in turn, rounds, medians, the goals
    goals.py       the ratios that are asked of this project
    render.py      the table of the README
    growth.py      1 MB and 8 MB side by side, on its own

Run it with ``python -m benchmarks.run --quick``.
"""
