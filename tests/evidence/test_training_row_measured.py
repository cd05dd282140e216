"""What a row of a training table measured, and how."""

import pytest
from training_rows_read import PLAIN

from orrery.base.errors import ScenarioError
from orrery.evidence.row import Row
from orrery.evidence.training_row import (
    counts_full_attention,
    is_last_rank,
    is_out_of_memory,
    memory_tool,
    read_training_row,
)


def test_what_a_row_measured():
    row = Row({"status": "oom", "mfu_frac": "0.4", "step_time_s": "1.5", "tokens_per_s": "10", "peak_memory_bytes": ""})
    assert is_out_of_memory(row)
    assert not is_out_of_memory(Row({"status": "ok"}))
    assert counts_full_attention(Row({"note": "model flops count full s^2 attention; pure bf16"}))
    assert not counts_full_attention(Row({"note": ""}))


@pytest.mark.parametrize(
    ("cells", "tool"),
    [
        ({}, "allocated"),
        ({"framework": "torchtitan"}, "reserved"),
        ({"note": "memory read from nvidia-smi"}, "device"),
        ({"framework": "torchtitan", "memory_tool": "allocator"}, "allocated"),
    ],
)
def test_who_measured_the_memory(cells, tool):
    row = Row(PLAIN | cells)
    assert memory_tool(row, read_training_row(row)[0].framework) == tool


@pytest.mark.parametrize(
    ("cells", "is_last"),
    [
        ({}, False),
        ({"memory_rank": "last"}, True),
        ({"note": "golden-value file: the median"}, True),
        ({"note": "golden-value file: the median", "memory_rank": "fullest"}, False),
    ],
)
def test_whose_memory_a_row_states(cells, is_last):
    assert is_last_rank(Row(PLAIN | cells)) is is_last


def test_an_unknown_rank_is_refused():
    with pytest.raises(ScenarioError, match="unknown memory_rank middle; write fullest or last"):
        is_last_rank(Row(PLAIN | {"memory_rank": "middle"}))


def test_an_unknown_tool_is_refused():
    row = Row(PLAIN | {"memory_tool": "top"})
    with pytest.raises(ScenarioError, match="unknown memory_tool top; write allocated, reserved, or device"):
        memory_tool(row, read_training_row(Row(PLAIN))[0].framework)
