"""A model over a few small machines that do not hold their share of it: weights stream from each drive in a window.

Every machine keeps ``weight_window`` blocks (attention and feed-forward parts in turn), and reads the next while
earlier ones work. The machines cut each layer, and add their parts over the network between them after each block.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery import kernels
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.edge.weight_window import WeightBlock, first_and_later_s, peak_bytes
from orrery.hardware.device import Device
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Gemm
from orrery.models.model import Block, Linear, Model, SoftmaxAttention
from orrery.network.home import ring_s, star_s
from orrery.numerics.registry import get_format
from orrery.scenario.answer import to_json
from orrery.scenario.schema import Scenario

WAYS = {"star": star_s, "ring": ring_s}
HELD = ("fp32", "fp16", "bf16")
READ = frozenset(
    (
        *("model", "assume", "device", "tp", "weights", "input_tokens", "output_tokens", "batch"),
        *("weight_window", "drive_bytes_per_s", "link_bytes_per_s", "link_s", "exchange"),
    )
)
"""Settings that such a run has."""

BESIDE = ("drive_bytes_per_s", "link_bytes_per_s", "link_s", "exchange")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One length of the window, in blocks."""

    num_blocks: int
    ttft_s: float
    tpot_s: float
    peak_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightWindowAnswer:
    """The window that is asked for, beside shorter and longer ones; one block is reading on demand, all is none."""

    model: str
    device: str
    num_devices: int
    exchange: str
    window: Window
    windows: tuple[Window, ...]
    exchange_s: Mapping[str, float]  # of one block and token, by way
    has_room: bool
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        window = self.window
        named = {"model": self.model, "device": self.device, "num_devices": self.num_devices}
        return to_json(
            {"ttft_s": window.ttft_s, "tpot_s": window.tpot_s, "peak_bytes": window.peak_bytes}
            | {"has_room": self.has_room, "windows": self.windows}
            | {"exchange": self.exchange, "exchange_s": self.exchange_s, "deployment": named}
            | {"settings": self.settings, "notes": self.notes}
        )


WEIGHT_WINDOW = ("weight_window", *BESIDE)
"""Settings of weights that stream from drives."""


def has_weight_window(scenario: Scenario) -> bool:
    """Whether a scenario asks for it; ScenarioError where only settings beside it are there."""
    if scenario.weight_window is not None:
        return True
    if name := next((n for n in BESIDE if getattr(scenario, n) is not None), ""):
        raise ScenarioError(f"{name}: has no effect without weight_window; write weight_window = 2 beside it.")
    return False


def weight_window(scenario: Scenario) -> WeightWindowAnswer:
    """One sequence over ``tp`` machines whose weights stream through the window."""
    _check(scenario)
    model, device = get_model(str(scenario.model), scenario.assume or ""), get_device(str(scenario.device))
    one = _Machine(scenario, model, device)
    prompt, later = (tuple(one.blocks(is_prompt=is_prompt)) for is_prompt in (True, False))
    count = len(later)
    length = min(int(scenario.weight_window or 1), count)
    lengths = sorted({1, 2, 4, 8, 16, length, count} & set(range(1, count + 1)))
    found = {n: _window(prompt, later, n) for n in lengths}
    return WeightWindowAnswer(
        model=model.name,
        device=device.name,
        num_devices=one.num_devices,
        exchange=one.exchange,
        window=found[length],
        windows=tuple(found.values()),
        exchange_s={name: one.exchange_s(1, name) for name in WAYS},
        has_room=found[length].peak_bytes <= device.memory_capacity_bytes,
        notes=one.notes(),
        settings=scenario.written(),
    )


def _window(prompt: tuple[WeightBlock, ...], later: tuple[WeightBlock, ...], num_blocks: int) -> Window:
    return Window(
        num_blocks=num_blocks,
        ttft_s=first_and_later_s(prompt, num_blocks)[0],
        tpot_s=first_and_later_s(later, num_blocks)[1],
        peak_bytes=peak_bytes(later, num_blocks),
    )


class _Machine:
    """One of the machines: its share of each block, its drive and its link."""

    def __init__(self, scenario: Scenario, model: Model, device: Device) -> None:
        self.model, self.device = model, device
        self.num_devices = scenario.tp or 1
        self.format = scenario.weights or "fp32"
        self.exchange = scenario.exchange or "star"
        self.prompt_tokens, self.written_tokens = int(scenario.input_tokens or 1), int(scenario.output_tokens or 1)
        assert scenario.drive_bytes_per_s is not None
        self.drive_bytes_per_s = scenario.drive_bytes_per_s
        link = device.scaleout
        self.link_bytes_per_s = scenario.link_bytes_per_s or link.each_way_bytes_per_s
        self.link_s = link.latency_s if scenario.link_s is None else scenario.link_s
        self.held_bytes = get_format(self.format).bits_per_element / 8.0
        self.file_bytes = get_format(model.weights_format).bits_per_element / 8.0

    def notes(self) -> tuple[str, ...]:
        """Defaults taken for unstated settings."""
        return (
            f"weights: {self.format} in memory, {self.model.weights_format} in the file; the embedding and the head "
            "stay whole with the first machine",
            f"link: {self.link_bytes_per_s:.4g} bytes/s, {self.link_s:.3g} s one way",
        )

    def exchange_s(self, tokens: int, way: str = "") -> float:
        """Adding the parts of one block for so many tokens."""
        message = tokens * self.model.hidden_size * self.held_bytes
        return WAYS[way or self.exchange](self.num_devices, message, self.link_s, self.link_bytes_per_s)

    def blocks(self, *, is_prompt: bool) -> Iterator[WeightBlock]:
        """Embedding, attention and feed-forward parts in turn, head: what the first machine reads and does."""
        tokens = self.prompt_tokens if is_prompt else 1
        yield self._block(float(self.model.embedding_parameters), 0.0)
        sum_s = self.exchange_s(tokens)
        for block in self.model.blocks:
            parts = [self._part(block, role, tokens) for role in ("attention", "mlp")]
            attention_s = self._attention_s(block, is_prompt=is_prompt)
            for _ in range(block.count):
                for (elements, busy_s), more_s in zip(parts, (attention_s, 0.0), strict=True):
                    yield self._block(elements / self.num_devices, busy_s + more_s + sum_s)
        if self.model.head:
            head = self.model.head
            yield self._block(float(head.num_parameters), self._products_s([head], 1, 1))

    def _part(self, block: Block, role: str, tokens: int) -> tuple[float, float]:
        linears = [x for x in block.linears if x.role == role]
        return float(sum(x.num_parameters for x in linears)), self._products_s(linears, tokens, self.num_devices)

    def _products_s(self, linears: list[Linear], tokens: int, num_devices: int) -> float:
        sizes = [(x.out_features, x.in_features) for x in linears]
        n, k = np.array(sizes, np.int64).T
        n = np.maximum(1, n // num_devices)
        op = Gemm(m=tokens, n=n, k=k, format=self.format, quantises_input=False)
        return float(np.sum(kernels.predict(op, self.device).time_s))

    def _attention_s(self, block: Block, *, is_prompt: bool) -> float:
        mixer = block.mixer
        assert isinstance(mixer, SoftmaxAttention)
        heads, kv_heads = (max(1, n // self.num_devices) for n in (mixer.num_heads, mixer.num_kv_heads))
        tokens = self.prompt_tokens
        if is_prompt:
            op = AttentionPrefill(
                batch=1,
                query_tokens=tokens,
                context_tokens=tokens,
                num_heads=heads,
                num_kv_heads=kv_heads,
                head_size=mixer.head_size,
                format=self.format,
                kv_format=self.format,
            )
        else:
            op = AttentionDecode(
                batch=1,
                context_tokens=tokens + max(1, self.written_tokens // 2),
                num_heads=heads,
                num_kv_heads=kv_heads,
                head_size=mixer.head_size,
                format=self.format,
                kv_format=self.format,
            )
        return float(np.sum(kernels.predict(op, self.device).time_s))

    def _block(self, elements: float, busy_s: float) -> WeightBlock:
        return WeightBlock(
            held_bytes=elements * self.held_bytes,
            copied_bytes=elements * self.file_bytes,
            load_s=elements * self.file_bytes / self.drive_bytes_per_s,
            busy_s=busy_s,
        )


def _check(scenario: Scenario) -> None:
    written = scenario.written()
    if other := [name for name in written if name not in READ]:
        raise ScenarioError(
            f"{', '.join(other)}: not of a run with weight_window, which serves one sequence; leave out."
        )
    for name, example in (("drive_bytes_per_s", "1e9"), ("input_tokens", "64"), ("model", '"llama-2-7b"')):
        if getattr(scenario, name) is None:
            raise ScenarioError(f"{name}: is missing; write {name} = {example}.")
    if scenario.device is None:
        raise ScenarioError('device: is missing; write device = "raspberry-pi-5-8gb".')
    if scenario.batch not in (None, 1):
        raise ScenarioError(f"batch: got {scenario.batch}; a window of weights serves one sequence: write batch = 1.")
    if scenario.weights not in (None, *HELD):
        raise ScenarioError(
            f"weights: got {scenario.weights!r}; write what the machines compute in: {', '.join(HELD)}."
        )
    if scenario.exchange not in (None, *WAYS):
        raise ScenarioError(f"exchange: got {scenario.exchange!r}; write {' or '.join(WAYS)}.")
    model = get_model(str(scenario.model), scenario.assume or "")
    blocks = model.blocks
    if model.encoder or any(b.experts or not isinstance(b.mixer, SoftmaxAttention) for b in blocks):
        raise ScenarioError(f"model: {model.name}: a window of weights takes dense models of softmax attention.")
    heads = min(b.mixer.num_heads for b in blocks if isinstance(b.mixer, SoftmaxAttention))
    if (scenario.tp or 1) > heads:
        raise ScenarioError(f"tp: {scenario.tp} machines for {heads} heads; write at most {heads}.")
