"""Jobs and layouts that are made up of round numbers."""

from dataclasses import dataclass
from types import SimpleNamespace


@dataclass(frozen=True)
class Layout:
    """Two-way tensor parallelism over eight replicas where nothing is said."""

    tp: int = 2
    pp: int = 1
    dp: int = 8
    cp: int = 1
    ep: int = 1
    vp: int = 1
    sharding: str = "none"
    num_devices: int = 16
    schedule: str = "1f1b"
    recompute: str = "none"
    micro_batch: int = 1
    is_sequence_parallel: bool = False


def job(**given):
    """A job whose framework runs collectives half as long again inside a node, three times as long between nodes."""
    framework = SimpleNamespace(
        weights_bytes=2.0,
        contention_ratio=1.1,
        bucket_bytes=20.0,
        overlaps_gradients=True,
        overlaps_parameters=True,
        network_ratio=1.5,
        scaleout_ratio=3.0,
        step_s=0.5,
        elementwise_ratio=2.0,
        kernels="",
    )
    usual = {
        "framework": framework,
        "recipe": SimpleNamespace(weights_bytes=0.0),
        "islands": None,
        "gradient_overlap": "",
        "cluster": SimpleNamespace(devices_per_node=4, num_devices=16, device="card"),
        "num_micro_batches": lambda layout: 5,
        "seq_len": 10,
        "model": SimpleNamespace(hidden_size=8, encoder=(), blocks=(SimpleNamespace(count=6),)),
    }
    return SimpleNamespace(**(usual | given))
