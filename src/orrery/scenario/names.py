"""Other names of settings: aliases that are accepted, and hints for names that are no setting.

Nothing heavy is imported, so that help stays quick.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from orrery.base.errors import ScenarioError, nearest

ALIASES: Mapping[str, str] = {
    "gpus": "devices",
    "num_gpus": "devices",
    "num_devices": "devices",
    "world_size": "devices",
    "n_gpus": "devices",
    "gpu": "device",
    "accelerator": "device",
    "hardware": "device",
    "gpu_type": "device",
    "system": "device",
    "max_gpus": "max_devices",
    "total_gpus": "max_devices",
    "tensor_parallel_size": "tp",
    "tp_size": "tp",
    "tensor_model_parallel_size": "tp",
    "tensor_parallel": "tp",
    "pipeline_parallel_size": "pp",
    "pp_size": "pp",
    "pipeline_model_parallel_size": "pp",
    "pipeline_parallel": "pp",
    "data_parallel_size": "dp",
    "dp_size": "dp",
    "expert_parallel_size": "ep",
    "ep_size": "ep",
    "expert_model_parallel_size": "ep",
    "context_parallel_size": "cp",
    "isl": "input_tokens",
    "input_len": "input_tokens",
    "random_input_len": "input_tokens",
    "prompt_tokens": "input_tokens",
    "input_length": "input_tokens",
    "prompt_len": "input_tokens",
    "images_per_request": "image_count",
    "image_batch_size": "image_count",
    "random_mm_base_items_per_request": "image_count",
    "image_size": "image_resolution",
    "osl": "output_tokens",
    "output_len": "output_tokens",
    "random_output_len": "output_tokens",
    "completion_tokens": "output_tokens",
    "output_length": "output_tokens",
    "max_tokens": "output_tokens",
    "qps": "rate",
    "rps": "rate",
    "request_rate": "rate",
    "requests_per_s": "rate",
    "target_request_rate": "rate",
    "max_concurrency": "concurrency",
    "batch_size": "batch",
    "num_users": "users",
    "people": "users",
    "think_time": "think_s",
    "think_time_s": "think_s",
    "num_prompts": "num_requests",
    "requests": "num_requests",
    "goodput": "slo",
    "quantization": "weights",
    "dtype": "weights",
    "kv_cache_dtype": "kv",
    "kv_dtype": "kv",
    "max_seq_len": "max_model_len",
    "context_length": "max_model_len",
    "max_context": "max_model_len",
    "max_running_requests": "max_num_seqs",
    "max_batch_size": "max_num_seqs",
    "max_num_tokens": "max_num_batched_tokens",
    "chunked_prefill_size": "max_num_batched_tokens",
    "backend": "engine",
    "framework_name": "framework",
    "price": "usd_per_hour",
    "electricity_price": "electricity",
    "global_batch_size": "global_batch",
    "micro_batch_size": "micro_batch",
    "seq_length": "seq_len",
    "sequence_length": "seq_len",
    "decoder_first_pipeline_num_layers": "first_stage_layers",
    "decoder_last_pipeline_num_layers": "last_stage_layers",
    "num_layers_in_first_pipeline_stage": "first_stage_layers",
    "num_layers_in_last_pipeline_stage": "last_stage_layers",
    "dataset": "trace",
    "num_speculative_tokens": "draft_tokens",
    "speculative_model": "draft_model",
    "enable_prefix_caching": "prefix_caching",
    "num_replicas": "replicas",
    "moe_a2a_backend": "all2all_backend",
    "moe_comm_method": "all2all_backend",
    "ep_num_redundant_experts": "num_redundant_experts",
    "redundant_experts": "num_redundant_experts",
}
"""Another name -> the setting that it is, where a command has that setting and none of the other name."""

ELSEWHERE: Mapping[str, str] = {
    "carbon": "orrery shift works carbon out by hour; a token's is energy_j_per_token times your grid's kg/kWh / 3.6e6",
    "co2": "orrery shift works carbon out by hour; a token's is energy_j_per_token times your grid's kg/kWh / 3.6e6",
    "ttft": "write --slo ttft:1000 (milliseconds)",
    "tpot": "write --slo tpot:50 (milliseconds)",
    "itl": "write --slo tpot:50 (milliseconds)",
    "latency": "write --slo e2el:10000 (milliseconds)",
    "e2e": "write --slo e2el:10000 (milliseconds)",
    "sla": "write --slo ttft:1000 --slo tpot:50",
    "mem_fraction_static": "write --gpu-memory-utilization; SGLang's share leaves the activations out",
    "budget": "plans are ranked by dollars: see --usd-per-hour and --objective cost",
    "format": "write --weights, --activations and --kv",
    "precision": "write --weights, --activations and --kv",
    "quant": "write --weights fp8 (orrery formats list has all), in training --precision fp8",
    "nodes": "write --devices, of all nodes",
    "num_nodes": "write --devices, of all nodes",
    "output": "write --output-tokens N for the length of answers; for a file --json, or --out FILE",
    "wide": "tables follow the terminal's width; set COLUMNS to have another",
    "verbose": "orrery why explains a number",
    "concurrency": "a plan finds its own concurrency: write --rate or --users",
    "batch": "a plan finds its own batch: write --rate or --users",
}
"""A word that is no setting of the command -> what to write instead."""


def canonical(name: str, known: Iterable[str]) -> str:
    """The setting that a name means: itself where it is known, else the one that it is another name of."""
    meant = ALIASES.get(name, name)
    return meant if name not in known and meant in known else name


def renamed(settings: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Settings under the names that are known; one setting under two names is a mistake."""
    known, found = frozenset(known), dict[str, Any]()
    for key, value in settings.items():
        name = canonical(key, known)
        if name in found:
            raise ScenarioError(f"{key}: is another name of {name}, which is given too; keep one.")
        found[name] = value
    return found


def hint(name: str, known: Iterable[str]) -> str:
    """Suggestion for ``name``: by meaning first, then by spelling; blank where nothing is near."""
    known, plain = tuple(known), name.strip("-").replace("-", "_").casefold()
    if (meant := canonical(plain, known)) != plain:
        return f"did you mean {meant!r}?"
    if plain in ELSEWHERE and _is_about(known, ELSEWHERE[plain]):
        return f"{ELSEWHERE[plain]}."
    near = nearest(plain, known, 1, cutoff=LIKELY) or _with_word(plain, known)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def _is_about(known: tuple[str, ...], text: str) -> bool:
    """Whether the reader has a flag that ``text`` names, or it names none."""
    flags = re.findall(r"--([a-z][a-z0-9-]*)", text)
    return not flags or any(flag.replace("-", "_") in known for flag in flags)


def _with_word(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """The two shortest known names that contain ``word`` as a whole word, neither a longer form of the other."""
    found = sorted((name for name in known if word in name.split("_")), key=len)
    return tuple(name for name in found if name == found[0] or not name.startswith(f"{found[0]}_"))[:2]


LIKELY = 0.72
"""Minimum similarity (0 to 1) of two spellings for one to be a slip of the other."""


def by_position(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, where an ``acceptance`` of several shares stands as what it is: one for each position."""
    given = settings.get("acceptance")
    if isinstance(given, list | tuple):
        given = ",".join(str(share) for share in cast("Sequence[Any]", given))
    if not isinstance(given, str) or not set(given) & set(",/"):
        return dict(settings)
    if "acceptance_by_position" in settings:
        raise ScenarioError("acceptance and acceptance_by_position exclude each other; keep one.")
    return {k: v for k, v in settings.items() if k != "acceptance"} | {"acceptance_by_position": given}
