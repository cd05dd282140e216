"""MoETuner: Mixtral's experts in groups of even load, near those that they follow, on one node and on two."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.experts.placed import Placed, placed
from orrery.execution.layout import Deployment
from orrery.execution.step import step
from orrery_papers.shared.passes import prompts
from orrery_papers.shared.setup import deployment

DIFFERS = (
    "how uneven and how sticky Mixtral's routing is on the authors' texts, of which only placements solved by others "
    "were found, and which links joined their nodes"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A placement: seconds of a pass, and what makes them."""

    pass_s: float
    found: Placed


def predict(paper: Paper) -> Iterator[Prediction]:
    """Both test beds."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("multi-node", "single-node"):
        words = claims[name].setup
        plain, tuned = (timed(words, method) for method in ("copied-context", "moetuner"))
        unplaced_s = pass_s(served_by(words, ""), words)
        yield Prediction(
            claim=name,
            predicted=plain.pass_s / tuned.pass_s - 1.0,
            because=f"fullest device {plain.found.fullest_ratio:.2f} times the mean in order, "
            f"{tuned.found.fullest_ratio:.2f} placed; {plain.found.leaves_node_frac:.2f} and "
            f"{tuned.found.leaves_node_frac:.2f} of the ways leave the node; programs proven within "
            f"{percent(tuned.found.load_gap_frac or 0.0, 1)} (loads) and "
            f"{percent(tuned.found.way_gap_frac or 0.0, 1)} (ways); against results that come home and no copied "
            f"context {percent(unplaced_s / tuned.pass_s - 1.0, 1, is_signed=True)}",
            differs=DIFFERS,
        )


def timed(words: Setup, method: str) -> Timed:
    """A prompt batch of every device, experts placed so."""
    served = served_by(words, method)
    found = placed(served)
    assert found is not None, "the law has affinity, and every device has experts of its own"
    return Timed(pass_s=pass_s(served, words), found=found)


def served_by(words: Setup, method: str) -> Deployment:
    """The set-up with experts placed so; as the engine has them where nothing is said."""
    devices = int(words.number("num_devices"))
    law = f"zipf:{words.number('expert_skew_ratio'):g}+affinity:{words.number('followed_frac'):g}"
    layout = f"dp{devices} ep{devices}"
    found = deployment(words, layout=layout, expert_loads=law, all2all_backend="all-to-all")
    return replace(found, expert_placement=method)


def pass_s(served: Deployment, words: Setup) -> float:
    """Seconds of a pass of every device's prompts."""
    own = prompts(np.array([int(words.number("input_tokens"))]), int(words.number("num_batch")))
    return sum(float(p.time_s[0]) for p in step(served, own).parts)
