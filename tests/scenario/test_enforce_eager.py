"""Steps without CUDA graphs: every kernel is the host's to launch, beside what the device does meanwhile."""

import pytest

from orrery import estimate, plan, simulate, what_if
from orrery.catalog.engines import UNVERSIONED, get_engine
from orrery.execution.host import launches_s
from orrery.execution.shard import num_kernels
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario

DECODING = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "engine": "vllm",
    "engine_version": "0.6.0",
    "batch": 1,
    "input_tokens": 64,
    "output_tokens": 64,
}


def test_kernels_of_a_dense_layer_by_hand():
    """32 layers of four products (queries with keys and values, output, gate with up, down), attention and the write to
    its cache, two norms and an activation; and the head."""
    d = resolve(read_scenario(DECODING)).deployment
    assert num_kernels(d) == pytest.approx(32 * 9 + 1)
    assert launches_s(d) == pytest.approx(289 * d.engine.launch_s)


def test_a_lone_answer_takes_what_its_launches_take():
    """A step is max(device, launches) and then the host's turn: an 8B model's device time is shorter."""
    d = resolve(read_scenario(DECODING)).deployment
    by_hand = 289 * d.engine.launch_s + d.engine.step_s + d.engine.per_sequence_s
    eager = estimate(**DECODING, enforce_eager=True)
    assert eager.estimate.tpot_s == pytest.approx(by_hand + d.engine.sampling_s, rel=1e-3)
    assert eager.estimate.tpot_s > 1.2 * estimate(**DECODING).estimate.tpot_s


def test_large_batches_hide_their_launches():
    """Where the device takes longer than its launches nothing is lost."""
    many = {**DECODING, "batch": 128, "input_tokens": 4096, "output_tokens": 256}
    assert estimate(**many, enforce_eager=True).estimate.tpot_s == pytest.approx(
        estimate(**many).estimate.tpot_s, rel=1e-6
    )


def test_off_is_absent():
    off = estimate(**DECODING, enforce_eager=False)
    assert off.estimate.tpot_s == estimate(**DECODING).estimate.tpot_s
    assert not any("enforce_eager" in note for note in off.notes)


def test_the_simulator_and_the_plan_take_it_too():
    served = {**DECODING, "concurrency": 1, "num_requests": 20}
    del served["batch"]
    slower = simulate(**served, enforce_eager=True).summary.tpot.mean_s
    assert slower == pytest.approx(estimate(**DECODING, enforce_eager=True).estimate.tpot_s, rel=0.02)
    best = plan(
        model="llama-3.1-8b",
        device="h100-sxm",
        engine="vllm",
        engine_version="0.6.0",
        rate=1,
        input_tokens=64,
        output_tokens=64,
        enforce_eager=True,
    ).plans[0]
    assert "--enforce-eager" in best.launch["vllm"]


def test_an_engine_without_graphs_says_that_there_is_nothing_to_turn_off():
    answer = estimate(**{**DECODING, "engine": "transformers", "engine_version": None}, enforce_eager=True)
    assert any("enforce_eager: not used; transformers" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("version", "has"), [("0.1.7", False), ("0.2.5", False), ("0.2.6", True), ("0.11.0", True), (UNVERSIONED, True)]
)
def test_vllm_has_graphs_since_december_2023(version, has):
    assert get_engine("vllm", version).has_cuda_graphs is has


def test_what_graphs_bring_is_the_difference_of_both_answers():
    (found,) = what_if("cuda-graphs", **DECODING).results
    assert found.without.figures["tpot_s"] == estimate(**DECODING, enforce_eager=True).estimate.tpot_s
    assert found.having.figures["tpot_s"] == estimate(**DECODING).estimate.tpot_s
