"""One set of words says what limits a step, in every table, page and report."""

from orrery.reports.words import BOUND_BY
from orrery.scenario.train import TrainAnswer
from orrery.scenario.train_offload import OffloadAnswer
from orrery.web.landing.points import LIMITS
from orrery.web.landing.view import Choice, chart_data


def test_every_limit_has_its_word():
    assert {*LIMITS, *TrainAnswer.KINDS, *OffloadAnswer.KINDS} == BOUND_BY.keys()


def test_the_first_page_says_them_in_the_order_of_its_numbers():
    assert chart_data(Choice())["limits"] == [BOUND_BY[name] for name in LIMITS]
    assert chart_data(Choice())["limits"][0] == "memory bandwidth"
