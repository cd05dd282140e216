"""ZO2: peak memory of OPT models whose blocks stream through the device."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload.tiers import CONTEXT_BYTES
from orrery_papers.shared.offloaded import model_of, step_of, tiers_for, work_of

BECAUSE = "embedding and head, three blocks, noise of one weight, one block's activations or the loss, the process"
DIFFERS = "small models are held up by what the framework itself keeps: libraries' workspaces and the allocator's spare"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every row of the table."""
    for claim in paper.claims:
        if claim.metric == "peak_memory":
            yield Prediction(claim=claim.id, predicted=peak_bytes(claim.setup), because=BECAUSE, differs=DIFFERS)
        elif claim.metric == "model_size":
            found = float(model_of(claim.setup).num_parameters)
            yield Prediction(claim=claim.id, predicted=found, because="the model's published config")


def peak_bytes(setup: Setup) -> float:
    """Bytes on the device, the process itself included."""
    model = replace(model_of(setup), is_head_tied=False)
    work = work_of(setup, model, is_attention_fused=False)
    return step_of("zeroth-order-streaming", work, tiers_for(setup)).held.gpu_bytes + CONTEXT_BYTES
