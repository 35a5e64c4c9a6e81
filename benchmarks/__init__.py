"""Cases x engines: how fast and how exact each public tokenizer is, in one table.

    cases/    what is measured: the cases as declarations, and the texts they run on
    peers/    one adapter per engine, and the ids that every result is compared with
    harness/  the processes, the clock, medians, goals, tables, two builds side by side

Programs: ``run`` (all engines), ``compare`` (two builds of this project), ``growth`` (is the time
linear?), ``vocab_learn`` (learning merges). docs/benchmarks.md describes them and shows results.
"""
