"""Collectives over a device's own links by algorithm, or over a fabric by routing; products that start the ring."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orrery import network
from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange, ScenarioError
from orrery.base.units import text
from orrery.execution.triggered import (
    CutProduct,
    Machine,
    Sublayer,
    in_turns,
    read_chunks,
    together,
    triggered,
    written_chunks,
)
from orrery.hardware.calibration import Calibration
from orrery.kernels.resolve import find as find_kernels
from orrery.network import Collective
from orrery.network.group import group_of
from orrery.network.on_fabric import ROUTINGS, Fabric, run
from orrery.network.plan import ALGORITHMS, Candidate, candidates
from orrery.network.resolve import find, library_key
from orrery.scenario.kernel.hosted import ABOUT, HOST_BUS, SETTINGS, over_bus, refuse_rates
from orrery.scenario.kernel.library import origin
from orrery.scenario.kernel.operator import Found, Operator, Way, Work, one_of

FASTEST = "fastest"
FABRICS = ("leaf-spine", "fat-tree")
PERMUTATION = "permutation"
SAME_ROUTING = {"planned": "singlepath", "hash": "ecmp", "spraying": "spray", "packet-spraying": "spray"}


def exchange(kind: str, work: Work) -> Iterator[Way]:
    """Ways of one collective."""
    if work.word("fabric", "") == HOST_BUS:
        yield from over_bus(kind, work)
        return
    refuse_rates(work)
    if work.has("fabric"):
        yield from _over_fabric(kind, work)
        return
    for name in ("routing", "leaves", "spines", "hosts_per_leaf"):
        if work.has(name) or work.sizes.get(name):
            raise ScenarioError(f"{name}: belongs to a fabric; write --fabric leaf-spine too.")
    if not work.size("devices"):
        raise ScenarioError("devices: not set; write how many take part, such as --devices 8.")
    for library in work.list_of("engine", ("",)):
        yield Way(variant=FASTEST, format="bytes", engine=library, find=partial(_library, kind, work, library))
        for technique in ALGORITHMS.techniques.values():
            one = partial(_algorithm, kind, work, library, technique.name)
            yield Way(variant=technique.name, format="bytes", engine=library, find=one)


def _collective(kind: str, work: Work, library: str) -> Collective:
    return Collective(
        kind=kind,
        num_devices=work.size("devices"),
        message_bytes=float(work.sizes["message_bytes"]),
        devices_per_node=work.size("devices_per_node"),
        library=library_key(library),
        has_peer_to_peer=bool(work.words.get("peer_to_peer")),
    )


def _library(kind: str, work: Work, library: str) -> Found:
    inputs = _collective(kind, work, library)
    timing, constants = network.predict(inputs, work.device), network.calibration(inputs, work.device)
    return Found(
        time_s=float(timing.time_s),
        flops=0.0,
        bytes=float(timing.sent_bytes),
        roofs_s={"network": float(timing.wire_s)},
        others_s={"latency": float(timing.latency_s)},
        spread=network.spread(inputs, work.device),
        engine=constants.engine,
        details={"algorithm": str(timing.algorithm)},
        because=(origin(constants, work.device), *_idle_switch(work, constants)),
    )


def _idle_switch(work: Work, constants: Calibration) -> tuple[str, ...]:
    """The note on a switch that changes nothing."""
    if not work.words.get("peer_to_peer"):
        return ()
    if work.device.scaleup.topology != "bus":
        return (f"peer_to_peer changes nothing: {work.device.scaleup.name} is no bus",)
    if not constants.constants.get("contention_ratio"):
        return ("peer_to_peer changes nothing: no crowding was measured through the host of such devices",)
    return ()


def _algorithm(kind: str, work: Work, library: str, name: str) -> Found:
    inputs = _collective(kind, work, library)
    constants = network.calibration(inputs, work.device)
    size, count = float(work.sizes["message_bytes"]), work.size("devices")
    group = group_of(
        kind, count, work.size("devices_per_node"), work.device, has_peer_to_peer=bool(work.words.get("peer_to_peer"))
    )
    found = find(work.device, constants.op, library).constants
    mine = [c for c in candidates(group, work.device, found) if _is(c, name)] if count > 1 else []
    if not mine:
        raise OutOfRange(f"{name} does no {kind.replace('_', '-')} on {count} x {work.device.name} ({group.topology}).")
    best = min(mine, key=lambda c: c.time_s(size))
    return Found(
        time_s=max(best.time_s(size), found.get("host_s", 0.0)),
        flops=0.0,
        bytes=best.wire_ratio * size,
        roofs_s={"network": best.roof_s_per_bytes * size},
        others_s={"latency": best.latency_s},
        spread=network.spread(inputs, work.device),
        engine=constants.engine,
        details={"algorithm": best.name},
        because=(origin(constants, work.device),),
    )


def _is(candidate: Candidate, name: str) -> bool:
    return candidate.name.partition(",")[0] == name


def _over_fabric(kind: str, work: Work) -> Iterator[Way]:
    words = [SAME_ROUTING.get(word, word) for word in work.list_of("routing", ROUTINGS)]
    for word in words:
        one_of("routing", word, ROUTINGS)
        yield Way(variant=word, format="bytes", find=partial(_routed, kind, work, word))


def _fabric(work: Work) -> Fabric:
    name = one_of("fabric", work.word("fabric", ""), (*FABRICS, HOST_BUS))
    leaves, spines, hosts = (work.size(size) for size in ("leaves", "spines", "hosts_per_leaf"))
    if not hosts or not leaves:
        raise ScenarioError("fabric: write --leaves and --hosts-per-leaf too.")
    if name == "fat-tree":
        if spines and spines != hosts:
            raise ScenarioError(f"spines: a fat tree has as many as hosts below a leaf ({hosts}); leave it out.")
        spines = hosts
    if not spines:
        raise ScenarioError("fabric: write --spines too.")
    if (num := work.size("devices")) and num != leaves * hosts:
        raise ScenarioError(f"devices: {leaves} leaves of {hosts} hosts join {leaves * hosts}, not {num}.")
    return Fabric(num_leaves=leaves, num_spines=spines, num_hosts_per_leaf=hosts, link=work.device.scaleout)


def _routed(kind: str, work: Work, routing: str) -> Found:
    fabric = _fabric(work)
    message_bytes, parts = float(work.sizes["message_bytes"]), work.size("flow_parts") if kind == PERMUTATION else 0
    found = run(kind, message_bytes, fabric, routing, work.size("draws"), work.size("seed"), parts)
    time_s = float(np.median(found.time_s))
    low_80, high_80, low_95, high_95 = np.quantile(found.time_s, (0.1, 0.9, 0.025, 0.975)) / time_s
    rate = fabric.link.each_way_bytes_per_s
    even = fabric.num_hosts_per_leaf / fabric.num_spines
    return Found(
        time_s=time_s,
        flops=0.0,
        bytes=found.host_bytes,
        roofs_s={"network": found.host_bytes / rate},
        others_s={"fabric": float(np.median(found.busiest_bytes)) / rate, "latency": found.latency_s},
        spread=Spread(
            low_80_ratio=min(1.0, float(low_80)),
            high_80_ratio=max(1.0, float(high_80)),
            low_95_ratio=min(1.0, float(low_95)),
            high_95_ratio=max(1.0, float(high_95)),
            because=f"over {found.time_s.size} draws of places and hashes alone; rates are stated, not measured",
        ),
        details={
            "busiest_link_bytes": float(np.median(found.busiest_bytes)),
            "hosts": fabric.num_hosts,
            "oversubscription": even,
        },
        because=(
            f"{fabric.num_leaves} leaves of {fabric.num_hosts_per_leaf} hosts, {fabric.num_spines} spines, links "
            f"of {text(rate, 'bytes')}/s ({fabric.link.name})"
            + ("; assigned as well as sprayed, by König's theorem" if found.is_by_theorem else ""),
        ),
    )


def permute(work: Work) -> Iterator[Way]:
    """Every host sends to one that is drawn, over a fabric."""
    one_of("fabric", work.word("fabric", ""), FABRICS)
    yield from _over_fabric(PERMUTATION, work)


REDUCE = {
    "in-turns": "product, then reduce-scatter, then all-gather",
    "triggered": "tiles of the product start the ring, memory adds what arrives; then all-gather",
    "triggered-without-memory": "the same where memory cannot add: what arrives is read again",
    "ideal": "product and reduce-scatter at once, each as fast as alone where memory holds both; then all-gather",
}


def cut_product(work: Work) -> Iterator[Way]:
    """A product cut along its depth, with the sum over all devices."""
    for name in REDUCE:
        yield Way(variant=name, format="bf16", find=partial(_cut, work, name))


def _cut(work: Work, name: str) -> Found:
    device, count = work.device, work.size("devices")
    product = CutProduct(
        num_tokens=work.size("m"), num_outputs=work.size("n"), num_depth=work.size("k"), num_devices=count
    )
    if count < 2:
        raise OutOfRange("one device has nothing to add up; write two devices or more.")
    peak = device.peak_flops_per_s(("bf16", "fp16"))[1]
    measured = find_kernels(device, "gemm", "bf16")
    machine = Machine(
        flops_per_s=min(1.0, measured.constants["peak_frac"]) * peak,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s,
        link_each_way_bytes_per_s=device.scaleup.each_way_bytes_per_s,
        link_latency_s=device.scaleup.latency_s,
    )
    found = _sublayer(name, product, machine)
    sent = 2.0 * (count - 1) * product.chunk_bytes
    return Found(
        time_s=found.time_s,
        flops=product.flops,
        bytes=found.memory_bytes,
        roofs_s={
            "compute": product.flops / peak,
            "memory": found.memory_bytes / device.memory_bandwidth_bytes_per_s,
            "network": sent / device.scaleup.each_way_bytes_per_s,
        },
        details={"sent_bytes": sent, **_chunks(name, count)},
        because=(
            f"products at {text(machine.flops_per_s, 'flops')}/s ({origin(measured, device)}), a ring over "
            f"{device.scaleup.name}",
        ),
    )


def _sublayer(name: str, product: CutProduct, machine: Machine) -> Sublayer:
    if name == "in-turns":
        return in_turns(product, machine)
    if name == "ideal":
        return together(product, machine)
    return triggered(product, machine, adds_in_memory=name == "triggered")


def _chunks(name: str, num_devices: int) -> dict[str, int]:
    """Chunks of the result that cross the memory until the sum is there."""
    if name in ("in-turns", "ideal"):
        return {
            "chunks_read": read_chunks(num_devices, is_triggered=False),
            "chunks_written": written_chunks(num_devices, is_triggered=False),
        }
    adds = name == "triggered"
    return {
        "chunks_read": read_chunks(num_devices, is_triggered=True, adds_in_memory=adds),
        "chunks_written": written_chunks(num_devices, is_triggered=True, adds_in_memory=adds),
    }


SIZES = {
    "devices": 0,
    "message_bytes": None,
    "devices_per_node": 0,
    "devices_per_port": 0,
    "leaves": 0,
    "spines": 0,
    "hosts_per_leaf": 0,
    "draws": 64,
    "seed": 0,
}


ROUTED = {
    "spray": "every flow over all spines (--fabric)",
    "ecmp": "a flow on one spine, by a hash (--fabric)",
    "singlepath": "flows on one spine each, assigned with all in view (--fabric)",
}


def _operators() -> Iterator[Operator]:
    named = {technique.name: technique.gains for technique in ALGORITHMS.techniques.values()}
    for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"):
        yield Operator(
            name=kind.replace("_", "-"),
            sizes=SIZES,
            ways=partial(exchange, kind),
            variants={FASTEST: "the fastest of the library's algorithms", **named, **ROUTED, **ABOUT},
            settings=frozenset({"fabric", "routing", "engine", "peer_to_peer"}) | SETTINGS,
            spellings=SAME_ROUTING,
        )


COLLECTIVES = tuple(_operators())
PERMUTATIONS = Operator(
    name=PERMUTATION,
    sizes={"message_bytes": None, "leaves": None, "hosts_per_leaf": None, "spines": 0, "flow_parts": 0}
    | {name: SIZES[name] for name in ("devices", "draws", "seed")},
    ways=permute,
    variants=ROUTED,
    settings=frozenset({"fabric", "routing"}),
    spellings=SAME_ROUTING,
)
REDUCE_SCATTERED = Operator(
    name="gemm-reduce-scatter",
    sizes={"m": None, "n": None, "k": None, "devices": None},
    ways=cut_product,
    variants=REDUCE,
)
