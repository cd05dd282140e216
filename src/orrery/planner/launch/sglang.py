"""``sglang serve``: ``python -m sglang.launch_server``.

Data-parallel attention has two spellings: until 0.5.15 ``--dp-size N --enable-dp-attention`` inside a tensor-parallel
group that counts all ranks; since then ``--attn-dp-size N``.
"""

import shlex

from orrery.execution.layout import Deployment
from orrery.execution.memory import Memory, memory_of
from orrery.planner.launch import experts
from orrery.planner.launch.command import Draft, Launch, can_quantise_on_load, context_tokens, needs_checkpoint
from orrery.planner.launch.manifest import Manifest


def write(deployment: Deployment, manifest: Manifest, longest_tokens: float = 0.0) -> Launch:
    """The command of one replica."""
    layout, formats = deployment.layout, deployment.formats
    draft = Draft(
        program=f"python -m sglang.launch_server\n--model-path {shlex.quote(deployment.model.name)}".replace("\n", " ")
    )
    ranks = layout.tp * layout.dp if layout.shares_experts else layout.tp
    draft.above_one("--tp-size", ranks)
    draft.above_one("--pp-size", layout.pp)
    _data_parallel(draft, deployment, manifest)
    draft.above_one("--ep-size", layout.ep)
    experts.sglang(draft, deployment, manifest)
    if not deployment.engine.has_cuda_graphs:
        draft.add("--disable-cuda-graph")
    if layout.cp > 1:
        draft.add(manifest.first("--attn-cp-size"), layout.cp)
    if can_quantise_on_load(deployment):
        draft.add("--quantization", "fp8")
    if formats.kv == "fp8":
        draft.add("--kv-cache-dtype", "fp8_e4m3")
    if tokens := context_tokens(deployment, longest_tokens):
        draft.add("--context-length", tokens)
    if deployment.max_num_seqs:
        draft.add("--max-running-requests", deployment.max_num_seqs * layout.dp)
    if deployment.max_num_batched_tokens:
        draft.add("--chunked-prefill-size", deployment.max_num_batched_tokens)
    if deployment.scheduler_recv_interval > 1:
        if flag := manifest.first("--scheduler-recv-interval"):
            draft.add(flag, deployment.scheduler_recv_interval)
        else:
            draft.notes.append("looks for new requests at every step: this version cannot be told otherwise")
    if frac := static_frac(deployment):
        draft.add("--mem-fraction-static", f"{frac:.3g}")
    if needs_checkpoint(deployment):
        draft.notes.append(f"needs a checkpoint in {formats.weights}; put its name in place of the model's")
    return Launch(text=draft.text(), flags=("--model-path", *draft.flags()), notes=tuple(draft.notes))


def _data_parallel(draft: Draft, deployment: Deployment, manifest: Manifest) -> None:
    layout = deployment.layout
    if layout.dp == 1:
        return
    if not layout.shares_experts:
        draft.add("--dp-size", layout.dp)
    elif flag := manifest.first("--attn-dp-size"):
        draft.add(flag, layout.dp)
    else:
        draft.add("--dp-size", layout.dp)
        draft.add("--enable-dp-attention")


def static_frac(deployment: Deployment) -> float:
    """SGLang's share counts weights and cache only: (weights + cache) / capacity."""
    memory = memory_of(deployment)
    if not isinstance(memory, Memory):
        return 0.0
    return min(0.95, (memory.weights_bytes + memory.kv_capacity_bytes) / memory.capacity_bytes)
