"""Mixed precision on one PC: what a step of a small classifier draws in 32 bits and in 16."""

from collections.abc import Iterator

from orrery.base.knobs import NoKnobs
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.training.small.techniques import backpropagation
from orrery.training.small.work import Sizes
from orrery_papers.mixed_precision_carbon.wall_draw import draw, mixed


def predict(paper: Paper) -> Iterator[Prediction]:
    """Watts that mixed precision saves at the wall."""
    (claim,) = (claim for claim in paper.claims if claim.id == "draw")
    setup = claim.setup
    sizes = Sizes(
        inputs=int(setup.number("num_inputs")),
        hidden=tuple(int(w) for w in setup.numbers("hidden_widths")),
        num_classes=int(setup.number("num_classes")),
        batch=int(setup.number("num_batch_points")),
    )
    work, device = backpropagation.rule(sizes, 0, NoKnobs()), get_device(setup.word("device"))
    full, half = (draw(w, device, setup.number("host_w")) for w in (work, mixed(work)))
    yield Prediction(
        claim="draw",
        predicted=full.wall_w - half.wall_w,
        because=f"{full.wall_w:.0f} W and {full.step_s * 1e6:.0f} µs a step, then {half.wall_w:.0f} W and "
        f"{half.step_s * 1e6:.0f} µs",
        differs="the device, the network and its batch are assumed; a smaller card or a slow data loader "
        "leaves less to save",
    )
