"""Tests the logits processor for transformers. Without torch, arrays replace tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seeds import seeded

import bpe_engine
from bpe_engine.abilities.healing import Followed
from bpe_engine.serving.transformers import HealingLogitsProcessor

GPT2 = bpe_engine.get_encoding("gpt2")


class Tensor(np.ndarray):
    def clone(self) -> Any:
        return self.copy()


def tensor(values: Any) -> Any:
    """Returns a torch tensor, or an array with the necessary methods."""
    try:
        import torch
    except ImportError:
        return np.asarray(values).view(Tensor)
    return torch.as_tensor(values)


def permitted(scores: Any) -> list[set[int]]:
    return [set(np.flatnonzero(np.isfinite(np.asarray(row))).tolist()) for row in scores]


def test_rows_heal_on_their_own():
    healed = [GPT2.heal("say hello wor"), GPT2.heal("say hello ")]
    length = 2
    processor = HealingLogitsProcessor(healed, prompt_length=length)
    start = [one.ids[:length] for one in healed]
    scores = tensor(np.zeros((2, 50304), np.float32))
    first = processor(tensor(np.array(start)), scores)
    assert permitted(first) == [set(one.allowed_ids().tolist()) for one in healed]
    assert np.isfinite(np.asarray(scores)).all()
    after = np.array([[*start[0], 995], [*start[1], 220]])
    assert permitted(processor(tensor(after), scores)) == [set(range(50304))] * 2
    half = np.array([[*start[0], 266], [*start[1], 995]])
    left = healed[0].fork()
    left.advance(266)
    found = permitted(processor(tensor(half), scores))
    assert found == [set(left.allowed_ids().tolist()), set(range(50304))]
    # Beams: two rows per prompt.
    beams = np.array([[*start[0], 995], [*start[0], 266], [*start[1], 995], [*start[1], 220]])
    rows = permitted(processor(tensor(beams), tensor(np.zeros((4, 50304), np.float32))))
    assert rows[1] == found[0] and all(len(rows[row]) == 50304 for row in (0, 2, 3))


def test_wrong_rows():
    processor = HealingLogitsProcessor([GPT2.heal("wor")] * 2, prompt_length=0)
    with pytest.raises(ValueError, match="2 healed prompts for 3 rows"):
        processor(tensor(np.zeros((3, 0), int)), tensor(np.zeros((3, 50257))))


def test_a_beam_that_was_filled_up_stays_without_scores():
    healed = GPT2.heal("say hello wor")
    processor = HealingLogitsProcessor([healed], prompt_length=2)
    rows = tensor(np.array([[*healed.ids, 0, 995], [*healed.ids, 995, 0]]))
    found = permitted(processor(rows, tensor(np.zeros((2, 50257), np.float32))))
    assert found == [set(), set(range(50257))]


@pytest.mark.parametrize("length", [-1, 0, 1, 3])
def test_a_wrong_prompt_length(length: int):
    healed = GPT2.heal("say hello wor")
    with pytest.raises(ValueError, match="prompt_length"):
        processor = HealingLogitsProcessor([healed], prompt_length=length)
        processor(tensor(np.array([healed.ids])), tensor(np.zeros((1, 50257), np.float32)))


@pytest.mark.parametrize("shape", [(50257,), (1, 1, 50257), (2, 50257)])
def test_wrong_scores(shape: tuple[int, ...]):
    healed = GPT2.heal("say hello wor")
    processor = HealingLogitsProcessor(healed, prompt_length=2)
    with pytest.raises(ValueError, match="scores of the shape"):
        processor(tensor(np.array([healed.ids])), tensor(np.zeros(shape, np.float32)))


def test_rows_that_go_on_and_rows_that_change_places():
    """The state of each row covers all of its ids, even if beams move between rows."""
    prompts = [GPT2.heal("say hello wor"), GPT2.heal("say hello 'straw")]
    processor = HealingLogitsProcessor(prompts, prompt_length=2)
    rng, rows, scores = seeded("rows"), [[]] * 6, tensor(np.zeros((6, 50257), np.float32))
    for _ in range(12):
        ids = np.array([[*prompts[row // 3].ids[:2], *rows[row]] for row in range(6)])
        expected = [Followed(prompts[row // 3]).after(rows[row]) for row in range(6)]
        allowed = [set(healed.allowed_ids().tolist()) for healed in expected]
        assert permitted(processor(tensor(ids), scores)) == allowed
        rows = [[*rows[row], rng.choice(sorted(allowed[row]))] for row in range(6)]
        rows = [rows[row - row % 3 + rng.randrange(3)] for row in range(6)]
