"""``draft = "tree"`` and ``"prompt-tokens"``: searched for a device and a batch; limits, refusals, every door alike."""

import json

import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.draft_trees import ranked, ratios, tree_heads, widened
from orrery.scenario.acceptance import read_acceptance
from orrery.scenario.ask import Answer, estimate, plan
from orrery.scenario.plan_simulated import plan_simulated
from orrery.scenario.simulate import simulate

SMALL = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 257}
RANKS = "0.6/0.2/0.1,0.5/0.15/0.1,0.4/0.2"
MAMBA = {"model": "mamba-2.8b", "device": "a100-sxm-80gb", "input_tokens": 128, "output_tokens": 256, "batch": 1}


def asked(**settings):
    found = estimate(**{**SMALL, **settings})
    assert isinstance(found, Answer)
    return found


def test_the_likeliest_tree_by_hand():
    """Shares 0.6/0.2 then 0.5/0.3: the paths 0 (0.6), 00 (0.30) and then 1 (0.2) are likeliest."""
    heads = {h.level_nodes: h for h in tree_heads(((0.6, 0.2), (0.5, 0.3)))}
    three = heads[(2, 1)]
    assert three.num_checked == 3
    assert three.tokens_per_step == pytest.approx(1 + 0.8 + 0.3)
    assert heads[(2, 4)].tokens_per_step == pytest.approx(1 + 0.8 + 0.8 * 0.8)


def test_widths_follow_the_law_of_independent_guesses():
    """Two guesses at 0.6 and then three at 0.5: 1 - 0.4^2 and 1 - 0.5^3."""
    head = widened(ranked((0.6, 0.5)), (2, 3))
    assert head.acceptance_fracs == pytest.approx((0.84, 0.875))
    assert head.level_nodes == (2, 6)
    assert ratios((0.5, 0.25, 0.0)) == (0.5, 0.5, 0.0)


def test_the_tree_is_the_devices_and_the_batchs():
    sizes = {
        (device, batch): asked(device=device, batch=batch, draft="tree", acceptance_by_position=RANKS).to_json()[
            "draft"
        ]
        for device in ("h100-sxm", "mi300x")
        for batch in (1, 16, 128)
    }
    checked = {key: found["verified_tokens"] for key, found in sizes.items()}
    assert checked["h100-sxm", 1] > checked["h100-sxm", 128]
    assert checked["h100-sxm", 16] != checked["mi300x", 16]
    for found in sizes.values():
        assert found["speedup_ratio"] == max(t["speedup_ratio"] for t in found["tried"])


@pytest.mark.parametrize(
    ("given", "is_by_rank"), [("0.6/0.2,0.5", True), ("0.6/0.2,0.5/0.2", True), ("0.6,0.5", False)]
)
def test_what_nobody_measured_by_rank_is_told(given, is_by_rank):
    notes = asked(batch=4, draft="tree", acceptance_by_position=given).notes
    assert any("every further draft token" in note for note in notes) != is_by_rank


@pytest.mark.parametrize("method", ["tree", "prompt-tokens"])
def test_drafts_that_never_hold_only_cost(method):
    plain, none = asked(concurrency=4), asked(concurrency=4, draft=method, acceptance=0.0)
    assert none.estimate.tpot_s >= plain.estimate.tpot_s
    assert none.to_json()["draft"]["tokens_per_step"] == 1.0
    assert any("no tree gains anything" in n for n in none.notes)


def test_a_draft_model_takes_time_and_memory():
    free = asked(batch=4, draft="tree", draft_tree="2,2", acceptance=0.6)
    paid = asked(batch=4, draft="tree", draft_tree="2,2", acceptance=0.6, draft_model="llama-3.2-1b")
    assert paid.estimate.tpot_s > free.estimate.tpot_s
    assert paid.estimate.memory.weights_bytes > free.estimate.memory.weights_bytes + 2e9


def test_off_is_absent():
    assert asked(concurrency=4, draft=None).to_json() == asked(concurrency=4).to_json()


def test_a_chain_of_one_width_is_linear_drafting():
    """The same numbers as eagle's closed form would give: 1 + a + a^2 + a^3."""
    found = asked(batch=1, draft="tree", draft_tree="1,1,1", acceptance=0.6).to_json()["draft"]
    assert found["tokens_per_step"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    assert found["verified_tokens"] == 4


@pytest.mark.parametrize("method", ["tree", "prompt-tokens"])
def test_the_simulator_says_the_same(method):
    inputs = {"draft": method, "acceptance_by_position": RANKS, "concurrency": 8}
    served = simulate(**SMALL, **inputs, num_requests=160).to_json()
    assert served["mean_tpot_ms"] / 1e3 == pytest.approx(asked(**inputs).estimate.tpot_s, rel=0.12)


def test_a_recurrent_model_shows_both_ways():
    """Widths 4, 2: 8 leaves. In one pass 1 + 12 tokens and a state; branch by branch 8 x 3 tokens and 8 states."""
    drafts = asked(**MAMBA, draft="tree", draft_tree="4,2", acceptance=0.6).to_json()["draft"]
    one, branches = drafts["verifying"]
    assert (one["num_tokens"], one["num_states"]) == (13, 1)
    assert (branches["num_tokens"], branches["num_states"]) == (24, 8)
    assert branches["state_bytes"] == pytest.approx(8 * one["state_bytes"])
    assert branches["time_s"] > one["time_s"]


def test_a_chain_gains_nothing_over_branches():
    drafts = asked(**MAMBA, draft="tree", draft_tree="1,1,1", acceptance=0.6).to_json()["draft"]
    one, branches = drafts["verifying"]
    assert {k: v for k, v in one.items() if k != "way"} == {k: v for k, v in branches.items() if k != "way"}


def test_acceptance_may_be_a_file(tmp_path):
    path = tmp_path / "shares.csv"
    path.write_text("0.6,0.2,0.1\n0.5,0.15,0.1\n0.4,0.2\n")
    assert read_acceptance(str(path)) == read_acceptance(RANKS)
    found = asked(batch=4, draft="tree", acceptance_by_position=str(path)).estimate
    assert found.tpot_s == asked(batch=4, draft="tree", acceptance_by_position=RANKS).estimate.tpot_s


def test_every_door_gives_the_same_numbers(tmp_path, capsys):
    from orrery.cli.main import run

    inputs = {**SMALL, "batch": 4, "draft": "tree", "acceptance_by_position": RANKS}
    flags = [word for key, value in inputs.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    path = tmp_path / "mine.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in inputs.items()))
    found = [asked(**inputs).estimate.tpot_s]
    for words in (flags, ["--scenario", str(path)]):
        assert run(["estimate", *words, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["tpot_s"])
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"draft": "tree"}, "needs acceptance rates"),
        ({"draft": "tree", "acceptance_by_position": "0.2/0.6"}, "the largest first"),
        ({"draft": "tree", "acceptance_by_position": "1.2"}, "shares from 0 to 1"),
        ({"draft": "tree", "acceptance_by_position": "no-such-file.csv"}, "is no file"),
        ({"draft": "tree", "acceptance": 0.5, "draft_tree": "2,two"}, "draft tokens of each level"),
        ({"draft": "eagle", "acceptance_by_position": "0.6/0.2"}, "one draft token at a position"),
        ({"draft": "prompt-tokens", "acceptance": 0.5, "draft_model": "llama-3.2-1b"}, "guess by itself"),
        ({"draft": "prompt-tokens", "acceptance": 0.5, "draft_tree": "2,2"}, "its own tree"),
        ({"draft": "tree", "acceptance_by_position": "0.5,0.4", "draft_tree": "2,2,2"}, "as many of both"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    with pytest.raises(ScenarioError, match=words):
        asked(concurrency=4, **settings)


def test_a_plan_chooses_a_tree_for_each_layout():
    """The tree is the best of those tried, never worse than a given one; launch lines say that they lack it."""
    base = {**SMALL, "rate": 1.0, "max_devices": 1, "acceptance": "0.6,0.5", "max_num_batched_tokens": 2048}
    best = plan(**base, draft="tree")
    first = best.to_json()["plans"][0]
    assert first["draft"]["tokens_per_step"] > 1
    assert "speculative" not in first["launch"]["vllm"]
    assert any("no command starts a tree" in note for note in first["launch_notes"])
    assert any("trees were tried on every layout" in note for note in best.notes)
    given = plan(**base, draft="tree", draft_tree="4,2").to_json()["plans"][0]
    assert given["draft"]["level_nodes"] == [4, 8]
    assert first["highest_output_tokens_per_s"] >= given["highest_output_tokens_per_s"] * (1 - 1e-9)
    plain = plan(**{k: v for k, v in base.items() if k != "acceptance"}).to_json()["plans"][0]
    assert "draft" not in plain
    assert first["tpot_s"] < plain["tpot_s"]


def test_a_simulated_plan_drafts_as_its_closed_form():
    inputs = {**SMALL, "rate": 1.0, "max_devices": 1, "draft": "tree", "draft_tree": "3,2", "acceptance": 0.6}
    found = plan_simulated(**inputs, num_requests=200, count=1).to_json()["plans"][0]
    assert found["simulated"]["mean_tpot_ms"] / 1e3 == pytest.approx(found["tpot_s"], rel=0.12)


def test_a_plan_takes_a_draft_model_for_trees_alone():
    with pytest.raises(ScenarioError, match="for trees alone"):
        plan(**SMALL, rate=1.0, draft_model="llama-3.2-1b", acceptance=0.6)
