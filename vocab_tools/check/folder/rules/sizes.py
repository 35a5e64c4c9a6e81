"""Rules about the size of the vocabulary beside that of the model's embedding table."""

from __future__ import annotations

from ....text import plural
from ...findings import Found, Outcome
from ..folder_rules import FOLDER_RULES
from ..model_folder import ModelFolder


def _rows(folder: ModelFolder) -> int | None:
    """Returns the number of rows of the embedding table; None if the config does not say."""
    config = folder.json("config.json")
    for part in (config, config.get("text_config")):
        if isinstance(part, dict) and type(part.get("vocab_size")) is int:
            return int(part["vocab_size"])
    return None


def _ids(folder: ModelFolder) -> dict[int, str]:
    """Returns the largest ids plus one, and the first source that has each."""
    found: dict[int, str] = {}
    for source in folder.sources:
        found.setdefault(source.size, source.name)
    return found


@FOLDER_RULES.rule(
    "error",
    "ids without a row in the embedding table",
    needs=["tokenizer", "config"],
)
def vocab_too_large(folder: ModelFolder) -> Outcome:
    """An id beyond the embedding table is an error when the model runs, or reads something else.

    Do: Extend the table (`extend_embeddings`), or correct `vocab_size`.
    """
    rows = _rows(folder)
    over = {size: name for size, name in _ids(folder).items() if rows is not None and size > rows}
    if rows is None or not over:
        return []
    lines = [
        f"the largest id of {name} is {size - 1}, and config.json has {rows:,} rows"
        for size, name in over.items()
    ]
    return Found(lines, count=max(over) - rows)


@FOLDER_RULES.rule(
    "info",
    "rows of the embedding table without a token",
    needs=["tokenizer", "config"],
)
def rows_unused(folder: ModelFolder) -> Outcome:
    """Tables are padded for speed. An untrained row can be sampled, and has no text.

    Do: Nothing, or mask these ids when sampling.
    """
    rows, size = _rows(folder), max(_ids(folder))
    if rows is None or size >= rows:
        return []
    count = rows - size
    line = f"config.json has {rows:,} rows, and ids end at {size - 1}: {plural(count, 'row')} more"
    return Found([line], count=count)
