"""Layouts, batches and windows of weights of the execution floor: small sums that can be read off."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.execution.batch import Batch
from orrery.execution.dataflow.chain import Task
from orrery.execution.draft_head import USUAL
from orrery.execution.layout import Layout
from orrery.execution.whole_prompts import MAX_TOKENS


def test_devices_of_a_layout():
    assert Layout(tp=2, pp=3, dp=5).num_devices == 30
    assert replace(Layout(tp=2, pp=3), cp=4).num_devices == 24


def test_tokens_and_rows_of_a_batch():
    """3 prompts of 100 tokens beside 7 decodes that check 2 guesses each: 321 tokens, 24 rows of logits."""
    batch = Batch(
        prompt_sequences=np.array([3]),
        prompt_tokens=np.array([100]),
        prompt_context_tokens=np.array([100]),
        decode_sequences=np.array([7]),
        decode_context_tokens=np.array([50]),
        guesses=2,
    )
    assert (batch.num_tokens[0], batch.num_rows[0]) == (321, 24)


def test_assumed_chances_of_drafting_heads():
    """Of the first guess, and of each next one over the one before."""
    assert USUAL == {"mtp": (0.85, 0.85), "eagle": (0.75, 0.95), "eagle3": (0.8, 1.0)}


@pytest.mark.parametrize("name", ["weight_bytes", "input_bytes", "output_bytes"])
def test_a_task_moves_what_it_says_and_nothing_else(name):
    assert getattr(Task(name="a", flops=1.0), name) == 0
    assert not Task(name="a", flops=1.0).needs_all


def test_prompts_are_summed_up_to_64_million_tokens():
    assert MAX_TOKENS == 67_108_864
