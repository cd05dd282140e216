"""From the facts of a paper's set-up to deployments and requests.

Lengths are lognormal, from whatever a paper states: median and 90th percentile, mean and deviation, or one of them
with a spread that the caller names (and says why). Requests longer than the server's context are left out.
"""

import math
import re
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from orrery.base.errors import FactError
from orrery.engine.streams import stream
from orrery.evidence.paper_file import Setup
from orrery.execution.layout import Deployment, Layout
from orrery.hardware.device import Device
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario
from orrery.serving.arrivals import arrivals
from orrery.serving.requests import Floats, Ints, Requests
from orrery.serving.synthesis.clipped import lognormal_centre

Z_90 = 1.2815515655446004
"""The 90th percentile of a standard normal: sigma = log(p90 / p50) / Z_90."""

DRAWN_PER_KEPT = 3
"""Lengths drawn for one that is kept, where long ones are left out."""

DEGREES = {f.name for f in fields(Layout)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal:
    """exp(mu + sigma z), whole tokens, at least 1 and at most ``most_tokens``."""

    mu: float
    sigma: float
    most_tokens: float = math.inf

    def draw(self, count: int, normals: np.random.Generator) -> Ints:
        """``count`` lengths."""
        drawn = np.exp(self.mu + self.sigma * normals.standard_normal(count))
        return np.clip(np.rint(drawn), 1, self.most_tokens).astype(np.int64)


def layout_of(words: str) -> Layout:
    """Degrees as papers write them.

    >>> str(layout_of("tp4 pp2"))
    'tp4 pp2'
    """
    found = re.findall(r"([a-z]+)(\d+)", words)
    if not found or any(name not in DEGREES for name, _ in found):
        raise FactError(f"layout: {words!r} is no layout; write degrees such as 'tp4 pp2'.")
    return Layout(**{name: int(degree) for name, degree in found})


def settings_of(setup: Setup, *, device: str = "", layout: str = "", model: str = "") -> dict[str, Any]:
    """The deployment of a set-up as settings of a scenario, for commands that answer it; engines as of today."""
    degrees = layout_of(layout or setup.word("layout") or "tp1")
    found: dict[str, Any] = {
        "model": model or setup.word("model"),
        "device": device or setup.word("device"),
        **{name: degree for name in DEGREES if (degree := getattr(degrees, name))},
    }
    if stated := setup.word("weights_format"):
        found["weights"] = stated
    return found


def deployment(
    setup: Setup,
    *,
    device: str = "",
    layout: str = "",
    model: str = "",
    engine: str = "vllm",
    version: str = "",
    max_num_seqs: int = 0,
    max_num_batched_tokens: int = 0,
    utilization_frac: float = 0.0,
    **settings: str | float,
) -> Deployment:
    """The deployment that a set-up describes; what is given here stands in place of its lines.

    ``settings`` are further settings of a scenario, by the names of its file.
    Without a version, the set-up's counts, or the engine's oldest era.
    The link between machines is shared by the devices of a machine; memory use and context are the set-up's.
    """
    scenario = settings_of(setup, device=device, layout=layout, model=model) | {
        "engine": engine,
        "engine_version": version or setup.word("engine_version", "0"),
        "batch": 1,
        "input_tokens": 1,
        "output_tokens": 1,
        **settings,
    }
    if max_num_seqs:
        scenario["max_num_seqs"] = max_num_seqs
    if max_num_batched_tokens:
        scenario["max_num_batched_tokens"] = max_num_batched_tokens
    if frac := utilization_frac or setup.number("memory_utilization_frac"):
        scenario["gpu_memory_utilization"] = frac
    found = resolve(read_scenario(scenario)).deployment
    per_node = int(setup.number("num_devices_per_node", found.cluster.devices_per_node))
    linked = joined(found.cluster.device, setup.number("link_bytes_per_s"), per_node)
    return replace(found, cluster=replace(found.cluster, device=linked, devices_per_node=per_node))


def joined(device: Device, link_bytes_per_s: float, devices_per_node: int) -> Device:
    """The device with its part of a machine's link to other machines; as the catalogue says where none is stated."""
    if not link_bytes_per_s:
        return device
    each = link_bytes_per_s / devices_per_node
    return replace(device, scaleout=replace(device.scaleout, each_way_bytes_per_s=each))


def length_of(setup: Setup, side: str, *, sigma: float = 0.0, most_tokens: float = math.inf) -> Lognormal:
    """The lengths of one ``side``, "input" or "output"; ``sigma`` is used where the paper states no spread.

    A mean is kept even where lengths are cut at ``most_tokens``.
    """
    p50, p90 = setup.number(f"{side}_p50_tokens"), setup.number(f"{side}_p90_tokens")
    mean, std = _mean(setup, side), setup.number(f"{side}_std_tokens")
    if alike := setup.number(f"{side}_tokens"):
        return Lognormal(mu=math.log(alike), sigma=0.0)
    if p50 and p90:
        return Lognormal(mu=math.log(p50), sigma=math.log(p90 / p50) / Z_90, most_tokens=most_tokens)
    if p50:
        return Lognormal(mu=math.log(p50), sigma=sigma, most_tokens=most_tokens)
    if not mean:
        raise FactError(f"setup {setup.name}: states no {side} length; write {side}_mean_tokens or {side}_tokens.")
    if std:
        sigma = math.sqrt(math.log1p((std / mean) ** 2))
    most = min(most_tokens, 1e8)
    mu = lognormal_centre(mean, sigma, most) if sigma > 0.0 and mean < most else math.log(min(mean, most))
    return Lognormal(mu=mu, sigma=sigma, most_tokens=most_tokens)


def _mean(setup: Setup, side: str) -> float:
    """The stated mean; of answers also what the stated share of the prompt says."""
    mean, share = setup.number(f"{side}_mean_tokens"), setup.number("input_per_output_ratio")
    return setup.number("input_mean_tokens") / share if side == "output" and not mean and share else mean


def requests(
    input: Lognormal, output: Lognormal, rate_per_s: float, count: int, *, most_tokens: float = math.inf, seed: int = 0
) -> Requests:
    """``count`` Poisson requests whose prompt and answer together fit into ``most_tokens``; an infinite rate: at once.

    Another rate scales the gaps and leaves the lengths alone.
    """
    drawn = count if math.isinf(most_tokens) else count * DRAWN_PER_KEPT
    prompts = input.draw(drawn, stream(seed, "lengths/input"))
    answers = output.draw(drawn, stream(seed, "lengths/output"))
    fits = np.flatnonzero(prompts + answers <= most_tokens)[:count]
    if fits.size < count:
        raise FactError(f"lengths: only {fits.size} of {drawn} requests fit into {most_tokens:g} tokens.")
    return Requests(
        arrive_s=arrivals("poisson", count, rate_per_s, seed), input_tokens=prompts[fits], output_tokens=answers[fits]
    )


def all_equal(input_tokens: int, output_tokens: int, rate_per_s: float, count: int, seed: int = 0) -> Requests:
    """``count`` Poisson requests of one length; an infinite rate: all at once."""
    return of_lengths(np.full(count, input_tokens), np.full(count, output_tokens), rate_per_s, seed)


def of_lengths(input_tokens: Ints, output_tokens: Ints, rate_per_s: float, seed: int = 0) -> Requests:
    """Poisson requests of given lengths, in their order."""
    arrive_s: Floats = arrivals("poisson", input_tokens.size, rate_per_s, seed)
    return Requests(arrive_s=arrive_s, input_tokens=input_tokens, output_tokens=output_tokens)
