"""``python -m vocab_tools.cli``."""

from . import main

main()
