"""Papers re-run by training at scale: each mechanism points the right way, and inputs are what the files state."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import get_paper
from orrery_papers.domino import predict as domino
from orrery_papers.fp8_lm import predict as fp8_lm
from orrery_papers.frontier_llm import predict as frontier_llm
from orrery_papers.frontier_low_bandwidth_zero import predict as frontier_low_bandwidth_zero
from orrery_papers.megatron_3d import predict as megatron_3d
from orrery_papers.shared.trained import megatron_flops, training_job
from orrery_papers.shared.trained_by import trained_setup
from orrery_papers.zaya1_amd import predict as zaya1_amd

PAPERS = {
    "domino": domino,
    "fp8-lm": fp8_lm,
    "frontier-llm": frontier_llm,
    "megatron-3d": megatron_3d,
    "frontier-low-bandwidth-zero": frontier_low_bandwidth_zero,
    "zaya1-amd": zaya1_amd,
}


def setup_of(key, name):
    return get_paper(key).setups[name]


@pytest.fixture(scope="module")
def found():
    """Everything but the widest sweep, predicted once."""
    keys = [key for key in PAPERS if key not in ("domino", "frontier-llm")]
    return {key: {p.claim: p for p in PAPERS[key].predict(get_paper(key))} for key in keys}


@pytest.mark.parametrize("key", [key for key in PAPERS if key not in ("domino", "frontier-llm")])
def test_every_prediction_is_a_number_for_a_claim_of_its_paper(key, found):
    paper = get_paper(key)
    assert found[key].keys() <= {c.id for c in paper.claims}
    assert all(np.isfinite(p.predicted) and p.because for p in found[key].values())


def test_operations_as_megatron_counts_them():
    """96 B s l h^2 (1 + s / 6h + V / 16 l h), by hand for the 1T."""
    job = training_job(setup_of("megatron-3d", "1t"))
    b, s, layers, h, v = 3072, 2048, 128, 25600, 51200
    want = 96 * b * s * layers * h * h * (1 + s / (6 * h) + v / (16 * layers * h))
    assert megatron_flops(job, is_recomputed=True) == pytest.approx(want, rel=1e-12)
    assert megatron_flops(job, is_recomputed=False) < want


def test_megatron_interleaving_gains_most_where_the_batch_is_smallest(found):
    predicted = found["megatron-3d"]
    assert predicted["interleaved-gain-batch-12"].predicted > predicted["interleaved-gain"].predicted > 0.1


def test_megatron_rows_of_one_table_add_up():
    rows = {c.setup.name: c for c in get_paper("megatron-3d").claims if c.id.startswith("rate-")}
    for name, claim in rows.items():
        aggregate = float(claim.at.split(",")[-1].split()[0]) * 1e15
        assert claim.low * claim.setup.number("num_devices") == pytest.approx(aggregate, rel=0.01), name


def test_frontier_computes_the_operations_of_the_whole_run_exactly():
    first = next(iter(frontier_llm.predict(get_paper("frontier-llm"))))
    assert (first.claim, first.predicted) == ("training-compute", 1.2e26)


def test_frontier_scales_weakly_better_than_strongly():
    claims = {c.id: c.setup for c in get_paper("frontier-llm").claims}
    for name in ("175b", "1t"):
        gains = []
        for kind in ("weak", "strong"):
            least, most = frontier_llm.scaled(claims[f"{kind}-scaling-{name}"], is_weak=kind == "weak")
            gains.append(most.tokens_per_s_per_device / least.tokens_per_s_per_device)
        assert 1.0 >= gains[0] > gains[1] > 0.8


def test_a_die_is_half_a_package():
    die, package = get_device("mi250x-gcd"), get_device("mi250x")
    assert die.dense_flops_per_s["fp16"] == pytest.approx(191.5e12)
    assert die.memory_capacity_bytes == 64 * 2**30
    for name in (
        "memory_capacity_bytes",
        "memory_bandwidth_bytes_per_s",
        "vector_flops_per_s",
        "last_level_cache_bytes",
        "num_compute_units",
        "power_limit_w",
        "idle_power_w",
    ):
        assert 2 * getattr(die, name) == getattr(package, name)
    assert 2 * die.scaleout.each_way_bytes_per_s == package.scaleout.each_way_bytes_per_s
    assert die.devices_per_node == 2 * package.devices_per_node


def test_fp8_levels_hold_less_and_less():
    setup = setup_of("fp8-lm", "gpt-175b")
    held = [trained_setup(setup, precision=recipe).peak_memory_bytes for recipe in fp8_lm.SYSTEMS.values()]
    bf16, products_alone, *levels = held
    assert products_alone > bf16 > levels[0] > levels[1] > levels[2]


def test_fp8_products_alone_lie_between(found):
    predicted = found["fp8-lm"]
    assert predicted["speed-over-bf16"].predicted > predicted["speed-over-transformer-engine"].predicted > 0.0


def test_domino_never_loses():
    setup = setup_of("domino", "dgx-h100")
    small = replace(setup.inputs["models"], value="gpt3-1.3b")
    few = replace(setup.inputs["batches_swept"], value="16")
    alone = replace(setup.inputs["layouts"], value="tp8")
    gains = domino.gains(
        replace(setup, inputs={**setup.inputs, "models": small, "batches_swept": few, "layouts": alone})
    )
    assert {g.case.tp for g in gains} == {8}
    assert all(g.ratio >= 1.0 - 1e-9 for g in gains)


def test_frontier_plans_spend_memory_to_save_traffic():
    setup = setup_of("frontier-low-bandwidth-zero", "gpt-20b")
    names = (
        frontier_low_bandwidth_zero.PLAIN,
        frontier_low_bandwidth_zero.NARROW,
        frontier_low_bandwidth_zero.OURS,
    )
    plain, narrow, ours = (frontier_low_bandwidth_zero.step_on(setup, n, 384) for n in names)
    assert plain.peak_memory_bytes < narrow.peak_memory_bytes < ours.peak_memory_bytes < 64 * 2**30
    card = replace(setup.inputs["link_bytes_per_s"], value="25e9")
    slower = replace(setup, inputs={**setup.inputs, "link_bytes_per_s": card})
    slow = [frontier_low_bandwidth_zero.step_on(slower, n, 384).step_time_s for n in names]
    assert slow[2] < slow[1] < slow[0]


def test_zaya_holds_what_its_sizes_say():
    setup = setup_of("zaya1-amd", "zaya1-base")
    model = zaya1_amd.model_of(setup)
    assert model.blocks[0].experts.num_parameters_each == 3 * 2048 * 2048
    assert model.embedding_parameters == 262272 * 2048
    conv = 10 * 128 * 2 + 10 * 128 * 128 * 2
    router = 2048 * 256 + 2 * 256 * 256 + 256 * 16 - 2048 * 16
    assert zaya1_amd.router_and_convolutions(setup) == conv + router


def test_zaya_collectives_take_longer_the_larger_and_approach_the_link():
    rows = zaya1_amd.message_rows(setup_of("zaya1-amd", "zaya1-base"), 8)
    assert rows.keys() == set(zaya1_amd.KINDS)
    for found in rows.values():
        assert (np.diff([row.time_s for row in found]) >= 0).all()
        rates = [row.bytes / row.time_s for row in found]
        assert rates[-1] > 100 * rates[0]
        assert max(rates) < 448e9


def test_zaya_is_planned_without_cutting_its_experts_and_saves_cost_little():
    setup = setup_of("zaya1-amd", "zaya1-base")
    least, run = zaya1_amd.least_devices(setup)
    assert (least, run.layout.tp, run.layout.ep, run.layout.pp) == (1, 1, 1, 1)
    assert 0.0 < zaya1_amd.lost_frac(run) < 0.2
    worse = replace(setup.inputs["mean_between_failures_s"], value=3600.0)
    often = replace(setup, inputs={**setup.inputs, "mean_between_failures_s": worse})
    assert zaya1_amd.lost_frac(zaya1_amd.least_devices(often)[1]) > zaya1_amd.lost_frac(run)


def test_models_of_the_table_are_the_catalogues():
    for claim in get_paper("megatron-3d").claims:
        assert get_model(claim.setup.word("model")).num_parameters > 1e9
