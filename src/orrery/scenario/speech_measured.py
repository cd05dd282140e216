"""Published transcriptions beside what is predicted for them."""

from dataclasses import dataclass
from functools import cache
from math import ceil

from orrery.catalog.devices import get_device
from orrery.catalog.speech import PublishedRun, get_speech, published_speech
from orrery.execution.speech import TOKENS_PER_S, transcribe
from orrery.models.speech import WINDOW_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """One published run and its prediction."""

    published: PublishedRun
    predicted_s: float

    @property
    def ratio(self) -> float:
        """Measured over predicted: how much longer it took than the kernels alone."""
        return self.published.measured_s / self.predicted_s


@cache
def scored_speech() -> tuple[ScoredRun, ...]:
    """Every published run with its prediction: windows of a recording side by side, as many as a batch holds."""
    return tuple(ScoredRun(published=run, predicted_s=_predicted_s(run)) for run in published_speech())


def _predicted_s(run: PublishedRun) -> float:
    batches = ceil(ceil(run.audio_s / WINDOW_S) / run.batch)
    tokens = ceil(TOKENS_PER_S * WINDOW_S)
    return batches * transcribe(get_speech(run.model), get_device(run.device), run.batch, tokens).window_s


def published_note() -> str:
    """Distance of published runs from the kernels, as a note of an estimate."""
    ratios = sorted(scored.ratio for scored in scored_speech())
    return (
        f"no interval: {len(ratios)} published runs took {ratios[0]:.1f} to {ratios[-1]:.1f} times as long as the "
        "kernels that are timed here one after the other, in 16 bits, greedy"
    )
