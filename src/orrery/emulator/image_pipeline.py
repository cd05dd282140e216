"""A diffusion pipeline beside the language model: how long a batch of pictures takes, as ``orrery estimate`` says."""

from dataclasses import dataclass, field

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.diffusion import DiffusionAnswer, diffusion
from orrery.scenario.model_kind import ModelKind, kind_of
from orrery.scenario.schema import Scenario, read_scenario

MAX_SIZES = 1024
"""Sizes whose time is remembered."""


@dataclass(slots=True, kw_only=True)
class ImagePipeline:
    """One pipeline on a device of its own."""

    name: str
    scenario: Scenario
    height: int
    width: int
    _known: dict[tuple[int, int, int, int | None], float] = field(
        default_factory=dict[tuple[int, int, int, int | None], float]
    )

    @staticmethod
    def of(model: str, device: str) -> "ImagePipeline":
        """The pipeline of a name on a device; ScenarioError where it makes no pictures, or does not fit."""
        if kind_of(model) is not ModelKind.DIFFUSION:
            raise ScenarioError(
                f"image-model: {model} makes no pictures; write flux.1-dev, or another diffusion pipeline."
            )
        scenario = read_scenario({"model": model, "device": device})
        answer = _answer(scenario)
        if answer.job.model.is_video:
            raise ScenarioError(
                f"image-model: {model} makes videos; write flux.1-dev, or another pipeline of pictures."
            )
        return ImagePipeline(name=model, scenario=scenario, height=answer.job.height, width=answer.job.width)

    def latency_s(self, height: int, width: int, count: int, num_inference_steps: int | None) -> float:
        """Time of a batch; ScenarioError where the pipeline makes none of that size."""
        key = (height, width, count, num_inference_steps)
        if key not in self._known:
            if len(self._known) >= MAX_SIZES:
                self._known.clear()
            given = {**self.scenario.written(), "height": height, "width": width, "batch": count}
            if num_inference_steps is not None:
                given["num_inference_steps"] = num_inference_steps
            self._known[key] = _answer(read_scenario(given)).generated.latency_s
        return self._known[key]


def _answer(scenario: Scenario) -> DiffusionAnswer:
    found = diffusion(scenario)
    if isinstance(found, InfeasibleAnswer):
        raise ScenarioError(f"{scenario.model} on {scenario.device}: does not fit. {found.infeasible.smallest_change}")
    return found
