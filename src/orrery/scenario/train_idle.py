"""Notes on settings that change no number of a training job: what they need is not there, or the step is as long."""

from dataclasses import replace

from orrery.base.technique import GATHERS_EXPERTS
from orrery.execution.train.hidden import EXPERT, tensor_technique
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario.levers.found import of_job
from orrery.scenario.levers.idle import OTHERWISE, idle_because, idle_notes
from orrery.scenario.schema import Scenario
from orrery.training.ranks import costed


def idle_settings(scenario: Scenario, job: TrainingJob, layout: TrainingLayout) -> tuple[str, ...]:
    """A note for every setting that changes nothing here."""
    given = scenario.written()
    found = of_job(job, layout, given)
    notes = list(idle_notes(given, found))
    if (why := _experts_stay(job, layout)) and not idle_because({"expert_overlap": job.expert_overlap}, found):
        notes.append(f"expert_overlap = {job.expert_overlap}: no effect on this job: {why}")
    if layout.tp > 1 and job.tensor_overlap and job.tensor_overlap == tensor_technique(replace(job, tensor_overlap="")):
        notes.append(f"tensor_overlap = {job.tensor_overlap}: {job.framework.name} does so by default")
    return (*notes, *_graphs(scenario, job, layout))


def _experts_stay(job: TrainingJob, layout: TrainingLayout) -> str:
    """Why no expert's weights travel, where a technique might send them; blank where some do."""
    if not job.expert_overlap or GATHERS_EXPERTS not in EXPERT.get(job.expert_overlap).traits:
        return ""
    if _figures(job, layout) != _figures(replace(job, expert_overlap=""), layout):
        return ""
    return OTHERWISE["expert_overlap"] if job.expert_loads is None else "no expert is so popular that sending it pays"


def _graphs(scenario: Scenario, job: TrainingJob, layout: TrainingLayout) -> tuple[str, ...]:
    """Note on graphs that replay what no device waits for."""
    if scenario.cuda_graphs is None:
        return ()
    steps, _ = costed(replace(job, framework=replace(job.framework, cuda_graphs="")), layout)
    is_waited_for = steps.parts["launches"][0] > 0.0
    return () if is_waited_for else ("cuda_graphs: no effect on this job: no launch is waited for",)


def _figures(job: TrainingJob, layout: TrainingLayout) -> tuple[float, float]:
    steps, _ = costed(job, layout)
    return float(steps.time_s[0]), float(steps.memory_bytes[0])
