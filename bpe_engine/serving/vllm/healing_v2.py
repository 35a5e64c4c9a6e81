"""`HealingLogitsProcessor`: heals prompts in vLLM's model runner V2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...healing import Followed
from ._heal import Healer, check_params

if TYPE_CHECKING:
    LogitsProcessor = object
else:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor

__all__ = ["HealingLogitsProcessor"]


class HealingLogitsProcessor(LogitsProcessor):
    """Lets only tokens come next that heal the prompt of their request.

    For ``--logits-processors bpe_engine.serving.vllm.healing_v2:HealingLogitsProcessor``. Requests have
    the arguments of `heal_arguments`; those without stay as they are.
    """

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raises ValueError for arguments that `heal_arguments` does not make."""
        check_params(sampling_params)

    def __init__(self, vllm_config: Any, req_states: Any):
        self._healer = Healer(vllm_config)
        self._states = req_states
        # By the slot of a request.
        self._prompts: dict[int, Followed] = {}

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Takes a request into a slot; returns False if it heals nothing."""
        self._prompts.pop(req_idx, None)
        followed = self._healer.followed(sampling_params)
        if followed is not None:
            self._prompts[req_idx] = followed
        return followed is not None

    def apply(self, logits: Any, ctx: Any) -> Any:
        """Returns the logits, changed in place."""
        if not self._prompts.keys() & set(ctx.idx_mapping_np.tolist()):
            return logits
        drafts = ctx.input_ids.tolist()
        places = zip(ctx.expanded_idx_mapping.tolist(), ctx.expanded_local_pos.tolist())
        for row, (slot, place) in enumerate(places):
            if slot in self._prompts:
                ids = [*self._committed(slot), *drafts[row + 1 - place : row + 1]]
                self._healer.mask(self._prompts[slot], ids, logits[row])
        return logits

    def _committed(self, slot: int) -> list[int]:
        """Returns the ids after the prompt of a slot."""
        start, end = int(self._states.prompt_len.np[slot]), int(self._states.total_len.gpu[slot])
        ids: list[int] = self._states.all_token_ids.gpu[slot, start:end].tolist()
        return ids
