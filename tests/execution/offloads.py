"""A training step in small numbers that schedules of offloading share, and the memories that it runs on."""

from orrery.execution.offload import OFFLOADS
from orrery.execution.offload.tiers import Tiers
from orrery.execution.offload.work import Work

SCHEDULES = OFFLOADS.techniques

WORK = Work(
    num_layers=4,
    num_layer_parameters=10.0,
    num_outer_parameters=0.0,
    forward_s=1.0,
    backward_s=2.0,
    weight_gradient_s=1.0,
    recompute_s=0.5,
    outer_forward_s=0.0,
    outer_backward_s=0.0,
    activation_bytes=50.0,
    kept_bytes=20.0,
    boundary_bytes=4.0,
    logits_bytes=30.0,
    num_largest_parameters=4.0,
    num_adapter_parameters=2.0,
)
TIERS = Tiers(
    gpu_bytes=1e4,
    gpu_memory_bytes_per_s=1120.0,
    host_bytes=1e4,
    host_memory_bytes_per_s=28.0,
    host_link_each_way_bytes_per_s=10.0,
    nvme_bytes=1e4,
    nvme_read_bytes_per_s=8.0,
    nvme_write_bytes_per_s=4.0,
)


def step(name: str, work: Work = WORK, tiers: Tiers = TIERS, **knobs: object):
    technique = SCHEDULES[name]
    return technique.rule(work, tiers, technique.knobs(**knobs))
