"""``vllm serve``."""

import json
import shlex

from orrery.execution.layout import TREE_METHODS, Deployment
from orrery.planner.launch import experts
from orrery.planner.launch.command import Draft, Launch, can_quantise_on_load, context_tokens, needs_checkpoint
from orrery.planner.launch.manifest import Manifest


def write(deployment: Deployment, manifest: Manifest, longest_tokens: float = 0.0) -> Launch:
    """The command of one replica."""
    layout, formats = deployment.layout, deployment.formats
    draft = Draft(program=f"vllm serve {shlex.quote(deployment.model.name)}")
    draft.above_one("--tensor-parallel-size", layout.tp)
    draft.above_one("--pipeline-parallel-size", layout.pp)
    draft.above_one("--data-parallel-size", layout.dp)
    if layout.ep > 1:
        draft.add("--enable-expert-parallel")
    experts.vllm(draft, deployment, manifest)
    if not deployment.engine.has_cuda_graphs:
        draft.add("--enforce-eager")
    if layout.cp > 1:
        draft.add(manifest.first("--prefill-context-parallel-size", "--decode-context-parallel-size"), layout.cp)
    if can_quantise_on_load(deployment):
        draft.add("--quantization", "fp8")
    if formats.kv == "fp8":
        draft.add("--kv-cache-dtype", "fp8")
    if tokens := context_tokens(deployment, longest_tokens):
        draft.add("--max-model-len", tokens)
    if deployment.max_num_seqs:
        draft.add("--max-num-seqs", deployment.max_num_seqs)
    if deployment.max_num_batched_tokens:
        draft.add("--max-num-batched-tokens", deployment.max_num_batched_tokens)
    if deployment.memory_utilization_frac or deployment.engine.name == "vllm":
        frac = deployment.memory_utilization_frac or deployment.engine.memory_utilization_frac
        draft.add("--gpu-memory-utilization", f"{frac:g}")
    if (head := deployment.draft_head) and head.method not in TREE_METHODS:
        description: dict[str, str | int] = {"method": head.method, "num_speculative_tokens": head.num_tokens}
        if head.method != "mtp":
            description["model"] = "HEAD"
            draft.notes.append("put the name of your trained EAGLE head in place of HEAD")
        draft.add("--speculative-config", shlex.quote(json.dumps(description)))
    if needs_checkpoint(deployment):
        draft.notes.append(f"needs a checkpoint in {formats.weights}; put its name in place of the model's")
    return Launch(text=draft.text(), flags=draft.flags(), notes=tuple(draft.notes))
