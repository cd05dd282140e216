"""CloudMatrix384's drafting head: tokens a step."""

from dataclasses import replace

import pytest
from guesses import expected_tokens

from orrery.execution.layout import DraftHead
from orrery.execution.speculation import of_head


def _head(method: str = "eagle", *chances: float) -> DraftHead:
    return DraftHead(method=method, acceptance_fracs=chances or (0.8, 0.5, 0.5))


def test_tokens_of_a_step_by_hand(deploy):
    """1 + 0.8 + 0.8 x 0.5 + 0.8 x 0.5 x 0.5 = 2.4; without guesses that hold, the model's own token."""
    speculation = of_head(replace(deploy(), draft_head=_head()))
    assert speculation is not None
    assert expected_tokens(speculation) == pytest.approx(2.4)
