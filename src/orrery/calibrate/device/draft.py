"""A device as it stands before its constants are known: what the system says, and two anchors that set its roofs.

The anchors are the machine's fastest product and its fastest stream from memory. A roof is taken to lie a little above
the best that is reached: a good library gets eight to nine tenths of a CPU's peak [Goto and van de Geijn 2008], and
STREAM about as much of its memory. The constants are shares of these roofs, so this choice cancels in every time.
"""

from collections.abc import Mapping
from dataclasses import replace

from orrery.base.errors import OutOfRange, UnknownName
from orrery.calibrate.measure.backends.backend import Backend, Unsupported
from orrery.calibrate.measure.probes import Stream
from orrery.calibrate.measure.quiet import QuietSampler
from orrery.catalog.devices import get_device
from orrery.hardware.device import Device, Link
from orrery.kernels.ops import Gemm

HEADROOM = 0.8
ANCHOR_SIDE = {"cpu": 1024, "gpu": 8192}
ANCHOR_BYTES = {"cpu": 2**28, "gpu": 2**32}
ANCHOR_FRAC = 0.125
"""Share of the memory that the anchor's stream may take: operands get a quarter of what is free."""

GENERATION = {"cpu": "host", "gpu": "unknown"}
"""Generation whose constants an unknown device starts from: calls on CPUs, or all GPUs pooled."""

Anchors = Mapping[str, float]
"""``product_s`` of the anchor's product and ``stream_s`` of its stream."""


def anchor_bytes(backend: Backend) -> int:
    """Bytes of the anchor's stream, halved until a small memory holds them."""
    size_bytes, room_bytes = ANCHOR_BYTES[backend.device_kind], float(backend.facts()["memory_capacity_bytes"].value)
    while size_bytes > ANCHOR_FRAC * room_bytes:
        size_bytes //= 2
    return size_bytes


def anchors(backend: Backend, format: str, quiet: QuietSampler, *, budget_s: float) -> Anchors:
    """Time the two anchors; OutOfRange where the machine cannot do them."""
    side = ANCHOR_SIDE[backend.device_kind]
    found: dict[str, float] = {}
    for name, probe in (
        ("product_s", Gemm(m=side, n=side, k=side, format=format, is_cold=False, quantises_input=False)),
        ("stream_s", Stream(footprint_bytes=anchor_bytes(backend), kind="read")),
    ):
        got = quiet.time(backend, probe, budget_s=budget_s)
        if isinstance(got, Unsupported):
            raise OutOfRange(f"{backend.name} cannot measure this device's roofs: {got.reason}.")
        found[name] = got[0].time_s
    return found


def draft(backend: Backend, found: Mapping[str, Anchors], *, name: str) -> Device:
    """A device with the roofs that the anchors of each format say; links and power are not known yet."""
    side, moved = ANCHOR_SIDE[backend.device_kind], anchor_bytes(backend)
    facts = {name: fact.value for name, fact in backend.facts().items()}
    if (known := known_device(backend)) is not None:
        return replace(known, name=name)
    stream_s = min(each["stream_s"] for each in found.values())
    peaks = {format: 2.0 * side**3 / each["product_s"] / HEADROOM for format, each in found.items()}
    bandwidth = moved / stream_s / HEADROOM
    nowhere = Link(name="none", each_way_bytes_per_s=bandwidth, latency_s=1e-6, topology="bus")
    return Device(
        name=name,
        title=str(facts.get("title", name)),
        vendor=str(facts.get("vendor", "unknown")),
        kind=str(facts.get("kind", backend.device_kind)),
        generation=GENERATION[backend.device_kind],
        memory_capacity_bytes=float(facts["memory_capacity_bytes"]),
        memory_bandwidth_bytes_per_s=bandwidth,
        dense_flops_per_s=peaks,
        vector_flops_per_s=peaks.get("fp32", max(peaks.values())),
        num_compute_units=int(float(facts.get("num_compute_units", 1))),
        compute_clock_hz=float(facts.get("compute_clock_hz", 1e9)),
        last_level_cache_bytes=float(facts.get("last_level_cache_bytes", 2**25)),
        power_limit_w=100.0,
        idle_power_w=10.0,
        scaleup=nowhere,
        scaleout=nowhere,
        host=nowhere,
    )


def known_device(backend: Backend) -> Device | None:
    """The catalogue's device of this name, whose stated facts serve better than anchors; CPUs differ by their board."""
    title = backend.facts().get("title")
    if backend.device_kind == "cpu" or title is None:
        return None
    try:
        return get_device(str(title.value))
    except UnknownName:
        return None
