"""Deep Optimizer States: one device whose optimizer states lie on the host, updated there or by both processors."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import Tiers
from orrery.execution.offload.work import Work
from orrery.models.model import Linear, Model
from orrery.models.parts import attention, layer, mlp
from orrery_papers.shared.offloaded import step_of, tiers_for, work_of

LOOPS = "kernel launches and the framework's loops over parameters are not in the lanes; the sample run shows them"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The paper's choice of stride for the headline, the artifact's for the sample logs."""
    claims = {claim.id: claim for claim in paper.claims}
    head, log = claims["iteration"].setup, claims["log-iteration"].setup
    before, best, sample = baseline(head), interleaved(head), interleaved(log)
    stride = int(best.choices["stride"])
    through = "all subgroups" if stride == 1 else f"one subgroup in {stride}"
    yield Prediction(
        claim="iteration",
        predicted=before.step_s / best.step_s,
        differs=LOOPS,
        because=f"{through} through the device, as the model chooses; pinned gradients",
    )
    yield Prediction(
        claim="log-iteration-baseline",
        predicted=before.step_s,
        differs=f"{LOOPS}: its backward pass takes 4.7 s",
        because="pageable gradients hold the device up, then the host updates alone",
    )
    yield Prediction(
        claim="log-iteration",
        predicted=sample.step_s,
        because="every second subgroup through the device",
        differs="in the sample run the interleaved update takes as long as the host's alone",
    )
    yield Prediction(
        claim="log-update-baseline",
        predicted=before.choices["update_s"],
        because="the host's stated rate, 16-bit parameters up behind it",
    )
    made = work(head)
    yield Prediction(
        claim="log-forward",
        predicted=made.num_layers * made.forward_s + made.outer_forward_s,
        because="kernels of one sequence of 2048 tokens",
        differs=LOOPS,
    )
    yield Prediction(
        claim="log-ratio", predicted=before.step_s / sample.step_s, because="the two iterations above", differs=LOOPS
    )


def model(setup: Setup) -> Model:
    """A gated decoder of the stated sizes, embedding and head apart."""
    hidden, heads = int(setup.number("num_hidden")), int(setup.number("num_heads"))
    vocabulary = int(setup.number("num_vocabulary"))
    block = layer(
        "dense",
        attention(hidden, heads, int(setup.number("num_kv_heads")), hidden // heads),
        mlp(hidden, int(setup.number("num_ffn_features"))),
        hidden_size=hidden,
    )
    head = Linear(name="head", in_features=hidden, out_features=vocabulary, shard="vocab", role="head")
    return Model(
        name=setup.name,
        family="llama",
        hidden_size=hidden,
        vocab_size=vocabulary,
        head=head,
        is_head_tied=False,
        max_context_tokens=int(setup.number("sequence_tokens")),
        embedding_parameters=vocabulary * hidden,
        blocks=(replace(block, count=int(setup.number("num_layers"))),),
        other_parameters=hidden,
    )


def work(setup: Setup) -> Work:
    """One step of one device."""
    return work_of(setup, model(setup))


def tiers(setup: Setup) -> Tiers:
    """The host updates at the rate that the sample log shows."""
    rate = setup.number("num_host_updates_per_s") * work(setup).update_bytes
    return replace(tiers_for(setup), update_bytes_per_s=rate)


def baseline(setup: Setup) -> OffloadedStep:
    """All updates on the host, gradients by way of pageable memory."""
    return step_of("zero-offload", work(setup), tiers(setup), is_pinned=False)


def interleaved(setup: Setup) -> OffloadedStep:
    """The set-up's stride, or the model's choice."""
    size = setup.number("num_subgroup_parameters", 1e8)
    stride = int(setup.number("num_update_stride"))
    return step_of("interleaved-update", work(setup), tiers(setup), num_subgroup_parameters=size, stride=stride)
