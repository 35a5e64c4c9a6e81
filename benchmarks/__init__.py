"""Benchmarks: measures how fast and how exact each public tokenizer is, case by case.

    cases/    the cases as declarations, and the texts they run on
    peers/    one adapter per engine, and the ids that every result is compared with
    harness/  the processes, the clock, medians, tables

Programs: ``run`` (all engines), ``compare`` (two builds of this project), ``ablation`` (the engine
without each of its mechanisms), ``prompts``, ``serving``, ``propose`` and ``hostile_search``. docs/benchmarks.md
describes them and shows results.
"""
