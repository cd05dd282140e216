"""``orrery estimate`` of a diffusion pipeline as a page: what an image or a video takes and costs."""

from collections.abc import Iterator, Sequence
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.catalog.diffusion import diffusion_names, find_diffusion
from orrery.execution.patches import PATCHES
from orrery.reports.words import format_value
from orrery.scenario.estimates import estimate
from orrery.scenario.fields import BY_NAME
from orrery.scenario.fields_diffusion import DIFFUSION_NAMES
from orrery.web.address import Query
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, flags, form_of
from orrery.web.export import Cell

NAMES = ("model", "device", "batch", *DIFFUSION_NAMES, "usd_per_hour", "electricity")
SWITCHES = tuple(name for name in DIFFUSION_NAMES if BY_NAME[name].kind == "switch")
FIRST = ("model", "device", "batch", "num_inference_steps", "ulysses_degree")
START = {
    "model": "black-forest-labs/FLUX.1-dev",
    "device": "h100-sxm",
    "batch": "1",
    "num_inference_steps": "28",
    "ulysses_degree": "4",
}
SHOWN = (
    ("Batch latency", "latency_s", "s"),
    ("Images or videos per second", "items_per_s", ""),
    ("Power of all devices", "power_w", "w"),
    ("Energy per image or video", "energy_j_per_item", "j"),
    ("Cost per image or video", "usd_per_item", "usd"),
    ("Cost per second of video", "usd_per_video_s", "usd"),
)


def settings(query: Query) -> dict[str, Any]:
    """The settings of a picture or video."""
    return {name: value for name in NAMES if (value := query.get(name, "").strip())}


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    if find_diffusion(str(inputs.get("model", ""))) is None:
        got = str(inputs.get("model", ""))[:80]
        raise ScenarioError(f"model: got {got!r}; write one of {', '.join(diffusion_names())}.")
    switched = {name: str(inputs[name]) for name in SWITCHES if inputs.get(name)}
    for name, value in switched.items():
        if value not in ("true", "false"):
            raise ScenarioError(f"{name}: got {value[:40]!r}; write true or false.")
    return estimate(**{**inputs, **{name: value == "true" for name, value in switched.items()}}).to_json()


def sections(plain: Plain) -> tuple[Section, ...]:
    """Figures with their intervals, and the stages."""
    if "infeasible" in plain:
        lacking = plain["infeasible"]
        verdict = f"Needs {format_value(lacking['need'], 'bytes')}, has {format_value(lacking['have'], 'bytes')}"
        return (Section(title="It does not fit", verdict=verdict, reasons=(lacking["smallest_change"],)),)
    rows = tuple(
        (label, _value(plain[name], unit), _interval(plain["intervals"].get(name), unit))
        for label, name, unit in SHOWN
        if plain[name] is not None
    )
    stages = tuple((s["name"], format_value(s["time_s"], "s"), s["bound_by"]) for s in plain["stages"])
    memory = tuple((name.removesuffix("_bytes"), format_value(v, "bytes")) for name, v in plain["memory"].items())
    return (
        Section(
            title="A batch",
            verdict=f"{format_value(plain['latency_s'], 's')}, limited by {plain['bound_by']}",
            table=Table(caption="Means over a batch", columns=("", "Mean", "80 % interval"), rows=rows),
            reasons=tuple(plain["notes"]),
        ),
        Section(
            title="Stages",
            table=Table(caption="In the order in which they run", columns=("Stage", "Time", "Bound by"), rows=stages),
        ),
        *_patches(plain["patches"]),
        Section(
            title="Memory of a device",
            table=Table(caption="By category, of each device", columns=("Category", "Size"), rows=memory),
        ),
    )


def _patches(found: Plain | None) -> Iterator[Section]:
    """Gain of patches over one device, and its ceiling."""
    if found is not None:
        left_out = found["attention_left_out_frac"]
        why = f"; {percent(left_out)} of one device's passes are left out" if left_out else ""
        yield Section(
            title="Against one device",
            verdict=f"{found['speedup']:.2f} times faster, its passes {found['denoise_speedup']:.2f} times (at most "
            f"{found['most_denoise_speedup']:.2f}{why})",
        )


def _value(value: float, unit: str) -> str:
    return f"${value:.4g}" if unit == "usd" else format_value(value, unit) if unit else f"{value:.3g}"


def _interval(found: Plain | None, unit: str) -> str:
    return "" if found is None else f"{_value(found['low_80'], unit)} to {_value(found['high_80'], unit)}"


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each stage."""
    header = ("name", "time_s", "bound_by")
    return header, [[stage[name] for name in header] for stage in plain.get("stages", ())]


def command(inputs: Plain) -> str:
    """The line that asks it."""
    typed = {name: value for name, value in inputs.items() if name not in SWITCHES}
    switched = (BY_NAME[n].typed(inputs[n] == "true") for n in SWITCHES if inputs.get(n) in ("true", "false"))
    return " ".join([f"orrery estimate {flags(typed)}", *(word for words in switched for word in words)])


OPEN, FOLDED = form_of({name: BY_NAME[name] for name in NAMES}, FIRST, {"model": "Pipeline"})
PAGE = CommandPage(
    name="pictures",
    title="How long and what does an image or a video cost?",
    lead="A batch of a diffusion pipeline: its latency by stage, memory, power, and the joules and dollars of one.",
    menu=(47, "Images"),
    page="images-and-videos.md",
    first=OPEN,
    folded=FOLDED,
    settings=settings,
    names=frozenset(NAMES),
    start=START,
    command=command,
    sections=sections,
    rows=rows,
    own=frozenset({"model", *SWITCHES}),
    choices={"model": diffusion_names(), "patch_context": ("", *PATCHES.words)},
)
