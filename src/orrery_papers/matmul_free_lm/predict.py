"""MatMul-free language models: memory of training with fused layers, and of inference with packed ternary weights."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.ternary import TernaryModel, inference_bytes, training_bytes, weight_bytes
from orrery.numerics.registry import get_format

TERNARY_BITS = 2.0


def predict(paper: Paper) -> Iterator[Prediction]:
    """All but the FPGA."""
    yield training(paper.setups["1.3b-training"])
    setup = paper.setups["2.7b"]
    model = model_of(setup)
    stored = get_format(setup.word("weights_format")).bytes_per_element
    packed = held_bytes(setup)
    plain = packed - weight_bytes(model, TERNARY_BITS) + model.num_parameters * stored
    yield Prediction(
        claim="inference-memory",
        predicted=plain / packed,
        because=f"{plain / 1e9:.2f} GB with weights in {setup.word('weights_format')}, {packed / 1e9:.2f} GB with two "
        "bits; no cache in either",
    )
    yield Prediction(
        claim="inference-memory-13b",
        predicted=held_bytes(paper.setups["13b"]),
        because="two bits a ternary weight, 16-bit embedding and head, one vector a layer, one layer's activations",
    )
    yield Prediction(claim="scale", predicted=float(model.num_parameters), because="the published configuration")


def training(setup: Setup) -> Prediction:
    """The most that fusing saves over the swept batches."""
    model, tokens = model_of(setup), setup.number("sequence_tokens")
    batches = [int(batch * tokens) for batch in setup.numbers("batches_swept")]
    saved = [
        1.0 - training_bytes(model, batch, is_fused=True) / training_bytes(model, batch, is_fused=False)
        for batch in batches
    ]
    return Prediction(
        claim="training-memory",
        predicted=max(saved),
        because=f"kept for the backward pass, from {min(saved):.0%} for one sequence up; states are alike",
        differs="what the baseline's framework keeps beyond its graph (workspaces, fragments) is not counted",
    )


def model_of(setup: Setup) -> TernaryModel:
    """The sizes that a set-up states."""
    layers, hidden, vocabulary = (int(setup.number(f"num_{name}")) for name in ("layers", "hidden", "vocabulary"))
    return TernaryModel(num_layers=layers, num_hidden=hidden, num_vocabulary=vocabulary)


def held_bytes(setup: Setup) -> float:
    """Memory of inference with packed weights."""
    sequences, tokens = int(setup.number("num_batch")), int(setup.number("sequence_tokens"))
    return inference_bytes(model_of(setup), sequences, tokens, TERNARY_BITS)
