"""Settings that can be swept: by a range of numbers, or by a list."""

import math
from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.scenario.fields import BY_NAME
from orrery.scenario.merge import TRAFFIC_KINDS

MAX_POINTS = 60
MAX_LINES = 6

"""Traffic settings of which an estimate takes one; the swept one puts the others aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A setting, what it is called, and what is swept unless something else is asked for."""

    name: str
    label: str
    unit: str = ""
    low: float = 0.0  # both zero: a list of its own, ``values``
    high: float = 0.0
    is_log: bool = False
    values: tuple[str, ...] = ()
    replaces: frozenset[str] = frozenset()  # settings that mean nothing beside it

    @property
    def is_number(self) -> bool:
        """Whether values have places on an axis."""
        return BY_NAME[self.name].kind in ("count", "number")

    def describe(self, value: str) -> str:
        """A value with its unit, as it is read out."""
        return f"{value} {self.unit}".rstrip() if self.is_number else value


def _range(name: str, label: str, unit: str, low: float, high: float, *, is_log: bool = True) -> Parameter:
    replaces = TRAFFIC_KINDS - {name} if name in TRAFFIC_KINDS else frozenset[str]()
    return Parameter(name=name, label=label, unit=unit, low=low, high=high, is_log=is_log, replaces=replaces)


def _list(name: str, label: str, *values: str, replaces: frozenset[str] = frozenset()) -> Parameter:
    return Parameter(name=name, label=label, values=values, replaces=replaces)


_DEVICES = frozenset({"devices"})

PARAMETERS: dict[str, Parameter] = {
    p.name: p
    for p in (
        _range("concurrency", "Concurrency", "requests", 1, 512),
        _range("rate", "Arrival rate", "requests/s", 0.5, 40),
        _range("batch", "Static batch", "requests", 1, 256),
        _range("input_tokens", "Input length", "tokens", 128, 32768),
        _range("output_tokens", "Output length", "tokens", 16, 4096),
        _list("tp", "Tensor parallel", "1", "2", "4", "8", replaces=_DEVICES),
        _list("pp", "Pipeline stages", "1", "2", "4", "8", replaces=_DEVICES),
        _list("dp", "Data parallel", "1", "2", "4", "8", replaces=_DEVICES),
        _list("ep", "Expert parallel", "1", "2", "4", "8"),
        _list("devices", "Devices", "1", "2", "4", "8", replaces=frozenset({"tp", "pp", "dp", "cp"})),
        _list("device", "Device", "a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "mi300x"),
        _list("model", "Model", "llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "llama-3.1-70b"),
        _list("engine", "Engine", "vllm", "sglang", "tensorrt-llm"),
        _list("weights", "Weights format", "bf16", "fp8", "int4"),
        _list("activations", "Activations format", "bf16", "fp8"),
        _list("kv", "Cache format", "bf16", "fp8"),
        _range("gpu_memory_utilization", "GPU memory utilization", "", 0.3, 0.95, is_log=False),
        _range("max_num_seqs", "Max sequences per step", "sequences", 1, 1024),
        _range("max_num_batched_tokens", "Max batched tokens", "tokens", 256, 32768),
        _range("usd_per_hour", "Price of a device", "$/h", 0.5, 10, is_log=False),
        _range("electricity", "Price of electricity", "$/kWh", 0, 0.5, is_log=False),
    )
}
"""By name, in the order of the choice."""


def parameter(name: str) -> Parameter:
    """The parameter of that name."""
    if name not in PARAMETERS:
        raise ScenarioError(f"vary: got {name[:40]!r}; write one of {', '.join(PARAMETERS)}.")
    return PARAMETERS[name]


def listed(p: Parameter, text: str, most: int) -> tuple[str, ...]:
    """Values that are written with commas, each once."""
    found = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if len(found) > most:
        raise ScenarioError(f"{p.name}: got {len(found)} values; write at most {most}.")
    return found


def spread(p: Parameter, low: float, high: float, count: int, *, is_log: bool) -> tuple[str, ...]:
    """Values from ``low`` to ``high`` in equal steps, or equal ratios; whole ones for counts, each once."""
    _check(p, low, high, count, is_log=is_log)
    steps = [n / (count - 1) for n in range(count)]
    if is_log:
        found = [low * (high / low) ** share for share in steps]
    else:
        found = [low + (high - low) * share for share in steps]
    is_count = BY_NAME[p.name].kind == "count"
    return tuple(dict.fromkeys(str(round(v)) if is_count else f"{v:.4g}" for v in found))


def _check(p: Parameter, low: float, high: float, count: int, *, is_log: bool) -> None:
    setting = BY_NAME[p.name]
    if not p.is_number:
        raise ScenarioError(f"{p.name}: has no range; write a comma-separated list of values.")
    if not 2 <= count <= MAX_POINTS:
        raise ScenarioError(f"points: got {count}; write a whole number from 2 to {MAX_POINTS}.")
    for name, end in (("from", low), ("to", high)):
        if not math.isfinite(end) or not setting.least <= end <= setting.most:
            raise ScenarioError(f"{name}: got {end:g}; {p.name} takes {setting.expects}.")
    if not low < high:
        raise ScenarioError(f"from: got {low:g}, which is not below to = {high:g}.")
    if is_log and not low > 0:
        raise ScenarioError(f"from: got {low:g}; equal ratios need a start above 0, or write scale = linear.")
