"""An estimate as a person reads it, whatever kind of model it is of."""

from collections.abc import Callable
from typing import Any

from orrery.cli.answer_views import print_answer
from orrery.cli.diffusion_views import print_diffusion
from orrery.cli.embedding_views import print_embeddings
from orrery.cli.host_attention_views import print_host_attention
from orrery.cli.image_model_views import print_image_model
from orrery.cli.long_context_views import print_long_contexts
from orrery.cli.recommendation_views import print_recommendation
from orrery.cli.speech_views import print_speech
from orrery.cli.views import print_estimate
from orrery.cli.weight_window_views import print_weight_window
from orrery.scenario.ask import Answer
from orrery.scenario.diffusion import DiffusionAnswer
from orrery.scenario.embeddings import EmbeddingAnswer
from orrery.scenario.host_attention import HostAttentionAnswer
from orrery.scenario.image_model import ImageModelAnswer
from orrery.scenario.long_contexts import LongContextAnswer
from orrery.scenario.recommendation import RecommendationAnswer
from orrery.scenario.speech import SpeechAnswer
from orrery.scenario.weight_window import WeightWindowAnswer


def _print_text(answer: Answer) -> None:
    print_estimate(answer)
    if answer.reasoned:
        print_answer(answer.reasoned)


PRINTERS: dict[type, Callable[[Any], None]] = {
    Answer: _print_text,
    DiffusionAnswer: print_diffusion,
    EmbeddingAnswer: print_embeddings,
    HostAttentionAnswer: print_host_attention,
    ImageModelAnswer: print_image_model,
    LongContextAnswer: print_long_contexts,
    RecommendationAnswer: print_recommendation,
    SpeechAnswer: print_speech,
    WeightWindowAnswer: print_weight_window,
}
"""For each kind of answer, but for what does not fit."""
