"""Benchmarks: measures the speed and exactness of each public tokenizer, case by case.

    cases/    declarations of the cases, and their texts
    peers/    one adapter per engine, and the reference ids for every result
    harness/  the processes, the clock, medians, tables

Programs: ``run`` (all engines), ``compare`` (two builds of this project) and ``ablation`` (the
engine without each of its mechanisms). docs/benchmarks.md describes the programs and shows results.
"""
