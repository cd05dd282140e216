"""The door: what is let in, what is refused, and how it says so."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.scenario.fields import BY_NAME, SETTINGS, Setting
from orrery.scenario.file import load_scenario, save_scenario
from orrery.scenario.kinds import Count, Settings
from orrery.scenario.objectives import METRICS, read_objectives
from orrery.scenario.schema import Scenario, read_scenario
from orrery.scenario.schema_rl import WORDS as RL_ONE_OF
from orrery.scenario.schema_training import WORDS as TRAINING_ONE_OF
from orrery.scenario.schema_training_techniques import WORDS as TECHNIQUE_ONE_OF

ONE_OF = TRAINING_ONE_OF | TECHNIQUE_ONE_OF | RL_ONE_OF

WORDS = st.text("aZ09-_./\\\"'#=[]{}~é漢🙂", min_size=1, max_size=20)


def values(setting: Setting) -> st.SearchStrategy[Any]:
    """Everything a setting may hold."""
    if setting.kind == "count":
        return st.integers(int(setting.least), int(setting.most))
    if setting.kind == "number":
        return st.floats(setting.least, setting.most, exclude_min=setting.excludes_least)
    if setting.name == "objective":
        return st.sampled_from(["cost", "throughput"])
    if setting.name == "api_price":
        return st.sampled_from(["groq/llama-3.1-8b", "in=0.6,out=2.4", "in=0.6,out=2.4,cached=0.1"])
    if setting.name == "engine_version":
        return st.sampled_from(["0.11.0", "1.2", "0.5.10.post1"])
    if setting.name == "recompute":
        return st.sampled_from(["none", "selective", "full", "core_attn", "mlp,layernorm"])
    if setting.name == "preemption":
        return st.sampled_from(["recompute", "swap"])
    if setting.kind == "switch":
        return st.booleans()
    if setting.name == "knob":
        return st.lists(st.sampled_from(["policy.chunk_tokens=512", "arrivals.burstiness=0.5"]), max_size=2)
    if setting.name == "samples":
        return st.lists(st.integers(1, 10_000), min_size=1, max_size=4).map(lambda n: ",".join(map(str, n)))
    if setting.name == "reasoning_knob":
        return st.lists(st.sampled_from(["num_checks=8", "prune=beam-tree"]), max_size=2)
    if setting.kind == "words":
        return st.lists(
            st.tuples(st.sampled_from(METRICS), st.integers(1, 10**8)).map("{0[0]}:{0[1]}".format), max_size=3
        )
    if setting.name in ONE_OF:
        return st.sampled_from(ONE_OF[setting.name])
    return WORDS


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.sets(st.sampled_from(SETTINGS), max_size=12))
    names -= {s for s in names if s.name == "workload"}  # fills in settings of its own: not what was given
    arriving = [s for s in names if s.name in ("batch", "concurrency", "users", "rate", "trace")]
    shaped = [s for s in names if s.name in ("users", "trace", "turns", "calls", "prefix_tokens")]
    return {s.name: draw(values(s)) for s in names if s not in (*arriving[1:], *shaped[1:])}


def test_the_list_of_settings_and_the_schema_agree() -> None:
    assert list(Scenario.model_fields) == [s.name for s in SETTINGS]


def test_a_field_without_a_line_in_its_table_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="Strange: tpp in no line of its table"):
        type("Strange", (Settings,), {"__annotations__": {"tp": Count, "tpp": Count}}, table=BY_NAME)


@pytest.mark.parametrize(
    ("least", "most", "excludes_least", "value", "holds"),
    [
        (1, 8, False, 1, True),
        (1, 8, False, 8, True),
        (1, 8, False, 0, False),
        (0, 8, True, 0, False),
        (0, 8, True, 1e-9, True),
        (0, 8, True, float("nan"), False),
        (0, 8, True, float("inf"), False),
    ],
)
def test_bounds_of_a_setting(least: float, most: float, excludes_least: bool, value: float, holds: bool) -> None:
    setting = Setting(
        name="x", kind="number", help="", example="", least=least, most=most, excludes_least=excludes_least
    )
    assert setting.holds(value) is holds


@given(settings())
def test_a_saved_scenario_reloads_to_the_same(given_settings: dict[str, Any]) -> None:
    import tempfile

    scenario = read_scenario(given_settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        save_scenario(scenario, path)
        assert load_scenario(path) == scenario
        first = path.read_bytes()
        save_scenario(load_scenario(path), path)
        assert path.read_bytes() == first


@given(settings())
def test_text_from_a_command_line_means_the_same_as_numbers(given_settings: dict[str, Any]) -> None:
    typed = {k: v if isinstance(v, list) else str(v) for k, v in given_settings.items()}
    assert read_scenario(typed) == read_scenario(given_settings)


def test_dashes_and_underscores_are_the_same_key() -> None:
    assert read_scenario({"input-tokens": 5}) == read_scenario({"input_tokens": 5})


def test_every_mistake_is_answered_at_once() -> None:
    with pytest.raises(ScenarioError) as error:
        read_scenario({"tp": 0, "rate": "fast", "modle": "x", "slo": ["ttft"]}, where="mine.toml")
    lines = str(error.value).splitlines()
    assert len(lines) == 4
    assert all(line.startswith("mine.toml: ") for line in lines)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("tp", -1, "a whole number from 1"),
        ("tp", 1.5, "a whole number from 1"),
        ("tp", True, "a whole number from 1"),
        ("input_tokens", 10**30, "100,000,000"),
        ("rate", float("nan"), "a number above 0"),
        ("rate", float("inf"), "a number above 0"),
        ("rate", 0, "a number above 0"),
        ("gpu_memory_utilization", 1.1, "to 1"),
        ("usd_per_hour", -0.1, "from 0"),
        ("engine_version", "newest", "0.11.0"),
        ("objective", "speed", "cost, throughput, latency or energy"),
        ("slo", ["ttft:-1"], "above 0"),
        ("slo", ["itl:20"], "ttft, tpot, e2el"),
        ("slo", ["p100_ttft:100"], "percentile"),
        ("slo", ["ttft:1e99"], "above 0"),
        ("model", "", "text"),
        ("modle", "x", "did you mean 'model'"),
        ("input", 1024, "did you mean 'input_tokens'"),
        ("zebra", 1, "orrery estimate --help"),
    ],
)
def test_a_refusal_says_what_to_write(key: str, value: Any, says: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read_scenario({key: value})
    message = str(error.value)
    assert key in message
    assert says in message
    assert "\n" not in message


def test_kinds_of_traffic_exclude_each_other() -> None:
    with pytest.raises(ScenarioError, match="batch and concurrency exclude each other"):
        read_scenario({"batch": 1, "concurrency": 2})
    with pytest.raises(ScenarioError, match="trace already says"):
        read_scenario({"trace": "chat", "batch": 2})
    assert read_scenario({"trace": "chat", "rate": 2}).rate == 2


def test_an_example_of_every_setting_is_let_in() -> None:
    import tomllib

    for setting in BY_NAME.values():
        parsed = tomllib.loads(f"{setting.name} = {setting.example}")
        written = read_scenario(parsed).written()
        assert parsed.items() <= written.items()
        assert written == parsed or setting.name == "workload"  # which fills in its model, lengths and objectives


@pytest.mark.parametrize("content", [b"tp = ", b"\xff\xfe", b"[[["])
def test_a_malformed_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=r"bad\.toml"):
        load_scenario(path)


def test_the_strictest_of_two_objectives_wins() -> None:
    (one,) = read_objectives(["ttft:1000 ttft:200"])
    assert one.limit_s == 0.2
