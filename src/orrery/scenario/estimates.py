"""One configuration of any model: of text, or of pictures and videos."""

from collections.abc import Callable, Mapping
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.scenario import ask
from orrery.scenario.ask import Answer, InfeasibleAnswer
from orrery.scenario.diffusion import DiffusionAnswer, diffusion
from orrery.scenario.embeddings import EmbeddingAnswer, embeddings, embeds
from orrery.scenario.fields_diffusion import DIFFUSION_NAMES
from orrery.scenario.host_attention import HOST_ATTENTION, HostAttentionAnswer, bound
from orrery.scenario.image_model import ImageModelAnswer, image_model
from orrery.scenario.long_contexts import LongContextAnswer, long_contexts
from orrery.scenario.model_kind import ModelKind, kind_of
from orrery.scenario.recommendation import RecommendationAnswer, recommendation
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.speech import SpeechAnswer, speech
from orrery.scenario.weight_window import WEIGHT_WINDOW, WeightWindowAnswer, has_weight_window, weight_window

Estimated = (
    Answer
    | InfeasibleAnswer
    | DiffusionAnswer
    | EmbeddingAnswer
    | HostAttentionAnswer
    | ImageModelAnswer
    | LongContextAnswer
    | RecommendationAnswer
    | SpeechAnswer
    | WeightWindowAnswer
)
"""Results of an estimate: an answer about text, an infeasible deployment, or one of the special kinds."""

OF_OTHER_KINDS: Mapping[ModelKind, Callable[[Scenario], Estimated]] = {
    ModelKind.DIFFUSION: diffusion,
    ModelKind.IMAGE: image_model,
    ModelKind.RANKING: recommendation,
    ModelKind.SPEECH: speech,
}
"""Models that are not of text, and what answers for them."""

OF_SPEECH = ("audio_s", "num_beams", "window_batch")
OF_OTHERS: Mapping[tuple[str, ...], str] = {
    DIFFUSION_NAMES: "of pictures and videos, and {model} is a model of text; leave out, or write "
    'model = "flux.1-dev".',
    ("integer_only",): '{model} is no image network; leave it out, or write model = "vit-s-16".',
    OF_SPEECH: '{model} takes no speech; leave it out, or write model = "whisper-large-v3".',
}
"""Settings that no model of text has, and what to write."""


@typed
def estimate(scenario: Scenario | None = None, /, **settings: Any) -> Answer | Estimated:
    """One configuration: how fast, how much memory, energy and money, and what limits it.

    Settings are those of a scenario file; given beside a scenario they override it. A diffusion pipeline's answer is
    that of a batch of pictures or videos, an image network's of pictures that it reads, and that of a model of speech
    of recordings; an encoder's, or one with ``pooling``, is that of embeddings. With ``expert_offload =
    "host-attention"`` it is the bound of a host that keeps the cache, with ``context_lengths`` a table of what long
    contexts cost, with ``weight_window`` one sequence whose weights stream from drives.
    """
    inputs = merged(scenario, settings)
    if other := OF_OTHER_KINDS.get(kind_of(inputs.model)):
        return other(inputs)
    _check_text(inputs)
    if inputs.context_lengths is not None:
        refuse_foreign("estimate", settings)
        return long_contexts(inputs)
    if inputs.asks(*WEIGHT_WINDOW) and has_weight_window(inputs):
        return weight_window(inputs)
    if inputs.expert_offload == HOST_ATTENTION:
        return bound(inputs)
    refuse_foreign("estimate", settings)
    if (inputs.asks("pooling") or inputs.output_tokens is None) and embeds(inputs):
        return embeddings(inputs)
    return ask.estimate(inputs)


def _check_text(scenario: Scenario) -> None:
    """Refuse settings of other kinds of models for a model of text; the other kinds list what they read."""
    for names, why in OF_OTHERS.items():
        if given := [name for name in names if getattr(scenario, name) is not None]:
            raise ScenarioError(f"{', '.join(given)}: {why.format(model=scenario.model)}")
