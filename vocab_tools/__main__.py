"""Runs the command ``vocab-tools`` for ``python -m vocab_tools``."""

from .cli import main

if __name__ == "__main__":
    main()
