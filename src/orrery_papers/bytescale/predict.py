"""ByteScale: one step over long-tailed sequences, ranks by length against a static mesh for the longest."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup, get_paper
from orrery.evidence.prediction import Prediction
from orrery.training.sequences.lengths import LongTail
from orrery.training.sequences.step import StepTime, hybrid_step, static_step
from orrery.training.sequences.trainer import Trainer
from orrery_papers.shared.setup import layout_of

KEY = "bytescale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Both steps over the same sequences."""

    static: StepTime
    hybrid: StepTime

    @property
    def speedup_ratio(self) -> float:
        """How many times the hybrid step fits into the static one."""
        return self.static.time_s / self.hybrid.time_s


def predict(paper: Paper) -> Iterator[Prediction]:
    """The largest speed-up over both ends of the models and the contexts; sizes are the paper's choice."""
    setup = paper.setups["cluster"]
    yield Prediction(
        claim="speedup", predicted=max(x.speedup_ratio for x in runs(setup)),
        because="static over hybrid step, the best of 7B and 141B at 256K and 2048K",
        differs="lengths, degrees, batch and the baseline's settings are not written; smaller tensor parallelism or "
        "more very long sequences make the static ring and its waiting longer",
    )  # fmt: skip


def runs(setup: Setup) -> list[Run]:
    """Every model at every context."""
    names = [name.strip() for name in setup.word("models").split(",")]
    return [run(setup.name, name, int(context)) for name in names for context in setup.numbers("context_tokens_swept")]


@cache
def run(setup_name: str, model: str, context_tokens: int) -> Run:
    """One model at one context."""
    setup = get_paper(KEY).setups[setup_name]
    trainer = Trainer(
        model=get_model(model), device=get_device(setup.word("device")), num_devices=int(setup.number("num_devices")),
        tp=layout_of(setup.word("layout")).tp, devices_per_node=int(setup.number("num_devices_per_node")),
    )  # fmt: skip
    texts = LongTail(
        median_tokens=setup.number("document_p50_tokens"), spread_ratio=setup.number("document_spread_ratio"),
        most_tokens=context_tokens,
    )  # fmt: skip
    lengths = texts.batch(setup.number("step_tokens"))
    return Run(static=static_step(trainer, lengths, context_tokens), hybrid=hybrid_step(trainer, lengths))
