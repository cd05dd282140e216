"""Fields of a form that edits some settings: labelled, helped by the settings' own words, with names to choose from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orrery.catalog.devices import device_names
from orrery.catalog.engines import engine_names
from orrery.catalog.models import model_names
from orrery.catalog.traces import trace_names
from orrery.numerics.registry import known_formats
from orrery.scenario.fields import BY_NAME
from orrery.scenario.setting import Setting
from orrery.web.named import NAME, UPLOADED

LABELS = {
    "model": "Model",
    "device": "Device",
    "devices": "Devices (total)",
    "tp": "Tensor parallel",
    "pp": "Pipeline parallel",
    "dp": "Data parallel",
    "ep": "Expert parallel",
    "cp": "Context parallel",
    "weights": "Weights format",
    "activations": "Activations format",
    "kv": "KV cache format",
    "engine": "Engine",
    "num_requests": "Number of requests",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
    "concurrency": "Concurrency",
    "rate": "Request rate (requests/s)",
    "batch": "Static batch",
    "slo": "SLOs (mean latency, ms)",
    "usd_per_hour": "$/device-hour",
    "max_usd_per_hour": "At most, $/hour",
    "power_budget_w": "Power budget, W",
    "clock_frac": "Clocks, shares of the full one",
    "electricity": "$/kWh",
    "gpu_memory_utilization": "GPU memory utilization",
    "max_num_seqs": "Max sequences per step",
    "max_num_batched_tokens": "Max batched tokens",
    "trace": "Trace",
    "scheduler_recv_interval": "Decode steps between looks for requests",
    "global_batch": "Global batch size",
    "micro_batch": "Micro-batch size",
    "seq_len": "Sequence length",
    "vp": "Virtual pipeline stages (VPP)",
    "train_tokens": "Total training tokens",
}

UNITS = {
    "_usd_per_month": "$/month",
    "_tokens_per_s": "tokens/s",
    "_bytes_per_s": "bytes/s",
    "_flops_per_s": "FLOP/s",
    "_bytes": "bytes",
    "_frac": "share",
    "_usd": "$",
    "_w": "W",
    "_j": "J",
    "_s": "s",
}
"""Endings of names, and the units that they state; longer ones first."""

CAPITALS = {
    **{word: word.upper() for word in ("api", "dp", "ep", "etp", "gemm", "kv", "mtbf", "nic", "pp", "pue", "tp")},
    "nvme": "NVMe",
    "moe": "MoE",
    "all2all": "all-to-all",
}
"""Words of names that are not written in small letters."""

SUGGESTED = {
    "model": "models",
    "draft_model": "models",
    "verifier_model": "models",
    "prefill_device": "devices",
    "decode_device": "devices",
    "device": "devices",
    "weights": "formats",
    "activations": "formats",
    "kv": "formats",
    "engine": "engines",
    "trace": "traces",
    **dict.fromkeys(
        ("worker_times", "seq_lengths", "expert_loads", "kv_kept_layers", "acceptance_by_position"), "numbers"
    ),
}
"""The list that a field's values may be chosen from."""

ENDINGS = {
    "models": (".json",),
    "sessions": (".csv",),
    "results": (".csv", ".json", ".jsonl"),
    "devices": (".toml",),
    "traces": (".csv", ".jsonl", ".json"),
    "numbers": (".csv",),
}
"""Endings of uploaded files, by the list that they stand on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One input."""

    name: str  # with the form's prefix
    label: str
    value: str
    help: str
    example: str
    suggested: str = ""
    is_number: bool = False
    choices: tuple[str, ...] = ()  # all that may be written
    bounds: str = ""  # of a number, in words
    num_lines: int = 1


def fields(settings: Mapping[str, Any], names: Sequence[str], prefix: str = "") -> tuple[Field, ...]:
    """Inputs for the settings of these names."""
    return tuple(_field(name, settings.get(name), prefix) for name in names)


def others(settings: Mapping[str, Any], names: Sequence[str], prefix: str = "") -> list[tuple[str, str]]:
    """Settings that have no input there: carried along unseen."""
    return [(prefix + name, _describe(value)) for name, value in settings.items() if name not in names]


def _field(name: str, value: Any, prefix: str) -> Field:
    setting = BY_NAME[name]
    return Field(
        name=prefix + name,
        label=label_of(name),
        value=_describe(value),
        help=setting.help,
        example=setting.example.strip('[]"').replace('", "', ", "),
        suggested=SUGGESTED.get(name, ""),
        is_number=setting.kind in ("count", "number"),
        choices=_choices(setting),
        bounds=setting.expects if setting.kind in ("count", "number") else "",
    )


def label_of(name: str) -> str:
    """A setting's name as people read it, its unit in brackets: ``Site link (bytes/s)``."""
    if name in LABELS:
        return LABELS[name]
    ending = next((e for e in UNITS if name.endswith(e)), "")
    words = [CAPITALS.get(word, word) for word in name.removesuffix(ending).split("_")]
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:]}{f' ({UNITS[ending]})' if ending else ''}"


def _choices(setting: Setting) -> tuple[str, ...]:
    """The words of a setting that takes no other; a metavar in capitals stands for a name."""
    if setting.kind == "switch":
        return "true", "false"
    is_list = "|" in setting.metavar and setting.metavar == setting.metavar.lower()
    return tuple(setting.metavar.split("|")) if is_list and "=" not in setting.metavar else ()


def _describe(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else ", ".join(value) if isinstance(value, list | tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def suggestions(uploads: Path) -> dict[str, tuple[str, ...]]:
    """Names by list: the catalogue's, and uploaded files."""
    files = sorted(path.name for path in uploads.iterdir() if NAME.fullmatch(path.name))
    return {
        key: (*(UPLOADED + name for name in files if name.endswith(ENDINGS.get(key, ()))), *names)
        for key, names in _catalogued().items()
    }


@cache
def _catalogued() -> dict[str, tuple[str, ...]]:
    return {
        "models": model_names(),
        "devices": device_names(),
        "formats": tuple(known_formats()),
        "engines": tuple(engine_names()),
        "traces": trace_names(),
        "numbers": (),
    }
