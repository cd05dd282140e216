"""Parallel prompt decoding: the tree that suits a device, and what a step of it yields; shares of trained vectors."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.config import parse
from orrery.models.model import Model
from orrery.scenario.ask import Answer, estimate
from orrery_papers.shared.setup import deployment, settings_of

DISTANCES = (1, 2, 3)

OUTPUT_TOKENS = 256
"""Tokens of an answer whose middle has the set-up's context."""

SIZES = {
    "num_hidden_layers": "num_layers",
    "hidden_size": "num_hidden",
    "num_attention_heads": "num_heads",
    "intermediate_size": "num_ffn_features",
    "vocab_size": "num_vocabulary",
    "max_position_embeddings": "max_context_tokens",
}


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best of the three models; then shares of parameters and of memory."""
    names = ("vicuna-7b", "vicuna-13b", "mobilellama")
    found = {name: speedup(paper.setups[name]) for name in names}
    best = max(found, key=lambda name: found[name][0])
    ratio, drafts = found[best]
    text = ", ".join(f"{name} {found[name][0]:.2f}" for name in names)
    yield Prediction(
        claim="speedup",
        predicted=ratio,
        because=f"{text}; for {best} {sum(drafts['level_nodes'])} draft tokens in a step of "
        f"{drafts['verified_tokens']} tokens that yields {drafts['tokens_per_step']:.2f}",
        differs="how often guesses hold: those of the published trees, counted on one data set; the most was reached "
        "on whichever answers are easiest to guess, and a host that waits less makes checking dearer",
    )
    yield Prediction(
        claim="trainable",
        predicted=trained_frac(paper.setups["vicuna-7b"]),
        because="one vector for each prompt token, over all weights",
    )
    yield Prediction(
        claim="memory",
        predicted=trained_frac(paper.setups["vicuna-7b"]),
        because="the same vectors in the weights' format, over all weights",
        differs="what the paper counts as memory, which was not found; for the smallest model the vectors would be "
        f"{trained_frac(paper.setups['mobilellama']):.1e}",
    )


def speedup(setup: Setup) -> tuple[float, dict[str, Any]]:
    """Time per token of one sequence without drafts over that with the tree that suits the device best."""
    with TemporaryDirectory() as folder:
        model = setup.word("model") or str(_written(setup, Path(folder)))
        settings = settings_of(setup, model=model) | {
            "engine": setup.word("engine"),
            "batch": 1,
            "input_tokens": round(setup.number("max_context_tokens")) - OUTPUT_TOKENS // 2,
            "output_tokens": OUTPUT_TOKENS,
            "max_model_len": 2 * round(setup.number("max_context_tokens")),
        }
        plain, drafted = estimate(**settings), estimate(**settings, **drafting(setup))
    assert isinstance(plain, Answer)
    assert isinstance(drafted, Answer)
    return plain.estimate.tpot_s / drafted.estimate.tpot_s, drafted.to_json()["draft"]


def drafting(setup: Setup) -> dict[str, Any]:
    """Settings: how often guesses hold, by distance and rank."""
    rows = (setup.numbers(f"top_guess_fracs_{distance}") for distance in DISTANCES)
    return {
        "draft": "prompt-tokens",
        "acceptance_by_position": ",".join("/".join(f"{share:g}" for share in row) for row in rows),
    }


def _written(setup: Setup, folder: Path) -> Path:
    """The Llama of the stated sizes as a config file."""
    path = folder / "config.json"
    path.write_text(json.dumps(_config(setup)))
    return path


def _config(setup: Setup) -> dict[str, Any]:
    return {"model_type": "llama", **{k: int(setup.number(v)) for k, v in SIZES.items()}}


def trained_frac(setup: Setup) -> float:
    """Trained numbers over the model's own."""
    model = _model(setup)
    vectors = setup.number("num_prompt_tokens") * setup.number("num_prompt_token_copies")
    return vectors * model.hidden_size / model.num_parameters


def _model(setup: Setup) -> Model:
    return deployment(setup).model if setup.word("model") else parse(_config(setup), name=setup.name)
