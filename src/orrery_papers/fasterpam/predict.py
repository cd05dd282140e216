"""FasterPAM: swaps of medoids on drawn points, each way's evaluations counted."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.fasterpam.medoids import Floats, Swapped, best_swaps, built, eager_swaps, loss

DRAWN = ("num_clustered_points", "num_point_features", "num_true_groups")

DIFFERS = (
    "the data: how many swaps the original makes, one an iteration, where the eager one makes all of them in two or "
    "three looks; and a shared evaluation takes longer than a plain one"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Whole runs, one iteration, and how the gain grows with the medoids."""
    claims = {claim.id: claim for claim in paper.claims}
    few, many = claims["swap-100"].setup, claims["swap-200"].setup
    yield Prediction(claim="swap-100", predicted=gain(few), because=words(few), differs=DIFFERS)
    one = run(few)[0]
    count = int(few.number("num_clustered_points"))
    yield Prediction(
        claim="per-iteration",
        predicted=one.num_evaluations(count, is_shared=False) / one.num_evaluations(count, is_shared=True),
        because="every candidate once for all medoids and not once for each; the same swaps",
    )
    yield Prediction(claim="swap-200", predicted=gain(many), because=words(many), differs=DIFFERS)
    because = "the gain at 200 over that at 100"
    yield Prediction(claim="growth", predicted=gain(many) / gain(few), because=because, differs=DIFFERS)


def gain(setup: Setup) -> float:
    """Evaluations of the original over those of the eager variant."""
    best, eager = run(setup)
    count = int(setup.number("num_clustered_points"))
    return best.num_evaluations(count, is_shared=False) / eager.num_evaluations(count, is_shared=True)


def words(setup: Setup) -> str:
    """Result of both ways."""
    best, eager = run(setup)
    distances = drawn(*(int(setup.number(name)) for name in DRAWN))
    return (
        f"{best.num_iterations} iterations of k (n - k) n, {eager.num_candidates} candidates of n each; "
        f"loss {loss(distances, best.medoids):.1f} and {loss(distances, eager.medoids):.1f}"
    )


def run(setup: Setup) -> tuple[Swapped, Swapped]:
    """The original and the eager way from one start."""
    return _run(*(int(setup.number(name)) for name in (*DRAWN, "num_clusters")))


@cache
def _run(points: int, features: int, groups: int, clusters: int) -> tuple[Swapped, Swapped]:
    distances = drawn(points, features, groups)
    first = built(distances, clusters)
    return best_swaps(distances, first), eager_swaps(distances, first)


@cache
def drawn(points: int, features: int, groups: int) -> Floats:
    """Distances between points of Gaussian groups."""
    random = np.random.default_rng(0)
    at = random.normal(size=(groups, features))[np.arange(points) % groups] + random.normal(size=(points, features))
    squares = (at**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * at @ at.T, 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances
