"""``orrery estimate``: one configuration."""

from pathlib import Path
from typing import Any

import click

from orrery.cli.options import scenario_flags, scenario_from

EXAMPLES = """\b
Examples:
  orrery estimate --model llama-3.1-70b --device h100-sxm --tp 4 --input-tokens 900 --output-tokens 250 --batch 32
  orrery estimate --model ./config.json --device mi300x --input-tokens 512 --output-tokens 512 --batch 16 --json
  orrery estimate --model flux.1-dev --device h100-sxm --ulysses-degree 4 --num-inference-steps 28
  orrery estimate --scenario mine.toml --weights fp8
  orrery estimate --scenario mine.toml --reasoning best-of-n --samples 1,4,16 --success 0.3 --verifier-accuracy 0.8"""


@click.command("estimate", epilog=EXAMPLES)
@scenario_flags("estimate")
def command(scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any) -> int:
    """One configuration: how fast, how much memory, energy and money, and what limits it."""
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.diffusion import DiffusionAnswer
    from orrery.scenario.embeddings import EmbeddingAnswer
    from orrery.scenario.estimates import estimate
    from orrery.scenario.host_attention import HostAttentionAnswer
    from orrery.scenario.image_model import ImageModelAnswer
    from orrery.scenario.long_contexts import LongContextAnswer
    from orrery.scenario.recommendation import RecommendationAnswer
    from orrery.scenario.speech import SpeechAnswer
    from orrery.scenario.weight_window import WeightWindowAnswer

    answer = estimate(scenario)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    elif isinstance(answer, DiffusionAnswer):
        from orrery.cli.diffusion_views import print_diffusion

        print_diffusion(answer)
    elif isinstance(answer, EmbeddingAnswer):
        from orrery.cli.embedding_views import print_embeddings

        print_embeddings(answer)
    elif isinstance(answer, LongContextAnswer):
        from orrery.cli.long_context_views import print_long_contexts

        print_long_contexts(answer)
    elif isinstance(answer, ImageModelAnswer):
        from orrery.cli.image_model_views import print_image_model

        print_image_model(answer)
    elif isinstance(answer, RecommendationAnswer):
        from orrery.cli.recommendation_views import print_recommendation

        print_recommendation(answer)
    elif isinstance(answer, SpeechAnswer):
        from orrery.cli.speech_views import print_speech

        print_speech(answer)
    elif isinstance(answer, WeightWindowAnswer):
        from orrery.cli.weight_window_views import print_weight_window

        print_weight_window(answer)
    elif isinstance(answer, HostAttentionAnswer):
        from orrery.cli.host_attention_views import print_host_attention

        print_host_attention(answer)
    else:
        from orrery.cli.views import print_estimate

        print_estimate(answer)
        if answer.reasoned:
            from orrery.cli.answer_views import print_answer

            print_answer(answer.reasoned)
    print_notes(answer.notes)
    return 0
