"""A device file from a few stated facts: they count, everything else is as on the device that it resembles."""

import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.devices import get_device
from orrery.catalog.own_device import own_device


def device_of(tmp_path, *arguments):
    path = tmp_path / "own.toml"
    path.write_text(own_device(*arguments), encoding="utf-8")
    return get_device(path)


def test_stated_facts_count_and_the_others_are_those_of_the_device_that_it_resembles(tmp_path):
    stated = {"memory_capacity_bytes": "32 GB", "dense_fp4_flops_per_s": "1.5 PFLOP/s", "num_compute_units": "170"}
    found, base = device_of(tmp_path, "rtx-4090", stated, 'My "GPU" \x7f\u00e9\U0001f680'), get_device("rtx-4090")
    assert found.title == 'My "GPU" \x7f\u00e9\U0001f680'
    assert found.memory_capacity_bytes == 32e9
    assert found.dense_flops_per_s["fp4"] == 1.5e15
    assert found.num_compute_units == 170
    assert found.memory_bandwidth_bytes_per_s == base.memory_bandwidth_bytes_per_s
    assert found.facts["memory_capacity_bytes"].basis == "stated"
    assert found.facts["idle_power_w"].basis == "assumed"
    assert found.facts["idle_power_w"].note == "as on rtx-4090"


def test_without_facts_it_is_that_device_to_six_digits(tmp_path):
    found, base = device_of(tmp_path, "h100-sxm"), get_device("h100-sxm")
    for name, fact in base.facts.items():
        expected = pytest.approx(fact.value, rel=1e-5) if isinstance(fact.value, float) else fact.value
        assert found.facts[name].value == expected, name


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"memory_capacity_bytes": "32"}, "write a number and a unit"),
        ({"memory_capacity_bytes": "32 TB/s"}, "asks for another unit"),
        ({"memory_capacity_bytes": "1e300 GB"}, "is not a number between"),
        ({"memory": "32 GB"}, "is no fact of a device"),
        ({"num_compute_units": "many"}, "write a number"),
        ({"num_compute_units": "nan"}, "is not a number between"),
        ({"scaleup_has_reduction": "perhaps"}, "true or false"),
        ({"scaleup_topology": "\u2603"}, "is none of"),
    ],
)
def test_what_is_no_fact_is_refused_in_words(facts, words):
    with pytest.raises(ScenarioError, match=words) as found:
        own_device("rtx-4090", facts)
    assert "device.toml" not in str(found.value)


def test_names_and_titles_that_are_none(tmp_path):
    with pytest.raises(UnknownName):
        own_device("rtx-9999")
    with pytest.raises(ScenarioError, match="title"):
        own_device("rtx-4090", {}, " ")
    with pytest.raises(ScenarioError, match="title"):
        own_device("rtx-4090", {}, "x" * 81)
