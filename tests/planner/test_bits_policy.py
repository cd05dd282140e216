"""Formats by policy gradient: near the target, above chance, and the same again from the same seed."""

import numpy as np
import pytest

from orrery.planner.bits.layer import Layer, product
from orrery.planner.bits.options import Options
from orrery.planner.bits.policy import PolicyKnobs, searched
from orrery.planner.bits.solve import solve


def options(seed: int = 0, num_layers: int = 12) -> Options:
    rng = np.random.default_rng(seed)
    size = np.array([[1.0, 0.5]]) * rng.uniform(0.5, 2.0, (num_layers, 1))
    harm = np.array([[0.01, 1.0]]) * rng.lognormal(0.0, 1.5, (num_layers, 1))
    layers = tuple(Layer(name=str(i), group="all", work=product(1, 1, 1), num_parameters=1) for i in range(num_layers))
    return Options(
        layers=layers,
        formats=("int8", "int4_int4"),
        perturbation_ratio=harm,
        latency_s=size,
        size_bytes=size,
        energy_j=size,
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_ends_near_its_target_and_near_the_best(seed):
    known = options(seed)
    target = 0.75 * float(known.uniform("size").max())
    found = searched(known, "size", target, PolicyKnobs(seed=seed))
    assert found.total("size") == pytest.approx(target, rel=0.1)
    best = solve(known, {"size": found.total("size")})
    assert found.perturbation_ratio < 2.0 * best.perturbation_ratio


def test_the_same_seed_says_the_same():
    runs = [searched(options(), "size", 10.0, PolicyKnobs(steps=20)).choice.tolist() for _ in range(2)]
    assert runs[0] == runs[1]
