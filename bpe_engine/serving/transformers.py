"""`HealingLogitsProcessor`: heals prompts in transformers' `generate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._arguments import whole_number
from ..abilities.healing import Followed, Healed, refused

__all__ = ["HealingLogitsProcessor"]


class HealingLogitsProcessor:
    """A transformers logits processor that permits only tokens that heal the prompt.

    Give ``healed.ids`` as the prompts, padded on the left. Sequences can be sampled, or reordered
    by a beam search: a row starts over unless its ids extend the last call's ids by one.

    Args:
        healed: The healed prompt of each input row, or one prompt for all rows.
        prompt_length: The number of prompt columns.

    >>> import bpe_engine
    >>> healed = bpe_engine.get_encoding("gpt2").heal("hello wor")
    >>> processor = HealingLogitsProcessor([healed], prompt_length=len(healed.ids))
    """

    def __init__(self, healed: Healed | Sequence[Healed], prompt_length: int):
        self._healed = [healed] if isinstance(healed, Healed) else [one.fork() for one in healed]
        self._prompt_length = whole_number("prompt_length", prompt_length)
        self._rows: list[Followed] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Returns the scores, with minus infinity for forbidden next tokens. A row that continued
        with a forbidden token, as in a beam filled with tokens of probability 0, is all minus
        infinity.

        Raises:
            ValueError: The number of rows is not a multiple of the number of prompts or of rows of
                scores, or the ids after `prompt_length` do not follow the prompt.
        """
        if len(scores.shape) != 2 or len(input_ids) != len(scores):
            raise ValueError(
                f"scores of the shape {tuple(scores.shape)} are not a row for each of the "
                f"{len(input_ids)} sequences"
            )
        rows, width = scores.shape
        if not self._healed or rows % len(self._healed):
            raise ValueError(f"there are {len(self._healed)} healed prompts for {rows} rows")
        if input_ids.shape[1] < self._prompt_length:
            raise ValueError(
                f"the rows have {input_ids.shape[1]} columns, fewer than the {self._prompt_length} of "
                "prompt_length"
            )
        each = rows // len(self._healed)
        if len(self._rows) != rows:
            self._rows = [Followed(self._healed[row // each]) for row in range(rows)]
        scores, wrong = scores.clone(), 0
        for row, ids in enumerate(input_ids[:, self._prompt_length :].tolist()):
            wrong = wrong if row % each else 0
            try:
                healed = self._rows[row].after(ids)
            except ValueError as error:
                wrong += not self._rows[row].taken
                if wrong == each:
                    raise ValueError(
                        f"no sequence of the prompt {row // each} follows it after prompt_length "
                        f"{self._prompt_length}, which must be the number of columns of the prompts: "
                        f"{error}"
                    ) from None
                scores[row] = -float("inf")
                continue
            if not healed.done:
                scores[row][refused(healed, width)] = -float("inf")
        return scores
