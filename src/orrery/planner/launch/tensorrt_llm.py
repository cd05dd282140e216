"""``trtllm-serve``: flags for sizes, and a YAML file for what has no flag.

Attention data parallelism is all or nothing there: every tensor-parallel rank takes requests of its own.
"""

import shlex

from orrery.execution.layout import Deployment
from orrery.planner.launch import experts
from orrery.planner.launch.command import Draft, Launch, context_tokens
from orrery.planner.launch.manifest import Manifest

CONFIG = "trtllm.yaml"


def write(deployment: Deployment, manifest: Manifest, longest_tokens: float = 0.0) -> Launch:
    """The YAML and the command of one replica."""
    layout = deployment.layout
    draft = Draft(program=f"trtllm-serve {shlex.quote(deployment.model.name)}")
    has_attention_dp = layout.shares_experts
    draft.above_one("--tp_size", layout.tp * layout.dp if has_attention_dp else layout.tp)
    draft.above_one("--pp_size", layout.pp)
    draft.above_one("--ep_size", layout.ep)
    if layout.cp > 1:
        draft.add(manifest.first("--cp_size"), layout.cp)
    if deployment.max_num_seqs:
        draft.add("--max_batch_size", deployment.max_num_seqs)
    if deployment.max_num_batched_tokens:
        draft.add("--max_num_tokens", deployment.max_num_batched_tokens)
    if tokens := context_tokens(deployment, longest_tokens):
        draft.add("--max_seq_len", tokens)
    draft.add(manifest.first("--config", "--extra_llm_api_options"), CONFIG)
    lines = _config(deployment, has_attention_dp)
    _explain(draft, deployment, has_attention_dp)
    experts.tensorrt_llm(draft, deployment)
    text = f"cat > {CONFIG} <<'EOF'\n" + "\n".join(line for _, line in lines) + f"\nEOF\n{draft.text()}"
    keys = tuple(key for key, _ in lines if key)
    return Launch(text=text, flags=draft.flags(), config_keys=keys, notes=tuple(draft.notes))


def _config(deployment: Deployment, has_attention_dp: bool) -> list[tuple[str, str]]:
    """(dotted key, line) of the YAML file."""
    lines = _graphs(deployment)
    lines.append(("enable_chunked_prefill", "enable_chunked_prefill: true"))
    if has_attention_dp:
        lines.append(("enable_attention_dp", "enable_attention_dp: true"))
    cache: list[tuple[str, str]] = []
    if deployment.formats.kv == "fp8":
        cache.append(("kv_cache_config.dtype", "  dtype: fp8"))
    if deployment.memory_utilization_frac and deployment.engine.is_utilization_of_free:
        frac = deployment.memory_utilization_frac
        cache.append(("kv_cache_config.free_gpu_memory_fraction", f"  free_gpu_memory_fraction: {frac:g}"))
    return [*lines, *([("", "kv_cache_config:"), *cache] if cache else [])]


def _graphs(deployment: Deployment) -> list[tuple[str, str]]:
    """The part on CUDA graphs, which ``null`` turns off."""
    if not deployment.engine.has_cuda_graphs:
        return [("", "cuda_graph_config: null")]
    lines = [("", "cuda_graph_config:"), ("cuda_graph_config.enable_padding", "  enable_padding: true")]
    if deployment.max_num_seqs:
        lines.append(("cuda_graph_config.max_batch_size", f"  max_batch_size: {deployment.max_num_seqs}"))
    return lines


def _explain(draft: Draft, deployment: Deployment, has_attention_dp: bool) -> None:
    layout = deployment.layout
    if deployment.formats.weights != deployment.model.weights_format:
        draft.notes.append(
            "reads the weights' format from the checkpoint: "
            f"name one in {deployment.formats.weights} in place of the model"
        )
    if has_attention_dp and layout.tp > 1:
        draft.notes.append(
            f"spreads attention data over all {layout.tp * layout.dp} ranks; "
            f"the plan's {layout.dp} groups of {layout.tp} have no flag"
        )
