"""Rows of measured tables that are only reported."""

import pytest

from fit.exclusions import excluded, read_exclusions
from orrery.base.errors import ScenarioError
from orrery.evidence.row import Row


def test_exclusions_need_every_column_and_say_why(tmp_path):
    path = tmp_path / "excluded.toml"
    path.write_text('[[excluded]]\nwhere = { mode = "closed", measured_date = "2025-11-*" }\nwhy = "stalled"\n')
    found = read_exclusions(path)
    assert excluded(Row(cells={"mode": "closed", "measured_date": "2025-11-02"}), found) == "stalled"
    assert excluded(Row(cells={"mode": "open", "measured_date": "2025-11-02"}), found) == ""
    assert excluded(Row(cells={"mode": "closed"}), found) == ""
    path.write_text('[[excluded]]\nwhere = { mode = "closed" }\n')
    with pytest.raises(ScenarioError, match="why"):
        read_exclusions(path)
