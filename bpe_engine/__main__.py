"""Runs the command `bpe-engine` for ``python -m bpe_engine``."""

from .cli import main

if __name__ == "__main__":
    main()
