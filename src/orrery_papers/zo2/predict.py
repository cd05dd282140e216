"""ZO2: peak memory of OPT models whose blocks stream through the device."""

from collections.abc import Iterator

from orrery.catalog.models import get_model, published_config
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.described import config_file
from orrery_papers.shared.offloaded import device_bytes

BECAUSE = "embedding and head, three blocks, noise of one weight, one block's activations or the loss, the process"
DIFFERS = "small models are held up by what the framework itself keeps: libraries' workspaces and the allocator's spare"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every row of the table."""
    for claim in paper.claims:
        if claim.metric == "peak_memory":
            yield Prediction(claim=claim.id, predicted=peak_bytes(claim.setup), because=BECAUSE, differs=DIFFERS)
        elif claim.metric == "model_size":
            found = float(get_model(claim.setup.word("model")).num_parameters)
            yield Prediction(claim=claim.id, predicted=found, because="the model's published config")


def peak_bytes(setup: Setup) -> float:
    """Bytes on the device, the process itself included; the head is a weight of its own."""
    name = get_model(setup.word("model")).name
    apart = config_file(published_config(name) | {"tie_word_embeddings": False}, name)
    return device_bytes(setup, "zeroth-order-streaming", model=apart, fused_attention=False)
