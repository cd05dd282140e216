"""How long expert parallelism takes to send tokens to their experts (dispatch) and to bring results back (combine).

    t = (latency^p + (T slope)^p)^(1/p)
    latency = launch + E expert_s + out_steps scaleout_step
    slope   = token_s / blocks + max(copies inside / (rate W, and blocks x block rate), copies across / scale-out rate)

for T tokens a device and E experts. Copies of a token are counted by the routes (``routes``): kernels for low
latency send one to each of its k experts; kernels for throughput send one to each device that has any of them, and
across nodes one to each node. [deepep], [tensorrt-llm]
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.extension_points import ExtensionPoint
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.network import techniques
from orrery.network.group import group_of
from orrery.network.resolve import find, library_key
from orrery.network.routing import Copies, Routing
from orrery.network.timing import NOTHING, CollectiveTiming, Floats
from orrery.numerics.registry import get_format

EXCHANGE_KINDS = ("moe_dispatch", "moe_combine", "moe_prepare")

COMBINE_BYTES = 2.0
"""Results return as bf16 whatever was dispatched: they are summed. [deepep], [tensorrt-llm]"""

DEEPEP_DISPATCH_BYTES = 1.0 + 4.0 / 128.0
"""DeepEP dispatches fp8 with one fp32 scale for 128 channels. [deepep]"""

DEFAULT_LIBRARY = "deepep-low-latency"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenExchange:
    """One dispatch or combine of an expert-parallel layer. ``tokens`` are those of one device, before routing.

    ``num_sms`` is how many multiprocessors a throughput kernel may take; 0 is its default of 20.
    """

    kind: str  # one of EXCHANGE_KINDS
    num_devices: int
    tokens: int | float | NDArray[np.int64] | Floats
    hidden_size: int
    num_experts: int
    experts_per_token: int
    format: str = "fp8"  # of what is dispatched
    devices_per_node: int = 0
    library: str = ""
    num_sms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangePlan:
    """The two numbers of one exchange, the power that joins them, and its bare roof."""

    latency_s: float
    slope_s_per_tokens: float
    exponent_ratio: float
    roof_s_per_tokens: float
    sent_bytes_per_tokens: float
    name: str


def predict_exchange(exchange: TokenExchange, device: Device) -> CollectiveTiming:
    """The time for one number of tokens, or for an array of them."""
    plan = _plan(
        exchange.kind,
        exchange.num_devices,
        exchange.hidden_size,
        exchange.num_experts,
        exchange.experts_per_token,
        exchange.format,
        exchange.devices_per_node,
        exchange.library,
        exchange.num_sms,
        device,
    )
    if isinstance(exchange.tokens, np.ndarray):
        return _many(plan, exchange.tokens.astype(np.float64))
    tokens = float(exchange.tokens)
    if tokens <= 0.0 or plan.name == "none":
        return NOTHING
    linear_s, power = tokens * plan.slope_s_per_tokens, plan.exponent_ratio
    high_s, low_s = max(plan.latency_s, linear_s), min(plan.latency_s, linear_s)
    return CollectiveTiming(
        time_s=high_s * (1.0 + (low_s / high_s) ** power) ** (1.0 / power),
        wire_s=tokens * plan.roof_s_per_tokens,
        latency_s=plan.latency_s,
        sent_bytes=tokens * plan.sent_bytes_per_tokens,
        algorithms=(plan.name,),
        chosen=0,
    )


def _many(plan: ExchangePlan, tokens: Floats) -> CollectiveTiming:
    some = (tokens > 0).astype(np.float64)
    return CollectiveTiming(
        time_s=time_of(plan, tokens) * some,
        wire_s=tokens * plan.roof_s_per_tokens,
        latency_s=np.multiply(some, plan.latency_s),
        sent_bytes=tokens * plan.sent_bytes_per_tokens,
        algorithms=(plan.name,),
        chosen=np.zeros(tokens.shape, dtype=np.int64),
    )


def time_of(plan: ExchangePlan, tokens: Floats) -> Floats:
    """Latency and slope joined by the power; the larger is taken out of it, so that units cannot matter."""
    linear_s = tokens * plan.slope_s_per_tokens
    high_s = np.maximum(np.maximum(linear_s, plan.latency_s), 1e-30)
    low_s = np.minimum(linear_s, plan.latency_s)
    power = plan.exponent_ratio
    return high_s * (1.0 + (low_s / high_s) ** power) ** (1.0 / power)


def exchange_calibration(exchange: TokenExchange, device: Device) -> Calibration:
    """The constants that ``predict_exchange`` uses, and where they come from."""
    return find(device, exchange.kind, exchange.library or DEFAULT_LIBRARY)


EXCHANGES = ExtensionPoint(name="network.exchange", folder=techniques, noun="token exchange")


def routes(routing: Routing, constants: Mapping[str, float]) -> Iterator[tuple[str, Copies]]:
    """The ways that the library's constants speak of: ``per_expert`` or ``per_device`` set to 1."""
    for technique in EXCHANGES.techniques.values():
        copies: Copies = technique.rule(routing)
        if constants.get(copies.transport):
            yield technique.name, copies


@lru_cache(maxsize=4096)
def _plan(
    kind: str,
    num_devices: int,
    hidden_size: int,
    num_experts: int,
    experts_per_token: int,
    format: str,
    devices_per_node: int,
    library: str,
    num_sms: int,
    device: Device,
) -> ExchangePlan:
    group = group_of("all_to_all", num_devices, devices_per_node, device)
    routing = Routing(group=group, num_experts=num_experts, experts_per_token=experts_per_token)
    constants = find(device, kind, library or DEFAULT_LIBRARY).constants
    size = token_bytes(kind, library or DEFAULT_LIBRARY, hidden_size, format)
    return exchange_plan(routing, kind, size, device, constants, num_sms)


def token_bytes(kind: str, library: str, hidden_size: int, format: str) -> float:
    """Bytes of one copy of a token: results as bf16; DeepEP dispatches fp8, others as told."""
    if kind == "moe_prepare":
        return 0.0
    if kind == "moe_combine":
        return hidden_size * COMBINE_BYTES
    if library_key(library).startswith("deepep"):
        return hidden_size * DEEPEP_DISPATCH_BYTES
    return hidden_size * get_format(format).bytes_per_element


def exchange_plan(
    routing: Routing, kind: str, token_bytes: float, device: Device, c: Mapping[str, float], num_sms: int = 0
) -> ExchangePlan:
    """The arithmetic, for constants that may still be in the fitting."""
    group = routing.group
    if group.num_devices <= 1 or kind not in EXCHANGE_KINDS:
        return ExchangePlan(
            latency_s=0.0,
            slope_s_per_tokens=0.0,
            exponent_ratio=1.0,
            roof_s_per_tokens=0.0,
            sent_bytes_per_tokens=0.0,
            name="none",
        )
    best = min(
        (_one(name, copies, routing, kind, token_bytes, device, c, num_sms) for name, copies in routes(routing, c)),
        key=lambda plan: plan.slope_s_per_tokens,
    )
    return best


def _one(
    name: str,
    copies: Copies,
    routing: Routing,
    kind: str,
    token_bytes: float,
    device: Device,
    c: Mapping[str, float],
    num_sms: int,
) -> ExchangePlan:
    rate, out = device.scaleup.each_way_bytes_per_s, device.scaleout.each_way_bytes_per_s
    group = routing.group
    inside = (copies.inside_ratio + c.get("staging_ratio", 0.0) * copies.local_ratio) * group.crowding_ratio
    per_byte = 1.0 / (c["wire_rate_frac"] * rate)
    workers = workers_of(routing.num_experts, device.num_compute_units)
    if "sm_rate_frac" in c:  # a throughput kernel that leaves the rest of the device to others
        workers = num_sms or DEFAULT_SMS
        per_byte += device.num_compute_units / (workers * c["sm_rate_frac"] * rate)
    near = inside * token_bytes * per_byte
    far = copies.across_ratio * token_bytes / (c.get("scaleout_rate_frac", 1.0) * out)
    out_step = max(c.get("scaleout_step_s", 0.0), device.scaleout.latency_s)
    return ExchangePlan(
        latency_s=c["launch_s"] + c.get("expert_s", 0.0) * routing.num_experts + copies.num_out_steps * out_step,
        slope_s_per_tokens=c.get("token_s", 0.0) / workers + max(near, far),
        exponent_ratio=max(c.get("overlap_power", 1.0), 1.0),
        roof_s_per_tokens=token_bytes
        * max(copies.inside_ratio * group.crowding_ratio / rate, copies.across_ratio / out),
        sent_bytes_per_tokens=(copies.inside_ratio + copies.across_ratio) * token_bytes,
        name=name,
    )


DEFAULT_SMS = 20
"""Multiprocessors that DeepEP's throughput kernels take by default."""


def workers_of(num_experts: int, num_compute_units: int) -> int:
    """Thread blocks of a low-latency kernel: one for every so many experts, no more than the device has units."""
    each = -(-num_experts // max(num_compute_units, 1))
    return -(-num_experts // each)
