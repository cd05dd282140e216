"""What searches keep on their way: ranks, draws, the fastest and the front, the nearest that does not fit."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.planner.architecture import evolution, gradient
from orrery.planner.deploy.files import WRITERS, Written
from orrery.planner.training import search


def test_networks_that_fewest_beat_come_first_and_of_equals_the_better_in_the_goal():
    """(1, 5) is beaten by (1, 4) alone, as cheap and better in the other; (3, 9) by all; beyond a limit comes last."""
    costs = np.array([[3.0, 9.0, 0.0], [1.0, 5.0, 0.0], [1.0, 4.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    assert evolution._ranked(costs).tolist() == [2, 3, 1, 0, 4]
    # two that are the same in both beat neither one
    same = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [2.0, 1.0, 0.0]])
    assert evolution._ranked(same).tolist() == [0, 1, 2, 3]


class Drawn:
    """Three choices of a metric that is their sum; what is drawn is told beforehand."""

    def __init__(self, *drawn):
        self.drawn, self.counts = [np.array(x) for x in drawn], []
        self.metrics = {"parameters": SimpleNamespace(of=lambda networks: networks.sum(axis=1))}

    def draw(self, count, rng):
        self.counts.append(count)
        return self.drawn[min(len(self.counts), len(self.drawn)) - 1][:count].copy()


def test_a_first_generation_is_drawn_again_where_it_is_too_large():
    """Sums of 3 and 7 with a limit of 3: the second is drawn again, once."""
    problem = Drawn([[1, 1, 1], [1, 1, 5]], [[1, 0, 0]])
    knobs = evolution.EvolutionKnobs(population=2, first_parameters=3.0)
    assert evolution.first_generation(problem, knobs, None).tolist() == [[1, 1, 1], [1, 0, 0]]
    assert problem.counts == [2, 1]
    free = Drawn([[1, 1, 1], [1, 1, 5]])
    assert evolution.first_generation(free, evolution.EvolutionKnobs(population=2), None)[1].tolist() == [1, 1, 5]
    hopeless = Drawn([[9, 9, 9]])
    with pytest.raises(OutOfRange, match="hardly any network"):
        evolution.first_generation(hopeless, evolution.EvolutionKnobs(population=1, first_parameters=3.0), None)
    assert len(hopeless.counts) == 1 + evolution.MAX_DRAWS


class Random:
    """A generator that says what it is told, in order."""

    def __init__(self, *values):
        self.values = list(values)

    def random(self, shape):
        return np.broadcast_to(np.asarray(self.values.pop(0), dtype=float), shape)

    def integers(self, most, size):
        return np.asarray(self.values.pop(0))


def test_children_take_each_choice_from_one_of_two_and_one_in_so_many_anew():
    """Below a half from the first parent; a third of the choices (here: the last) drawn anew."""
    parents = np.array([[1, 1, 1], [2, 2, 2]])
    problem = Drawn([[7, 7, 7]])
    rng = Random([[0], [1]], [[0.4, 0.5, 0.6]], [[0.34, 0.34, 0.33]])
    assert evolution._bred(problem, parents, 1, rng).tolist() == [[1, 2, 7]]


def test_alternatives_are_drawn_by_their_probabilities():
    """Shares of a quarter, none and three quarters: up to 0.25 the first, else the third; never one without a share."""
    shares = np.array([[0.25, 0.0, 0.75], [1.0, 0.0, 0.0]])
    draws = np.array([0.1, 0.2, 0.3, 0.99])[:, None, None]
    assert gradient.drawn_from(shares, 4, Random(draws)).tolist() == [[0, 0], [0, 0], [2, 0], [2, 0]]
    short = np.array([[0.5, 0.4999999, 0.0]])  # sums that miss 1 by rounding
    assert gradient.drawn_from(short, 1, Random(0.99999999)).tolist() == [[1]]


def test_shares_are_a_softmax_without_the_alternatives_that_are_not_there():
    found = gradient.shares_of(np.array([[0.0, np.log(3.0), -np.inf], [1000.0, 1000.0, 1000.0]]))
    assert found == pytest.approx(np.array([[0.25, 0.75, 0.0], [1 / 3, 1 / 3, 1 / 3]]))


def columns(*names):
    return SimpleNamespace(layout=lambda row: names[row])


def test_of_layouts_that_do_not_fit_the_first_that_needs_least_is_named():
    found = search._Missed()
    found.add(columns("a", "b", "c"), np.array([5.0, 3.0, 1.0]), np.array([False, False, True]))
    assert (found.count, found.need_bytes, found.nearest) == (2, 3.0, "b")
    found.add(columns("d"), np.array([3.0]), np.array([False]))  # no less
    assert (found.count, found.nearest) == (3, "b")
    found.add(columns("e"), np.array([1.0]), np.array([True]))
    assert (found.count, found.nearest) == (3, "b")
    found.add(columns("f"), np.array([2.0]), np.array([False]))
    assert (found.count, found.need_bytes, found.nearest) == (4, 2.0, "f")


def steps(*rows):
    """Layouts by name, with seconds and bytes; energies are seconds times bytes."""
    return SimpleNamespace(
        time_s=np.array([float(time_s) for _, time_s, _ in rows]),
        memory_bytes=np.array([float(size) for _, _, size in rows]),
        columns=columns(*(name for name, _, _ in rows)),
    )


@pytest.fixture
def keep(monkeypatch):
    monkeypatch.setattr(search, "energy_j", lambda found: found.time_s * found.memory_bytes)
    monkeypatch.setattr(search, "Point", SimpleNamespace)
    return search._Keep(2, rank_s=4.0)


def names(points):
    return [point.layout for point in points]


def test_the_fastest_and_the_front_of_what_fits(keep):
    """Of 5, 3 and 4 s the two fastest; 4 s with 9 bytes is worse than 3 s with 2 in everything, 5 s has least."""
    keep.add(steps(("slow", 5, 1), ("fast", 3, 2), ("fat", 4, 9), ("huge", 1, 99)), np.array([True, True, True, False]))
    assert names(keep.best()) == ["fast", "fat"]
    assert sorted(names(keep.front())) == ["fast", "slow"]
    assert keep.num_faster == 1  # than 4 s: 4 s itself is not
    keep.add(steps(("later", 4, 9)), np.array([True]))  # as fast as the slowest kept: the first stays
    assert names(keep.best()) == ["fast", "fat"]
    keep.add(steps(("quick", 2, 3)), np.array([True]))
    assert names(keep.best()) == ["quick", "fast"]
    assert sorted(names(keep.front())) == ["fast", "quick", "slow"]
    keep.add(steps(("none", 1, 1)), np.array([False]))
    assert (names(keep.best()), keep.num_faster) == (["quick", "fast"], 2)


def test_a_copy_is_added_to_apart_and_taken_in_its_order(keep):
    keep.add(steps(("a", 5, 5)), np.array([True]))
    part, begun = keep.copied(), keep.order
    assert part.num_faster == 0
    part.add(steps(("b", 3, 3), ("c", 3, 3)), np.array([True, True]))
    assert names(keep.best()) == ["a"]
    keep.take(part, begun)
    assert names(keep.best()) == ["b", "c"]
    assert names(keep.front()) == ["b"]
    assert keep.num_faster == 2


def test_layouts_are_ruled_out_by_what_they_cannot_be_faster_than(keep):
    """Two are kept, of 2 and 3 s: at least 3 s and no better on the front is out; with fewer bytes it stays in."""
    bounds = SimpleNamespace(time_s=np.array([3.9, 4.1, 4.1]), memory_bytes=np.array([9.0, 9.0, 0.5]))
    assert keep.beats(bounds, np.full(3, 99.0)).tolist() == [False, False, False]  # fewer than two are known
    keep.add(steps(("a", 2, 2), ("b", 3, 1)), np.array([True, True]))
    assert keep.beats(bounds, np.full(3, 99.0)).tolist() == [False, True, False]  # all below 4 s are ranked
    keep.rank_s = 0.0
    assert keep.beats(bounds, np.full(3, 99.0)).tolist() == [True, True, False]


@pytest.mark.parametrize(("devices", "nodes", "of_a_node"), [(4, 1, 4), (8, 1, 8), (16, 2, 8), (20, 3, 8)])
def test_a_slurm_job_has_the_nodes_that_its_devices_fill(devices, nodes, of_a_node):
    found = Written(
        name="llama",
        engine="vllm",
        model="m",
        args=("--tensor-parallel-size", "8"),
        replicas=3,
        devices=devices,
        node_devices=8,
        target=10,
        startup_s=60.0,
        tp=8,
        pp=1,
        dp=1,
    )
    lines = WRITERS["slurm"][1](found).splitlines()
    for line in (
        f"#SBATCH --nodes={nodes}",
        f"#SBATCH --gpus-per-node={of_a_node}",
        "#SBATCH --array=0-2",
        "#SBATCH --ntasks-per-node=1",
    ):
        assert line in lines
    assert lines[-1] == "srun vllm serve m --tensor-parallel-size 8 --port 8000"
