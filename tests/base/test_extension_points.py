"""Techniques by the name of their file and by the word that a setting writes."""

import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.extension_points import knob_array, knobs_with
from orrery.serving.simulation.rules import QUEUES, ROUTERS
from orrery.training.faults import CHECKPOINTS


def test_a_technique_is_found_by_its_name_and_by_its_word():
    assert CHECKPOINTS.get("checkpoint-lazy") is CHECKPOINTS.get("lazy")
    assert CHECKPOINTS.get("lazy").written == "lazy"
    assert QUEUES.get("fair").written == "fair"
    assert CHECKPOINTS.words == ("blocking", "in-memory", "lazy", "snapshot")


@pytest.mark.parametrize("kind", [UnknownName, ScenarioError, LookupError, ValueError])
def test_an_unknown_name_is_a_wrong_name_and_a_wrong_setting(kind):
    with pytest.raises(kind, match=r"There is no checkpoint 'lazzy'\. Did you mean 'lazy'\?"):
        CHECKPOINTS.get("lazzy")


def test_knobs_replace_defaults_and_unknown_ones_are_refused():
    technique = ROUTERS.get("prefix-aware")
    assert knobs_with(technique, {}).most_behind_requests == 8.0
    assert knob_array(technique, most_behind_requests=2.0).tolist() == [2.0]
    assert knob_array(QUEUES.get("fair")).tolist() == []
    with pytest.raises(ScenarioError, match="did you mean 'most_behind_requests'"):
        knobs_with(technique, {"most_behind_request": 2.0})
