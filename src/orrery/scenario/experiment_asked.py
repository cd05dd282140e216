"""An experiment asked as settings: by flags, by a scenario file and by ``orrery.experiment`` alike."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.scenario.experiment import ExperimentAnswer, run_experiment
from orrery.scenario.fields_experiment import EXPERIMENT_BY_NAME
from orrery.scenario.file import read_settings
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Count, Word


class ExperimentQuestion(Inputs, table=EXPERIMENT_BY_NAME):
    """Which experiment, its seeds and steps, its sizes, and what it reads."""

    experiment: Word = None
    seed: Count = None
    seeds: Count = None
    steps: Count = None
    set: tuple[str, ...] | dict[str, str | int | float] = ()
    data: Word = None
    device: Word = None
    deployment: Word = None

    def sizes(self) -> tuple[str, ...]:
        """Its sizes as they are typed, NAME=VALUE."""
        if isinstance(self.set, Mapping):
            return tuple(f"{name}={value}" for name, value in self.set.items())
        return self.set


@typed
def experiment(**settings: Any) -> ExperimentAnswer:
    """The experiment of that name, run on this machine.

    Settings are those of `orrery experiment`: experiment (its name), seed, seeds, steps, set, data, device and
    deployment (a scenario file). ``set``
    is a list of NAME=VALUE or a table of sizes, such as ``{"hidden": 64}``.
    """
    return run_asked(read_question(settings))


def read_question(settings: Mapping[str, Any]) -> ExperimentQuestion:
    """The question that settings ask; an error where they do not say which experiment."""
    question = read_asked(ExperimentQuestion, settings, EXPERIMENT_BY_NAME)
    if question.experiment is None:
        raise ScenarioError("experiment: missing; write a name, such as experiment = narrow-lanes.")
    return question


def run_asked(
    question: ExperimentQuestion, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> ExperimentAnswer:
    """The answer to a question that was read."""
    return run_experiment(
        str(question.experiment),
        seed=question.seed or 0,
        seeds=question.seeds or 1,
        steps=question.steps or 0,
        sizes=question.sizes(),
        data=question.data,
        device=question.device,
        deployment=read_settings(Path(question.deployment)) if question.deployment else None,
        on_progress=on_progress,
    )
