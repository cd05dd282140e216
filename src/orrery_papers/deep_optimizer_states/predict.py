"""Deep Optimizer States: one device whose optimizer states lie on the host, updated there or by both processors."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train_offload import OffloadAnswer
from orrery_papers.shared.described import config_file
from orrery_papers.shared.offloaded import step_of

LOOPS = "kernel launches and the framework's loops over parameters are not in the lanes; the sample run shows them"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The paper's choice of stride for the headline, the artifact's for the sample logs."""
    claims = {claim.id: claim for claim in paper.claims}
    head, log = claims["iteration"].setup, claims["log-iteration"].setup
    before, best, sample = baseline(head), interleaved(head), interleaved(log)
    yield Prediction(
        claim="iteration",
        predicted=before.step_time_s / best.step_time_s,
        differs=LOOPS,
        because="the stride through the device that makes the step shortest, pinned gradients; pageable ones and an "
        "update on the host alone before",
    )
    yield Prediction(
        claim="log-iteration-baseline",
        predicted=before.step_time_s,
        differs=f"{LOOPS}: its backward pass takes 4.7 s",
        because="pageable gradients hold the device up, then the host updates alone",
    )
    yield Prediction(
        claim="log-iteration",
        predicted=sample.step_time_s,
        because="every second subgroup through the device",
        differs="in the sample run the interleaved update takes as long as the host's alone",
    )
    yield Prediction(
        claim="log-update-baseline",
        predicted=before.lanes["cpu"],
        because="the host's stated rate over all parameters",
    )
    yield Prediction(
        claim="log-forward",
        predicted=before.parts["forward"],
        because="kernels of one sequence of 2048 tokens",
        differs=LOOPS,
    )
    yield Prediction(
        claim="log-ratio",
        predicted=before.step_time_s / sample.step_time_s,
        because="the two iterations above",
        differs=LOOPS,
    )


def model_word(setup: Setup) -> str:
    """A gated decoder of the stated sizes, embedding and head apart."""
    lines = {
        "num_hidden_layers": "num_layers",
        "hidden_size": "num_hidden",
        "num_attention_heads": "num_heads",
        "num_key_value_heads": "num_kv_heads",
        "intermediate_size": "num_ffn_features",
        "vocab_size": "num_vocabulary",
        "max_position_embeddings": "sequence_tokens",
    }
    sizes = {key: int(setup.number(line)) for key, line in lines.items()}
    return config_file({"model_type": "llama", "tie_word_embeddings": False, **sizes}, setup.name)


def baseline(setup: Setup) -> OffloadAnswer:
    """All updates on the host, gradients by way of pageable memory."""
    return step_of(setup, "zero-offload", model=model_word(setup), knob="offload.is_pinned=false")


def interleaved(setup: Setup) -> OffloadAnswer:
    """The set-up's stride, or the one that makes the step shortest."""
    size, stride = setup.number("num_subgroup_parameters", 1e8), int(setup.number("num_update_stride"))
    knobs = [f"offload.num_subgroup_parameters={size:g}", f"offload.stride={stride}"]
    return step_of(setup, "interleaved-update", model=model_word(setup), knob=knobs)
