"""STree: a recurrent model checks a tree of guesses in one pass, against guesses in a row and branches alone."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import Deployment
from orrery.execution.speculation import Speculation, expected_tokens, level_nodes, verified_tokens
from orrery.kernels.recurrent.tree import branch_outputs, full_tree, tree_outputs
from orrery.serving.clock import tick
from orrery_papers.shared.passes import prompts
from orrery_papers.shared.setup import deployment


def predict(paper: Paper) -> Iterator[Prediction]:
    """Tokens a second of the tree over those of guesses in a row as deep."""
    (claim,) = (claim for claim in paper.claims if not claim.missing)
    words = claim.setup
    row, tree = row_of(words), tree_of(words)
    target = deployment(words)
    small = deployment(words, model=words.word("draft_model"))
    leaves, depth = level_nodes(tree)[-1], 1 + len(tree.widths)
    unrolled_ratio = pass_s(target, depth, leaves) / pass_s(target, verified_tokens(tree))
    in_row = expected_tokens(row) / (pass_s(target, verified_tokens(row)) + drafting_s(small, row))
    in_tree = expected_tokens(tree) / (pass_s(target, verified_tokens(tree)) + drafting_s(small, tree))
    yield Prediction(
        claim=claim.id, predicted=in_tree / in_row,
        because=f"{expected_tokens(tree):.2f} tokens from {verified_tokens(tree)} checked, against "
        f"{expected_tokens(row):.2f} from {verified_tokens(row)}; {leaves} branches of {depth} tokens, each with a "
        f"state of its own, would take {unrolled_ratio:.2f} times as long as the tree, from which their outputs differ "
        f"by {difference(tree):.0e}",
        differs="second guesses of a tree, which hold less often than first ones",
    )  # fmt: skip


def row_of(words: Setup) -> Speculation:
    """One guess at each level."""
    return Speculation(draft_tokens=len(widths(words)), acceptance_frac=words.number("acceptance_frac"))


def tree_of(words: Setup) -> Speculation:
    """The tree's guesses."""
    return Speculation(kind="tree", tree_widths=widths(words), acceptance_frac=words.number("acceptance_frac"))


def widths(words: Setup) -> tuple[int, ...]:
    """Guesses of a node at each level."""
    return tuple(int(w) for w in words.numbers("tree_widths"))


def pass_s(d: Deployment, tokens: int, sequences: int = 1) -> float:
    """A pass over so many new tokens of each sequence, with the host's part."""
    return float(tick(d, prompts(np.array([tokens]), sequences)).time_s[0])


def drafting_s(small: Deployment, guessing: Speculation) -> float:
    """A pass of the guessing model for each level, over the nodes that the next level grows from."""
    return sum(pass_s(small, nodes) for nodes in (1, *level_nodes(guessing)[:-1]))


def difference(tree: Speculation) -> float:
    """Largest difference between one pass over the tree and a state for every node, on drawn numbers."""
    parents, draws = full_tree(tree.widths), np.random.default_rng(0)
    count, features, channels = len(parents), 16, 8
    given = (
        draws.standard_normal((features, channels)), draws.uniform(0.5, 1.0, count),
        draws.standard_normal((count, features)), draws.standard_normal((count, features)),
        draws.standard_normal((count, channels)),
    )  # fmt: skip
    return float(np.abs(tree_outputs(parents, *given) - branch_outputs(parents, *given)).max())
