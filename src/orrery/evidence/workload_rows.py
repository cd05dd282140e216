"""Rows of speech, image networks, embeddings and recommendation to predictions: one estimate for each."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orrery.base.cost import Interval
from orrery.base.errors import OrreryError
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.diffusion_rows import rows_of
from orrery.evidence.row import Row
from orrery.evidence.tables import Table
from orrery.scenario.estimates import estimate
from orrery.scenario.schema import read_scenario
from orrery.scenario.speech import SpeechAnswer

KIND = "workload"
PUBLISHED = Path(__file__).parent / "workloads.csv"
"""Runs that were published of such models, with their sources; shipped, and scored by tests and pages."""

WORDS = {"model": "model", "device": "device", "engine": "engine", "weights_format": "weights"}
NUMBERS = {
    "batch_size": "batch",
    "window_batch": "window_batch",
    "num_beams": "num_beams",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "audio_s": "audio_s",
}
"""Columns of a table, and the settings of a scenario that they are."""

ATTENTION_BACKENDS = ("", "sdpa", "flash-attention-2")
"""Attention that the formulas speak for; rows that ran another are declined."""

METRICS = ("latency_s", "images_per_s", "embeddings_per_s", "samples_per_s", "audio_s_per_s", "power_w")


def settings_of(row: Row) -> dict[str, Any]:
    """The scenario that a row describes."""
    words: dict[str, Any] = {name: row.word(column) for column, name in WORDS.items() if row.word(column)}
    numbers = {name: _number(row.word(column)) for column, name in NUMBERS.items() if row.word(column)}
    return words | numbers


def refusal(row: Row) -> str:
    """Why a row cannot be predicted, whatever its numbers; blank where it can."""
    backend = row.word("attention_backend")
    if backend in ATTENTION_BACKENDS:
        return ""
    return f"attention by {backend} is not modelled; {' and '.join(filter(None, ATTENTION_BACKENDS))} are"


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value


def answer(table: Table, rows: Rows, answers: Answers) -> None:
    """Predict what each row states."""
    for number, row in rows_of(table, rows):
        if why := refusal(row):
            answers.decline([number], why)
            continue
        try:
            found = estimate(read_scenario(settings_of(row)))
        except (OrreryError, ValueError) as error:
            answers.decline([number], str(error))
            continue
        if hasattr(found, "infeasible"):
            answers.decline([number], "does not fit in the device's memory")
            continue
        for metric, value, interval in _values(found):
            answers.predict_one(metric, number, value, interval)


def _values(found: Any) -> Iterator[tuple[str, float, Interval | None]]:
    """Every metric that an answer has, with its interval."""
    intervals: Mapping[str, Interval] = found.intervals() if hasattr(found, "intervals") else {}
    for metric in METRICS:
        holder = found if hasattr(found, metric) else getattr(found, "estimate", None)
        if hasattr(holder, metric):
            yield metric, float(getattr(holder, metric)), intervals.get(metric)
    if isinstance(found, SpeechAnswer):
        spread, done = found.runtime.spread, found.transcribed
        launched_s = done.step_s - found.runtime.step_s
        encoder_s = sum(stage.time_s for stage in done.stages[:2])
        for metric, value in (("encoder_s", encoder_s), ("decoder_step_s", launched_s)):
            yield metric, value, spread.around(value) if spread else None
