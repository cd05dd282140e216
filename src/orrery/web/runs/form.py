"""The form of a run: the fields that most questions need, and behind them every setting that its kind reads."""

from collections.abc import Sequence
from typing import Any

from orrery.web.form_groups import groups, names_of
from orrery.web.forms import Field, fields, others
from orrery.web.runs.inputs import METRICS, OBJECTIVE, RunInputs
from orrery.web.work.kinds import KINDS

WHAT = ("model", "device", "tp", "pp", "dp", "ep", "replicas", "weights", "kv", "engine")
TRAFFIC = ("rate", "concurrency", "trace", "input_tokens", "output_tokens", "num_requests", "seed")
PLAN_WHAT = ("model", "device", "max_devices", "weights", "kv", "engine", "objective")
PLAN_TRAFFIC = ("rate", "trace", "input_tokens", "output_tokens", "num_requests", "seed")
TRAIN_WHAT = ("model", "device", "devices", "precision", "framework")
TRAIN_WORK = ("global_batch", "seq_len", "micro_batch", "sharding", "tp", "pp", "train_tokens")

FIRST: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "simulate": (("Deployment", WHAT), ("Traffic", TRAFFIC)),
    "capacity": (("Deployment", WHAT), ("Traffic", tuple(n for n in TRAFFIC if n not in ("rate", "concurrency")))),
    "sweep": (("Deployment", WHAT), ("Traffic", TRAFFIC)),
    "plan": (("What may serve", PLAN_WHAT), ("Traffic", PLAN_TRAFFIC)),
    "train-plan": (("What trains", TRAIN_WHAT), ("Work", TRAIN_WORK)),
}
"""Groups of fields that stand open, by kind."""

LABELS = {
    "ttft": "Time to first token",
    "tpot": "Time per output token",
    "e2el": "End-to-end latency",
    "p99_ttft": "TTFT, P99",
    "p99_tpot": "TPOT, P99",
}

BEGIN: dict[str, dict[str, Any]] = {
    "serving": {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "rate": "10",
        "input_tokens": "1000",
        "output_tokens": "200",
        "num_requests": "2000",
        "seed": "0",
    },
    "plan": {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "max_devices": "4",
        "rate": "10",
        "input_tokens": "1000",
        "output_tokens": "200",
        "num_requests": "1000",
        "slo": ["ttft:1000", "tpot:50"],
    },
    "train-plan": {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "devices": "8",
        "global_batch": "128",
        "seq_len": "4096",
    },
}
"""Initial values of an empty form."""


def begin(kind: str) -> dict[str, Any]:
    """The example that a kind's form starts with."""
    found = dict(BEGIN.get(kind, BEGIN["serving"]))
    if kind == "capacity":
        found = {name: value for name, value in found.items() if name not in ("rate", "num_requests")}
        found["slo"] = ["ttft:1000", "tpot:50"]
    return found


def view(inputs: RunInputs) -> dict[str, Any]:
    """Context of the template: groups of fields, objectives, and the rest."""
    kind = KINDS[inputs.kind if inputs.kind in FIRST else "simulate"]
    first = [(title, fields(inputs.settings, names)) for title, names in FIRST[kind.name]]
    shown = {name for _, names in FIRST[kind.name] for name in names} | {"slo"}
    if kind.name == "capacity":
        shown |= {"rate", "concurrency"}  # a capacity finds the rate
    return {
        "kind": kind,
        "kinds": tuple(KINDS[name] for name in FIRST),
        "first": first,
        "objectives": _objectives(inputs, kind.command),
        "slo_rest": _slo_rest(inputs),
        "rest": groups(inputs.settings, kind.command, shown),
        "hidden": others(inputs.settings, (*shown, *names_of(kind.command, shown))),
        "options": inputs.options,
        "left_out": inputs.left_out,
        "address": inputs.address,
    }


def _objectives(inputs: RunInputs, command: str) -> tuple[Field, ...]:
    if command == "train":
        return ()
    given: Sequence[str] = inputs.settings.get("slo", ())
    limits = {name: limit for name, _, limit in (one.partition(":") for one in given)}
    return tuple(
        Field(
            name=f"{m}_{OBJECTIVE}",
            label=f"{LABELS[m]}, ms",
            value=limits.get(m, ""),
            is_number=True,
            help="The longest time in milliseconds.",
            example="no limit",
        )
        for m in METRICS
    )


def _slo_rest(inputs: RunInputs) -> tuple[str, ...]:
    """Objectives that have no field of their own: carried along."""
    return tuple(str(one) for one in inputs.settings.get("slo", ()) if str(one).partition(":")[0] not in METRICS)
