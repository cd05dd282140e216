"""Gaudi-2 against an A100: gathered vectors, products, and served models."""

from collections.abc import Iterator
from functools import cache
from statistics import fmean, geometric_mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import Deployment
from orrery.serving.estimate import Estimate
from orrery_papers.shared.estimated import run_of
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.setup import deployment

POOLED = (
    "Gaudi-2 runs by constants that were measured on other devices: of its own kernels only the best found over many "
    "shapes was published, 97 % of its peak where the same search found 87 % of an A100's, which says no more of other "
    "sizes ([unstated] on_paper_products)"
)

BYTES, TABLE = 2.0, 1_000_000
"""Bytes of a value, and rows that are gathered."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """From the memory's lines up to serving."""
    setup = paper.setups["gathers"]
    gaudi, gpu = (word.strip() for word in paper.setups["products"].word("devices").split(","))
    drops = [drop(gaudi, gpu, size) for size in setup.numbers("vectors_swept")]
    yield Prediction(
        claim="gather-drop",
        predicted=geometric_mean(drops),
        because="lines moved for each vector, " + ", ".join(f"{each:.3g}" for each in drops) + " by size",
        differs="a GPU's DRAM does not reach its rate with scattered sectors either; that is not in it",
    )
    products = paper.setups["products"]
    used = [used_frac(products, name) for name in (gaudi, gpu)]
    yield Prediction(
        claim="utilization",
        predicted=used[0] - used[1],
        because=f"means of {used[0]:.2f} and {used[1]:.2f}",
        differs=POOLED,
    )
    groups = paper.setups["groups"]
    retained = {name: bus_rate(groups, name, few=True) / bus_rate(groups, name, few=False) for name in (gaudi, gpu)}
    yield Prediction(
        claim="small-groups",
        predicted=retained[gaudi],
        because=f"an all-reduce's bus bandwidth, two devices over eight; {retained[gpu]:.3g} behind the GPUs' switch",
    )
    for claim, name in (("serving-1", "serving"), ("serving-8", "serving-8")):
        runs = list(pairs(paper.setups[name], gaudi, gpu))
        ratios = [ours.output_tokens_per_s / theirs.output_tokens_per_s for ours, theirs in runs]
        yield Prediction(
            claim=claim,
            predicted=geometric_mean(ratios),
            because=f"{min(ratios):.3g} to {max(ratios):.3g} over batches and lengths",
            differs=POOLED,
        )
    saved = [
        theirs.energy_j_per_token / ours.energy_j_per_token
        for ours, theirs in pairs(paper.setups["serving"], gaudi, gpu)
    ]
    words = f"joules a token, {min(saved):.3g} to {max(saved):.3g} over batches and lengths"
    idle = (
        "power between idle and the limit, which follows constants of GPUs; the claim needs equal watts under limits "
        "of 600 and 400 W ([unstated] on_paper_energy)"
    )
    yield Prediction(claim="energy-1", predicted=geometric_mean(saved) - 1.0, because=words, differs=idle)
    yield Prediction(claim="energy", predicted=geometric_mean(saved), because=words, differs=idle)


def drop(gaudi: str, gpu: str, size_bytes: float) -> float:
    """How many times more of the GPU's rate ends up in vectors of that size, by ``orrery kernel gather``."""
    width = int(size_bytes / BYTES)
    useful = [
        float(kernel_rows("gather", device=d, tokens=TABLE, width=width)["gather"].details["useful_frac"])
        for d in (gpu, gaudi)
    ]
    return useful[0] / useful[1]


def used_frac(setup: Setup, name: str) -> float:
    """Mean share of the peak over the sizes, by ``orrery kernel gemm``."""
    shares: list[float] = []
    for side in map(int, setup.numbers("sizes_swept")):
        row = kernel_rows("gemm", device=name, m=side, n=side, k=side, format=setup.word("weights_format"))["library"]
        shares.append(row.roofs_s["compute"] / row.time_s)
    return fmean(shares)


def bus_rate(setup: Setup, name: str, *, few: bool) -> float:
    """Bytes a second that an all-reduce puts on each device's links, among some or all devices of a server."""
    whole, sent = int(setup.number("num_devices_per_node")), setup.number("message_bytes")
    group = int(setup.number("num_devices")) if few else whole
    rows = kernel_rows(
        "all-reduce",
        device=name,
        devices=group,
        devices_per_node=whole,
        message_bytes=sent,
        engine="nccl",
        peer_to_peer=True,
        variant="fastest",
    )
    return 2.0 * (group - 1) / group * sent / rows["fastest"].time_s


def pairs(setup: Setup, gaudi: str, gpu: str) -> Iterator[tuple[Estimate, Estimate]]:
    """Both devices at every batch and length."""
    sides = served(setup, gaudi, setup.word("engine")), served(setup, gpu, setup.word("baseline_engine"))
    for batch in setup.numbers("batches_swept"):
        for tokens in setup.numbers("output_tokens_swept"):
            ours, theirs = (run_of(d, int(batch), setup.number("input_tokens"), tokens) for d in sides)
            yield ours, theirs


def served(setup: Setup, name: str, engine: str) -> Deployment:
    """The set-up's model on one of the devices."""
    return _served(setup.word("model"), name, engine, setup.word("layout"))


@cache
def _served(model: str, name: str, engine: str, layout: str) -> Deployment:
    """One object for equal deployments, so that their tables keep."""
    return deployment(Setup(name="served", inputs={}), model=model, device=name, engine=engine, layout=layout)
