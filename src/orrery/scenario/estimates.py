"""One configuration of any model: of text, or of pictures and videos."""

from dataclasses import replace
from typing import Any

from orrery.base.arguments import typed
from orrery.catalog.recommendation import is_recommendation
from orrery.scenario import ask
from orrery.scenario.ask import Answer, InfeasibleAnswer
from orrery.scenario.diffusion import DiffusionAnswer, check_text, diffusion, is_diffusion
from orrery.scenario.embeddings import EmbeddingAnswer, embeddings, embeds
from orrery.scenario.host_attention import HOST_ATTENTION, HostAttentionAnswer, bound
from orrery.scenario.image_model import ImageModelAnswer, check_no_integers, image_model, is_image_model
from orrery.scenario.long_contexts import LongContextAnswer, long_contexts
from orrery.scenario.recommendation import RecommendationAnswer, recommendation
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.speech import SpeechAnswer, check_no_speech, is_speech, speech
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
    if is_diffusion(inputs.model):
        return replace(diffusion(inputs), settings=inputs.written())
    check_text(inputs)
    if is_image_model(inputs.model):
        return image_model(inputs)
    check_no_integers(inputs)
    if is_recommendation(inputs.model):
        return recommendation(inputs)
    if is_speech(inputs.model):
        return speech(inputs)
    check_no_speech(inputs)
    if inputs.context_lengths is not None:
        return long_contexts(inputs)
    if inputs.asks(*WEIGHT_WINDOW) and has_weight_window(inputs):
        return weight_window(inputs)
    if inputs.expert_offload == HOST_ATTENTION:
        return bound(inputs)
    if (inputs.asks("pooling") or inputs.output_tokens is None) and embeds(inputs):
        return embeddings(inputs)
    return ask.estimate(inputs)
