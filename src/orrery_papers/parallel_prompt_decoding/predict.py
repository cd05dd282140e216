"""Parallel prompt decoding: the tree that suits a device, and what a step of it yields; shares of trained vectors."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.layout import Deployment
from orrery.execution.prompt_trees import PromptTrees, Ranked, prompt_trees
from orrery.models.config import parse
from orrery.models.model import Model
from orrery.serving.clock import tick
from orrery_papers.shared.setup import deployment

DISTANCES = (1, 2, 3)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best of the three models; then shares of parameters and of memory."""
    names = ("vicuna-7b", "vicuna-13b", "mobilellama")
    found = {name: speedup(paper.setups[name]) for name in names}
    best = max(found, key=lambda name: found[name][0])
    ratio, trees = found[best]
    text = ", ".join(f"{name} {found[name][0]:.2f}" for name in names)
    yield Prediction(
        claim="speedup", predicted=ratio,
        because=f"{text}; for {best} {trees.num_nodes} guesses in a step of {trees.num_tokens} tokens that yields "
        f"{trees.step_tokens:.2f}",
        differs="how often guesses hold: those of the published trees, counted on one data set; the most was reached "
        "on whichever answers are easiest to guess, and a host that waits less makes checking dearer",
    )  # fmt: skip
    yield Prediction(
        claim="trainable", predicted=trained_frac(paper.setups["vicuna-7b"]),
        because="one vector for each prompt token, over all weights",
    )  # fmt: skip
    yield Prediction(
        claim="memory", predicted=trained_frac(paper.setups["vicuna-7b"]),
        because="the same vectors in the weights' format, over all weights",
        differs="what the paper counts as memory, which was not found; for the smallest model the vectors would be "
        f"{trained_frac(paper.setups['mobilellama']):.1e}",
    )  # fmt: skip


def guesses(setup: Setup) -> Ranked:
    """How often guesses hold, by distance and rank."""
    return tuple(setup.numbers(f"top_guess_fracs_{distance}") for distance in DISTANCES)


def speedup(setup: Setup) -> tuple[float, PromptTrees]:
    """Tokens a second over those of one token a step, with the tree that suits the device best."""
    served = serving(setup)
    tried = [prompt_trees(guesses(setup), int(limit)) for limit in setup.numbers("tree_tokens_swept")]
    sizes = np.array([1, *(trees.num_tokens for trees in tried)])
    times = checking_s(served, sizes, int(setup.number("max_context_tokens")))
    gains = [float(t.step_tokens * times[0] / s) for t, s in zip(tried, times[1:], strict=True)]
    best = int(np.argmax(gains))
    return gains[best], tried[best]


def checking_s(served: Deployment, tokens: Ints, context: int) -> Floats:
    """A step of so many tokens of one sequence, the host's part included."""
    none = np.zeros_like(tokens)
    alone = tokens == 1
    batch = Batch(
        prompt_sequences=np.where(alone, 0, 1), prompt_tokens=np.where(alone, 0, tokens),
        prompt_context_tokens=np.where(alone, 0, context + tokens), decode_sequences=np.where(alone, 1, 0),
        decode_context_tokens=none + context,
    )  # fmt: skip
    return tick(served, batch).time_s


def serving(setup: Setup) -> Deployment:
    """The catalogue's model, or the Llama that the set-up describes."""
    if setup.word("model"):
        return deployment(setup, engine=setup.word("engine"))
    found = deployment(setup, model="llama-2-7b", engine=setup.word("engine"))
    return Deployment(
        model=described(setup), cluster=found.cluster, layout=found.layout, formats=found.formats, engine=found.engine
    )


def described(setup: Setup) -> Model:
    """A Llama of the stated sizes."""
    sizes = {
        "num_hidden_layers": "num_layers", "hidden_size": "num_hidden", "num_attention_heads": "num_heads",
        "intermediate_size": "num_ffn_features", "vocab_size": "num_vocabulary",
        "max_position_embeddings": "max_context_tokens",
    }  # fmt: skip
    return parse({"model_type": "llama", **{k: int(setup.number(v)) for k, v in sizes.items()}}, name=setup.name)


def trained_frac(setup: Setup) -> float:
    """Trained numbers over the model's own."""
    model = serving(setup).model
    vectors = setup.number("num_prompt_tokens") * setup.number("num_prompt_token_copies")
    return vectors * model.hidden_size / model.num_parameters
