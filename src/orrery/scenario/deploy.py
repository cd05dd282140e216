"""Files that start a plan's winner on an orchestrator."""

from collections.abc import Mapping

from orrery.base.errors import ScenarioError
from orrery.planner.deploy.files import WRITERS, deploy_file, written
from orrery.scenario.cold_start import cold_start_of
from orrery.scenario.plan_answer import PlanAnswer
from orrery.scenario.resolve import words
from orrery.scenario.schema import read_scenario


def deploy_files(answer: PlanAnswer, kinds: str) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return text by file name for the best plan, by the orchestrators' names with commas, and notes.

    ScenarioError names an orchestrator that is not known, or an engine that it cannot start.
    """
    names = words(kinds)
    if unknown := [name for name in names if name not in WRITERS]:
        raise ScenarioError(f"manifest: got {unknown[0]!r}; write one or several of {', '.join(WRITERS)}.")
    if not answer.plans:
        raise ScenarioError("manifest: no plan works, so there is nothing to start.")
    plan = answer.plans[0]
    deployment = plan.operation.deployment
    engine = deployment.engine.name
    files: dict[str, str] = {}
    notes: list[str] = []
    startup_s = cold_start_of(read_scenario({"start": "new-pod"}), deployment).start.seconds_s
    for name in names:
        engines = WRITERS[name][2]
        if engine not in engines:
            raise ScenarioError(
                f"manifest: {name} starts {' or '.join(sorted(engines))}, not {engine}; plan with one of them."
            )
        one = written(plan, engine, startup_s)
        file, text = deploy_file(name, one)
        files[file] = text
        if one.devices > one.node_devices and name != "slurm":
            notes.append(f"manifest: a replica spans several nodes, which {file} does not lay out")
    notes.append(f"manifest: a start takes {startup_s:.0f} s (orrery cold-start); probes allow twice as much")
    if {"kubernetes", "keda"} & set(names):
        notes.append("manifest: vLLM's metrics must reach the autoscaler (Prometheus; with an HPA its adapter too)")
    return files, tuple(notes)
