"""Where experts lie, as a user says it: three doors, one answer; what makes no sense is refused in words."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.file import load_scenario
from orrery.scenario.routing_trace import is_trace, trace_of

SHIPPED = Path(__file__).parents[2] / "docs" / "data" / "routing-trace.csv"
MIXTRAL = {
    "model": "mixtral-8x7b",
    "device": "h100-sxm",
    "dp": 4,
    "ep": 4,
    "input_tokens": 256,
    "output_tokens": 32,
    "concurrency": 64,
    "engine_version": "0.11.0",
    "all2all_backend": "all-to-all",
    "expert_loads": str(SHIPPED),
}


def test_a_trace_is_read_as_it_is_written():
    text = SHIPPED.read_text()
    assert is_trace(text)
    chosen = trace_of(text, "x")
    assert chosen.shape == (400, 32, 2)
    rows = [f"{token},{layer},{expert}" for (token, layer, _), expert in np.ndenumerate(chosen)]
    assert rows == text.splitlines()[1:]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("0,0,x", "no whole number"),
        ("0,0,-1", "counted from 0"),
        ("0,0,1\n0,0,2\n1,0,1", "as many experts"),
        ("0,0,1\n0,1,1\n1,0,1\n2,0,1", "as many experts"),
        ("0,0,1", "one token"),
    ],
)
def test_broken_traces_are_refused(tmp_path: Path, lines: str, says: str):
    with pytest.raises(ScenarioError, match=says):
        trace_of("token,layer,expert\n" + lines, "trace.csv")


def test_a_trace_of_another_model_is_refused(tmp_path: Path):
    path = tmp_path / "trace.csv"
    path.write_text("token,layer,expert\n0,0,1\n1,0,1\n")
    with pytest.raises(ScenarioError, match=r"1 layers, but .* has 32"):
        orrery.estimate(**MIXTRAL | {"expert_loads": str(path)})
    rows = [f"{t},{layer},9" for t in range(2) for layer in range(32)]
    path.write_text("\n".join(["token,layer,expert", *rows]))
    with pytest.raises(ScenarioError, match=r"expert 9, but .* has 8"):
        orrery.estimate(**MIXTRAL | {"expert_loads": str(path)})


def test_what_serving_or_training_does_not_know_is_refused():
    with pytest.raises(ScenarioError, match="serving takes in-order, redundancy, copied-context, exflow, moetuner"):
        orrery.estimate(**MIXTRAL | {"expert_placement": "rearranged"})
    with pytest.raises(ScenarioError, match="exclude each other"):
        orrery.estimate(**MIXTRAL | {"expert_placement": "exflow", "num_redundant_experts": 4})
    with pytest.raises(ScenarioError, match="has no experts"):
        orrery.estimate(
            model="llama-3.1-8b", device="h100-sxm", input_tokens=9, output_tokens=9, batch=1, expert_placement="exflow"
        )
    with pytest.raises(ScenarioError, match="F from 0 to 1"):
        orrery.estimate(**MIXTRAL | {"expert_loads": "zipf:0.5+affinity:2"})


@pytest.mark.parametrize("method", ["exflow", "moetuner"])
def test_three_doors_give_one_answer(tmp_path: Path, capsys, method: str):
    asked = MIXTRAL | {"expert_placement": method}
    answer = orrery.estimate(**asked)
    assert not isinstance(answer, InfeasibleAnswer)
    path = tmp_path / "deployment.toml"
    path.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in asked.items()))
    assert orrery.estimate(load_scenario(path)).estimate.tpot_s == answer.estimate.tpot_s
    flags = [word for k, v in asked.items() for word in (f"--{k.replace('_', '-')}", str(v))]
    assert run(["estimate", *flags, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tpot_s"] == answer.estimate.tpot_s
    where = told["deployment"]["expert_placement"]
    assert where["leaves_device_frac"] < where["ordered_device_frac"]


def test_simulate_and_plan_place_them_too():
    base = {k: v for k, v in MIXTRAL.items() if k != "concurrency"}
    plain = orrery.simulate(**MIXTRAL, num_requests=64)
    placed = orrery.simulate(**MIXTRAL, num_requests=64, expert_placement="moetuner")
    assert not isinstance(plain, InfeasibleAnswer)
    assert not isinstance(placed, InfeasibleAnswer)
    assert placed.simulated.duration_s != plain.simulated.duration_s
    assert any("expert_placement: moetuner" in note for note in placed.notes)
    plans = orrery.plan(**base, rate=2, max_devices=4, weights="bf16", expert_placement="exflow").plans
    assert any("expert_placement: exflow" in note for plan in plans for note in plan.notes)


@given(
    skew=st.sampled_from([0.0, 0.4, 1.0]),
    affinity=st.sampled_from([0.0, 0.3, 0.9]),
    ranks=st.sampled_from([1, 2, 4]),
    method=st.sampled_from(["in-order", "copied-context", "exflow", "moetuner"]),
)
@settings(max_examples=12, deadline=None)
def test_drawn_placements_keep_to_physics(skew: float, affinity: float, ranks: int, method: str):
    """Ways are shares, nodes are left less often than devices, no rank is below the mean; off is absent."""
    law = f"zipf:{skew:g}" + (f"+affinity:{affinity:g}" if affinity else "")
    asked = MIXTRAL | {"dp": ranks, "ep": ranks, "device": "b200", "expert_loads": law}
    plain = orrery.estimate(**asked)
    answer = orrery.estimate(**asked, expert_placement=method)
    assert not isinstance(answer, InfeasibleAnswer)
    assert not isinstance(plain, InfeasibleAnswer)
    found = answer.to_json()["deployment"].get("expert_placement")
    if found is None:
        assert answer.estimate.tpot_s == plain.estimate.tpot_s
        return
    assert 0.0 <= found["leaves_node_frac"] <= found["leaves_device_frac"] <= 1.0
    assert found["fullest_ratio"] >= 1.0 - 1e-9
    assert all(row.count(0) == 8 // ranks for row in found["rank_of_expert"])
