"""Flags for experts of other ranks: how tokens reach them, and copies of the popular ones."""

import json
from collections.abc import Mapping

from orrery.execution.experts.dispatch import DEEPEP, GATHER
from orrery.execution.layout import Deployment
from orrery.execution.shard import has_exchange
from orrery.planner.launch.command import Draft
from orrery.planner.launch.manifest import Manifest

VLLM: Mapping[str, tuple[str, ...]] = {
    GATHER: ("allgather_reducescatter",),
    DEEPEP: ("deepep_low_latency",),
    "deepep-normal": ("deepep_high_throughput",),
    "deepep-low-latency": ("deepep_low_latency",),
    "tensorrt-llm-one-sided": ("flashinfer_nvlink_one_sided",),
    "tensorrt-llm-two-sided": ("flashinfer_nvlink_two_sided",),
}
SGLANG: Mapping[str, tuple[str, ...]] = {
    GATHER: ("none",),
    DEEPEP: ("deepep", "auto"),
    "deepep-normal": ("deepep", "normal"),
    "deepep-low-latency": ("deepep", "low_latency"),
    "tensorrt-llm-one-sided": ("flashinfer",),
}
"""Engines' names for a dispatcher; SGLang's second word is DeepEP's mode."""


def vllm(draft: Draft, deployment: Deployment, manifest: Manifest) -> None:
    """--all2all-backend, an environment variable before 0.12; copies in --eplb-config."""
    way = deployment.dispatcher if has_exchange(deployment) else ""
    if way and way not in VLLM:
        draft.notes.append(f"has no {way} exchange of tokens; the command leaves its own default")
    elif way:
        name = VLLM[way][0]
        if flag := manifest.first("--all2all-backend"):
            draft.add(flag, name)
        else:
            draft.notes.append(f"set VLLM_ALL2ALL_BACKEND={name}: this version has no flag for it")
        if way == DEEPEP:
            draft.notes.append("workers for prompts alone take --all2all-backend deepep_high_throughput")
    _placement(draft, deployment)
    if count := deployment.num_redundant_experts:
        draft.add("--enable-eplb")
        draft.add("--eplb-config", json.dumps({"num_redundant_experts": count}))


def sglang(draft: Draft, deployment: Deployment, manifest: Manifest) -> None:
    """--moe-a2a-backend, and --deepep-mode; copies in --ep-num-redundant-experts."""
    way = deployment.dispatcher if has_exchange(deployment) else ""
    if way and way not in SGLANG:
        draft.notes.append(f"has no {way} exchange of tokens; the command leaves its own default")
    elif way and (flag := manifest.first("--moe-a2a-backend")):
        name, *mode = SGLANG[way]
        draft.add(flag, name)
        if mode:
            draft.add(manifest.first("--deepep-mode"), mode[0])
    elif way:
        draft.notes.append(f"set {way} as this version says: it has no --moe-a2a-backend")
    _placement(draft, deployment)
    if count := deployment.num_redundant_experts:
        draft.add("--enable-eplb")
        draft.add("--ep-num-redundant-experts", count)


def _placement(draft: Draft, deployment: Deployment) -> None:
    """No engine takes a placement by routes."""
    if deployment.expert_placement and has_exchange(deployment):
        draft.notes.append(f"has no flag for {deployment.expert_placement}: experts must be placed in its code")


def tensorrt_llm(draft: Draft, deployment: Deployment) -> None:
    """Both stand in files of their own there."""
    _placement(draft, deployment)
    if deployment.dispatcher and has_exchange(deployment):
        draft.notes.append(
            f"TRTLLM_FORCE_COMM_METHOD chooses how tokens travel; the plan takes {deployment.dispatcher}"
        )
    if count := deployment.num_redundant_experts:
        draft.notes.append(f"moe_config.load_balancer of the YAML takes num_slots: experts of a layer + {count}")
