"""NGPC: frames of engines and a device side by side, from the share of time that engines take over."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.ngpc.engines import EngineFrame

DIFFERS = (
    "each application has its own share: where engines are few those with a small share gain more, and where the rest "
    "sets the pace those with a large one do"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Speed-ups by engines, and the pace of the slowest application."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("speedup-8", "speedup-16", "speedup-32", "speedup-64"):
        one = frame(claims[name].setup)
        yield Prediction(
            claim=name,
            predicted=one.speedup_ratio,
            because=f"{percent(one.engine_frac)} over {one.num_engines:g}, the rest over {one.rest_ratio:g}, "
            f"whichever is longer; more than {one.enough_engines:.0f} engines wait",
            differs=DIFFERS,
        )
    setup = claims["nerf-rate"].setup
    alone = setup.number("num_wanted_frames_per_s") / setup.number("wanted_frames_ratio")
    yield Prediction(
        claim="nerf-rate",
        predicted=alone * frame(setup).speedup_ratio,
        because=f"{alone:.2f} frames a second alone, {frame(setup).speedup_ratio:.1f} times as many",
    )


def frame(setup: Setup) -> EngineFrame:
    """The set-up's frame."""
    return EngineFrame(
        engine_frac=setup.number("engine_frac"),
        num_engines=setup.number("num_engines"),
        rest_ratio=setup.number("rest_ratio"),
    )
