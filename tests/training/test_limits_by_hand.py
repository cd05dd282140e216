"""Limits of what users may set in experiments of training, and what is taken where they say nothing."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Run
from orrery.training.local_updates import LOCAL_UPDATES
from orrery.training.schedules.registry import SCHEDULES, get_schedule
from orrery.training.studies import (
    decentralized_experts,
    layerwise_update,
    mono_forward,
    stage_losses,
    stage_recovery,
    straggler_coding,
)


class Reached(Exception):
    """The settings were taken: what follows is no matter."""


@pytest.fixture
def nothing_runs(monkeypatch):
    """The first thing that an experiment does with its settings."""

    def reach(*args, **named):
        raise Reached

    for module, name in (
        (stage_recovery, "train"),
        (stage_losses, "steps_with_losses"),
        (mono_forward, "counter"),
        (layerwise_update, "layerwise_descent"),
        (decentralized_experts, "train_flow"),
        (straggler_coding, "times_of"),
    ):
        monkeypatch.setattr(module, name, reach)
    monkeypatch.setattr(mono_forward, "clusters", lambda count, seed: None)
    monkeypatch.setattr(decentralized_experts, "NUM_JUDGED", 1)


def asked(sizes, steps=2):
    return Run(seed=0, steps=steps, progress=lambda done, total: None, sizes=sizes)


LIMITS = [
    (stage_recovery, "stages", 2, 64),
    (stage_recovery, "hidden", 1, 512),
    (stage_recovery, "ffn", 1, 2048),
    (stage_recovery, "vocab", 2, 256),
    (stage_recovery, "batch", 1, 4096),
    (stage_losses, "stages", 2, 64),
    (stage_losses, "hidden", 1, 512),
    (stage_losses, "batch", 1, 4096),
    (mono_forward, "widths", "1", "1024"),
    (mono_forward, "points", 64, 20_000),
    (mono_forward, "patience", 1, 10_000),
    (layerwise_update, "hidden", "1,1", "1024,1"),
    (layerwise_update, "groups", 1, 6),
    (decentralized_experts, "features", 1, 100),
    (decentralized_experts, "hidden", 1, 1024),
    (decentralized_experts, "components", 8, 1000),
    (decentralized_experts, "batch", 8, 10_000),
    (straggler_coding, "gradient", 0, 31),
]


def beyond(value, by):
    """The next number outside; of a list the first."""
    if isinstance(value, str):
        first, *others = value.split(",")
        return ",".join([str(int(first) + by), *others])
    return value + by


@pytest.mark.parametrize(("module", "name", "least", "most"), LIMITS)
def test_settings_are_taken_up_to_their_limits_and_refused_beyond(nothing_runs, module, name, least, most):
    for value in (least, most):
        with pytest.raises(Reached):
            module.run(asked(replace(module.Sizes(), **{name: value})))
    for value in (beyond(least, -1), beyond(most, 1)):
        with pytest.raises(ScenarioError):
            module.run(asked(replace(module.Sizes(), **{name: value})))


def test_failures_an_hour_are_taken_up_to_nine_in_ten(nothing_runs):
    for rates, error in (("0.9", Reached), ("0.1,0.91", ScenarioError)):
        with pytest.raises(error):
            stage_losses.run(asked(stage_losses.Sizes(hourly_failure=rates)))


def test_steps_of_coded_workers(nothing_runs):
    for steps, error in ((2, Reached), (2000, Reached), (1, ScenarioError), (2001, ScenarioError)):
        with pytest.raises(error):
            straggler_coding.run(asked(straggler_coding.Sizes(), steps))


@pytest.mark.parametrize(
    ("module", "told"),
    [
        (stage_recovery, {"stages": 6, "hidden": 16, "ffn": 32, "vocab": 16, "batch": 64}),
        (mono_forward, {"widths": "48,48", "batch": 64, "patience": 4, "points": 800}),
        (layerwise_update, {"groups": 3, "hidden": "32,32,32,32,32"}),
    ],
)
def test_sizes_of_experiments_where_nobody_says(module, told):
    assert {name: asdict(module.Sizes())[name] for name in told} == told


def test_sizes_of_the_longer_experiments():
    losses = stage_losses.Sizes()
    assert (losses.stages, losses.hourly_failure, losses.step_s, losses.whole_steps) == (4, "0.05,0.1", 90.0, 10_000)
    assert (losses.twice_ratio, losses.replace_s, losses.save_steps) == (pytest.approx(4 / 3), 30.0, 100)
    assert (losses.hidden, losses.batch) == (16, 64)
    flows = decentralized_experts.Sizes()
    assert (flows.experts, flows.components, flows.features) == ("1,2,4,8", 16, 2)
    assert (flows.spread_ratio, flows.hidden, flows.batch) == (0.3, 32, 256)
    coded = straggler_coding.Sizes()
    assert (coded.workers, coded.gradient, coded.fixed_s, coded.load_s) == (32, 3, 0.5, 2.0)
    assert (coded.slow_ratio, coded.scatter_ratio, coded.wait_frac) == (2.5, 1.05, 1.0)
    assert (coded.late_frac, coded.leave_frac) == (0.03, 0.97)


def test_coded_workers_on_a_users_trace():
    """Twice as slow as the quickest is twice 0.5 + load x 2 s; rounds of the trace come again and again."""
    sizes = straggler_coding.Sizes(workers=2, gradient=0)
    scheme = straggler_coding.schemes(replace(sizes, workers=4), 4)["none"]
    trace = {"times": np.array([[3.0, 6.0], [4.5, 3.0]])}
    given = Run(seed=0, steps=2, progress=lambda done, total: None, sizes=sizes, data=trace)
    found = straggler_coding.times_of(given, scheme, 3)
    assert found.tolist() == [[1.0, 2.0], [1.5, 1.0], [1.0, 2.0]]
    for bad in (np.ones(3), np.ones((2, 3)), np.array([[1.0, 0.0]])):
        with pytest.raises(ScenarioError, match="times"):
            straggler_coding.times_of(replace_data(given, bad), scheme, 3)
    assert straggler_coding.decoding_error(scheme, np.zeros((9, 4), bool), 9) == pytest.approx(0.0, abs=1e-12)
    knobs = straggler_coding._knobs("selective", "1:2:3")
    assert (knobs.burst_rounds, knobs.window_rounds, knobs.num_stragglers) == (1, 2, 3)


def replace_data(given, times):
    return Run(seed=0, steps=2, progress=given.progress, sizes=given.sizes, data={"times": times})


def test_rows_of_lost_stages(monkeypatch):
    """Runs of 100 good steps, of 120 with losses, of 150 with swapped ends. An hourly tenth of four stages in steps of
    90 s: a loss in 1 - 0.9^0.1 of them."""
    told = []

    def steps(shape, count, q, swaps_ends=False, seed=0):
        told.append((shape.num_stages, q, swaps_ends))
        return 100.0 if not q else (150.0 if swaps_ends else 120.0)

    monkeypatch.setattr(stage_losses, "steps_with_losses", steps)
    rows = stage_losses.run(asked(stage_losses.Sizes(hourly_failure="0.1")))
    q = 1 - 0.9**0.1
    assert told == [(4, 0.0, False), (4, pytest.approx(q), False), (4, pytest.approx(q), True)]
    by_way = {row["way"]: row for row in rows}
    assert by_way["rollback"]["good_steps_ratio"] == by_way["redundant"]["good_steps_ratio"] == 1.0
    average = by_way["neighbour-average"]
    assert (average["good_steps_ratio"], average["failures"]) == (1.2, pytest.approx(12_000 * q))
    assert average["run_s"] == pytest.approx(12_000 * 90 + 12_000 * q * 30)
    assert by_way["neighbour-average-swapped"]["good_steps_ratio"] == 1.5
    assert by_way["redundant"]["step_s"] == pytest.approx(120.0)


def test_pipelines_whose_ranks_start_and_end_one_after_the_other():
    """Where ranks go on to the next step by themselves, only these need no filling."""
    sizes = np.array([4]), np.array([2]), np.array([8])
    slanted = set()
    for name in SCHEDULES.techniques:
        if get_schedule(name)(*sizes).is_parallelogram:
            slanted.add(name)
    assert slanted == {"zero-bubble-h2", "zero-bubble-v"}
    assert len(LOCAL_UPDATES.techniques) >= 6
