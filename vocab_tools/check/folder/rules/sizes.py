"""Rules about the size of the embedding table, and about length limits of texts."""

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
    """Returns each size (largest id plus one), with the first source of this size."""
    found: dict[int, str] = {}
    for source in folder.sources:
        found.setdefault(source.size, source.name)
    return found


@FOLDER_RULES.rule(
    "error", "ids without a row in the embedding table", needs=["tokenizer", "config"]
)
def vocab_too_large(folder: ModelFolder) -> Outcome:
    """An id beyond the embedding table makes the model fail, or read unrelated memory.

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
    "info", "rows of the embedding table without a token", needs=["tokenizer", "config"]
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


#: A `model_max_length` of this value or more means no limit.
_NO_LIMIT = int(1e20)

#: Model types that number positions from the padding id plus one.
_AFTER_PADDING = frozenset(
    "camembert data2vec-text esm ibert layoutlmv3 lilt longformer luke markuplm mpnet roberta "
    "roberta-prelayernorm xlm-roberta xlm-roberta-xl xmod".split()
)


def _limits(folder: ModelFolder) -> dict[str, int]:
    """Returns the maximum number of tokens in a text, by the file that sets the limit."""
    config = folder.json("config.json")
    inner = config.get("text_config")
    truncation = folder.json("tokenizer.json").get("truncation")
    model = {**(inner if isinstance(inner, dict) else {}), **config}
    positions = model.get("max_position_embeddings", model.get("n_positions"))
    padding = model.get("pad_token_id", 1)
    if model.get("model_type") in _AFTER_PADDING and type(positions) is type(padding) is int:
        positions -= padding + 1
    found = {
        "truncation of tokenizer.json": truncation.get("max_length")
        if isinstance(truncation, dict)
        else None,
        "sentence_bert_config.json": folder.json("sentence_bert_config.json").get("max_seq_length"),
        "config.json": positions,
    }
    return {where: number for where, number in found.items() if type(number) is int and number > 0}


def _has_learned_positions(folder: ModelFolder) -> bool:
    """Returns False for rotary positions, which may be scaled, and for generating models."""
    config = folder.json("config.json")
    heads = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
    classes = str(config.get("architectures"))
    return not any(head in classes for head in heads) and not any(
        key.startswith(("rope", "rotary")) for key in config
    )


@FOLDER_RULES.rule("warning", "texts that are cut at other lengths than the tokenizer says")
def limits_differ(folder: ModelFolder) -> Outcome:
    """`truncation=True` cuts at `model_max_length`. If another program or the model has a lower
    limit, the rest of a text is lost silently, or the model fails.

    Do: Set `model_max_length` in `tokenizer_config.json` to the smallest limit.
    """
    limits = _limits(folder)
    own = folder.json("tokenizer_config.json").get("model_max_length")
    own = own if isinstance(own, (int, float)) and own < _NO_LIMIT else None
    smallest = min(limits.values(), default=None)
    is_limited = "config.json" in limits and _has_learned_positions(folder)
    is_embedder = len(limits) > 1 or "sentence_bert_config.json" in limits or is_limited
    if smallest is None or not is_embedder or own is not None and own <= smallest:
        return []
    first = f"model_max_length of tokenizer_config.json is {'missing' if own is None else own}"
    return [first, *(f"{where} has {number}" for where, number in limits.items())]
