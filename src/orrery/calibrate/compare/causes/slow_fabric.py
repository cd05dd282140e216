"""The network between nodes gives a share of its stated rate: fewer cards, TCP in place of RDMA, congestion."""

from orrery.base.units import text
from orrery.calibrate.compare.cause import Cause, between
from orrery.calibrate.compare.change import device_of, on_device, with_fields
from orrery.calibrate.compare.run import Run, TrainingRun
from orrery.hardware.device import Device


def change(run: Run, severity: float) -> Run | None:
    """The link between nodes at a share ``severity`` of its rate."""
    return on_device(run, lambda d: _slow(d, severity)) if _num_nodes(run) > 1 else None


def _slow(device: Device, severity: float) -> Device:
    link = device.scaleout
    return with_fields(device, scaleout=with_fields(link, each_way_bytes_per_s=link.each_way_bytes_per_s * severity))


def _num_nodes(run: Run) -> int:
    if isinstance(run, TrainingRun):
        return run.job.cluster.num_nodes
    return max(p.deployment.cluster.num_nodes for p in run.service.pools)


def describe(run: Run, severity: float) -> str:
    """The rate that is left."""
    rate = device_of(run).scaleout.each_way_bytes_per_s
    return (
        f"the network between nodes at {severity:.2f} of its rate: {text(rate * severity, 'bytes')}/s "
        f"of {text(rate, 'bytes')}/s each way and device"
    )


CAUSE = Cause(
    name="slow-fabric",
    title="a slow network between nodes",
    ladder=between(0.9, 0.02, 6),
    change=change,
    describe=describe,
    shows="Runs over several nodes suffer, more with every node and with small batches a device; one node does not.",
    hides="A run inside one node cannot show it.",
    checks=(
        "ibstat, ibv_devinfo: all ports active at the stated rate? NCCL_DEBUG=INFO: NET/IB or NET/Socket, GDRDMA?",
        "NCCL_IB_HCA, NCCL_SOCKET_IFNAME; nvidia-smi topo -m: a card beside each device (PIX)",
        "all_reduce_perf of nccl-tests over two nodes, then over all",
    ),
)
