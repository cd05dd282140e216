"""Every kind of estimate has its printer."""

from typing import get_args

from orrery.cli.estimate_views import PRINTERS
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.estimates import Estimated


def test_every_kind_of_answer_is_printed():
    assert set(PRINTERS) == set(get_args(Estimated)) - {InfeasibleAnswer}
