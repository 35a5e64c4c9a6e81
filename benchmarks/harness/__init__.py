"""The benchmark runner: starts worker processes, times operations and renders tables.

runner.py    tasks, worker processes, medians, ratios
worker.py    one process: one engine, one case, one round
measures.py  the timed operations, and the clock of each
render.py    tables for the manual, and CSV
"""
