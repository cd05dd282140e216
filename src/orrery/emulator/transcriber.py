"""A model of speech beside the language model: how long a recording takes, as ``orrery estimate`` says."""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.model_kind import ModelKind, kind_of
from orrery.scenario.schema import Scenario, read_scenario
from orrery.scenario.speech import SpeechAnswer, speech


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcriber:
    """One model on a device of its own."""

    name: str
    scenario: Scenario

    @staticmethod
    def of(model: str, device: str) -> "Transcriber":
        """The model of a name on a device; ScenarioError where it transcribes nothing, or does not fit."""
        if kind_of(model) is not ModelKind.SPEECH:
            raise ScenarioError(
                f"speech-model: {model} transcribes nothing; write whisper-large-v3, or another Whisper."
            )
        found = Transcriber(name=model, scenario=read_scenario({"model": model, "device": device}))
        found.answer(1.0)
        return found

    def answer(self, audio_s: float) -> SpeechAnswer:
        """Time of one recording; ScenarioError where the model does not fit."""
        found = speech(read_scenario({**self.scenario.written(), "audio_s": audio_s}))
        if isinstance(found, InfeasibleAnswer):
            raise ScenarioError(
                f"{self.name} on {self.scenario.device}: does not fit. {found.infeasible.smallest_change}"
            )
        return found
