"""`HealingLogitsProcessor`: heals prompts in `generate` of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..healing import Healed

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
        """Returns the scores, those of tokens that may not come next as minus infinity.

        Raises:
            ValueError: The rows are not a multiple of the prompts, or a row went on with a token that
                may not come next.
        """
        rows, width = scores.shape
        if not self._healed or rows % len(self._healed):
            raise ValueError(f"there are {len(self._healed)} healed prompts for {rows} rows")
        each = rows // len(self._healed)
        scores = scores.clone()
        for row in range(rows):
            healed = self._after(row // each, input_ids[row])
            if not healed.done:
                scores[row][refused(healed, width)] = -float("inf")
        return scores

    def _after(self, prompt: int, ids: Any) -> Healed:
        """Returns the prompt after the ids that follow it."""
        healed = self._healed[prompt].fork()
        for id in ids[self._prompt_length :]:
            if healed.done:
                break
            healed.advance(int(id))
        return healed


def refused(healed: Healed, width: int) -> Any:
    """Returns a mask of bools with the ids that may not come next, for a row of `width` scores."""
    words = np.zeros(max(healed.words, -(-width // 32)), np.int32)
    bits = np.unpackbits(healed.allowed(words).astype("<i4").view(np.uint8), bitorder="little")
    return bits[:width] == 0
