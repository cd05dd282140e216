"""MatMul-free language models: memory of training with fused layers, and of inference with packed ternary weights."""

from collections.abc import Iterator
from typing import Any

from orrery.base.errors import FactError
from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import Answer, InfeasibleAnswer, estimate
from orrery.scenario.train import TrainAnswer, train
from orrery_papers.shared.described import config_file

PACKED = "ternary"


def predict(paper: Paper) -> Iterator[Prediction]:
    """All but the FPGA."""
    yield training(paper.setups["1.3b-training"])
    setup = paper.setups["2.7b"]
    plain, packed = held_bytes(setup, setup.word("weights_format")), held_bytes(setup, PACKED)
    yield Prediction(
        claim="inference-memory",
        predicted=plain / packed,
        because=f"{plain / 1e9:.2f} GB with weights in {setup.word('weights_format')}, {packed / 1e9:.2f} GB with two "
        "bits; no cache in either",
        differs="the baseline's weights, of 16 or of 32 bits, which decides and was not found",
    )
    yield Prediction(
        claim="inference-memory-13b",
        predicted=held_bytes(paper.setups["13b"], PACKED),
        because="two bits a ternary weight, a 16-bit embedding, one vector a layer, and activations of a prompt",
    )
    parameters = answered(setup, PACKED).estimate.deployment.model.num_parameters
    yield Prediction(claim="scale", predicted=float(parameters), because="the published configuration")


def training(setup: Setup) -> Prediction:
    """The most that fusing saves over the swept batches."""
    saved = [
        1.0 - training_bytes(setup, "ternary", int(batch)) / training_bytes(setup, "ternary_unfused", int(batch))
        for batch in setup.numbers("batches_swept")
    ]
    return Prediction(
        claim="training-memory",
        predicted=max(saved),
        because=f"kept for the backward pass, from {percent(min(saved))} for one sequence up; states are alike",
        differs="what the baseline's layers keep beyond what their operations read is not counted",
    )


def training_bytes(setup: Setup, precision: str, batch: int) -> float:
    """The peak of one device that takes the whole batch at once, whether it has so much or not."""
    found = train(
        model=described(setup),
        device=setup.word("device"),
        devices=1,
        global_batch=batch,
        micro_batch=batch,
        seq_len=int(setup.number("sequence_tokens")),
        framework=setup.word("engine"),
        precision=precision,
        recompute="none",
    )
    if isinstance(found, InfeasibleAnswer):
        return found.infeasible.need
    assert isinstance(found, TrainAnswer)
    return found.peak_memory_bytes


def held_bytes(setup: Setup, weights: str) -> float:
    """Weights, activations and states of inference."""
    memory = answered(setup, weights).estimate.memory
    return memory.weights_bytes + memory.activation_bytes + setup.number("num_batch") * memory.cache.bytes_per_sequence


def answered(setup: Setup, weights: str) -> Answer:
    """The answer of ``orrery estimate``."""
    tokens = int(setup.number("sequence_tokens"))
    settings: dict[str, Any] = {
        "model": described(setup),
        "device": setup.word("device"),
        "engine": setup.word("engine"),
        "weights": weights,
        "batch": int(setup.number("num_batch")),
        "max_num_batched_tokens": tokens,
        "input_tokens": tokens - 1,
        "output_tokens": 1,
    }
    found = estimate(**settings)
    if not isinstance(found, Answer):
        raise FactError(f"setup {setup.name}: {found}; state one that fits.")
    return found


def described(setup: Setup) -> str:
    """A file that describes the set-up's sizes."""
    sizes = {"num_hidden_layers": "num_layers", "hidden_size": "num_hidden", "vocab_size": "num_vocabulary"}
    config = {key: int(setup.number(line)) for key, line in sizes.items()}
    return config_file({"model_type": "hgrn_bit", "torch_dtype": "float16", **config}, f"matmul-free of {setup.name}")
