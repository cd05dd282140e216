"""What people type: sizes with units, other tools' names, and people who think; hints are near in meaning."""

import json

import click
import pytest

from orrery.cli.in_flags import in_flags
from orrery.scenario.amounts import amount, milliseconds
from orrery.scenario.fields import BY_NAME
from orrery.scenario.names import ALIASES, ELSEWHERE, canonical, hint
from orrery.scenario.schema import read_scenario

MODEL = ("--model", "llama-3.1-8b", "--device", "h100-sxm")
LENGTHS = ("--input-tokens", "1000", "--output-tokens", "200")


@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        ("1k", "input_tokens", 1000),
        ("1K", "input_tokens", 1000),
        ("1Ki", "input_tokens", 1024),
        ("1.5M", "num_requests", 1_500_000),
        ("1,000", "input_tokens", 1000),
        ("2B", "train_tokens", 2e9),
        ("15T", "train_tokens", 15e12),
        ("200ms", "think_s", 0.2),
        ("2s", "think_s", 2),
        ("5 min", "think_s", 300),
        ("12h", "checkpoint_interval_s", 43_200),
        ("64GB", "host_cache_bytes", 64e9),
        ("64GiB", "host_cache_bytes", 64 * 2**30),
        ("25GB/s", "storage_bytes_per_s", 25e9),
        ("2.3k", "rate", 2300),
    ],
)
def test_sizes_are_read_by_the_name_of_the_setting(text, name, number):
    assert amount(text, name) == pytest.approx(number, rel=1e-12)
    assert getattr(read_scenario({name: text}), name) == pytest.approx(number, rel=1e-12)


def test_a_share_may_be_in_percent():
    assert read_scenario({"gpu_memory_utilization": "85%"}).gpu_memory_utilization == 0.85


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("200ms", "input_tokens"),
        ("1k", "think_s"),
        ("2s", "rate"),
        ("10%", "input_tokens"),
        ("1kk", "input_tokens"),
        ("k", "input_tokens"),
        ("1,00", "input_tokens"),
        ("-1k", "input_tokens"),
        ("1.5", "input_tokens"),
        ("1.2345k", "input_tokens"),
        ("64GB/s", "host_cache_bytes"),
        ("9" * 400 + "k", "input_tokens"),
    ],
)
def test_a_wrong_unit_is_one_message(text, name, describe):
    code, _, wrong = describe("simulate", *MODEL, f"--{name.replace('_', '-')}={text}")
    assert code == 2
    assert f"--{name.replace('_', '-')}: got" in wrong
    assert "write " in wrong
    assert "Traceback" not in wrong


@pytest.mark.parametrize(("text", "ms"), [("1000", 1000), ("200ms", 200), ("2s", 2000), ("1,000", 1000)])
def test_objectives_are_milliseconds_unless_they_say(text, ms):
    assert milliseconds(text) == pytest.approx(ms)
    if "," not in text:  # a comma parts objectives
        assert read_scenario({"slo": [f"p99_ttft:{text}"]}).slo == (f"p99_ttft:{ms}",)


def test_flags_take_sizes_and_other_tools_names(describe):
    plain = describe(
        "estimate",
        *MODEL,
        "--input-tokens",
        "1000",
        "--output-tokens",
        "200",
        "--tp",
        "2",
        "--concurrency",
        "8",
        "--max-model-len",
        "8000",
        "--json",
    )[1]
    named = describe(
        "estimate",
        "--model",
        "llama-3.1-8b",
        "--gpu",
        "h100-sxm",
        "--isl=1k",
        "--osl",
        "0.2k",
        "--tensor-parallel-size",
        "2",
        "--max-concurrency",
        "8",
        "--max-seq-len",
        "8k",
        "--json",
    )[1]
    assert json.loads(named) == json.loads(plain)
    assert (
        json.loads(describe("estimate", *MODEL, *LENGTHS, "--batch", "8", "--gpus", "2", "--json")[1])["num_devices"]
        == 2
    )


def test_a_scenario_file_takes_them_too(tmp_path, describe):
    path = tmp_path / "mine.toml"
    path.write_text('model = "llama-3.1-8b"\ngpu = "h100-sxm"\nisl = "1k"\nosl = 200\nqps = "0.5"\n')
    assert describe("estimate", "--scenario", str(path), "--json")[0] == 0
    path.write_text('model = "llama-3.1-8b"\ngpus = 2\ndevices = 2\n')
    code, _, wrong = describe("estimate", "--scenario", str(path))
    assert (code, "another name of devices" in wrong or "another name" in wrong) == (2, True)


@pytest.mark.parametrize(
    ("flag", "words", "not_words"),
    [
        ("--carbon", "energy_j_per_token", "--scenario"),
        ("--ttft", "see --help", "--slo"),  # an estimate takes no objective
        ("--nodes", "--devices", "--model"),
        ("--input-token", "--input-tokens", "--output"),
        ("--tpp", "--tp", "--pp'"),
        ("--input", "did you mean --input-tokens?", "--image"),
        ("--output", "--output-tokens", "did you mean"),
        ("--zebra", "see --help", "did you mean"),
    ],
)
def test_hints_are_near_in_meaning(flag, words, not_words, describe):
    code, _, wrong = describe("estimate", *MODEL, *LENGTHS, flag, "2")
    assert code == 2
    assert words in wrong
    assert not_words not in wrong


def test_a_hint_names_only_flags_that_the_command_has(describe):
    assert "--slo ttft:1000" in describe("plan", *MODEL, "--ttft", "2")[2]
    assert "did you mean --micro-batch or --global-batch?" in describe("train", *MODEL, "--batch", "2")[2]


def test_what_to_write_is_said_in_flags_to_who_typed_flags(tmp_path, describe):
    typed = describe("estimate", *MODEL)[2]
    assert typed == "orrery: --input-tokens: is missing; write the mean length, such as --input-tokens 1024.\n"
    path = tmp_path / "mine.toml"
    path.write_text('model = "llama-3.1-8b"\ndevice = "h100-sxm"\n')
    assert "such as input_tokens = 1024." in describe("estimate", "--scenario", str(path))[2]


def test_what_is_lacking_is_said_in_flags_too(tmp_path, describe):
    words = ("--model", "dlrm-dcnv2", "--device", "l4", "--weights", "fp32")
    assert "Narrower weights (--weights fp16)" in describe("estimate", *words)[2]
    path = tmp_path / "mine.toml"
    path.write_text('model = "dlrm-dcnv2"\ndevice = "l4"\nweights = "fp32"\n')
    assert 'Narrower weights (weights = "fp16")' in describe("estimate", "--scenario", str(path))[2]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            'device: is missing; write a name, such as device = "h100-sxm".',
            "--device: is missing; write a name, such as --device h100-sxm.",
        ),
        ('survive: needs it; write slo = ["p99_ttft:2000"].', "survive: needs it; write --slo p99_ttft:2000."),
        ("partition: write tp = pp = cp = 1: all ranks.", "partition: write tp = pp = cp = 1: all ranks."),
        ("mix: write mix = true beside it.", "--mix: write --mix beside it."),
        ("mix: write mix = false.", "--mix: write --no-mix."),
        ("zebra: write zebra = 3.", "zebra: write zebra = 3."),
        ("rate: got 0.5.", "--rate: got 0.5."),
        ("rate, tp: missing.", "--rate, --tp: missing."),
        ("rate and tp: missing.", "--rate and --tp: missing."),
        ("rate and zebra: missing.", "rate and zebra: missing."),
    ],
)
def test_a_setting_becomes_its_flag(message, expected):
    @click.command(
        params=[
            click.Option(["--device"]),
            click.Option(["--tp"]),
            click.Option(["--rate"]),
            click.Option(["--slo"]),
            click.Option(["--mix/--no-mix"]),
        ]
    )
    def plan():
        pass

    assert in_flags(message, click.Group(commands={"plan": plan}), ["plan", "--tp", "2"]) == expected
    assert in_flags(message, click.Group(commands={"plan": plan}), ["plan", "mine.toml"]) == message
    assert in_flags(message, click.Group(commands={"plan": plan}), ["nothing"]) == message


def test_an_argument_is_no_flag(describe):
    code, _, wrong = describe("formats", "compare", "--formats", "int8,fp8")
    assert code == 2
    assert "There is no flag --formats; write " in wrong
    assert "without it" in wrong
    assert "did you mean" not in wrong


def test_a_plan_says_where_concurrency_went(describe):
    assert "--rate or --users" in describe("plan", *MODEL, *LENGTHS, "--concurrency", "8")[2]


def test_every_alias_leads_to_a_setting_and_is_none():
    assert {*ALIASES.values()} <= BY_NAME.keys()
    assert not ALIASES.keys() & BY_NAME.keys()
    assert not ALIASES.keys() & ELSEWHERE.keys()
    assert all(canonical(name, BY_NAME) == meant for name, meant in ALIASES.items())
    assert hint("carbon", BY_NAME).startswith("orrery shift works carbon out")


def test_people_in_flight_obey_littles_law(describe):
    users, think = 200, 20.0
    code, out, notes = describe("estimate", *MODEL, *LENGTHS, "--users", users, "--think-time", "20s", "--json")
    found = json.loads(out)
    assert code == 0

    def people(concurrency):
        one = json.loads(describe("estimate", *MODEL, *LENGTHS, "--concurrency", concurrency, "--json")[1])
        return concurrency + one["requests_per_s"] * think

    flight = round(found["concurrency"])
    assert people(flight) <= users < people(flight + 1)
    assert f"{flight} in flight" in notes
    assert found["requests_per_s"] * (found["latency_s"] + think) == pytest.approx(users, rel=0.1)


def test_people_who_never_think_are_a_closed_loop(describe):
    one = json.loads(describe("estimate", *MODEL, *LENGTHS, "--users", "16", "--think-time", "0", "--json")[1])
    other = json.loads(describe("estimate", *MODEL, *LENGTHS, "--concurrency", "16", "--json")[1])
    assert (one["ttft_s"], one["tpot_s"]) == (other["ttft_s"], other["tpot_s"])


def test_a_plan_for_people_is_one_for_their_rate(describe):
    plan = ("plan", *MODEL, *LENGTHS, "--max-devices", "1", "--weights", "bf16", "--kv", "bf16", "--json")
    found = json.loads(describe(*plan, "--users", "100", "--think-time", "20")[1])
    best, rate = found["plans"][0], found["goal"]["traffic"]["request_rate_per_s"]
    assert rate * (20 + best["ttft_s"] + 199 * best["tpot_s"]) == pytest.approx(100, rel=0.02)
    code, _, wrong = describe(*plan, "--users", "100", "--think-time", "0")
    assert (code, "--think-time" in wrong) == (2, True)


@pytest.mark.parametrize(
    "flags", [("--concurrency", "4"), ("--rate", "4"), ("--batch", "4"), ("--users", "0"), ("--think-time", "-1")]
)
def test_people_exclude_other_arrivals(flags, describe):
    code, _, wrong = describe("estimate", *MODEL, *LENGTHS, "--users", "8", *flags)
    assert code == 2
    assert len(wrong.strip().splitlines()) == 1


def test_simulated_people_obey_littles_law(describe):
    users, think = 40, 5.0
    code, out, _ = describe(
        "simulate", *MODEL, *LENGTHS, "--users", users, "--think-time", think, "--num-requests", "2k", "--json"
    )
    found = json.loads(out)
    assert (code, found["completed"]) == (0, 2000)
    waiting_s = found["mean_e2el_ms"] / 1e3 + think
    assert found["request_throughput"] * waiting_s == pytest.approx(users, rel=0.1)
