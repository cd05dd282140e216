"""Values, headings and tables of ``orrery show`` as people read them."""

import pytest

from orrery.scenario import show


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("is_stale", True, "yes"),
        ("is_stale", False, "no"),
        ("note", None, ""),
        ("weights_bytes", 2e9, "2 GB"),
        ("start_s", 0.5, "500 ms"),
        ("memory_bandwidth_bytes_per_s", 3.35e12, "3.35 TB/s"),
        ("rate_per_s", 4.0, "4"),
        ("requests_ratio", 1234.5, "1,234"),  # four figures
        ("requests_ratio", 12345.6, "12,346"),
        ("num_layers", 1234567, "1,234,567"),
    ],
)
def test_values_as_people_read_them(name, value, text):
    assert show.readable(name, value) == text


def test_large_counts_are_in_billions():
    assert show.cell("num_parameters", {"num_parameters": 8_030_000_000}) == "8.03 B"
    assert show.cell("num_parameters", {"num_parameters": 999_999}) == "999,999"
    assert show.cell("num_parameters", {"num_parameters": 1_000_000}) == "0.001 B"
    assert show.cell("value", {"fact": "start_s", "value": 0.5}) == "500 ms"
    assert show.cell("value", {"value": float("nan")}) == "-"
    assert show.heading("memory_bandwidth_bytes_per_s") == "memory bandwidth"
    assert show.heading("num_layers") == "num layers"


def test_tables_of_facts():
    devices = {row["name"]: row for row in show.show_all("devices").rows}
    assert devices["h100-sxm"]["dense_16bit_flops_per_s"] == 989e12
    framework = next(row for row in show.show_all("frameworks").rows if row["name"] == "megatron-lm")
    assert framework["bytes_per_parameter"] == 18  # weights 2, gradients 4, master copy 4, both moments 8
