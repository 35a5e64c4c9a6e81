"""The logits processors for vLLM, with a stand-in and arrays for tensors, and with the real package.

`Batch` changes as the persistent batch of vLLM does; each row is compared with its request.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from seeds import seeded
from servers import BatchUpdate, MoveDirectionality, install_vllm, vllm_config, write_folder

from bpe_engine import hf
from bpe_engine.healing import Followed, Healed
from bpe_engine.serving.vllm import heal_arguments

pytest.importorskip("transformers")

PROMPTS = ["hello wor", "hell", "us", "he", "hello ", "a \u00e9 h", "w", ""]
#: Columns of logits beyond the vocabulary.
PADDING = 7


@dataclass
class Request:
    """A request, and the ids after its prompt."""

    params: Any
    healed: Healed | None
    ids: list[int] = field(default_factory=list)

    def allowed(self, width: int) -> set[int]:
        left = None if self.healed is None else Followed(self.healed).after(self.ids)
        return set(range(width) if left is None or left.done else left.allowed_ids().tolist())


class Batch:
    """Requests in rows, which come, go and move at random."""

    def __init__(self, file: hf.Tokenizer, make_params: Callable[..., Any], note: str):
        self.file, self.rows = file, list[Request]()
        self._make_params = make_params
        self._rng = seeded(f"vllm healing {note}")

    def request(self) -> Request:
        if self._rng.random() < 0.3:
            return Request(self._make_params(), None)
        healed = self.file.heal(self._rng.choice(PROMPTS))
        return Request(self._make_params(extra_args=heal_arguments(healed)), healed)

    def change(self, directions: Any) -> tuple[list[int], list[Any], list[Any]]:
        """Returns what was removed, added and moved, in vLLM's terms."""
        rng = self._rng
        empty = sorted(row for row in range(len(self.rows)) if rng.random() < 0.25)
        removed, added, moved = [], [], []
        for _ in range(rng.randrange(4)):
            request = self.request()
            if empty:
                row = empty.pop(0)
                self.rows[row] = request
            else:
                row = len(self.rows)
                self.rows.append(request)
            added.append((row, request.params, [1, 2], request.ids))
        while empty:
            last = len(self.rows) - 1
            if empty[-1] != last:
                row = empty.pop(0)
                self.rows[row] = self.rows[last]
                moved.append((last, row, directions.UNIDIRECTIONAL))
            else:
                removed.append(empty.pop())
            self.rows.pop()
        if len(self.rows) > 1 and rng.random() < 0.3:
            one, other = rng.sample(range(len(self.rows)), 2)
            self.rows[one], self.rows[other] = self.rows[other], self.rows[one]
            moved.append((one, other, directions.SWAP))
        return removed, added, moved

    def sample(self, width: int) -> None:
        """Adds an id to each request that may come next."""
        for request in self.rows:
            request.ids.append(self._rng.choice(sorted(request.allowed(width))))


def permitted(logits: Any) -> list[set[int]]:
    return [set(np.flatnonzero(np.isfinite(np.asarray(row))).tolist()) for row in logits]


def check_batches(
    processor: Any, batch: Batch, update: Callable[..., Any], zeros: Callable[..., Any]
) -> None:
    healing, width = 0, len(batch.file.token_table()) + PADDING
    for _ in range(300):
        removed, added, moved = batch.change(update.directions)  # type: ignore[attr-defined]
        processor.update_state(update(len(batch.rows), removed, added, moved))
        if batch.rows:
            logits = processor.apply(zeros(len(batch.rows), width))
            expected = [request.allowed(width) for request in batch.rows]
            assert permitted(logits) == expected
            healing += sum(len(row) < width for row in expected)
            batch.sample(width)
        processor.update_state(None)
    assert healing > 100


# ---- A stand-in, and arrays ----


def array(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def params(**fields: Any) -> Any:
    return SimpleNamespace(**{"extra_args": None, **fields})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return install_vllm(monkeypatch)


@pytest.fixture
def name(tmp_path: Path) -> str:
    return write_folder(tmp_path / "model")


def file_of(name: str) -> hf.Tokenizer:
    return hf.Tokenizer.from_file(f"{name}/tokenizer.json")


def stand_in(*changes: Any) -> BatchUpdate | None:
    return BatchUpdate(*changes) if any(changes[1:]) else None


stand_in.directions = MoveDirectionality  # type: ignore[attr-defined]


def test_rows_follow_their_requests(server: SimpleNamespace, name: str) -> None:
    from bpe_engine.serving.vllm.healing import HealingLogitsProcessor

    processor = HealingLogitsProcessor(vllm_config(name), "cpu", False)
    assert not processor.is_argmax_invariant()
    check_batches(processor, Batch(file_of(name), params, "v1"), stand_in, array)


def test_arguments(server: SimpleNamespace, name: str) -> None:
    from bpe_engine.serving.vllm.healing import HealingLogitsProcessor

    check = HealingLogitsProcessor.validate_params
    for good in (None, {}, {"other": 1}, {"heal": []}, {"heal": ["20776f72"]}):
        check(params(extra_args=good))
    for bad in ("20", ["x"], 7, [7], [["20"]], None):
        with pytest.raises(ValueError, match="'heal' must be a list of bytes in hexadecimal"):
            check(params(extra_args={"heal": bad}))


def test_a_token_that_another_processor_let_through(
    server: SimpleNamespace, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    from bpe_engine.serving.vllm.healing import HealingLogitsProcessor

    file = file_of(name)
    processor = HealingLogitsProcessor(vllm_config(name), "cpu", False)
    healed = file.heal("hello wor")
    ids = file.encode("!").ids[1:]
    processor.update_state(
        stand_in(1, [], [(0, params(extra_args=heal_arguments(healed)), None, ids)], [])
    )
    assert np.isfinite(processor.apply(array(1, 300))).all()
    assert "stops healing a prompt: the token" in caplog.text


def test_a_tokenizer_without_a_file(
    server: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bpe_engine.serving.vllm.healing import HealingLogitsProcessor

    monkeypatch.setattr(
        sys.modules["vllm.tokenizers"], "cached_tokenizer_from_config", lambda _: None
    )
    with pytest.raises(ValueError, match="needs a tokenizer.json, which NoneType has not"):
        HealingLogitsProcessor(vllm_config("none"), "cpu", False)


class OnDevice(np.ndarray):
    """An array as a tensor of the runner V2."""

    @property
    def np(self) -> Any:
        return self

    gpu = np


def on_device(values: Any) -> Any:
    return np.asarray(values).view(OnDevice)


def context(slots: list[int], drafts: list[list[int]], last: list[int]) -> Any:
    """The layout of rows: for each slot one, and one for each draft."""
    rows = [(slot, place) for slot, some in zip(slots, drafts) for place in range(len(some) + 1)]
    fed = [id for first, some in zip(last, drafts) for id in (first, *some)]
    return SimpleNamespace(
        expanded_idx_mapping=on_device([slot for slot, _ in rows]),
        expanded_local_pos=on_device([place for _, place in rows]),
        idx_mapping_np=np.asarray(slots),
        input_ids=on_device(fed),
    )


def test_the_other_runner(server: SimpleNamespace, name: str) -> None:
    from bpe_engine.serving.vllm.healing_v2 import HealingLogitsProcessor

    file, rng = file_of(name), seeded("vllm healing v2")
    width, slots, room = len(file.token_table()) + PADDING, 6, 40
    states = SimpleNamespace(
        all_token_ids=on_device(np.zeros((slots, room), int)),
        prompt_len=on_device([3] * slots),
        total_len=on_device([3] * slots),
    )
    processor = HealingLogitsProcessor(vllm_config(name), states)
    batch, healing = Batch(file, params, "v2"), 0
    for _ in range(150):
        requests = [batch.request() for _ in range(slots)]
        for slot, request in enumerate(requests):
            assert processor.add_request(slot, request.params) == bool(
                request.healed and request.healed.rest
            )
            states.total_len[slot] = 3
        for _ in range(3):
            chosen = rng.sample(range(slots), rng.randrange(1, slots))
            drafts = [drafted(requests[slot], rng, width) for slot in chosen]
            last = [states.all_token_ids[slot, states.total_len[slot] - 1] for slot in chosen]
            ctx = context(chosen, drafts, last)
            logits = processor.apply(array(len(ctx.input_ids), width), ctx)
            expected = []
            for slot, some in zip(chosen, drafts):
                for place in range(len(some) + 1):
                    request = requests[slot]
                    ids = [*request.ids, *some[:place]]
                    expected.append(Request(request.params, request.healed, ids).allowed(width))
            assert permitted(logits) == expected
            healing += sum(len(row) < width for row in expected)
            for slot in chosen:
                id = rng.choice(sorted(requests[slot].allowed(width)))
                requests[slot].ids.append(id)
                states.all_token_ids[slot, states.total_len[slot]] = id
                states.total_len[slot] += 1
    assert healing > 100


def drafted(request: Request, rng: Any, width: int) -> list[int]:
    """Returns ids that a draft model may have chosen."""
    ids: list[int] = []
    for _ in range(rng.randrange(3)):
        so_far = Request(request.params, request.healed, [*request.ids, *ids])
        ids.append(rng.choice(sorted(so_far.allowed(width))))
    return ids


# ---- The real package ----


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("torch")
    vllm = pytest.importorskip("vllm", reason="vLLM is not installed")
    if not hasattr(vllm, "__version__"):
        pytest.skip("vLLM is not installed")
    for part in ("_heal", "healing", "healing_v2"):
        monkeypatch.delitem(sys.modules, f"bpe_engine.serving.vllm.{part}", raising=False)
    return vllm


def config_of(name: str) -> Any:
    model = SimpleNamespace(
        tokenizer=name, model=name, runner_type="generate", tokenizer_mode="hf", tokenizer_revision=None,
        trust_remote_code=False, skip_tokenizer_init=False, hf_config=None,
    )  # fmt: skip
    return SimpleNamespace(model_config=model)


def test_the_real_batch(real: Any, name: str) -> None:
    import torch
    from vllm import SamplingParams
    from vllm.v1.sample.logits_processor import (
        BatchUpdateBuilder,
        LogitsProcessor,
        LogitsProcessors,
    )
    from vllm.v1.sample.logits_processor import MoveDirectionality as Theirs

    from bpe_engine.serving.vllm.healing import HealingLogitsProcessor

    def update(size: int, removed: list[int], added: list[Any], moved: list[Any]) -> Any:
        builder = BatchUpdateBuilder()
        for row in removed:
            builder.removed_append(row)
        builder.added, builder.moved = added, moved
        return builder.get_and_reset(size)

    update.directions = Theirs  # type: ignore[attr-defined]
    assert issubclass(HealingLogitsProcessor, LogitsProcessor)
    processor = HealingLogitsProcessor(config_of(name), torch.device("cpu"), False)
    assert LogitsProcessors([processor]).non_argmax_invariant == [processor]
    check_batches(
        processor,
        Batch(file_of(name), SamplingParams, "v1"),
        update,
        lambda *shape: torch.zeros(shape),
    )
    with pytest.raises(ValueError, match="hexadecimal"):
        HealingLogitsProcessor.validate_params(SamplingParams(extra_args={"heal": "x"}))


def test_the_real_loaders(real: Any) -> None:
    from vllm.v1.sample.logits_processor import _load_logitsprocs_by_fqcns
    from vllm.v1.worker.gpu.sample.logits_processor.loader import _load_v2_logitsprocs_by_fqcns

    for load, module in (
        (_load_logitsprocs_by_fqcns, "healing"),
        (_load_v2_logitsprocs_by_fqcns, "healing_v2"),
    ):
        (found,) = load([f"bpe_engine.serving.vllm.{module}:HealingLogitsProcessor"])
        assert found.__name__ == "HealingLogitsProcessor"
