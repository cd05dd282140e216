"""Accelerations: each by its mechanism in the simulator, and what chooses among them."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from fit.accelerations import write_history
from orrery.base.errors import FactError, OrreryError, ScenarioError
from orrery.execution.memory import Infeasible
from orrery.predictors.acceleration.choice import which_acceleration
from orrery.predictors.acceleration.features import FEATURES, features
from orrery.predictors.acceleration.history import drawn_tasks, latency_s, simulated
from orrery.predictors.acceleration.methods import METHODS, PLAIN, service
from orrery.predictors.acceleration.selector import best_for_all, regret
from orrery.predictors.acceleration.stored import SEED, read_history, stored_history
from orrery.predictors.acceleration.task import Task
from orrery.predictors.registry import known_experiments
from orrery.predictors.studies.which_acceleration import choosers

CHAT = Task(model="llama-3.1-8b", device="l4", input_tokens=256, output_tokens=128, request_rate_per_s=0.2)


def ratio(task, method):
    return latency_s(task, method, 0) / latency_s(task, PLAIN, 0)


def test_caching_helps_what_is_shared_and_nothing_else():
    assert ratio(CHAT, "prefix-caching") == 1.0
    shared = replace(CHAT, shared_tokens=4096, output_tokens=8, request_rate_per_s=0.5)
    assert ratio(shared, "prefix-caching") < 0.5


def test_guesses_help_as_often_as_they_hold():
    slow = replace(CHAT, request_rate_per_s=0.02)
    held = [ratio(replace(slow, guessable_frac=frac), "speculation") for frac in (0.0, 0.5, 0.9)]
    assert held == sorted(held, reverse=True)
    assert held[0] > 0.99
    assert held[2] < 0.4


def test_joining_between_steps_helps_when_answers_differ_in_length():
    busy = replace(CHAT, request_rate_per_s=1.0, spread_ratio=1.2)
    assert ratio(busy, "continuous-batching") < 0.5
    assert ratio(busy, "chunked-prefill") < 0.5


def test_eight_bits_halve_what_decoding_reads():
    long = replace(CHAT, output_tokens=512, request_rate_per_s=0.01)
    assert 0.45 < ratio(long, "quantisation") < 0.65
    formats = {d: service(replace(CHAT, device=d), "quantisation").pools[0].deployment.formats for d in ("l4", "t4")}
    assert (formats["l4"].weights, formats["t4"].weights) == ("fp8", "int8")
    mac = service(replace(CHAT, device="m2-max"), "quantisation").pools[0].deployment.formats
    assert mac.weights == "int8_weight_only"
    assert mac.activations in ("bf16", "fp16")


def test_tasks_fit_their_devices_and_the_same_seed_draws_the_same():
    tasks = drawn_tasks(12, 5)
    assert tasks == drawn_tasks(12, 5)
    assert tasks[:4] == drawn_tasks(4, 5)
    assert tasks != drawn_tasks(12, 6)
    rows = np.stack([features(task) for task in tasks])
    assert rows.shape == (12, len(FEATURES))
    assert np.isfinite(rows).all()


def test_the_shipped_history_is_what_the_simulator_says():
    """A few rows again; where this fails, run tools/fit/accelerations.py."""
    shipped, places = stored_history(), np.arange(4)
    again = simulated(shipped.rows(places).tasks, SEED)
    assert np.allclose(again.plain_s, shipped.plain_s[places], rtol=0.1)
    assert np.allclose(again.latency_s, shipped.latency_s[places], rtol=0.1)


def test_a_history_survives_its_file(tmp_path):
    few = stored_history().rows(np.arange(5))
    write_history(few, tmp_path / "few.csv")
    again = read_history(tmp_path / "few.csv")
    assert again.tasks == few.tasks
    assert np.array_equal(again.latency_s, few.latency_s)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(FactError, match=r"other\.csv: columns are"):
        read_history(tmp_path / "other.csv")


def test_regret_is_nothing_for_the_best_and_never_less():
    history = stored_history()
    assert (regret(history, history.latency_s.argmin(axis=1)) == 0).all()
    one = best_for_all(history)
    means = [regret(history, np.full(len(history.tasks), i)).mean() for i in range(len(METHODS))]
    assert means[one] == min(means) > 0
    assert len(set(history.latency_s.argmin(axis=1).tolist())) == len(METHODS), "every acceleration is best somewhere"


def check_choosers(rows):
    """Regret falls from chance to one for all to the selector, at the mean and in the tail."""
    own, one, chance = rows
    assert [row["chooser"] for row in rows] == ["selector", "one for all", "chance"]
    assert own["regret_mean_frac"] < 0.5 * one["regret_mean_frac"]
    assert one["regret_mean_frac"] < 0.5 * chance["regret_mean_frac"]
    assert own["regret_p90_frac"] < one["regret_p90_frac"] < chance["regret_p90_frac"]
    assert own["is_best_frac"] > one["is_best_frac"] > 0.2
    assert own["latency_ratio"] < one["latency_ratio"] < chance["latency_ratio"] < 1


@pytest.mark.slow
def test_the_selector_regrets_less_than_one_for_all_and_chance_on_unseen_tasks():
    check_choosers(list(islice(choosers(stored_history().rows(np.arange(300))), 3)))


@pytest.mark.slow
def test_the_selector_regrets_less_on_unseen_devices():
    check_choosers(list(choosers(stored_history().rows(np.arange(300))))[3:])


def test_one_scenario_gets_a_choice_its_gain_and_its_doubt():
    busy = Task(model="llama-3.1-8b", device="h100-sxm", request_rate_per_s=20.0)
    choice = which_acceleration(busy, verify=True)
    assert choice.chosen == choice.options[0].method
    assert {o.method for o in choice.options} == set(METHODS)
    ratios = [o.expected_ratio for o in choice.options]
    assert ratios == sorted(ratios)
    assert sum(o.favoured_frac for o in choice.options) == pytest.approx(1.0)
    assert all(o.low_ratio <= o.high_ratio for o in choice.options)
    assert choice.gain_frac == 1 - ratios[0] > 0.5
    assert 0 <= choice.doubt_frac < 0.5
    truth = {o.method: o.simulated_s for o in choice.options}
    assert choice.simulated_best == min(truth, key=truth.get)
    assert choice.regret_frac == truth[choice.chosen] / min(truth.values()) - 1
    assert choice.to_json()["task"]["device"] == "h100-sxm"
    assert which_acceleration(busy).regret_frac is None


def test_a_model_that_fits_in_eight_bits_only_leaves_one_choice():
    choice = which_acceleration(Task(model="llama-3.1-8b", device="t4"))
    assert [o.method for o in choice.options] == ["quantisation"]
    assert "Left out: continuous-batching" in choice.notes[0]
    assert any("outside the history" in note for note in choice.notes)
    found = which_acceleration(Task(model="llama-3.1-70b", device="t4"))
    assert isinstance(found, Infeasible)
    assert found.need > found.have


@pytest.mark.parametrize(
    "wrong",
    [
        {"request_rate_per_s": 0.0},
        {"output_tokens": 1},
        {"guessable_frac": 1.5},
        {"burstiness_ratio": 0},
        {"num_prefixes": 0},
    ],
)
def test_tasks_that_make_no_sense_are_refused_in_words(wrong):
    with pytest.raises(ScenarioError, match="write"):
        replace(CHAT, **wrong)
    with pytest.raises(OrreryError, match="no-such-device"):
        which_acceleration(replace(CHAT, device="no-such-device"))


@pytest.mark.slow
def test_the_experiment_is_found_and_repeats_itself():
    experiment = known_experiments()["which-acceleration"]
    rows = experiment(steps=10, seed=1)
    assert rows == experiment(steps=10, seed=1)
    assert [row["chooser"] for row in rows[:6]] == ["selector", "one for all", "chance"] * 2
    assert {row["chooser"] for row in rows[6:]} == {f"without {name}" for name in FEATURES}
