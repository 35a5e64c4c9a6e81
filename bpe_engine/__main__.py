"""`python -m bpe_engine` is the command `bpe-engine`."""

from .cli import main

if __name__ == "__main__":
    main()
