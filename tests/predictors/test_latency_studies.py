"""What the studies of learned latencies show: orderings at small budgets here, the whole tables in the slow group."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.predictors.cells import rule
from orrery.predictors.cells.darts import darts
from orrery.predictors.cells.learned import Bench, ignore
from orrery.predictors.cells.pool import bench, devices_of
from orrery.predictors.cells.proxy import draw_proxy
from orrery.predictors.cells.search import relaxed, search
from orrery.predictors.cells.techniques.hardware_embedding import SPACE, reference_cells
from orrery.predictors.learn.scores import score
from orrery.predictors.registry import known_experiments
from orrery.predictors.studies.cell_latency import predicted

P100 = get_device("p100-pcie-16gb")


@pytest.mark.slow
def test_a_perceptron_beats_multiply_adds_and_gains_from_samples():
    rows = list(predicted(bench(P100, darts(), 32), (300, 4000), 0, 400, ignore))
    error = {(row["rule"], row["num_samples"]): row["mean_error_frac"] for row in rows}
    assert error["encoded-perceptron", 4000] < 0.8 * error["encoded-perceptron", 300]
    assert error["encoded-perceptron", 4000] < error["flops-line", 4000]
    assert error["encoded-perceptron", 4000] < 0.1


@pytest.mark.slow
def test_a_search_finds_the_best_alternatives_of_an_additive_worth():
    tasks = draw_proxy(2, np.random.default_rng(0))
    cells = search(
        darts(), lambda lines: -(lines * tasks.worth_ratio).sum(axis=1), 2, 150, np.random.default_rng(1), ignore
    )
    for task, found in enumerate(cells):
        for choice, first in enumerate(darts().first_column):
            worth = tasks.worth_ratio[task, first : first + darts().num_alternatives[choice]]
            assert worth[found[choice]] > 0.99 * worth.max()


def test_relaxed_lines_lie_between_those_of_networks():
    logits = {str(i): np.zeros((1, n)) for i, n in enumerate(SPACE.num_alternatives)}
    assert relaxed(SPACE, logits)[0] == pytest.approx(np.full(SPACE.num_columns, 0.2))
    sure = {str(i): 50.0 * np.eye(n)[[n - 1]] for i, n in enumerate(SPACE.num_alternatives)}
    assert relaxed(SPACE, sure) == pytest.approx(SPACE.encode(np.full((1, 6), 4)), abs=1e-6)


def test_quality_has_diminishing_returns():
    task = draw_proxy(1, np.random.default_rng(2), affinity_spread=0.0)
    separable, skip = 3, 0
    quality = [
        float(task.quality(darts().encode(np.array([[first, second, *[0] * 14]])))[0])
        for first, second in ((skip, skip), (separable, skip), (separable, separable))
    ]
    assert quality[1] - quality[0] > quality[2] - quality[1] > 0.0


@pytest.mark.slow
def test_ten_timings_rank_best_with_what_was_learnt_elsewhere():
    rng = np.random.default_rng(3)
    rules = {
        "taught": rule("hardware-embedding", steps=80, pool="tpu, cpu", batches="1, 32", timed=200),
        "scratch": rule("encoded-perceptron", steps=60, batch=10),
        "work": rule("flops-line"),
    }
    judges, timed = SPACE.draw(200, rng), reference_cells(10)
    ranks = {name: [] for name in rules}
    for device in devices_of("Apple", but="cpu")[::5]:
        found = bench(device, SPACE, 1, rng)
        samples, truth = found.samples(timed, rng), found.samples(judges, rng).latency_s
        for name, fit in rules.items():
            ranks[name].append(score(fit(samples)(judges), truth).rank_correlation)
    mean = {name: np.mean(found) for name, found in ranks.items()}
    assert mean["taught"] > mean["work"] > mean["scratch"]


def test_an_embedding_wants_its_own_references():
    fit = rule("hardware-embedding", steps=1, pool="tpu", batches="1", timed=50)
    found, rng = bench(P100, SPACE, 1), np.random.default_rng(4)
    with pytest.raises(ScenarioError, match=r"reference_cells\(10\)"):
        fit(found.samples(reference_cells(10)[::-1], rng))
    assert isinstance(found, Bench)


def test_the_studies_are_experiments():
    assert {"cell-latency", "latency-aware-search", "few-shot-latency"} <= set(known_experiments())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cell-latency", "latency-aware-search", "few-shot-latency"])
def test_a_study_answers_with_finite_numbers_and_counts_its_steps(name):
    description = []
    rows = known_experiments()[name](seed=1, steps=20, progress=lambda done, total: description.append((done, total)))
    assert description[-1][0] == description[-1][1] == len(description)
    assert all(np.isfinite(v) for row in rows for v in row.values() if isinstance(v, float))


@pytest.mark.slow
def test_the_embedding_ranks_better_than_its_rivals_on_every_kind_of_machine():
    rows = known_experiments()["few-shot-latency"]()
    rank = {(row["machines"], row["rule"]): row["rank_correlation"] for row in rows}
    for word in {row["machines"] for row in rows}:
        for other in ("encoded-perceptron", "encoded-line", "flops-line"):
            assert rank[word, "hardware-embedding"] > rank[word, other]
