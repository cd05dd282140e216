"""ZeRO-Offload: largest models and rates on one device, on a DGX-2 and on eight of them."""

from collections.abc import Iterator
from functools import partial

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload.layers import layer_work
from orrery.execution.offload.shapes import gpt_of
from orrery.execution.offload.tiers import shortage
from orrery.execution.offload.work import Work
from orrery_papers.shared.offloaded import device_of, largest_of, step_of, tiers_for, work_of

BASELINE_PARAMETERS = 1.4e9
BASELINE_BATCHES = (1, 2, 4, 8, 16, 32)
KERNELS = "products of 2020 on a V100 reached less than the catalogue's, and small kernels were not fused"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Sizes from bytes, rates from lanes."""
    claims = {claim.id: claim for claim in paper.claims}
    one, many, node = (claims[k].setup for k in ("largest-one-gpu", "scaling-128", "largest-dgx-2"))
    offloaded, plain = largest_on_one(one, "zero-offload"), largest_on_one(one, "all-on-device", has_buckets=True)
    yield Prediction(
        claim="largest-one-gpu",
        predicted=offloaded,
        because="two bytes a parameter, two layers' gradients and checkpoints on the device",
    )
    yield Prediction(
        claim="largest-one-gpu-pytorch",
        predicted=plain,
        because="16 bytes a parameter, gradients once more in buckets, checkpoints",
        differs="fragmentation of the allocator and what the framework keeps beside are not counted",
    )
    yield Prediction(
        claim="largest-ratio",
        predicted=offloaded / plain,
        because="the two sizes above",
        differs="the plain system holds more here than reported",
    )
    yield Prediction(
        claim="rate-10b",
        predicted=rate(claims["rate-10b"].setup, 1),
        because="gradients stream under the backward pass; one update on the host for 51 micro-batches",
        differs=KERNELS,
    )
    yield Prediction(
        claim="rate-pytorch",
        predicted=max(plain_rates(claims["rate-pytorch"].setup)),
        because="all on the device at the fastest micro-batch that fits",
        differs=KERNELS,
    )
    alone, together = rate(many, 1), rate(many, 128)
    yield Prediction(
        claim="scaling-128",
        predicted=128.0 * together / alone,
        because="link and host work shrink with the ranks; gathering parameters over the network is what is added",
    )
    yield Prediction(
        claim="rate-128", predicted=together, because="the same on 128 devices, four sequences each", differs=KERNELS
    )
    ways = int(node.word("layout").removeprefix("tp"))
    over, under = largest_on_node(node, "zero-offload", ways), largest_on_node(node, "all-on-device", 16)
    yield Prediction(
        claim="largest-dgx-2", predicted=over, because="an eighth of the parameters a device; the host holds the states"
    )
    yield Prediction(
        claim="largest-dgx-2-ratio",
        predicted=over / under,
        because="16 bytes a parameter over 16 devices otherwise",
        differs="what the baseline keeps beside 16 bytes a parameter is not itemised in the text read",
    )
    delayed = claims["delayed-update"].setup
    times = [step_of("zero-offload", work(delayed), tiers_for(delayed), is_delayed=x).step_s for x in (False, True)]
    yield Prediction(
        claim="delayed-update",
        predicted=times[0] / times[1],
        because="10B, one micro-batch of 8 a step",
        differs="other sizes of the figure are in a table that is an image",
    )


def work(setup: Setup, batch: int = 0, num_micro_batches: int = 1) -> Work:
    """A step of the set-up with attention as of 2020."""
    return work_of(
        setup,
        is_attention_fused=False,
        num_micro_batches=num_micro_batches,
        sequences=batch or int(setup.number("num_micro_batch")),
    )


def rate(setup: Setup, ranks: int) -> float:
    """Flops a second a device; on many ranks each has its part of the total batch in one micro-batch."""
    total, micro = int(setup.number("num_global_batch")), int(setup.number("num_micro_batch"))
    if ranks > 1:
        sharing, per_link = int(setup.number("num_devices_per_node")), int(setup.number("num_devices_per_link"))
        tiers = tiers_for(setup, num_ranks=ranks, num_sharing=sharing, num_per_link=per_link)
        return step_of("zero-offload", work(setup, total // ranks), tiers).flops_per_s
    return step_of("zero-offload", work(setup, micro, round(total / micro)), tiers_for(setup)).flops_per_s


def plain_rates(setup: Setup) -> Iterator[float]:
    """Flops a second of the largest plain model, for every micro-batch that fits."""
    tiers, total = tiers_for(setup), int(setup.number("num_global_batch"))
    for batch in BASELINE_BATCHES:
        made = layer_work(
            gpt_of(BASELINE_PARAMETERS),
            device_of(setup),
            sequences=batch,
            num_micro_batches=total // batch,
            sequence_tokens=int(setup.number("sequence_tokens")),
            is_attention_fused=False,
        )
        step = step_of("all-on-device", made, tiers, has_buckets=True)
        yield step.flops_per_s if shortage(step.held, tiers) is None else 0.0


def sized(setup: Setup, tp: int, hidden_size: int, num_parameters: float) -> Work:
    """The work of a model of that size, cut over ``tp`` devices."""
    return layer_work(
        gpt_of(num_parameters, hidden_size=hidden_size),
        device_of(setup),
        tp=tp,
        is_attention_fused=False,
        sequences=int(setup.number("num_micro_batch")),
        sequence_tokens=int(setup.number("sequence_tokens")),
    )


def largest_on_one(setup: Setup, name: str, **knobs: bool) -> float:
    """Parameters on one device: of the set-up's width, or small models of GPT-3's proportions on the device alone."""
    width = int(setup.number("num_hidden")) if name == "zero-offload" else 0
    least = 1e9 if width else 2e8
    return largest_of(name, tiers_for(setup), partial(sized, setup, 1, width), least, **knobs)


def largest_on_node(setup: Setup, name: str, tp: int) -> float:
    """Parameters on all devices of a node, ``tp`` of which cut every layer."""
    devices = int(setup.number("num_devices"))
    tiers = tiers_for(setup, num_ranks=devices // tp, num_sharing=devices)
    return largest_of(name, tiers, partial(sized, setup, tp, 0), 1e9)
