"""Numbers, prices and lists as people type them: what each is worth, and what is refused."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.acceptance import read_acceptance
from orrery.scenario.amounts import amount, milliseconds
from orrery.scenario.bits_files import read_layers, read_sensitivity
from orrery.scenario.expert_loads import read_loads
from orrery.scenario.own_price import by_device, own_usd_per_hour
from orrery.scenario.schema import read_scenario


@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        ("1.5M", "num_requests", 1.5e6),
        ("2k", "num_requests", 2000),
        ("2K", "num_requests", 2000),
        ("7B", "train_tokens", 7e9),
        ("3T", "train_tokens", 3e12),
        ("1P", "train_tokens", 1e15),
        ("1Ki", "input_tokens", 1024),
        ("2Mi", "input_tokens", 2 * 1024**2),
        ("1Gi", "input_tokens", 1024**3),
        ("1,024,000.5", "input_tokens", 1024000.5),
        ("90%", "input_tokens", None),
        ("1,00", "input_tokens", None),
        ("2ms", "input_tokens", None),
        ("5us", "think_s", 5e-6),
        ("5ns", "think_s", 5e-9),
        ("2min", "think_s", 120),
        (".5h", "think_s", 1800),
        ("2d", "think_s", 172800),
        ("3s", "updates_per_s", None),
        ("64GiB", "host_cache_bytes", 64 * 2**30),
        ("1TiB", "host_cache_bytes", 2**40),
        ("5GB", "host_cache_bytes", 5e9),
        ("3TB/s", "link_bytes_per_s", 3e12),
        ("3MiB/s", "link_bytes_per_s", 3 * 2**20),
        ("3TB", "link_bytes_per_s", 3e12),
        ("2kW", "power_budget_w", 2000),
        ("2kB", "power_budget_w", None),
        ("-3", "think_s", None),
    ],
)
def test_numbers_with_units(text, name, number):
    found = amount(text, name)
    assert found == (None if number is None else pytest.approx(number))


def test_shares_in_percent():
    assert amount("90%", "gpu_memory_utilization", most=1.0) == 0.9
    assert amount("90%", "weekend", most=100.0) is None


@pytest.mark.parametrize(("text", "ms"), [("200", 200), ("2s", 2000), ("1.5ms", 1.5), ("1,000", 1000), ("soon", None)])
def test_limits_are_in_milliseconds_unless_they_say_otherwise(text, ms):
    found = milliseconds(text)
    assert found == (None if ms is None else pytest.approx(ms))


def test_prices_by_device():
    assert by_device("h100-sxm=4.75, l4=0.7 a100-sxm-80gb=0") == {"h100-sxm": 4.75, "l4": 0.7, "a100-sxm-80gb": 0.0}
    assert by_device(None) == {}
    scenario = read_scenario({"usd_per_hour": 2.0, "device_usd_per_hour": "l4=0.7"})
    assert (own_usd_per_hour(scenario, "l4"), own_usd_per_hour(scenario, "h100-sxm")) == (0.7, 2.0)
    assert by_device("l4=100000000") == {"l4": 1e8}
    for text in ("l4", "=3", "l4=-1", "l4=inf", "l4=100000001", "l4=cheap"):
        with pytest.raises(ScenarioError, match="write DEVICE=USD"):
            by_device(text)


def test_layers_of_a_file(tmp_path):
    """Eight rows times 32 by 16 weights: 512 parameters, 2 x 8 x 16 x 32 operations; blank cells say nothing."""
    path = tmp_path / "layers.csv"
    path.write_text("name,m,n,k,count,trace,error_int8,error_fp8\na,8,16,32,3,0.5,0.1,0.2\nb,1,2,3,,,0,0\n")
    first, second = read_layers(path, ("int8",))
    assert (first.name, first.group, first.count, first.num_parameters) == ("a", "a", 3, 512)
    assert (first.weight_ratio, dict(first.errors)) == (0.5, {"int8": 0.1})
    assert (second.count, second.weight_ratio, second.num_parameters) == (1, 1.0, 6)
    assert dict(second.errors) == {"int8": 0.0}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("name,m,n,k\n", "lists no layer"),
        ("name,m,n,k\na,1,2,3\na,1,2,3\n", "two layers are called 'a'"),
        ("name,m,n,k\na,0,2,3\n", "layer 1: m: got '0'"),
        ("name,m,n,k,depth\na,1,2,3,4\n", "layer 1: depth: got '4'"),
        ("name,m,n,k,by_format\na,1,2,3,4\n", "by_format: is no column"),
        ("name,m,n,k,error_int8\na,1,2,3,-1\n", "error_int8: got -1.0; write a number from 0"),
        ("name,m,n,k,error_int8\na,1,2,3,inf\n", "error_int8: got inf; write a number from 0"),
        ("name,m,n,k,time_s_int8\na,1,2,3,1\n", "time_s_fp8: is missing"),
    ],
)
def test_layers_that_make_no_sense(tmp_path, rows, words):
    path = tmp_path / "layers.csv"
    path.write_text(rows)
    with pytest.raises(ScenarioError, match=words):
        read_layers(path, ("int8", "fp8"))


def test_sensitivities_of_a_file(tmp_path):
    path = tmp_path / "s.json"
    path.write_text('{"a": 0.2, "b": {"int8": 0, "fp8": 2}, "c": {"weight": 3}}')
    assert read_sensitivity(path, ("int8", "fp8")) == {"a": 0.2, "b": {"int8": 0.0, "fp8": 2.0}, "c": 3.0}
    table = tmp_path / "s.csv"
    table.write_text("name,weight\na,0.2\n")
    assert read_sensitivity(table, ("int8",)) == {"a": 0.2}
    table.write_text("name,int8\na,0.2\n")
    assert read_sensitivity(table, ("int8",)) == {"a": {"int8": 0.2}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "holds a list"),
        ('{"a": -1}', "a: got -1; write numbers from 0"),
        ('{"a": 1e999}', "write numbers from 0"),
        ('{"a": "much"}', "a: got 'much'; write a number"),
        ('{"a": {"int8": 1}}', "a: says nothing of fp8"),
    ],
)
def test_sensitivities_that_make_no_sense(tmp_path, text, words):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=words):
        read_sensitivity(path, ("int8", "fp8"))


def test_acceptance_by_position_and_rank(tmp_path):
    """Shares from 0 to 1, both ends among them; at most 64 positions of 64 ranks."""
    assert read_acceptance("0.85, 0,1") == ((0.85,), (0.0,), (1.0,))
    assert read_acceptance("0.6/0.2/0.1,0.5") == ((0.6, 0.2, 0.1), (0.5,))
    assert read_acceptance(None) == read_acceptance("") == ()
    path = tmp_path / "shares.csv"
    path.write_text("0.6,0.2\n0.5,\n")
    assert read_acceptance(str(path)) == ((0.6, 0.2), (0.5,))
    assert len(read_acceptance(",".join(["0.5"] * 64))) == len(read_acceptance("/".join(["0.5"] * 64))[0]) == 64
    for text in (",".join(["0.5"] * 65), "/".join(["0.5"] * 65), "0.5,,0.5", "0.5/"):
        with pytest.raises(ScenarioError, match="for at most 64 positions of 64 ranks"):
            read_acceptance(text)
    for text in ("1.01", "-0.1", "0.5,2"):
        with pytest.raises(ScenarioError, match="write shares from 0 to 1"):
            read_acceptance(text)
    with pytest.raises(ScenarioError, match="which is no file"):
        read_acceptance("most")


def test_loads_of_experts(tmp_path):
    assert read_loads("balanced").is_dealt
    assert (read_loads("zipf:0").exponent, read_loads("ZIPF:0.5").exponent) == (0.0, 0.5)
    most = 4.0  # of eight experts the likeliest has 92 %
    assert read_loads(f"zipf:{most:g}").exponent == most
    for text in (f"zipf:{most + 0.1:g}", "zipf:-0.1", "zipf:steep", "zipf:nan"):
        with pytest.raises(ScenarioError, match="write zipf:S with S from 0 to 4"):
            read_loads(text)
    path = tmp_path / "loads.json"
    path.write_text("[3, 1, 0]")
    assert read_loads(str(path)).shares == (0.75, 0.25, 0.0)
    for text in ("[0, 0]", "[1, -1]", "[1e999]", "[]"):
        path = tmp_path / f"{abs(hash(text))}.json"
        path.write_text(text)
        with pytest.raises(ScenarioError, match=r"none below 0, and not all of them 0|is no list of numbers"):
            read_loads(str(path))
