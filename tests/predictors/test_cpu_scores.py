"""Machines and their scores: what more of a subsystem brings, what was measured, and what can be learnt of it."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.predictors.processors.machine import Machine, get_processor, processors
from orrery.predictors.processors.scored import FEATURES, scored_machines
from orrery.predictors.processors.suites import COMPUTE, SUITES, instructions_per_s, stream_bytes_per_s
from orrery.predictors.studies import cpu_scores

USUAL = Machine(processor=get_processor("8472C"))


def scores(machine: Machine) -> dict[str, float]:
    return {name: float(suite([machine])[0]) for name, suite in SUITES.items()}


def test_every_processor_is_plausible() -> None:
    assert len(processors()) > 40
    assert sum(p.is_released for p in processors().values()) == 5
    for p in processors().values():
        assert p.base_clock_hz <= p.all_core_clock_hz < 5e9
        assert 1e6 < p.last_level_cache_bytes / p.num_cores < 4e6
        assert all(score > 0.0 for score in scores(Machine(processor=p, num_sockets=1)).values())


def test_released_bandwidths_come_out() -> None:
    """Triad of the 8472C, and two reads to a write of the Max 9460: 469.1 and 675.9 GB/s were measured."""
    assert stream_bytes_per_s([USUAL])[0] == pytest.approx(469.1e9, rel=0.05)
    package = Machine(processor=get_processor("Max 9460"))
    assert stream_bytes_per_s([package])[0] == pytest.approx(675.9e9, rel=0.05)


def test_fewer_channels_hurt_what_streams_and_not_what_computes() -> None:
    full, half = scores(USUAL), scores(replace(USUAL, num_channels=4))
    assert half["stream"] == pytest.approx(full["stream"] / 2)
    assert half["matrix"] == full["matrix"]
    assert half["floating"] < full["floating"]


def test_a_power_limit_hurts_wide_vectors_more_than_integers() -> None:
    full, capped = scores(USUAL), scores(replace(USUAL, power_frac=0.7))
    assert capped["matrix"] / full["matrix"] < capped["integer"] / full["integer"] < 1.0
    assert capped["stream"] == full["stream"]


def test_two_sockets_double_copies_and_less_than_double_the_web() -> None:
    one, two = scores(replace(USUAL, num_sockets=1)), scores(USUAL)
    assert two["integer"] == pytest.approx(2 * one["integer"])
    assert one["web"] < two["web"] < 1.9 * one["web"]


def test_machines_are_scored_together_as_alone() -> None:
    both = [USUAL, Machine(processor=get_processor("4416+"), num_sockets=1)]
    together = instructions_per_s(both, COMPUTE)
    assert [float(instructions_per_s([m], COMPUTE)[0]) for m in both] == pytest.approx(list(together))


def test_bad_machines_are_refused() -> None:
    with pytest.raises(UnknownName):
        get_processor("8492")
    with pytest.raises(ScenarioError, match="num_sockets"):
        Machine(processor=get_processor("5412U"), num_sockets=2)


def test_held_out_processors_are_others_and_released_ones_among_them() -> None:
    seen, held = cpu_scores.split(0)
    assert seen.features.shape[1] == held.features.shape[1] == len(FEATURES)
    assert len(seen.features) > 2 * len(held.features)
    x = seen.inputs(seen)
    assert np.all(np.isfinite(x))
    assert np.all(x[:, : len(FEATURES)][seen.is_missing] == 0.0)


def test_a_table_is_the_same_for_the_same_seed() -> None:
    kinds = list(processors().values())[:2]
    a, b = (scored_machines(kinds, num_each=3, seed=1) for _ in range(2))
    np.testing.assert_array_equal(a.scores, b.scores)
    assert not np.array_equal(a.scores, scored_machines(kinds, num_each=3, seed=2).scores)


@pytest.mark.slow
def test_groups_of_features_learn_faster_than_a_plain_perceptron(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("autograd")
    monkeypatch.setattr(cpu_scores, "NUM_SPLITS", 1)
    rows = {str(row["predictor"]): float(row["error_frac"]) for row in cpu_scores.EXPERIMENT(steps=120)}
    assert set(rows) == {"grouped-attention", "score-perceptron", "score-line"}
    assert rows["grouped-attention"] < rows["score-perceptron"] < 0.3


@pytest.mark.slow
def test_at_its_own_length_attention_is_ahead_of_both() -> None:
    rows = {str(row["predictor"]): float(row["error_frac"]) for row in cpu_scores.EXPERIMENT()}
    assert rows["grouped-attention"] < min(rows["score-perceptron"], rows["score-line"])
