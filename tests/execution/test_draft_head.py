"""Drafting heads: tokens a step, what checking and the head's own passes cost, and what it keeps in memory."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.batch import Batch
from orrery.execution.draft_head import head_memory, head_of, usual_acceptances, with_drafting
from orrery.execution.layout import DraftHead
from orrery.execution.memory import memory_of
from orrery.execution.shard import cache_of
from orrery.execution.speculation import of_head
from orrery.execution.step import step


def _head(method: str = "eagle", *chances: float) -> DraftHead:
    return DraftHead(method=method, acceptance_fracs=chances or (0.8, 0.5, 0.5))


def _decodes(sequences: int, context: int = 1000) -> Batch:
    none = np.zeros(1, np.int64)
    return Batch(
        prompt_sequences=none,
        prompt_tokens=none,
        prompt_context_tokens=none,
        decode_sequences=np.array([sequences]),
        decode_context_tokens=np.array([context]),
    )


def test_tokens_of_a_step_by_hand(deploy):
    """1 + 0.8 + 0.8 x 0.5 + 0.8 x 0.5 x 0.5 = 2.4; without guesses that hold, the model's own token."""
    assert _head().tokens_per_step == pytest.approx(2.4)
    assert _head("eagle", 0.0, 0.9).tokens_per_step == 1.0
    assert _head("eagle", 1.0, 1.0, 1.0).tokens_per_step == 4.0
    speculation = of_head(replace(deploy(), draft_head=_head()))
    assert speculation is not None


def test_usual_chances_fall_by_position():
    """0.85, then 0.85 of that each: 0.85, 0.7225, 0.614125."""
    assert usual_acceptances("mtp", 3) == pytest.approx((0.85, 0.7225, 0.614125))


def test_a_step_checks_every_guess_and_makes_the_next_ones(deploy):
    """Ten sequences, three guesses: 40 tokens through the model and once through the head, then 10 twice more."""
    deployment = replace(deploy(), draft_head=_head())
    plain, checking = _decodes(10), replace(_decodes(10), guesses=3)
    assert checking.num_tokens[0] == checking.num_rows[0] == 40
    small = head_of(deployment)
    expected_s = step(deployment, checking).time_s + step(small, checking).time_s + 2 * step(small, plain).time_s
    found = with_drafting(deployment, plain)
    assert found.time_s == pytest.approx(expected_s)
    assert sum(p.time_s for p in found.parts) == pytest.approx(found.time_s)
    assert found.time_s[0] > step(deployment, plain).time_s[0]


def test_without_a_head_a_step_is_a_step(deploy):
    found, expected = with_drafting(deploy(), _decodes(8)), step(deploy(), _decodes(8))
    assert found.time_s[0] == expected.time_s[0]
    assert len(found.parts) == len(expected.parts)


def test_weights_of_an_eagle_head_by_hand(deploy):
    """Llama 3.1 8B: a projection of 2 x 4096 by 4096, one layer (queries, keys, values, output, three of the MLP, two
    norms), in 16 bits, no output head; and the keys and values of one layer: 2 x 8 x 128 x 2 bytes."""
    deployment = replace(deploy(model="llama-3.1-8b"), draft_head=_head())
    layer = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336 + 2 * 4096
    found = head_memory(deployment)
    assert found is not None
    assert found.weight_bytes == pytest.approx(2 * (2 * 4096 * 4096 + layer))
    assert found.cache.bytes_per_token == 2 * 8 * 128 * 2
    with_head, without = memory_of(deployment), memory_of(replace(deployment, draft_head=None))
    assert with_head.weights_bytes - without.weights_bytes == pytest.approx(found.weight_bytes)
    assert with_head.cache.bytes_per_token == cache_of(deployment).bytes_per_token + 4096


def test_checking_reads_more_experts(deploy):
    deployment = replace(deploy(model="qwen3-30b-a3b"), draft_head=_head())

    def expert_bytes(batch: Batch) -> float:
        return sum(p.work(0)[1] for p in step(deployment, batch).parts if p.name == "experts")

    assert expert_bytes(replace(_decodes(2), guesses=3)) > 1.5 * expert_bytes(_decodes(2))
    assert expert_bytes(replace(_decodes(2), guesses=3)) == pytest.approx(expert_bytes(_decodes(8)), rel=0.02)


def test_an_mtp_head_needs_a_model_that_ships_one(deploy):
    with pytest.raises(ScenarioError, match="ships no MTP layer"):
        head_of(replace(deploy(model="llama-3.1-8b"), draft_head=_head("mtp", 0.8)))


def test_a_model_whose_drafting_layers_are_dense_has_a_dense_head(deploy):
    """MiMo-V2-Flash's see a window and have no experts; DeepSeek-V3's are its last layer, with experts."""
    flash = head_of(replace(deploy("mimo-v2-flash"), draft_head=_head("mtp"))).model.blocks[0]
    assert flash.experts is None
    assert flash.mixer.window_tokens == 128
    assert head_of(replace(deploy("deepseek-v3"), draft_head=_head("mtp"))).model.blocks[0].experts.num_experts == 256


@pytest.mark.parametrize("description", [("medusa", (0.5,)), ("eagle", ()), ("eagle", (1.2,))])
def test_what_a_head_cannot_be_is_refused(description):
    with pytest.raises(ScenarioError, match="write"):
        DraftHead(method=description[0], acceptance_fracs=description[1])
