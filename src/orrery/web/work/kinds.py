"""The kinds of runs: what each is called, which settings it reads, and how it is done."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from orrery.reports.kinds import Kind as Reported
from orrery.reports.make import report_of
from orrery.reports.page import page
from orrery.reports.source import Source
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.capacity import Capacity, Probe, find_capacity
from orrery.scenario.plan_simulated import plan_simulated
from orrery.scenario.schema import Scenario
from orrery.scenario.simulate import RunObserver, read_window, simulate
from orrery.scenario.sweep import sweep
from orrery.scenario.sweep.rows import rows_of
from orrery.scenario.train_plan import train_plan
from orrery.serving.requests import Ints
from orrery.web.work.run_progress import RunProgress
from orrery.web.work.serving_run import packed, parts_of

Parts = dict[str, bytes]

REPORT = "report"
"""The kind that is about another run."""

LIKELY_PROBES = 9
"""Expected number of probes of a search for the capacity; it may take more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """Inputs of a run beside its scenario."""

    options: Mapping[str, Any]
    progress: RunProgress
    counts: Ints  # memory that the server reads
    before: Mapping[str, Any] | None  # the answer of the run that it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of run."""

    name: str
    title: str
    about: str
    command: str  # of the command line, which reads the same settings
    run: Callable[[Scenario, Job], Parts]


def _simulate(scenario: Scenario, job: Job) -> Parts:
    window = read_window(job.options["window"]) if job.options.get("window") else None
    watch = RunObserver(counts=job.counts, on_phase=lambda name, total, _: job.progress.phase(name, total))
    found = simulate(scenario, window=window, patience=job.progress.loading(), watch=watch)
    plain = found.to_json()
    return {"answer": packed(plain)} if isinstance(found, InfeasibleAnswer) else parts_of(found, plain, window)


def _sweep(scenario: Scenario, job: Job) -> Parts:
    over, finds_capacity = list(job.options["sweep"]), bool(job.options.get("capacity"))
    on_run = partial(job.progress.step, "sweeping")
    found = sweep(scenario, over=over, finds_capacity=finds_capacity, patience=job.progress.loading(), on_run=on_run)
    rows = {"rows": rows_of(found.runs), "labels": [run["label"] for run in found.runs], "over": over}
    return {"answer": packed(found.to_json()), "rows": packed(rows)}


def _capacity(scenario: Scenario, job: Job) -> Parts:
    tried: list[Probe] = []

    def on_probe(probe: Probe) -> None:
        tried.append(probe)
        verdict = "holds" if probe.is_met else f"does not hold ({probe.limited_by})"
        job.progress.add_message(f"{probe.requests_per_s:.4g} requests/s: {verdict}")
        job.progress.step("searching", len(tried), max(LIKELY_PROBES, len(tried) + 1))

    found = find_capacity(scenario, patience=job.progress.loading(), on_probe=on_probe)
    plain = found.to_json()
    return parts_of(found.answer, plain, None) if isinstance(found, Capacity) else {"answer": packed(plain)}


def _plan(scenario: Scenario, job: Job) -> Parts:
    job.progress.phase("planning")
    on_plan = partial(job.progress.step, "holding")
    return {"answer": packed(plan_simulated(scenario, patience=job.progress.loading(), on_plan=on_plan).to_json())}


def _train_plan(scenario: Scenario, job: Job) -> Parts:
    return {"answer": packed(train_plan(scenario, progress=partial(job.progress.step, "laying out")).to_json())}


def _report(scenario: Scenario, job: Job) -> Parts:
    job.progress.phase("reporting")
    over = tuple(job.options.get("sweep", ()))
    source = Source(kind=cast(Reported, job.options["as"]), scenario=scenario, over=over, plain=job.before)
    return {"page": page(report_of(source)).encode()}


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="simulate",
            title="Simulation",
            command="simulate",
            run=_simulate,
            about="Serve requests step by step, as the engine would: latencies, queues, cache and power over time.",
        ),
        Kind(
            name="capacity",
            title="Capacity",
            command="simulate",
            run=_capacity,
            about="The highest rate of requests at which the objectives hold and the queue does not grow.",
        ),
        Kind(
            name="sweep",
            title="Sweep",
            command="simulate",
            run=_sweep,
            about="The same simulation with each of several values of a setting, or of a grid of settings.",
        ),
        Kind(
            name="plan",
            title="Simulated plans",
            command="plan",
            run=_plan,
            about="Search the best plans, then hold each against a simulation of its traffic.",
        ),
        Kind(
            name="train-plan",
            title="Training layouts",
            command="train",
            run=_train_plan,
            about="Search every layout that is left open for the fastest way to train.",
        ),
        Kind(
            name=REPORT,
            title="Report",
            command="",
            run=_report,
            about="What a run found, as a page to hand on: with facts, assumptions, and what would change it.",
        ),
    )
}
