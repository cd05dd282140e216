"""No claim that is missed, and none that comes out the other way round, stands in the scorecard without a reason."""

from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.scorecard import recorded
from orrery.evidence.paper_file import paper_keys

REASON = "Differs by "
MIN_WORDS = 3
"""A reason names an input or a mechanism: fewer words name neither."""


def unexplained(result: ClaimResult) -> bool:
    _, _, reason = result.because.partition(REASON)
    return len(reason.split()) < MIN_WORDS


def named(results) -> list[str]:
    return [f"{r.paper}/{r.claim.id}: {r.predicted:g} for {r.claim.low:g}" for r in results]


EVERY = recorded(paper_keys())


def test_a_claim_that_comes_out_the_other_way_round_says_why() -> None:
    turned = [r for r in EVERY if r.is_reversed]
    assert turned, "none is left: this file has nothing to find any more"
    assert not named(filter(unexplained, turned))


def test_a_claim_that_is_missed_says_why() -> None:
    assert not named(r for r in EVERY if r.verdict == "not reproduced" and unexplained(r))


def test_what_comes_out_the_other_way_round_counts_as_missed() -> None:
    assert not named(r for r in EVERY if r.is_reversed and r.verdict in ("reproduced", "sign only", "no evidence"))
