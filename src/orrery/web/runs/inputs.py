"""From the form to a run, and back: its kind, its settings, and what its kind takes beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import OrreryError
from orrery.scenario.fields import BY_NAME
from orrery.scenario.simulate import read_window
from orrery.scenario.sweep.grid import read_axes
from orrery.web.address import Query, query_of, settings_of
from orrery.web.work.kinds import KINDS
from orrery.web.work.run import Run

OBJECTIVE = "ms"
"""Ending of the form's fields for objectives: ``ttft_ms=500`` is ``slo=ttft:500``."""

METRICS = ("ttft", "tpot", "e2el", "p99_ttft", "p99_tpot")

WINDOW = "0:20"
"""Seconds that are kept step by step unless something else is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """Inputs of a form, or of an address."""

    kind: str
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    left_out: tuple[str, ...] = ()  # settings of the address that this kind of run does not read

    @property
    def address(self) -> str:
        """The form, filled in with all this."""
        return f"/runs/new?{query_of({'kind': self.kind, **self.settings, **self.options})}"


def asked_of(query: Query) -> RunInputs:
    """Inputs of a query; an unknown kind stays as it is, and is refused when it is to be run."""
    kind = query.get("kind", "").strip() or "simulate"
    found = settings_of(query)
    limits = [f"{m}:{v}" for m in METRICS if (v := query.get(f"{m}_{OBJECTIVE}", "").strip())]
    given = [*found.get("slo", []), *limits]
    if given:
        found["slo"] = list(dict.fromkeys(given))
    command = KINDS[kind].command if kind in KINDS else "simulate"
    settings = {key: value for key, value in found.items() if command in BY_NAME[key].commands}
    options = _options(kind, query)
    return RunInputs(
        kind=kind,
        settings=settings,
        options=options,
        left_out=tuple(key for key in (*found, *_given(query)) if key not in settings and key not in options),
    )


def _options(kind: str, query: Query) -> dict[str, Any]:
    if kind == "simulate":
        window = query.get("window", WINDOW).strip()
        return {"window": window} if window else {}
    if kind == "sweep":
        axes = [axis.strip() for axis in query.getlist("sweep") if axis.strip()]
        return {"sweep": axes} | ({"capacity": "true"} if query.get("capacity") == "true" else {})
    return {}


def _given(query: Query) -> tuple[str, ...]:
    """Options of any kind that stand in a query."""
    return tuple(name for name in ("window", "sweep", "capacity") if query.get(name, "").strip())


def mistaken_options(inputs: RunInputs) -> str:
    """The mistake in the options that fill a form; blank where there is none."""
    try:
        read_window(inputs.options.get("window", WINDOW))
        read_axes(inputs.options.get("sweep", ()))
    except OrreryError as error:
        return str(error)
    return ""


def of_run(run: Run) -> RunInputs:
    """Inputs of a run."""
    return RunInputs(kind=run.kind, settings=run.settings, options=run.options)


def describe(run: Run) -> str:
    """The question in a line: ``llama-3.1-8b on h100-sxm, tp 2: 20 requests/s of 500 + 100 tokens``."""
    s = run.settings
    ways = [f"{way} {s[way]}" for way in ("tp", "pp", "dp", "ep", "replicas", "weights") if way in s]
    where = ", ".join([f"{s.get('model', 'a model')} on {s.get('device', 'a device')}", *ways])
    load = [
        f"{s['rate']} requests/s" if "rate" in s else "",
        f"{s['concurrency']} in flight" if "concurrency" in s else "",
        f"trace {s['trace']}" if "trace" in s else "",
        f"{s['input_tokens']} + {s['output_tokens']} tokens" if "input_tokens" in s and "output_tokens" in s else "",
        f"{_grouped(s['num_requests'])} requests" if "num_requests" in s else "",
        f"{s['devices']} devices" if "devices" in s else "",
        f"batch of {s['global_batch']} x {s['seq_len']} tokens" if "global_batch" in s and "seq_len" in s else "",
        *(f"over {axis}" for axis in run.options.get("sweep", ())),
        " ".join(s.get("slo", ())),
    ]
    text = ", ".join(part for part in load if part)
    return f"{where}: {text}" if text else where


def _grouped(count: Any) -> str:
    """``600,000``."""
    return f"{int(count):,}" if str(count).isdecimal() else str(count)
