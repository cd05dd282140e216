"""What APEX, Sarathi-Serve's ablation and DistServe's first figure are re-run with behaves as it should."""

from dataclasses import replace

import pytest

from orrery.base.sources import Basis, Fact
from orrery.evidence.paper_file import Setup, get_paper
from orrery.execution.layout import Layout
from orrery_papers.apex_simulator import predict as apex_simulator
from orrery_papers.distserve import figure_1 as distserve_figure_1
from orrery_papers.sarathi_serve import ablation as sarathi_ablation
from orrery_papers.sarathi_serve import systems as sarathi_systems


def given(setup: Setup, **values: float) -> Setup:
    """A set-up with some lines replaced."""
    facts = {
        name: Fact(name=name, value=float(value), basis=Basis.ASSUMED, source=None, at="", note="tried")
        for name, value in values.items()
    }
    return replace(setup, inputs={**setup.inputs, **facts})


def test_plans_fill_the_cluster_and_cut_layers_evenly() -> None:
    setup = get_paper("apex-simulator").setups["h100-chat"]
    found = list(apex_simulator.every_layout(setup))
    assert {Layout(tp=8), Layout(tp=2), Layout(tp=4, pp=2)} <= set(found)
    assert all(8 % x.num_devices == 0 and 80 % x.pp == 0 for x in found)


def test_replicas_compute_less_at_a_low_rate_and_a_low_clock_saves_energy() -> None:
    setup = given(get_paper("apex-simulator").setups["h100-summarization"], num_requests=60)
    wide, many = (apex_simulator.run(setup, Layout(tp=tp)) for tp in (8, 2))
    assert wide is not None
    assert many is not None
    assert many.replicas == 4
    assert many.busy_s < wide.busy_s
    assert many.ttft_s > 1.5 * wide.ttft_s
    slow = apex_simulator.run(setup, Layout(tp=8), 0.5)
    assert slow is not None
    assert slow.energy_j < 0.8 * wide.energy_j
    assert slow.ttft_s > wide.ttft_s
    assert apex_simulator.run(setup, Layout(tp=1)) is None


def test_a_token_that_rides_along_costs_little() -> None:
    setup = get_paper("sarathi-serve").setups["piggyback"]
    d = sarathi_systems.served_on(setup, layout="tp2", budget_tokens=4096, max_num_seqs=128)
    alone, prompt, both = (sarathi_ablation.step_s(d, p, 1024, n) for p, n in ((0, 4), (1021, 0), (1021, 3)))
    assert both == pytest.approx(prompt, rel=0.05)
    assert both < prompt + alone


def test_apart_gains_with_longer_prompts() -> None:
    setup = get_paper("distserve").setups["figure-1"]
    short, long = (next(distserve_figure_1.figure_1(given(setup, input_tokens=n), 2048)).predicted for n in (64, 1024))
    assert short < 1.0 < long
