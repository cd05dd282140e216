"""Levers at their limits and in odd company: each says that it changes nothing, or what to write instead."""

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run

CHAT = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 128, "output_tokens": 8}
SERVED = CHAT | {"num_requests": 12, "concurrency": 4, "lengths": "constant"}
EXPERTS = {"model": "mixtral-8x7b", "device": "h100-sxm", "input_tokens": 64, "output_tokens": 64, "concurrency": 16}
EXPERTS |= {"dp": 16, "ep": 16}


@pytest.mark.parametrize(
    ("lever", "why"),
    [({"same_node": True}, "prompts have no replicas of their own"), ({"think_s": 3}, "nobody thinks")],
)
def test_a_lever_without_its_other_half_says_so(lever, why):
    (name,) = lever
    plain, asked = orrery.simulate(**SERVED), orrery.simulate(**SERVED, **lever)
    assert asked.simulated.duration_s == plain.simulated.duration_s
    assert [n for n in asked.notes if n.startswith(f"{name} = ") and "no effect" in n and why in n]
    assert not [n for n in orrery.simulate(**SERVED, same_node=False).notes if "no effect" in n]


def test_a_tree_that_nobody_asked_for_is_passed_over_aloud():
    notes = orrery.estimate(**CHAT, batch=1, draft_tree="4,2", acceptance=0.6).notes
    assert [n for n in notes if n.startswith("draft_tree: no tree is asked for")]


@pytest.mark.parametrize("frac", ["1", "0", "0.4,1.2"])
def test_a_split_is_a_part(frac):
    with pytest.raises(ScenarioError, match=r"split: got .*between 0 and 1"):
        orrery.simulate(**SERVED, split=frac)


def test_more_ranks_than_experts_take_copies():
    """Sixteen ranks hold eight experts twice; without copies the refusal says how many would do."""
    with pytest.raises(ScenarioError, match="num_redundant_experts = 8"):
        orrery.estimate(**EXPERTS)
    twice = orrery.estimate(**EXPERTS, num_redundant_experts=8).estimate
    once = orrery.estimate(**EXPERTS | {"dp": 8, "ep": 8}).estimate
    assert twice.memory.weights_bytes == pytest.approx(once.memory.weights_bytes, rel=1e-6), "an expert a rank, twice"
    assert twice.num_devices == 2 * once.num_devices
    with pytest.raises(ScenarioError, match="write 8"):
        orrery.estimate(**EXPERTS, num_redundant_experts=4)


def test_sends_that_do_not_block_hold_no_answer_back():
    """Batches alike: an answer's next token waits for its last one, and for no batch more than there are stages."""
    piped = SERVED | {"pp": 4, "num_requests": 48, "concurrency": 16, "output_tokens": 32}
    waits, goes_on = (orrery.simulate(**piped, pipeline_sends=s).simulated for s in ("blocking", "non-blocking"))
    assert goes_on.duration_s <= waits.duration_s
    assert goes_on.duration_s == pytest.approx(waits.duration_s, rel=0.02)


@pytest.mark.parametrize(
    ("objective", "by"),
    [("latency", "end-to-end latency"), ("energy", "joules an output token"), ("throughput", "output tokens/s/device")],
)
def test_a_plan_says_what_it_ranks_by_and_one_device_is_one(capsys, objective, by):
    words = [f"--{k.replace('_', '-')}={v}" for k, v in CHAT.items()]
    words += ["--rate=2", "--max-devices=1", f"--objective={objective}", "--clock-frac=1,0.8"]
    assert run(["plan", *words]) == 0
    shown = capsys.readouterr().out
    assert f"ranked by {by}" in " ".join(shown.split())
    assert shown.count("price: h100-sxm") == 1


def test_a_run_lends_as_long_a_context_as_an_estimate_says():
    """Four replicas: three lend to one; a block more than all of them hold is refused with their sum."""
    lent = {"model": "llama-2-7b", "device": "a100-sxm-80gb", "lend_cache": True, "max_model_len": 10_000_000}
    lent |= {"engine_version": "0.11.0", "output_tokens": 300}
    longest = orrery.estimate(**lent, dp=4, input_tokens=1000, concurrency=4).room.longest_context_tokens
    served = {"replicas": 4, "num_requests": 1, "lengths": "constant"}
    found = orrery.simulate(**lent, **served, input_tokens=int(longest) - 300 - 4 * 16)
    assert found.simulated.finish_s[0] > 0.0
    assert longest / 4 < found.simulated.requests.input_tokens[0] / 2, "two replicas do not hold it"
    refused = orrery.simulate(**lent, **served, input_tokens=int(longest))
    assert refused.infeasible.have == pytest.approx(longest)
    assert "lent by all replicas" in refused.infeasible.what
