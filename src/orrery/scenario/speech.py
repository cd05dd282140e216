"""Speech to text: what transcribing recordings takes, draws and costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.speech import find_speech, get_speech
from orrery.execution.memory import USABLE_FRAC, Infeasible
from orrery.execution.speech import TOKENS_PER_S, WORD_BYTES, Transcribed, transcribe
from orrery.hardware.device import Device
from orrery.models.speech import MAX_TOKENS, POSITIONS, WIDENS, WINDOW_S, SpeechModel
from orrery.planner.money import Tariff, tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.plan_answer import price_json
from orrery.scenario.schema import Scenario
from orrery.scenario.speech_measured import published_note

READ = frozenset({"model", "device", "devices", "batch", "audio_s", "output_tokens", "usd_per_hour", "electricity"})
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpeechAnswer:
    """A batch of recordings on one device."""

    model: SpeechModel
    device: Device
    batch: int
    audio_s: float
    output_tokens: int  # of a full window
    transcribed: Transcribed
    weight_bytes: float
    cache_bytes: float
    activation_bytes: float
    tariff: Tariff
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def num_windows(self) -> int:
        """Windows of a recording, one after the other."""
        return ceil(self.audio_s / WINDOW_S)

    @property
    def latency_s(self) -> float:
        """Seconds until the whole batch is transcribed."""
        return self.num_windows * self.transcribed.window_s

    @property
    def audio_s_per_s(self) -> float:
        """Seconds of speech transcribed in a second: the inverse of the real-time factor."""
        return self.batch * self.audio_s / self.latency_s

    @property
    def energy_j_per_audio_hour(self) -> float:
        """Joules of the device for an hour of speech."""
        return self.transcribed.power_w * SECONDS_PER_HOUR / self.audio_s_per_s

    @property
    def usd_per_audio_hour(self) -> float | None:
        """Dollars for an hour of speech; None where no price is known."""
        usd_per_s = self.tariff.usd_per_s(1, self.transcribed.power_w)
        return None if usd_per_s is None else usd_per_s * SECONDS_PER_HOUR / self.audio_s_per_s

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        done = self.transcribed
        return to_json(
            {
                "latency_s": self.latency_s,
                "ttft_s": sum(stage.time_s for stage in done.stages[:2]) + done.step_s,
                "tpot_s": done.step_s,
                "audio_s_per_s": self.audio_s_per_s,
                "real_time_factor": 1.0 / self.audio_s_per_s,
                "num_windows": self.num_windows,
                "stages": [
                    {"name": s.name, "time_s": self.num_windows * s.time_s, "bound_by": s.bound_by} for s in done.stages
                ],
                "power_w": done.power_w,
                "energy_j_per_audio_hour": self.energy_j_per_audio_hour,
                "usd_per_audio_hour": self.usd_per_audio_hour,
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
                    "batch": self.batch,
                    "audio_s": self.audio_s,
                    "output_tokens": self.output_tokens,
                },
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def is_speech(model: str | None) -> bool:
    """Whether a name is of a model that transcribes speech."""
    return model is not None and find_speech(model) is not None


def check_no_speech(scenario: Scenario) -> None:
    """Refuse settings of speech for another model."""
    if scenario.audio_s is not None:
        raise ScenarioError(
            f'audio_s: {scenario.model} takes no speech; leave it out, or write model = "whisper-large-v3".'
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
    batch, audio_s = scenario.batch or 1, scenario.audio_s or WINDOW_S
    tokens = scenario.output_tokens or ceil(TOKENS_PER_S * min(audio_s, WINDOW_S))
    if tokens > MAX_TOKENS:
        raise ScenarioError(f"output_tokens: got {tokens}; a window ends after {MAX_TOKENS} tokens: write less.")
    weights, cache = WORD_BYTES * model.num_parameters, WORD_BYTES * model.cache_elements * batch
    activations = WORD_BYTES * batch * POSITIONS * model.width * (WIDENS + 4)
    need, have = weights + cache + activations, USABLE_FRAC * device.memory_capacity_bytes
    if need > have:
        lacking = Infeasible(
            what="memory of a device",
            need=need,
            have=have,
            unit="bytes",
            smallest_change="A smaller batch, or a smaller model.",
        )
        return InfeasibleAnswer(infeasible=lacking, settings=written)
    tariff = tariff_of(device, scenario.usd_per_hour, scenario.electricity)
    return SpeechAnswer(
        model=model,
        device=device,
        batch=batch,
        audio_s=audio_s,
        output_tokens=tokens,
        transcribed=transcribe(model, device, batch, tokens),
        weight_bytes=weights,
        cache_bytes=cache,
        activation_bytes=activations,
        tariff=tariff,
        notes=(*_notes(scenario, tokens), *tariff.notes),
        settings=written,
    )


def _notes(scenario: Scenario, tokens: int) -> tuple[str, ...]:
    found = [
        published_note(),
        "the mel spectrum is taken to be made on the host meanwhile",
    ]
    if scenario.output_tokens is None:
        found.append(f"output_tokens = {tokens} a window: {TOKENS_PER_S:g} a second of speech (assumed)")
    if scenario.audio_s is None:
        found.append(f"audio_s = {WINDOW_S:g}: one window")
    return tuple(found)
