"""Where a technique helps and where it hurts: one claim of a paper, predicted across one input of its set-ups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orrery.base.errors import FactError
from orrery.base.sources import Fact
from orrery.evidence.paper_file import Claim, Paper, Setup, Sweep
from orrery.evidence.prediction import predict
from orrery.evidence.verdict import neutral


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A claim's prediction at each value of an input."""

    claim: Claim
    input: str
    values: tuple[float | str | bool, ...]
    predicted: tuple[float, ...]
    better: str  # "more" or "less" of the metric

    @staticmethod
    def of(paper: Paper, predicted: Sequence[float]) -> "Curve":
        """The curve of a paper's sweep with what was predicted at its values."""
        sweep = paper.sweep
        assert sweep is not None, paper.key
        values = tuple(fact.value for fact in sweep.values)
        return Curve(
            claim=_claim(paper, sweep),
            input=sweep.input,
            values=values,
            predicted=tuple(predicted),
            better=sweep.better,
        )

    @property
    def neutral(self) -> float | None:
        """The prediction at which nothing is gained or lost; None where the claim compares nothing."""
        return neutral(self.claim)


def across(paper: Paper) -> Curve:
    """The paper's sweep, computed. Raises where the paper has none."""
    if paper.sweep is None:
        raise FactError(f"{paper.key}: its file has no [sweep].")
    claim = paper.sweep.claim
    return Curve.of(paper, [_predicted(_with(paper, paper.sweep, fact), claim) for fact in paper.sweep.values])


def _claim(paper: Paper, sweep: Sweep) -> Claim:
    (claim,) = (c for c in paper.claims if c.id == sweep.claim)
    return claim


def _predicted(paper: Paper, claim: str) -> float:
    """The prediction for one claim; those after it are not computed."""
    return next(p.predicted for p in predict(paper) if p.claim == claim)


def _with(paper: Paper, sweep: Sweep, fact: Fact) -> Paper:
    """The paper with that input in every set-up that states it, and in the claim's own."""
    own = _claim(paper, sweep).setup.name

    def change(setup: Setup) -> Setup:
        if sweep.input not in setup.inputs and setup.name != own:
            return setup
        inputs: Mapping[str, Fact] = {**setup.inputs, sweep.input: fact}
        return replace(setup, inputs=inputs)

    return replace(
        paper,
        setups={name: change(setup) for name, setup in paper.setups.items()},
        claims=tuple(replace(c, setup=change(c.setup)) for c in paper.claims),
    )
