"""PipeLLM: weights and caches that cross to a confidential device, encrypted in turn or ahead."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, inf

import numpy as np

from orrery.base.units import percent
from orrery.catalog.traces import load_trace
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import Deployment
from orrery.execution.memory import USABLE_FRAC, Infeasible, activation_bytes
from orrery.execution.shard import cache_of, shard
from orrery.execution.techniques.encrypted_serial import SerialKnobs
from orrery.execution.transfer import HOST_RATE_FRAC, TRANSFERS, knob_array
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.passes import decodes, pass_of, prompts
from orrery_papers.shared.setup import deployment, of_lengths

INPUT_TOKENS, OUTPUT_TOKENS = 512, 32  # of offloaded runs: see [unstated] lengths
NUM_REQUESTS = 400  # of swapping runs
PLAIN, SERIAL, PIPELINED = "plain-copy", "encrypted-serial", "encrypted-pipelined"
HIT_FRAC = 1.0  # see [unstated] hit_rate


def predict(paper: Paper) -> Iterator[Prediction]:
    """Offloaded weights for the larger model, swapped caches for the smaller."""
    large, small = paper.setups["opt-66b"], paper.setups["opt-30b"]
    yield Prediction(
        claim="drop-opt-66b",
        predicted=1.0 - offloaded(large, SERIAL) / offloaded(large, PLAIN),
        because="all weights cross in every pass, each layer's behind the cipher and the copy",
        differs="the rate of one thread's cipher, which was not found and decides ([unstated] cipher_rate)",
    )
    ahead = 1.0 - offloaded(large, PIPELINED) / offloaded(large, PLAIN)
    yield Prediction(
        claim="pipelined-overhead",
        predicted=ahead,
        because="the cipher keeps up with the link; the link of a confidential device is slower",
        differs="batch and lengths, which were not found: what a layer computes hides the slower link",
    )
    missed = 1.0 - offloaded(large, PIPELINED, hit_frac=0.0) / offloaded(large, PIPELINED)
    yield Prediction(
        claim="no-correct-guess",
        predicted=missed,
        because="every layer is encrypted when it is asked for, on as many cores, in pieces that are copied meanwhile",
        differs="what is thrown away with a wrong guess, and threads that encrypt while others do",
    )
    plain, _ = swapped(small, PLAIN)
    ahead, hit_frac = swapped(small, PIPELINED)
    yield Prediction(
        claim="drop-opt-30b",
        predicted=1.0 - swapped(small, SERIAL)[0] / plain,
        because="chat requests at once; sequences that do not fit go to the host and come back through the cipher",
        differs="how often caches overflow follows from lengths and load, which are not written",
    )
    yield Prediction(
        claim="pipelined-vllm",
        predicted=1.0 - ahead / plain,
        because=f"the same with caches encrypted ahead, of which {percent(hit_frac)} were guessed by a predictor that "
        "runs on the simulated order of swaps",
        differs="how often caches overflow follows from lengths and load, which are not written",
    )


def link_bytes_per_s(words: Setup, transfer: str) -> float:
    """Bandwidth of copies: a plain link its usual share of the stated rate, an encrypted one its measured rate."""
    if transfer == PLAIN:
        return words.number("host_link_bytes_per_s") * HOST_RATE_FRAC
    return words.number("host_link_encrypted_bytes_per_s")


def knobs_of(words: Setup, transfer: str, hit_frac: float | None, copy_bytes: float = inf) -> dict[str, float]:
    """Pipelined: cores that keep up with the link (see [unstated] threads), and how often a copy is guessed (None: the
    simulation's own predictor says). Small copies pay a call each.

    Bytes that move in copies of c leave a core at c / (c / rate + call).
    """
    if transfer == PLAIN:
        return {}
    rate, call_s = SerialKnobs().core_bytes_per_s, SerialKnobs().call_s
    knobs = {"core_bytes_per_s": rate / (1.0 + call_s * rate / copy_bytes)}
    if transfer == PIPELINED:
        knobs["num_cores"] = ceil(link_bytes_per_s(words, transfer) / rate)
        knobs |= {} if hit_frac is None else {"hit_frac": hit_frac}
    return knobs


def block_bytes(d: Deployment) -> float:
    """One copy of a swap: the keys, or the values, of one block in one layer."""
    return cache_of(d).bytes_per_token * d.engine.block_tokens / (2.0 * d.model.num_layers)


def serving(words: Setup) -> Deployment:
    """One device, whatever fits on it; OPT in 16 bits."""
    return deployment(words, layout="tp1", version="0.5")


def batch_beside_stream(d: Deployment) -> int:
    """Sequences whose caches fit beside two layers' weights (one computed, one on its way) and the activations."""
    each = cache_of(d).sequence_bytes(INPUT_TOKENS + OUTPUT_TOKENS)
    buffers = 2.0 * shard(d).weight_bytes / d.model.num_layers
    left = USABLE_FRAC * d.cluster.device.memory_capacity_bytes - buffers - activation_bytes(d)
    return max(1, int(left / each))


def streamed_s(kernels_s: float, weight_bytes: float, num_layers: int, layer_s: float) -> float:
    """A pass whose weights come layer by layer: each layer's copy runs under the layer before it.

    layer copy + (L - 1) max(kernels/L, layer copy) + kernels/L.
    """
    if weight_bytes <= 0.0:
        return kernels_s
    here_s = kernels_s / num_layers
    return layer_s + (num_layers - 1) * max(here_s, layer_s) + here_s


def offloaded(words: Setup, transfer: str, *, hit_frac: float = HIT_FRAC) -> float:
    """Answer tokens a second of a batch whose weights all lie in the host's memory."""
    d = serving(words)
    batch, layers, weights = batch_beside_stream(d), d.model.num_layers, shard(d).weight_bytes
    technique = TRANSFERS.get(transfer)
    knobs = knob_array(technique, **knobs_of(words, transfer, hit_frac))
    link = link_bytes_per_s(words, transfer)
    layer_s = float(technique.rule(weights / layers, link, d.cluster.device.host.latency_s, knobs))
    context = np.array([INPUT_TOKENS + OUTPUT_TOKENS // 2])
    first = float(pass_of(d, prompts(np.array([INPUT_TOKENS]), batch)).total_s[0])
    later = float(pass_of(d, decodes(np.array([batch]), context)).total_s[0])
    times = [streamed_s(s, weights, layers, layer_s) for s in (first, later)]
    return batch * OUTPUT_TOKENS / (times[0] + (OUTPUT_TOKENS - 1) * times[1])


def swapped(words: Setup, transfer: str) -> tuple[float, float]:
    """Answer tokens a second where caches overflow to the host, and how often the next return was guessed."""
    run = swapping_run(words, transfer)
    if isinstance(run, Infeasible):
        return 0.0, 0.0
    return float(run.requests.output_tokens.sum()) / run.duration_s, run.counters.get("swap_hit_frac", 0.0)


def swapping_run(words: Setup, transfer: str) -> Simulated | Infeasible:
    """Chat requests, all at once, preempted to the host."""
    d = serving(words)
    host = d.cluster.device.host
    rate = link_bytes_per_s(words, transfer) / HOST_RATE_FRAC
    device = replace(d.cluster.device, host=replace(host, each_way_bytes_per_s=rate))
    service = Service(
        pools=(Pool(deployment=replace(d, cluster=replace(d.cluster, device=device))),),
        preemption="swap",
        swap=transfer,
        swap_knobs=knobs_of(words, transfer, None, block_bytes(d)),
        prefix_caching=False,
    )
    return simulate(service, chat(d))


def chat(d: Deployment) -> Requests:
    """The first chat requests that fit into the model's context."""
    trace = load_trace("chat")
    fits = np.flatnonzero(trace.input_tokens + trace.output_tokens <= d.model.max_context_tokens)[:NUM_REQUESTS]
    return of_lengths(trace.input_tokens[fits], trace.output_tokens[fits], inf)
