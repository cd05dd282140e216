"""The part of a scenario that makes one answer of many calls."""

from collections.abc import Sequence
from typing import Any, cast

from pydantic import field_validator

from orrery.scenario.fields import BY_NAME
from orrery.scenario.fields_reasoning import MAX_SAMPLES
from orrery.scenario.kinds import Count, Number, Settings, Word


class ReasoningScenario(Settings, table=BY_NAME):
    """The shape of an answer, its samples and knobs, and what is known of how often samples are right."""

    reasoning: Word = None
    samples: Word = None
    reasoning_knob: tuple[str, ...] = ()
    verifier_model: Word = None
    success: Number = None
    verifier_accuracy: Number = None
    wrong_answers: Count = None
    evenness: Number = None
    kv_limit_bytes: Number = None
    budget_usd: Number = None

    @field_validator("samples", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """A number or a list of them, as files and Python have them."""
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return ",".join(map(str, cast(list[Any], value))) if isinstance(value, list | tuple) else value

    @field_validator("samples")
    @classmethod
    def _whole_numbers(cls, value: str | None) -> str | None:
        if value is not None:
            sample_counts(value)
        return value

    @field_validator("reasoning_knob", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("reasoning_knob")
    @classmethod
    def _named(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        shape_knobs(value)
        return value


def sample_counts(text: str) -> tuple[int, ...]:
    """The numbers of a list with commas, rising, each once. ValueError says what to write."""
    try:
        counts = sorted({int(word) for word in text.split(",")})
    except ValueError:
        counts = []
    if not counts or not 1 <= counts[0] <= counts[-1] <= MAX_SAMPLES:
        raise ValueError(f"write comma-separated whole numbers from 1 to {MAX_SAMPLES:,}, such as 1,4,16,64")
    return tuple(counts)


def shape_knobs(texts: Sequence[str]) -> dict[str, str]:
    """Given values of the knobs, by name. ValueError tells what to write."""
    found: dict[str, str] = {}
    for word in (w for t in texts for w in t.replace(",", " ").split()):
        name, equals, value = word.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"{word!r} is no knob; write NAME=VALUE, such as num_checks=8")
        found[name.replace("-", "_")] = value
    return found
