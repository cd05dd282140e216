"""Speech to text: what transcribing recordings takes, draws and costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from orrery.base.cost import Interval
from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.devices import get_device
from orrery.catalog.speech import get_speech
from orrery.catalog.speech_runtimes import default_runtime, get_runtime, runs_on
from orrery.execution.formats import can_multiply
from orrery.execution.memory import USABLE_FRAC, Infeasible
from orrery.execution.speech import TOKENS_PER_S, WORD_BYTES, Transcribed, Windows, transcribe
from orrery.execution.speech_runtime import SpeechRuntime
from orrery.hardware.device import Device
from orrery.models.speech import MAX_TOKENS, POSITIONS, WIDENS, WINDOW_S, SpeechModel
from orrery.planner.money import Tariff, tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.plan_answer import price_json
from orrery.scenario.schema import Scenario

READ = frozenset(
    {
        "model",
        "device",
        "devices",
        "engine",
        "weights",
        "batch",
        "audio_s",
        "num_beams",
        "window_batch",
        "output_tokens",
        "usd_per_hour",
        "electricity",
    }
)
FORMATS = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "int8": 1.0}
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpeechAnswer:
    """A batch of recordings on one device, by a runtime."""

    model: SpeechModel
    device: Device
    runtime: SpeechRuntime
    batch: int
    audio_s: float
    window_batch: int
    windows: Windows  # that run at once
    transcribed: Transcribed
    weight_bytes: float
    cache_bytes: float
    activation_bytes: float
    tariff: Tariff
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def num_windows(self) -> int:
        """Windows of a recording."""
        return self.runtime.num_windows(self.audio_s)

    @property
    def num_rounds(self) -> int:
        """Batches of windows, one after the other."""
        return ceil(self.num_windows / self.window_batch)

    @property
    def output_tokens(self) -> float:
        """Tokens of a window on average."""
        return self.windows.tokens

    @property
    def preparation_s(self) -> float:
        """Seconds in which the host decodes the recordings and makes their mel spectra."""
        return self.batch * self.audio_s * self.runtime.preparation_ratio

    @property
    def latency_s(self) -> float:
        """Seconds until the whole batch is transcribed."""
        return self.preparation_s + self.num_rounds * self.transcribed.window_s

    @property
    def audio_s_per_s(self) -> float:
        """Seconds of speech transcribed in a second: the inverse of the real-time factor."""
        return self.batch * self.audio_s / self.latency_s

    @property
    def energy_j_per_audio_hour(self) -> float:
        """Joules of the device for an hour of speech; while the host prepares, it draws its idle power."""
        busy_j = self.transcribed.power_w * (self.latency_s - self.preparation_s)
        idle_j = self.device.idle_power_w * self.preparation_s
        return (busy_j + idle_j) * SECONDS_PER_HOUR / (self.batch * self.audio_s)

    @property
    def power_w(self) -> float:
        """Mean power of the device."""
        return self.energy_j_per_audio_hour * self.audio_s_per_s / SECONDS_PER_HOUR

    @property
    def usd_per_audio_hour(self) -> float | None:
        """Dollars for an hour of speech; None where no price is known."""
        usd_per_s = self.tariff.usd_per_s(1, self.power_w)
        return None if usd_per_s is None else usd_per_s * SECONDS_PER_HOUR / self.audio_s_per_s

    def intervals(self) -> dict[str, Interval]:
        """Where latency and speed are expected to lie; none for kernels alone."""
        spread = self.runtime.spread
        if spread is None:
            return {}
        return {
            "latency_s": spread.around(self.latency_s),
            "audio_s_per_s": spread.inverse().around(self.audio_s_per_s),
        }

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        done = self.transcribed
        stages = [{"name": s.name, "time_s": self.num_rounds * s.time_s, "bound_by": s.bound_by} for s in done.stages]
        first_s = sum(stage.time_s for stage in done.stages[:2]) + done.step_s
        return to_json(
            {
                "latency_s": self.latency_s,
                "ttft_s": self.preparation_s + first_s,
                "tpot_s": done.step_s,
                "audio_s_per_s": self.audio_s_per_s,
                "real_time_factor": 1.0 / self.audio_s_per_s,
                "num_windows": self.num_windows,
                "stages": [{"name": "sound", "time_s": self.preparation_s, "bound_by": "host"}, *stages],
                "power_w": self.power_w,
                "energy_j_per_audio_hour": self.energy_j_per_audio_hour,
                "usd_per_audio_hour": self.usd_per_audio_hour,
                "intervals": self.intervals(),
                "memory": {
                    "weight_bytes": self.weight_bytes,
                    "cache_bytes": self.cache_bytes,
                    "activation_bytes": self.activation_bytes,
                    "capacity_bytes": self.device.memory_capacity_bytes,
                },
                "price": price_json(self.tariff),
                "deployment": {
                    "model": self.model.name,
                    "device": self.device.name,
                    "engine": self.runtime.name,
                    "weights": self.windows.format,
                    "batch": self.batch,
                    "audio_s": self.audio_s,
                    "window_batch": self.window_batch,
                    "num_beams": self.windows.beams,
                    "output_tokens": self.output_tokens,
                },
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def speech(scenario: Scenario) -> SpeechAnswer | InfeasibleAnswer:
    """The answer for a scenario whose model transcribes."""
    written = scenario.written()
    if other := [name for name in written if name not in READ]:
        raise ScenarioError(
            f"{', '.join(other)}: not of speech; {scenario.model} takes {', '.join(sorted(READ))}: leave out."
        )
    if scenario.device is None:
        raise ScenarioError('device: missing; write device = "l4".')
    if scenario.devices not in (None, 1):
        raise ScenarioError(f"devices: got {scenario.devices}; a model of speech runs on one device: leave it out.")
    model, device = get_speech(str(scenario.model)), get_device(scenario.device)
    runtime = _runtime(scenario, device)
    batch, audio_s = scenario.batch or 1, scenario.audio_s or WINDOW_S
    at_once = min(scenario.window_batch or 1, runtime.num_windows(audio_s))
    windows = Windows(
        count=batch * at_once,
        tokens=_tokens(scenario, runtime, audio_s, at_once),
        beams=scenario.num_beams or runtime.num_beams,
        format=_format(scenario, device),
    )
    weights = (FORMATS["fp32"] if runtime.casts_weights else FORMATS[windows.format]) * model.num_parameters
    cache = WORD_BYTES * model.cache_elements * (windows.count if runtime.shares_cross_keys else windows.sequences)
    activations = WORD_BYTES * windows.count * POSITIONS * model.width * (WIDENS + 4)
    need, have = weights + cache + activations, USABLE_FRAC * device.memory_capacity_bytes
    if need > have:
        change = "Fewer recordings or windows at once, fewer beams, or a smaller model."
        lacking = Infeasible(what="memory of a device", need=need, have=have, unit="bytes", smallest_change=change)
        return InfeasibleAnswer(infeasible=lacking, settings=written)
    tariff = tariff_of(device, scenario.usd_per_hour, scenario.electricity)
    return SpeechAnswer(
        model=model,
        device=device,
        runtime=runtime,
        batch=batch,
        audio_s=audio_s,
        window_batch=at_once,
        windows=windows,
        transcribed=transcribe(model, device, windows, runtime),
        weight_bytes=weights,
        cache_bytes=cache,
        activation_bytes=activations,
        tariff=tariff,
        notes=(*_notes(scenario, runtime, windows), *tariff.notes),
        settings=written,
    )


def _runtime(scenario: Scenario, device: Device) -> SpeechRuntime:
    try:
        found = get_runtime(scenario.engine or default_runtime(device), device)
    except UnknownName as error:
        raise ScenarioError(f"engine: {error}") from None
    if not runs_on(found.name, device):
        instead = default_runtime(device)
        raise ScenarioError(f'engine: {found.title} has no kernels for {device.name}; write engine = "{instead}".')
    return found


def _format(scenario: Scenario, device: Device) -> str:
    found = scenario.weights or "fp16"
    if found not in FORMATS:
        raise ScenarioError(f"weights: got {found!r}; write {', '.join(FORMATS)}.")
    if found == "int8" and not can_multiply(found, device):
        raise ScenarioError(f"weights: {device.name} multiplies no int8; write fp16.")
    return found


def _tokens(scenario: Scenario, runtime: SpeechRuntime, audio_s: float, at_once: int) -> float:
    """Tokens of a window: as many as the user says, or those of its speech and of its timestamps."""
    if scenario.output_tokens is not None:
        if scenario.output_tokens > MAX_TOKENS:
            raise ScenarioError(
                f"output_tokens: got {scenario.output_tokens}; a window ends after {MAX_TOKENS} tokens: write less."
            )
        return float(scenario.output_tokens)
    heard_s = min(audio_s, WINDOW_S)
    marks = runtime.timestamp_tokens if at_once == 1 else runtime.batched_timestamp_tokens
    return TOKENS_PER_S * heard_s + marks * heard_s / WINDOW_S


def _notes(scenario: Scenario, runtime: SpeechRuntime, windows: Windows) -> tuple[str, ...]:
    found = list[str]()
    if scenario.engine is None:
        found.append(f"engine = {runtime.name}")
    if runtime.spread is None:
        found.append("no interval: kernels one after the other, which no published run comes near")
    if scenario.output_tokens is None:
        rate = f"{TOKENS_PER_S:g} a second of speech (assumed), and timestamps"
        found.append(f"output_tokens = {windows.tokens:.0f} a window: {rate}")
    if scenario.num_beams is None and windows.beams > 1:
        found.append(f"num_beams = {windows.beams}, as {runtime.name} takes")
    if scenario.audio_s is None:
        found.append(f"audio_s = {WINDOW_S:g}: one window")
    return tuple(found)
