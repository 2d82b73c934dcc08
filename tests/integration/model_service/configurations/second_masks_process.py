"""Masks from frames in vLLM's second model runner, against its own bitmasks and its own kernel. A process of its own, since that is to be
interpreted: `python -m tests.integration.model_service.configurations.second_masks_process SEED…` plays random batches, with drafts,
whole and shared out among ranks, and ends well if both leave the same logits, and refuse the same drafts. It prints how many rows were
masked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from model_service.masks.frames.encoding import encode

VOCABULARY, REQUESTS, DRAFTS = 70, 6, 3
BATCHES = 8


class Batch:
    """As the runner has it, some requests of it with a grammar: `bits` are their masks, in the order of `masked`; `known` as in
    `MaskParts`."""

    def __init__(self, chance: np.random.Generator) -> None:
        self.ids = [f"r{number}" for number in range(chance.integers(1, REQUESTS + 1))]
        self.drafts = chance.integers(0, DRAFTS + 1, len(self.ids)) * chance.integers(0, 2)
        self.masked = [self.ids[place] for place in chance.permutation(len(self.ids))[: chance.integers(1, len(self.ids) + 1)]]
        self.counts = [1 + int(self.drafts[self.ids.index(name)]) for name in self.masked]
        self.known = {name: int(chance.integers(0, count)) for name, count in zip(self.masked, self.counts, strict=True) if count > 1}
        words = -(-VOCABULARY // 32)
        bits = chance.integers(0, 2**32, (sum(self.counts), words), dtype=np.uint64).astype(np.uint32).view(np.int32)
        bits[:, -1] &= (1 << VOCABULARY % 32) - 1
        self.bits = bits

    def input_batch(self, of: list[str]) -> Any:
        """Of some of its requests, in their order."""
        import torch

        drafts = np.array([self.drafts[self.ids.index(name)] for name in of], dtype=np.int32)
        ends = np.concatenate([[0], np.cumsum(drafts + 1)]).astype(np.int32)
        positions = np.concatenate([np.arange(count + 1) for count in drafts]) if of else np.zeros(0)
        return SimpleNamespace(
            req_ids=of,
            num_reqs=len(of),
            num_draft_tokens=int(drafts.sum()),
            num_draft_tokens_per_req=drafts if self.drafts.any() else None,
            cu_num_logits_np=ends,
            cu_num_logits=torch.from_numpy(ends),
            expanded_local_pos=torch.from_numpy(positions.astype(np.int32)),
        )

    def parts(self) -> Any:
        """Two frames of them: the broadcaster's, and what is filled beside it."""
        from model_service.engine.workers.mask_output import MaskPart, MaskParts

        cut = len(self.masked) // 2
        rows = sum(self.counts[:cut])
        halves = [(self.masked[:cut], self.counts[:cut], self.bits[:rows]), (self.masked[cut:], self.counts[cut:], self.bits[rows:])]
        return MaskParts(tuple(MaskPart(ids, counts, encode(bits, VOCABULARY)) for ids, counts, bits in halves if ids), self.known)


def play(seed: int) -> Iterator[int]:
    """How many rows each batch has masked."""
    import torch
    from vllm.v1.core.sched.output import GrammarOutput
    from vllm.v1.worker.gpu.structured_outputs import StructuredOutputsWorker

    from model_service.engine.workers.second_masks import hook_masks
    from model_service.engine.workers.worker_masks import WorkerMasks

    chance, most = np.random.default_rng(seed), REQUESTS * (1 + DRAFTS)
    theirs = StructuredOutputsWorker(most, VOCABULARY, torch.device("cpu"), 1 + DRAFTS, 1)
    state = SimpleNamespace(num_new_sampled_tokens_per_step=1)
    ours = hook_masks(SimpleNamespace(structured_outputs_worker=theirs, model_state=state), WorkerMasks(most))
    for _ in range(BATCHES):
        batch = Batch(chance)
        wanted = GrammarOutput(batch.masked, batch.bits, [batch.known.get(name, 0) for name in batch.masked])
        _compare(theirs, ours, batch, batch.ids, wanted, ours.announced(batch.parts()))
        for rank in range(2):
            here = batch.ids[rank::2]
            _compare(theirs, ours, batch, here, _shared(wanted, batch, here), _shared(ours.announced(batch.parts()), batch, here))
        ours.over()
        yield len(batch.bits)


def _shared(masks: Any, batch: Batch, here: list[str]) -> Any:
    from vllm.v1.worker.gpu.sample.batch_shard import _shard_grammar_output

    return _shard_grammar_output(masks, batch.input_batch(batch.ids), here)


def _compare(theirs: Any, ours: Any, batch: Batch, here: list[str], wanted: Any, announced: Any) -> None:
    """What the runner's `sample` does with masks, for logits of the requests here."""
    import torch
    from vllm.v1.worker.gpu.structured_outputs import grammar_invalid_drafts

    assert (wanted is None) == (announced is None)
    if wanted is None:
        return
    there = batch.input_batch(here)
    logits = [torch.zeros(int(there.cu_num_logits_np[-1]), VOCABULARY) for _ in range(2)]
    for worker, told, of in zip((theirs, ours), (wanted, announced), logits, strict=True):
        worker.apply_grammar_bitmask(of, there, told.structured_output_request_ids, told.grammar_bitmask)
    assert torch.equal(*logits)
    assert bool(logits[0].isinf().any())
    refused = [
        grammar_invalid_drafts(there, told.structured_output_request_ids, told.num_acceptable_drafts) for told in (wanted, announced)
    ]
    assert (refused[0] is None) == (refused[1] is None)
    assert refused[0] is None or torch.equal(*refused)


def main(seeds: list[int]) -> None:
    import vllm.v1.worker.cpu.shm  # noqa: F401  # pinned memory and streams, for a processor

    print(sum(rows for seed in seeds for rows in play(seed)))


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]])
