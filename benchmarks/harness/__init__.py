"""What runs the cases.

run.py       the program: arguments, all engines in turn, the goals
compare.py   the same for two builds of this project
runner.py    tasks, worker processes, medians, ratios
worker.py    one process: one engine, one case, one round
measures.py  what is done with an engine and a text inside the clock
goals.py     the ratios that are asked of this project
render.py    the tables of the manual
pages.py     tables between the markers of a page
"""
