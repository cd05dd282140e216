"""Logs of training frameworks, small and made by hand in their layout, become rows in SI units."""

import pytest
from run_rows import near, row

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.read import read_runs

MEGATRON = """\
using world size: 8, data-parallel size: 4, tensor-model-parallel size: 2
------------------------ arguments ------------------------
  bf16 ............................................ True
  fp8 ............................................. None
  micro_batch_size ................................ 1
  pipeline_model_parallel_size .................... 1
  recompute_granularity ........................... selective
  seq_length ...................................... 4096
  tensor_model_parallel_size ...................... 2
  use_distributed_optimizer ....................... True
  world_size ...................................... 8
-------------------- end of arguments ---------------------
"""


def iteration(i, ms, batch=64):
    return (
        f" [2026-03-01 10:00:0{i % 10}] iteration {i:8d}/    1000 | consumed samples: {i * batch:12d} | elapsed "
        f"time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): 410.2 | learning rate: 1.000000E-04 | "
        f"global batch size: {batch:5d} | lm loss: 1.05E+01 | number of nan iterations:   0 |\n"
    )


def test_a_log_of_megatron_by_its_middle_iteration_and_its_arguments(save):
    memory = (
        "[Rank 0] (after 2 iterations) memory (MB) | allocated: 10.0 | max allocated: 40000.0 | max reserved: 50000.0\n"
    )
    log = MEGATRON + iteration(1, 90000.0) + memory + "".join(iteration(i, 2000.0 + i) for i in range(2, 9))
    found = row(read_runs([save(log, "log.txt")], {"device": "h100-sxm", "model": "llama-3.1-8b"}))
    assert near(found["step_time_s"], 2.0055)
    assert (found["global_batch"], found["tp"], found["num_devices"], found["seq_len"]) == ("64", "2", "8", "4096")
    assert (found["precision"], found["recompute"], found["sharding"]) == ("bf16", "selective", "zero1")
    assert near(found["peak_memory_bytes"], 50000 * 1024**2)


def test_a_batch_that_grows_is_no_single_run(save):
    log = "".join(iteration(i, 2000.0, batch=32 * i) for i in range(1, 9))
    with pytest.raises(ScenarioError, match="global batch size changes"):
        read_runs([save(log, "log.txt")], {})


def test_a_log_of_torchtitan_in_colour(save):
    def line(step, tps, memory):
        return (
            f"[rank0]:[titan] 2026-03-01 10:00:00 - root - INFO - \x1b[31mstep: {step:2}  \x1b[32mloss:  7.8853  "
            f"\x1b[33mgrad_norm:  4.2 \x1b[36mmemory: {memory:5.2f}GiB(63.3%)  \x1b[34mtps: {tps:,}  "
            f"\x1b[35mtflops: 300.12  \x1b[36mmfu: 30.35%\x1b[39m\n"
        )

    log = line(1, 900, 40.0) + line(10, 5000, 50.0) + "".join(line(10 * i, 5700 + i, 50.5) for i in range(2, 7))
    message = {"device": "h100-sxm", "model": "llama-3.1-8b", "devices": "8", "seq_len": "8192", "global_batch": "16"}
    found = row(read_runs([save(log, "train.log")], message))
    assert near(found["tokens_per_s_per_device"], 5704)
    assert near(found["peak_memory_bytes"], 50.5 * 1024**3)
    assert found["framework"] == "torchtitan"
