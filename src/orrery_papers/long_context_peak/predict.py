"""Long contexts at peak rates: what the example's own configuration says."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.compression import NOTHING, Compression
from orrery.execution.layout import Deployment
from orrery.execution.long_context import LongContext, long_context
from orrery.execution.memory import Infeasible
from orrery_papers.shared.setup import deployment

OPTIONS = {
    "half the layers": Compression(kept_bytes_frac=0.5),
    "half the heads": Compression(kept_bytes_frac=0.5),
    "half the tokens": Compression(kept_tokens_frac=0.5),
    "4-bit numbers": Compression(kept_bytes_frac=0.25),
}
"""Layer, head, token and width: see [unstated] compression."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """What follows from the configuration; the lengths that the paper studies or aims at are its choice."""
    d = serving(paper.setups["yi-34b-50k"])
    yield Prediction(
        claim="model-size", predicted=float(d.model.num_parameters), because="parameters of the published configuration"
    )


def serving(words: Setup) -> Deployment:
    """The running example on one device."""
    return deployment(words, layout="tp1", utilization_frac=1.0)


def penalties(d: Deployment, context_tokens: int, compression: Compression = NOTHING) -> LongContext | Infeasible:
    """The four costs of a context."""
    return long_context(d, context_tokens, compression)


def table(paper: Paper) -> dict[str, LongContext | Infeasible]:
    """The four costs at 4K and at 50K, and at 50K under every way of keeping less."""
    d = serving(paper.setups["yi-34b-50k"])
    short, long = (int(paper.setups[n].number("input_tokens")) for n in ("yi-34b-4k", "yi-34b-50k"))
    rows = {f"{short} tokens": penalties(d, short), f"{long} tokens": penalties(d, long)}
    return rows | {f"{long} tokens, {name}": penalties(d, long, option) for name, option in OPTIONS.items()}
