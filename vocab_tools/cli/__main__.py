"""Runs the command ``vocab-tools`` for ``python -m vocab_tools.cli``."""

from . import main

main()
