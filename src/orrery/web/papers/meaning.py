"""Effect of a paper's techniques on the reader's own deployment: given in the address, computed by a worker."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orrery.base.units import percent
from orrery.evidence.amounts import amount
from orrery.evidence.feed.entry import Classification, NumericClaim
from orrery.evidence.understanding.meaning import Deployment, DeploymentEffect, is_of_training
from orrery.scenario.file import read_settings
from orrery.scenario.schema import read_scenario
from orrery.scenario.setting import DEPLOYMENTS
from orrery.web.address import Query, read_by, settings_of
from orrery.web.forms import Field, fields, others
from orrery.web.named import UPLOADED, grounded, uploaded
from orrery.web.papers.messages import describe
from orrery.web.place import Place
from orrery.web.uploads.stored_files import listed

MAX_TECHNIQUES = 6
"""Maximum number of techniques of one paper that are tried; each may take a simulation."""

MAX_REQUESTS = 2000
"""Maximum number of requests in one simulation."""

STILL_FRAC = 1e-3
"""A figure that moves by less has not moved."""

SERVING = ("model", "device", "devices", "tp", "input_tokens", "output_tokens", "concurrency")
TRAINING = ("model", "device", "devices", "tp", "pp", "global_batch", "micro_batch", "seq_len", "precision")
"""The fields of the form; an uploaded file, or the address, may hold any other setting."""

_BOTH = {"model": "llama-3.1-8b", "device": "h100-sxm"}
START_SERVING = {**_BOTH, "devices": "1", "input_tokens": "1024", "output_tokens": "256", "concurrency": "32"}
START_TRAINING = {
    **_BOTH,
    "devices": "8",
    "tp": "1",
    "pp": "1",
    "global_batch": "128",
    "micro_batch": "1",
    "seq_len": "4096",
    "precision": "bf16",
}
"""Initial values of the form."""

_FIGURES = {
    "ttft_s": ("time to first token", "s"),
    "tpot_s": ("time per output token", "s"),
    "latency_s": ("latency", "s"),
    "output_tokens_per_s": ("output rate", "tokens_per_s"),
    "step_time_s": ("time per training step", "s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form: which job, what stands in it, and the scenario files to choose from."""

    is_training: bool
    fields: tuple[Field, ...]
    files: tuple[str, ...]
    file: str
    others: Sequence[tuple[str, str]]  # settings of the address that have no field


DEPLOYED = read_by(DEPLOYMENTS)
"""Settings of a deployment."""


def form_of(query: Query, place: Place, classification: Classification) -> Form:
    """Values from the address, or the initial ones."""
    given = settings_of(query)
    job = query.get("job", "")
    is_training = job == "train" or (
        job != "serve" and ("global_batch" in given or (not given and _trains(classification)))
    )
    names, start = (TRAINING, START_TRAINING) if is_training else (SERVING, START_SERVING)
    file = query.get("scenario", "").removeprefix(UPLOADED)
    files = tuple(stored.name for stored in listed(place.uploads) if stored.kind == "scenario")
    return Form(
        is_training=is_training,
        file=file,
        files=files,
        others=others(given, names),
        fields=fields(given if given or file else start, names),
    )


def _trains(classification: Classification) -> bool:
    """Whether the paper's first technique that can be switched is one of training."""
    kinds = [kind for name, _ in classification.techniques if (kind := is_of_training(name)) is not None]
    return bool(kinds) and kinds[0]


def deployment_of(query: Query, place: Place) -> dict[str, Any] | None:
    """The settings of the reader's deployment: an uploaded file's, with the address' on top; None where none is named.

    Names in the file are held to the same rule as those in the address: they are no paths of this machine.
    """
    given = settings_of(query)
    file = query.get("scenario", "").strip()
    if file:
        path = uploaded(file.removeprefix(UPLOADED), place.uploads)
        given = {**_written(path), **given}
    if not given:
        return None
    found = grounded(given, place.uploads)
    read_scenario(found)
    return found


def _written(path: Path) -> dict[str, Any]:
    return {key.replace("-", "_"): value for key, value in read_settings(path).items()}


def question(deployment: Mapping[str, Any], classification: Classification) -> dict[str, Any]:
    """The worker's question, as plain data."""
    return {
        "deployment": dict(deployment),
        "techniques": [list(pair) for pair in classification.techniques[:MAX_TECHNIQUES]],
        "metrics": list(dict.fromkeys(claim.metric for claim in classification.claims)),
    }


def answered(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """In the worker: each technique, computed without it and with it."""
    scenario = read_scenario(inputs["deployment"])
    if scenario.num_requests is not None and scenario.num_requests > MAX_REQUESTS:
        scenario = read_scenario({**inputs["deployment"], "num_requests": MAX_REQUESTS})
    classification = Classification(
        techniques=tuple((name, sure) for name, sure in inputs["techniques"]),
        claims=tuple(
            NumericClaim(metric=metric, low=0.0, high=0.0, unit="", reading="", text="", confidence_frac=1.0)
            for metric in inputs["metrics"]
        ),
    )
    return {"meanings": [asdict(meaning) for meaning in Deployment(scenario).meanings(classification)]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One technique in the deployment, as text."""

    technique: str
    sure: str
    metric: str
    before: str
    after: str
    ratio: str
    effect: str  # better, worse or the same; empty where nothing was computed
    because: str
    between: str = ""  # the 80 % interval of the ratio
    measure: tuple[str, ...] = ()  # what must be measured


def shown(answer: Mapping[str, Any]) -> tuple[Shown, ...]:
    """The worker's answer as a page shows it."""
    return tuple(_shown(DeploymentEffect(**meaning)) for meaning in answer["meanings"])


def _shown(m: DeploymentEffect) -> Shown:
    name, unit = _FIGURES.get(m.metric, (m.metric, ""))
    return Shown(
        technique=m.technique,
        sure=percent(m.confidence_frac),
        metric=name,
        because=describe(m.because, 1000),
        before=amount(m.before, unit) if m.before is not None else "",
        after=amount(m.after, unit) if m.after is not None else "",
        ratio="" if m.ratio is None else f"{m.ratio:.2f} times",
        effect=_effect(m.before, m.after, unit),
        between="" if m.low_80 is None or m.high_80 is None else f"{m.low_80:.2f} to {m.high_80:.2f} times",
        measure=tuple(m.must_be_measured),
    )


def _effect(before: float | None, after: float | None, unit: str) -> str:
    if before is None or after is None:
        return ""
    if abs(after - before) <= STILL_FRAC * abs(before):
        return "the same"
    return "better" if (after > before) == (unit != "s") else "worse"
