"""Thread blocks on two processors of a GPU that exchange data: in a cluster, or through memory."""

from collections.abc import Iterator
from functools import partial

from orrery.catalog.gpu_cycles import cycles_of
from orrery.kernels.block_exchange import in_cluster, through_memory
from orrery.scenario.kernel.operator import NOT_MEASURED, Found, Operator, Way, Work

CLUSTERS = {"cluster-of-2": "pair_cycle_bytes", "cluster-of-4": "four_cycle_bytes"}
VARIANTS = {
    "cluster-of-2": "distributed shared memory, rings of two blocks",
    "cluster-of-4": "distributed shared memory, rings of four blocks",
    "memory": "a store to memory and a load from it",
}


def exchanges(work: Work) -> Iterator[Way]:
    """Every way, in bytes."""
    for name in VARIANTS:
        yield Way(variant=name, format="", find=partial(_one, work, name))


def _one(work: Work, name: str) -> Found:
    device, cycles, sent = work.device, cycles_of(work.device), float(work.size("message_bytes"))
    if name in CLUSTERS:
        found = in_cluster(sent, cycles.number("other_processor_cycles"), cycles.processor_bytes(CLUSTERS[name]))
    else:
        found = through_memory(sent, cycles.number("memory_cycles"), cycles.processor_bytes("l2_cycle_bytes"))
    moved = sent * device.num_compute_units
    return Found(
        time_s=found.num_cycles / device.compute_clock_hz,
        flops=0.0,
        bytes=moved,
        roofs_s={"between processors": found.num_moving_cycles / device.compute_clock_hz},
        others_s={"latency": found.num_latency_cycles / device.compute_clock_hz},
        details={"cycles": found.num_cycles, "latency_cycles": found.num_latency_cycles},
        because=(
            f"cycles as measured on {cycles.facts['board'].value}, at this device's clock; all "
            f"{device.num_compute_units} processors send {sent:g} bytes each; {NOT_MEASURED}",
        ),
    )


BLOCK_EXCHANGE = Operator(name="block-exchange", sizes={"message_bytes": None}, ways=exchanges, variants=VARIANTS)
