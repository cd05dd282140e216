"""ZAYA1 on 1,024 MI300X: what the model holds, how few devices hold it, and the run with saves and failures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.config import parse
from orrery.models.model import Model
from orrery.scenario.kernel.answer import KernelRow
from orrery.scenario.train import TrainAnswer, train
from orrery_papers.shared.described import config_file
from orrery_papers.shared.kernel_rows import swept_rows
from orrery_papers.shared.trained_by import settings_of

KINDS = ("all-reduce", "reduce-scatter", "all-gather", "broadcast")
CONVOLUTION_STEPS = (2, 2)
"""Tokens that the first (each channel alone) and the second convolution (each head alone) look at."""

SAVE = "snapshot"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Parameters from sizes; and whether one device holds a copy."""
    setup = paper.setups["zaya1-base"]
    model, extra = model_of(setup), router_and_convolutions(setup)
    layers = int(setup.number("num_layers"))
    active = sum(b.num_active_parameters for b in model.blocks) + layers * extra
    total = model.num_parameters - model.embedding_parameters + layers * extra
    yield Prediction(
        claim="active-parameters", predicted=float(active), because="attention, router and one expert of each layer"
    )
    yield Prediction(claim="total-parameters", predicted=float(total), because="the same with all sixteen experts")
    least, answer = least_devices(setup)
    words = ""
    if answer is not None and answer.run is not None:
        words = (
            f"{answer.peak_memory_bytes / 1e9:.0f} GB a device without cutting the model ({answer.layout}); 14T "
            f"tokens take {answer.run.days:.0f} days, of which {percent(lost_frac(answer), 1)} are saves and failures"
        )
    yield Prediction(claim="devices-a-copy", predicted=float(least), because=words)


def config_of(setup: Setup) -> dict[str, Any]:
    """Grouped-query attention of the compressed heads and sixteen gated experts in every layer."""
    n = {name: int(setup.number(name)) for name in setup.inputs if name.startswith("num_")}
    return {
        "model_type": "qwen3_moe",
        "hidden_size": n["num_hidden"],
        "num_hidden_layers": n["num_layers"],
        "num_attention_heads": n["num_heads"],
        "num_key_value_heads": n["num_kv_heads"],
        "head_dim": n["num_head_features"],
        "num_experts": n["num_experts"],
        "num_experts_per_tok": n["num_experts_per_token"],
        "moe_intermediate_size": n["num_expert_features"],
        "intermediate_size": n["num_expert_features"],
        "vocab_size": n["num_vocabulary"],
        "tie_word_embeddings": True,
        "max_position_embeddings": 32768,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def model_of(setup: Setup) -> Model:
    """The model that the set-up describes."""
    return parse(config_of(setup), name="ZAYA1-base")


def router_and_convolutions(setup: Setup) -> int:
    """Parameters of a layer that the family's shape leaves out.

    The router narrows the stream to r features and has two layers of r x r before its r x experts (which a plain
    router's hidden x experts stands for already); convolutions go over the channels of queries and keys.
    """
    hidden, r, experts = (int(setup.number(x)) for x in ("num_hidden", "num_router_features", "num_experts"))
    head, heads = int(setup.number("num_head_features")), setup.number("num_heads") + setup.number("num_kv_heads")
    router = hidden * r + 2 * r * r + r * experts - hidden * experts
    first, second = CONVOLUTION_STEPS
    return int(router + heads * head * first + heads * head * head * second)


def job_settings(setup: Setup, **given: Any) -> dict[str, Any]:
    """Settings of ``orrery train`` for the set-up's job with the model that it describes."""
    return settings_of(setup, model=config_file(config_of(setup), "ZAYA1-base"), **given)


def run_settings(setup: Setup) -> dict[str, Any]:
    """Settings of the whole run: snapshots as often as is best, and the failures of a cluster of that size."""
    return {
        "train_tokens": setup.number("num_training_tokens"),
        "device_mtbf_s": setup.number("mean_between_failures_s") * setup.number("num_devices"),
        "storage_bytes_per_s": setup.number("storage_bytes_per_s"),
        "checkpoint": SAVE,
    }


def least_devices(setup: Setup) -> tuple[int, TrainAnswer | None]:
    """The fewest devices over which experts must be dealt for a layout to fit, and that run; or all devices."""
    experts = int(setup.number("num_experts"))
    for ranks in (n for n in (1, 2, 4, 8, 16) if experts % n == 0):
        found = train(**job_settings(setup, ep=ranks), **run_settings(setup))
        if isinstance(found, TrainAnswer):
            return ranks, found
    return int(setup.number("num_devices")), None


def lost_frac(answer: TrainAnswer) -> float:
    """Share of a run that is not its steps: saves, failures and what they cost."""
    assert answer.run is not None
    return 1.0 - answer.run.num_steps * answer.step_time_s / answer.run.time_s


def message_rows(setup: Setup, devices: int) -> Mapping[str, Sequence[KernelRow]]:
    """Four collectives over so many of the set-up's devices, from a kibibyte to four gibibytes: ``orrery kernel``."""
    sizes = "message_bytes=" + ",".join(str(1 << n) for n in range(10, 33))
    return {kind: swept_rows(kind, sizes, device=setup.word("device"), devices=devices) for kind in KINDS}
