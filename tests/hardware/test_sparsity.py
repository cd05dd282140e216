"""Patterns of N of M weights: what is kept, how places are written, and which texts are patterns."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.hardware.sparsity import read_sparsity


@pytest.mark.parametrize(
    ("text", "kept_frac", "index_bits"),
    [
        ("2:4", 0.5, 2),  # four places
        ("1:2", 0.5, 1),
        ("3:8", 0.375, 3),
        ("1:5", 0.2, 3),  # five places are more than two bits name
        ("4:9", 4 / 9, 4),
        ("1:64", 1 / 64, 6),
        ("4:4", 1.0, 0),  # all of them need no place
        ("1:1", 1.0, 0),
        ("64:64", 1.0, 0),
    ],
)
def test_a_pattern_keeps_its_share_and_names_places(text, kept_frac, index_bits):
    found = read_sparsity(text)
    assert (found.kept_frac, found.index_bits, str(found)) == (kept_frac, index_bits, text)


@pytest.mark.parametrize("text", ["", "2", "2:", ":4", "0:4", "5:4", "1:65", "64:128", "a:b", "-1:4", "2:4:8", "1.5:4"])
def test_what_is_no_pattern_is_refused(text):
    with pytest.raises(ScenarioError, match="such as 2:4"):
        read_sparsity(text)
