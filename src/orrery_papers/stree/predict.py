"""STree: a recurrent model verifies a tree of draft tokens in one pass, against drafts in a row and branches alone."""

from collections.abc import Iterator
from typing import Any

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.model import RecurrentMixer
from orrery.scenario.ask import Answer, estimate
from orrery.scenario.kernel.run import predict_kernel, read_kernel
from orrery_papers.shared.setup import settings_of


def predict(paper: Paper) -> Iterator[Prediction]:
    """Tokens a second of the tree over those of drafts in a row as deep."""
    (claim,) = (claim for claim in paper.claims if not claim.missing)
    widths = tuple(int(w) for w in claim.setup.numbers("tree_widths"))
    row, tree = estimated(claim.setup, (1,) * len(widths)), estimated(claim.setup, widths)
    drafts = tree.to_json()["draft"]
    one_pass, branches = drafts["verifying"]
    yield Prediction(
        claim=claim.id,
        predicted=row.estimate.tpot_s / tree.estimate.tpot_s,
        because=f"{drafts['tokens_per_step']:.2f} tokens from {drafts['verified_tokens']} verified, against "
        f"{row.to_json()['draft']['tokens_per_step']:.2f} in a row; {branches['num_states']} branches, each with a "
        f"state of its own ({branches['state_bytes'] / 1e6:.0f} MB, not {one_pass['state_bytes'] / 1e6:.0f}), "
        f"would take {branches['time_s'] / one_pass['time_s']:.2f} times as long as the tree; "
        f"{recurrence(claim.setup)}",
        differs="second draft tokens of a tree, which are right less often than first ones",
    )


def estimated(setup: Setup, widths: tuple[int, ...]) -> Answer:
    """``orrery estimate --draft tree`` of one sequence."""
    settings: dict[str, Any] = settings_of(setup) | {
        "engine": "vllm",
        "engine_version": "0",
        "batch": 1,
        "input_tokens": 128,
        "output_tokens": 256,
        "draft": "tree",
        "draft_model": setup.word("draft_model"),
        "draft_tree": ",".join(map(str, widths)),
        "acceptance": setup.number("acceptance_frac"),
    }
    found = estimate(**settings)
    assert isinstance(found, Answer)
    return found


def recurrence(setup: Setup) -> str:
    """``orrery kernel tree-recurrence`` for one layer of the model."""
    mixer = get_model(setup.word("model")).blocks[0].mixer
    assert isinstance(mixer, RecurrentMixer)
    question = read_kernel(
        {
            "op": "tree-recurrence",
            "device": setup.word("device"),
            "num_heads": mixer.num_heads,
            "head_size": 1,
            "state_size": mixer.state_elements // mixer.num_heads,
            "tree": setup.word("tree_widths").replace(" ", ""),
        }
    )
    rows = {row.variant: row for row, _ in predict_kernel(question)[1]}
    one, branches = rows["one-pass"], rows["branches"]
    return (
        f"the recurrence alone of a layer {branches.time_s / one.time_s:.2f} times, "
        f"from which outputs differ by {one.details['largest_difference']:.0e}"
    )
