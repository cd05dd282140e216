"""From the form to the settings of a plan, and back into the form."""

from collections.abc import Mapping
from typing import Any

from orrery.scenario.objectives import METRICS
from orrery.web.address import Query, read_by, settings_of

PLANNED = read_by({"plan"})
"""Settings that a plan reads."""


def plan_settings(query: Query) -> dict[str, Any]:
    """The settings of a plan; the form's fields for latencies, in milliseconds, become objectives."""
    found = settings_of(query)
    limits = [f"{metric}:{value}" for metric in METRICS if (value := query.get(metric, "").strip())]
    if limits:
        found["slo"] = [*found.get("slo", []), *limits]
    return found


def is_from_form(query: Query) -> bool:
    """Whether the query holds blanks or fields that are no settings, which a shared address should not."""
    return any(metric in query for metric in METRICS) or any(not value.strip() for _, value in query.multi_items())


def form_values(settings: Mapping[str, Any]) -> dict[str, str]:
    """Values of the form for these settings."""
    found = {name: str(value) for name, value in settings.items() if not isinstance(value, list)}
    for objective in settings.get("slo", []):
        metric, _, limit = str(objective).partition(":")
        if metric in METRICS:
            found[metric] = limit
    return found


def other_objectives(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Objectives that have no field of their own: carried along."""
    return tuple(str(one) for one in settings.get("slo", ()) if str(one).partition(":")[0] not in METRICS)


def describe(settings: Mapping[str, Any]) -> str:
    """The question in a line: ``llama-3.1-70b on h100-sxm: chat traffic, TTFT within 1000 ms, at most 8 devices``."""
    devices = ", ".join(map(str.strip, str(settings.get("device", "a device")).split(",")))
    text = f"{settings.get('model', 'a model')} on {devices}"
    lengths = " + ".join(str(settings[n]) for n in ("input_tokens", "output_tokens") if n in settings)
    parts = [
        f"{settings['trace']} traffic" if "trace" in settings else "",
        f"{settings['rate']} requests/s" if "rate" in settings else "",
        f"{lengths} tokens" if lengths else "",
        *(
            f"{_spoken(metric)} within {limit} ms"
            for metric, _, limit in (str(s).partition(":") for s in settings.get("slo", []))
        ),
        f"at most {settings['max_devices']} devices" if "max_devices" in settings else "",
    ]
    return f"{text}: {', '.join(p for p in parts if p)}" if any(parts) else text


def _spoken(metric: str) -> str:
    """``p99_ttft`` as p99 TTFT."""
    share, _, name = metric.rpartition("_")
    return f"{share} {name.upper()}".strip()
