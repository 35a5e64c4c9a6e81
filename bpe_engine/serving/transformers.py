"""`HealingLogitsProcessor`: heals prompts in `generate` of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..healing import Healed, after, refused

__all__ = ["HealingLogitsProcessor"]


class HealingLogitsProcessor:
    """A logits processor of transformers that lets only tokens come next that heal their prompt.

    Give ``healed.ids`` as the prompts, padded on the left. Sequences may be sampled, or reordered by a
    beam search: the state is that of the ids themselves.

    Args:
        healed: The healed prompt of each row of the inputs.
        prompt_length: The number of columns of the inputs.

    >>> import bpe_engine
    >>> healed = bpe_engine.get_encoding("gpt2").heal("hello wor")
    >>> processor = HealingLogitsProcessor([healed], prompt_length=len(healed.ids))
    """

    def __init__(self, healed: Sequence[Healed], prompt_length: int):
        self._healed = [one.fork() for one in healed]
        self._prompt_length = prompt_length

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Returns the scores, those of tokens that may not come next as minus infinity. A row that went
        on with such a token, as a beam search fills up its beams with tokens of probability 0, has
        no other scores.

        Raises:
            ValueError: The rows are not a multiple of the prompts.
        """
        rows, width = scores.shape
        if not self._healed or rows % len(self._healed):
            raise ValueError(f"there are {len(self._healed)} healed prompts for {rows} rows")
        each = rows // len(self._healed)
        scores = scores.clone()
        for row in range(rows):
            try:
                healed = after(self._healed[row // each], input_ids[row][self._prompt_length :])
            except ValueError:
                scores[row] = -float("inf")
                continue
            if not healed.done:
                scores[row][refused(healed, width)] = -float("inf")
        return scores
