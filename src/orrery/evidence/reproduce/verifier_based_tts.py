"""Verifier-based against verifier-free: what a clone of traces misses beside a learner whose tries are scored."""

from collections.abc import Iterator

from orrery.catalog.models import get_model
from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.reproduce.prediction import Prediction
from orrery.reasoning.cloning import Short, Styles, missed

LONGER = 4


def predict(paper: Paper) -> Iterator[Prediction]:
    """The gap at two lengths, the gap where all styles are worth the same, and the sizes that were tried."""
    setup, claims = paper.setups["styles"], {c.id: c for c in paper.claims}
    steps = int(setup.number("num_steps_per_answer"))
    short, long = (short_of(setup, n) for n in (steps // LONGER, steps))
    words = (
        f"points missed by the clone and with scores: {short.cloned_points_ratio:.2f} and "
        f"{short.verified_points_ratio:.2f} in {steps // LONGER} steps, {long.cloned_points_ratio:.2f} and "
        f"{long.verified_points_ratio:.2f} in {steps}"
    )
    yield Prediction(claim="gap-widens", predicted=long.gap_points_ratio / short.gap_points_ratio, because=words)
    alike = short_of(claims["gap-closes"].setup, steps)
    yield Prediction(
        claim="gap-closes", predicted=alike.gap_points_ratio / steps, because=f"points a step over {steps} steps"
    )
    sizes = sorted(float(get_model(name.strip()).num_parameters) for name in setup.word("models").split(","))
    for claim, size in (("smallest-model", sizes[0]), ("largest-model", sizes[-1])):
        yield Prediction(claim=claim, predicted=size, because="the model's published config")


def short_of(setup: Setup, steps: int) -> Short:
    """What both learners miss on answers of so many steps."""
    styles = Styles(num_styles=int(setup.number("num_styles")), spread_frac=setup.number("style_spread_frac"))
    return missed(styles, steps, int(setup.number("num_traces")), stream(0, "traces"))
