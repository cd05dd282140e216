"""A share of the compute units: prompts slow down with it, decodes only once the units cannot draw the memory dry."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.batch import Batch
from orrery.execution.sm_share import (
    memory_demand_frac,
    saturation_frac,
    with_share,
)
from orrery.execution.step import step

PROMPT, DECODE = 0, 1


@pytest.fixture
def small(deploy):
    """Llama-3.1-8B on one H100."""
    return deploy(model="meta-llama/Llama-3.1-8B")


def steps(deployment):
    """A prompt of 4096, and 32 decodes at 2048."""
    batch = Batch(
        prompt_sequences=np.array([1, 0]),
        prompt_tokens=np.array([4096, 0]),
        prompt_context_tokens=np.array([4096, 0]),
        decode_sequences=np.array([0, 32]),
        decode_context_tokens=np.array([0, 2048]),
    )
    return step(deployment, batch)


def test_all_units_are_the_deployment_itself(small):
    assert with_share(small, 1.0) is small
    assert with_share(small, 0.5) is with_share(small, 0.5), "tables of it keep"


def test_prompts_follow_the_units_and_decodes_the_bandwidth(small):
    whole = steps(small).time_s
    fracs = [0.9, 0.7, 0.55, 0.4, 0.25, 0.12]
    times = np.array([steps(with_share(small, f)).time_s for f in fracs])
    assert times[:, PROMPT] * fracs == pytest.approx(whole[PROMPT] * np.ones(6), rel=0.12)
    assert np.all(np.diff(times, axis=0) > 0.0)
    free = saturation_frac(small.cluster.device)
    assert 0.3 < free < 0.55
    slower = times[:, DECODE] / whole[DECODE]
    assert slower[2] < 1.2, "units that saturate the memory decode nearly as fast as all"
    assert slower[5] > 0.5 * free / 0.12, "below, decodes slow down with the units, too"


def test_a_share_keeps_what_was_measured_on_the_device(small):
    device, part = small.cluster.device, with_share(small, 0.3).cluster.device
    assert (part.name, part.generation) == (device.name, device.generation)
    assert part.calibrations.keys() == device.calibrations.keys()
    share = part.num_compute_units / device.num_compute_units
    width = part.memory_bandwidth_bytes_per_s / device.memory_bandwidth_bytes_per_s
    assert part.dense_flops_per_s["bf16"] == pytest.approx(device.dense_flops_per_s["bf16"] * share)
    key = ("attention_decode", "bf16+bf16", "vllm")
    drawn = [
        d.calibrations[key].constants["feed_ratio"] * d.memory_bandwidth_bytes_per_s / d.num_compute_units
        for d in (device, part)
    ]
    assert drawn[0] == pytest.approx(drawn[1]), "one unit draws what it drew"
    assert width > share


def test_a_limit_on_the_bandwidth_binds(small):
    half = with_share(small, 0.9, bandwidth_frac=0.5)
    assert steps(half).time_s[DECODE] > 1.6 * steps(small).time_s[DECODE]


@pytest.mark.parametrize("frac", [0.0, -0.1, 1.01])
def test_shares_outside_one_are_refused(small, frac):
    with pytest.raises(ScenarioError, match="units_frac"):
        with_share(small, frac)


def test_demand_is_what_moves_over_what_could(small):
    done = steps(small)
    device = small.cluster.device
    assert memory_demand_frac(device, done, PROMPT) < memory_demand_frac(device, done, DECODE) < 1.0
