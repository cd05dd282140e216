"""Nemotron-4 340B: parameters from the published configuration, and the fewest H100 that hold them by format."""

from collections.abc import Iterator

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.fitting import fewest


def predict(paper: Paper) -> Iterator[Prediction]:
    """Devices in both formats, then parameters."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("devices", "not-in-16-bits"):
        setup = claims[name].setup
        count, held = fewest(setup)
        yield Prediction(
            claim=name,
            predicted=count,
            because=f"{setup.word('weights_format')} over {count} devices: {held.weights_bytes / 1e9:.1f} GB of "
            f"weights on each, room for {held.kv_capacity_tokens:.0f} tokens",
        )
    counted = get_model(claims["parameters"].setup.word("model")).num_parameters
    yield Prediction(claim="parameters", predicted=counted, because="counted from the configuration")
