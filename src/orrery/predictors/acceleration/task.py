"""A task on a device: one model, and the traffic that it gets."""

from dataclasses import dataclass

from orrery.base.errors import OutOfRange
from orrery.base.knobs import check_above, check_range
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.serving.requests import Requests
from orrery.serving.synthesis.lengths import Length
from orrery.serving.synthesis.prefixes import Prefixes, shared_prefixes

ENGINE = "vllm"
MAX_TOKENS = 32_768
"""The longest prompt or answer that the history knows of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Prompts with a shared beginning (one of ``num_prefixes``) and a part of their own, their answers, their arrival.

    Lengths of own parts and answers are lognormal with ``spread_ratio`` standard deviations over their means; gaps
    between arrivals are gamma with shape ``burstiness_ratio`` (1 = Poisson, smaller = bursts). ``guessable_frac`` is
    the chance that one more guessed token of the answer holds.
    """

    model: str
    device: str
    input_tokens: int = 512
    output_tokens: int = 256
    request_rate_per_s: float = 1.0
    shared_tokens: int = 0
    num_prefixes: int = 1
    spread_ratio: float = 0.5
    burstiness_ratio: float = 1.0
    guessable_frac: float = 0.3

    def __post_init__(self) -> None:
        for name, least, most in (
            ("input_tokens", 1, MAX_TOKENS),
            ("output_tokens", 2, MAX_TOKENS),
            ("shared_tokens", 0, MAX_TOKENS),
            ("num_prefixes", 1, 10_000),
            ("spread_ratio", 0.0, 3.0),
            ("burstiness_ratio", 0.05, 100.0),
            ("guessable_frac", 0.0, 1.0),
        ):
            check_range(self, name, least, most)
        check_above(self, "request_rate_per_s", 0.0)

    def deployment(self) -> Deployment:
        """The model in 16 bits on one such device."""
        return deployment(self, wide_format(get_device(self.device)))

    def requests(self, count: int, seed: int) -> Requests:
        """``count`` requests of this traffic."""
        traffic = Prefixes(
            num_prefixes=self.num_prefixes,
            prefix_tokens=self.shared_tokens,
            suffix=self._length(self.input_tokens),
            answer=self._length(self.output_tokens),
        )
        return shared_prefixes(
            count, self.request_rate_per_s, seed, traffic, law="gamma", burstiness=self.burstiness_ratio
        )

    def _length(self, mean: int) -> Length:
        return Length(mean_tokens=float(mean), std_tokens=self.spread_ratio * mean, most_tokens=4 * MAX_TOKENS)


def wide_format(device: Device) -> str:
    """The 16-bit format that a device multiplies."""
    for name in ("bf16", "fp16"):
        if name in device.dense_flops_per_s:
            return name
    raise OutOfRange(f"{device.name} multiplies neither bf16 nor fp16; name a device that does.")


def deployment(task: Task, weights: str, activations: str = "") -> Deployment:
    """The task's model on one device, with weights and activations in these formats; the cache stays in 16 bits."""
    device = get_device(task.device)
    wide = wide_format(device)
    return Deployment(
        model=get_model(task.model),
        cluster=Cluster(device=device, num_devices=1, devices_per_node=1),
        layout=Layout(),
        formats=Formats(weights=weights, activations=activations or wide, kv=wide),
        engine=get_engine(ENGINE, "", device),
    )
