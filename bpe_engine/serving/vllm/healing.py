"""`HealingLogitsProcessor`: heals prompts in vLLM's model runner V1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm.v1.sample.logits_processor import MoveDirectionality

from ...healing import Followed
from ._heal import Healer, check_params

if TYPE_CHECKING:
    LogitsProcessor = object
else:
    from vllm.v1.sample.logits_processor import LogitsProcessor

__all__ = ["HealingLogitsProcessor"]


class HealingLogitsProcessor(LogitsProcessor):
    """Lets only tokens come next that heal the prompt of their request.

    For ``--logits-processors bpe_engine.serving.vllm.healing:HealingLogitsProcessor``, with
    ``VLLM_USE_V2_MODEL_RUNNER=0`` where vLLM would choose the other runner. Requests have the arguments
    of `heal_arguments`; those without stay as they are.
    """

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raises ValueError for arguments that `heal_arguments` does not make."""
        check_params(sampling_params)

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool):
        self._healer = Healer(vllm_config)
        # By the row of a request: its prompt, and the ids after it, to which vLLM adds.
        self._rows: dict[int, tuple[Followed, list[int]]] = {}

    def is_argmax_invariant(self) -> bool:
        """Returns False: the best token may be one that may not come next."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follows the requests through the rows of the batch."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._rows.pop(row, None)
        for row, params, _, ids in batch_update.added:
            self._put(row, self._entry(params, ids))
        for row, to, direction in batch_update.moved:
            entry, other = self._rows.pop(row, None), self._rows.pop(to, None)
            self._put(to, entry)
            if direction == MoveDirectionality.SWAP:
                self._put(row, other)

    def _entry(self, params: Any, ids: list[int]) -> tuple[Followed, list[int]] | None:
        followed = self._healer.followed(params)
        return None if followed is None else (followed, ids)

    def _put(self, row: int, entry: tuple[Followed, list[int]] | None) -> None:
        self._rows.pop(row, None)
        if entry is not None:
            self._rows[row] = entry

    def apply(self, logits: Any) -> Any:
        """Returns the logits, changed in place."""
        for row, (followed, ids) in self._rows.items():
            self._healer.mask(followed, ids, logits[row])
        return logits
