"""``python -m vocab_tools`` is the command ``vocab-tools``."""

from .cli import main

if __name__ == "__main__":
    main()
