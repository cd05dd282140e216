"""CodeMonkeys: the bill of stages, some shared by all trajectories of an issue."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.reproduce.prediction import Prediction
from orrery.reasoning.bill import Rates, Stage, question_usd

STAGES = (("ranking", True), ("tests", False), ("edits", False), ("selection", True))
"""As the table lists them, and whether all trajectories share them."""

TABLE_TRIES = 10
"""Trajectories of an issue in the run whose tokens are given."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The whole benchmark, then two shares."""
    setup = paper.setups["swe-bench-verified"]
    stages, rates = stages_of(setup), rates_of(setup)
    issues, tries = setup.number("num_problems"), int(setup.number("num_tries"))
    whole, plain = (issues * question_usd(stages, rates, tries, caches=c) for c in (True, False))
    single = issues * question_usd(stages, rates, 1)
    words = f"{tries} trajectories an issue; {single:,.0f} USD with one, {plain:,.0f} USD if no prompt were kept"
    yield Prediction(claim="budget", predicted=whole, because=words)
    for claim, name in (("relevance-share", "relevance"), ("edits-share", "edits")):
        own = issues * question_usd([s for s in stages if s.name == name], rates, tries)
        yield Prediction(claim=claim, predicted=own / whole, because=f"{own:,.0f} of {whole:,.0f} USD")


def stages_of(setup: Setup) -> list[Stage]:
    """One issue's tokens in each stage, of one trajectory where it is not shared."""
    issues = setup.number("num_problems")
    found = [Stage(name="relevance", is_shared=True, local_usd=setup.number("local_usd") / issues)]
    for (name, is_shared), row in zip(STAGES, setup.word("stage_tokens").split(";"), strict=True):
        runs = issues * (1 if is_shared else TABLE_TRIES)
        sent, written, read, kept = (float(word) / runs for word in row.split(","))
        found.append(Stage(
            name=name, is_shared=is_shared, input_tokens=sent, output_tokens=written, cache_read_tokens=read,
            cache_write_tokens=kept,
        ))  # fmt: skip
    return found


def rates_of(setup: Setup) -> Rates:
    """The provider's prices."""
    return Rates(
        input_usd_per_token=setup.number("input_usd_per_tokens"),
        output_usd_per_token=setup.number("output_usd_per_tokens"),
        cache_read_usd_per_token=setup.number("cache_read_usd_per_tokens"),
        cache_write_usd_per_token=setup.number("cache_write_usd_per_tokens"),
    )
