"""EnergonAI: batches with and without their padding, and pipelines whose sends block or do not."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import inf

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.reproduce.prediction import Prediction
from orrery.evidence.reproduce.setup import deployment, of_lengths
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate

MODEL, LAYERS_PER_DEVICE = "gpt3-175b", 12  # see [unstated] models
TENSOR_DEVICE, PIPELINE_DEVICE = "a100-sxm-80gb", "a100-pcie-80gb"  # see [unstated] devices
DEGREES = (2, 4, 8)  # tensor degrees; the mean of them is compared
STAGES = (2, 4)
BATCH, LONGEST_TOKENS, NUM_BATCHES = 16, 128, 8  # see [unstated] batch_and_padding
PACKED, PADDED = "packed-batch", "request-level"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Latency at every tensor degree, and scaling over stages."""
    words = paper.setups["tensor-parallel"]
    cuts = [1.0 - latency_s(words, n, PACKED) / latency_s(words, n, PADDED) for n in DEGREES]
    said = ", ".join(f"{c:.2f}" for c in cuts)
    fill = float(lengths().mean()) / LONGEST_TOKENS
    yield Prediction(
        claim="latency", predicted=max(cuts),
        because=f"packed against padded batches that are {fill:.0%} full, tp 2, 4 and 8: {said}",
    )  # fmt: skip
    gains = [scaling(words, n, overlaps=True) / scaling(words, n, overlaps=False) - 1.0 for n in STAGES]
    yield Prediction(
        claim="scalability", predicted=max(gains),
        because="throughput of the stages over as many lone ones, sends that do not wait against sends that do",
    )  # fmt: skip
    yield Prediction(
        claim="scale", predicted=float(serving(words, 8, "tp8", 96).model.num_parameters),
        because="parameters of the largest model tried",
    )


_KEPT: dict[tuple[str, str, int], Deployment] = {}


def serving(words: Setup, num_devices: int, layout: str, layers: int, device: str = TENSOR_DEVICE) -> Deployment:
    """That many layers of the model, in 16 bits."""
    key = (layout, device, layers)
    if key not in _KEPT:
        found = deployment(
            words, device=device, model=MODEL, layout=layout, engine="fastertransformer", max_num_seqs=BATCH,
            max_num_batched_tokens=BATCH * LONGEST_TOKENS,
        )  # fmt: skip
        block = replace(found.model.blocks[0], count=layers)
        _KEPT[key] = replace(found, model=replace(found.model, blocks=(block,)))
    return _KEPT[key]


@lru_cache(maxsize=1)
def lengths() -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Prompts of any length up to the longest, equally likely; the first of each batch is the longest."""
    drawn = np.random.default_rng(0).integers(1, LONGEST_TOKENS + 1, BATCH * NUM_BATCHES)
    drawn[::BATCH] = LONGEST_TOKENS
    return drawn


def load() -> Requests:
    """Prompts alone (one token comes back), all at once."""
    asked = lengths()
    return of_lengths(asked, np.ones_like(asked), inf)


def _served(d: Deployment, policy: str, overlaps: bool = False) -> Simulated | Infeasible:
    service = Service(pools=(Pool(deployment=d),), policy=policy, overlaps_sends=overlaps, prefix_caching=False)
    return simulate(service, load())


def latency_s(words: Setup, num_devices: int, policy: str) -> float:
    """A batch's time, mean over batches."""
    d = serving(words, num_devices, f"tp{num_devices}", LAYERS_PER_DEVICE * num_devices)
    out = _served(d, policy)
    return inf if isinstance(out, Infeasible) else out.duration_s / NUM_BATCHES


def scaling(words: Setup, stages: int, *, overlaps: bool) -> float:
    """Prompts a second of so many stages over so many times those of one, each stage with as many layers."""
    rates: list[float] = []
    for n in (1, stages):
        d = serving(words, n, f"tp1 pp{n}", LAYERS_PER_DEVICE * n, PIPELINE_DEVICE)
        out = _served(d, PACKED, overlaps)
        rates.append(0.0 if isinstance(out, Infeasible) else load().count / out.duration_s)
    return rates[1] / rates[0] if rates[0] else 0.0
