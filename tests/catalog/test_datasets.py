"""How unequal the lengths of a data set are."""

from orrery.catalog.datasets import std_ratios_of


def test_a_data_set_in_any_case_and_one_that_nothing_is_known_of():
    assert std_ratios_of("ShareGPT") == std_ratios_of("sharegpt") == (1.69, 0.72)
    assert std_ratios_of("") == std_ratios_of("sonnet") == (0.0, 0.0)
