"""``--weight-sampling gaussian``: passes by hand, and what becomes of them with more tokens."""

import pytest

import orrery
from orrery.base.errors import ScenarioError

JOB = {
    "model": "llama-3.2-1b",
    "device": "a100-sxm-80gb",
    "devices": 4,
    "tp": 2,
    "global_batch": 32,
    "seq_len": 2048,
    "recompute": "full",
    "sharding": "none",
}


def test_passes_by_hand():
    plain, noisy = orrery.train(**JOB), orrery.train(**JOB, weight_sampling="gaussian")
    device, parameters = plain.job.cluster.device, plain.job.model.num_parameters
    each = 3 * 2.0 * parameters / 2 / device.memory_bandwidth_bytes_per_s
    assert noisy.parts["weight sampling"] == pytest.approx(16 * each)  # 32 sequences, one at a time, on two replicas
    assert noisy.step_time_s == pytest.approx(plain.step_time_s + 16 * each)
    assert noisy.peak_memory_bytes == pytest.approx(plain.peak_memory_bytes + 2.0 * parameters / 2)
    assert sum(noisy.parts.values()) == pytest.approx(noisy.step_time_s)


def test_more_tokens_a_draw_make_it_vanish():
    rows = orrery.train(**JOB, weight_sampling="gaussian").table("sampling")
    overheads = [row["overhead_frac"] for row in rows]
    assert overheads == sorted(overheads, reverse=True)
    assert rows[-1]["sampling_s"] == pytest.approx(
        rows[0]["sampling_s"] * rows[0]["micro_batch"] / rows[-1]["micro_batch"]
    )
    assert overheads[-1] < 0.2 * overheads[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weight_sampling": "uniform"}, "write one of gaussian"),
        ({"weight_sampling": "gaussian", "sharding": "zero3"}, "write ep = 1, and sharding none"),
        ({"weight_sampling": "gaussian", "partition": "zero3", "sharding": None}, "partition: does not go with"),
        ({"weight_sampling": "gaussian", "model": "qwen3-30b-a3b", "devices": 64}, "has experts"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, message):
    job = {k: v for k, v in (JOB | given).items() if v is not None}
    if "partition" in given:
        job.pop("tp")
    with pytest.raises(ScenarioError, match=message):
        orrery.train(**job)
