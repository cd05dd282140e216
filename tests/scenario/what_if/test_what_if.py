"""What a technique would do: both sides are the plain commands' numbers, off is absent, reasons are in words."""

import json
import re
from functools import cache
from math import exp, hypot, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import OrreryError, ScenarioError
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fields import BY_NAME
from orrery.scenario.levers import get_lever, levers
from orrery.scenario.levers.idle import NOTED
from orrery.scenario.schema import read_scenario
from orrery.scenario.setting import Setting
from orrery.scenario.what_if import Comparer, what_if
from orrery.scenario.what_if.break_even import break_even, grid
from orrery.scenario.what_if.difference import differences
from orrery.scenario.what_if.metrics import BY_NAME as BY_METRIC
from orrery.scenario.what_if.metrics import CHOICES
from orrery.scenario.what_if.side import Side, side_of

SERVING = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64, "concurrency": 16}
TRAINING = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "devices": 16,
    "tp": 2,
    "pp": 2,
    "seq_len": 4096,
    "global_batch": 64,
    "micro_batch": 1,
}
OFFLOADED = {"model": "llama-3.2-1b", "device": "h100-sxm", "devices": 8, "seq_len": 2048, "global_batch": 16}
MIXTURE = {
    "model": "mixtral-8x7b",
    "device": "h100-sxm",
    "devices": 64,
    "pp": 4,
    "ep": 8,
    "global_batch": 64,
    "seq_len": 2048,
    "expert_loads": "zipf:0.8",
}
RUN = TRAINING | {"train_tokens": 1e11, "node_mtbf_s": 2e6, "storage_bytes_per_s": 1e8}
HIDDEN = {
    "fleet.compressor",
    "fleet.federated",
    "network.exchange",
    "numerics.accumulation",
    "numerics.gelu",
    "numerics.layer_norm",
    "numerics.matmul",
    "numerics.requantise",
    "numerics.softmax",
}
"""Seams of which no command takes all techniques yet."""

NEEDED = {
    "acceptance": 0.7,
    "draft_tokens": 3,
    "kv_kept_tokens": 0.5,
    "kv_budget_tokens": 128,
    "split": "0.4,0.6",
    "fill_tokens": 1024,
    "success": 0.3,
    "replicas": 2,
    "setback_steps": 20,
    "reshape_to": "tp=2,pp=1",
    "worker_times": "docs/data/worker-times.csv",
    "seq_lengths": "lognormal:1500:1.5",
    "nic_groups": "ib:1:5e10,roce:1:5e10",
    "fabric": "fat-tree",
    "wide_frac": 0.1,
}
PLAIN = {"estimate": orrery.estimate, "simulate": orrery.simulate, "plan": orrery.plan, "train": orrery.train}
ASKABLE = [lever.name for lever in levers().values() if lever.questions]


def changing(name):
    """A deployment in which that technique moves a number."""
    lever = get_lever(name)
    given = {key: value for key, value in NEEDED.items() if key in lever.needs}
    match lever.extension_point, name:
        case "training.checkpoint", _:
            return RUN
        case "training.straggler", _:
            return TRAINING | given | {"tp": 1, "pp": 1, "global_batch": 64}
        case _, "planned-paths":
            return TRAINING | given | {"devices": 64, "leaves": 2, "hosts_per_leaf": 4, "planes": 8}
        case _, "stages-along-groups" | "adapted-partition":
            return TRAINING | given | {"tp": 1, "recompute": "full", "nic_group_link_bytes_per_s": 1e9}
        case _, "sequence-balancing":
            return TRAINING | given | {"tp": 8, "pp": 1, "seq_len": 65536}
        case "training.partition", _:
            return {k: v for k, v in TRAINING.items() if k not in ("tp", "pp")}
        case "training.local_updates", _:
            return TRAINING | {"tp": 8, "pp": 1}
        case _, "isolated":
            return TRAINING | {"tp": 8, "pp": 1, "sites": 2, "site_link_bytes_per_s": 1e9}
        case _, "neighbour-average" | "redundant-stages" | "collective-detection" | "elastic-restart":
            return RUN | given | {"node_mtbf_s": 2e7, "repair_s": 40000}
        case (("execution.expert_overlap" | "execution.expert_placement"), _):
            return MIXTURE
        case "execution.offload", _:
            return OFFLOADED
        case "training.schedule", _:
            return TRAINING | {"devices": 64, "global_batch": 128, "tp": 4}
        case _, "speculative-chains":
            return SERVING | given | {"draft_model": "llama-3.2-1b", "concurrency": 1}
        case "serving.route", _:
            return SERVING | {"concurrency": 0, "rate": 30, "replicas": 3, "turns": 3, "think_s": 1}
        case "serving.queue", _:
            return SERVING | {
                "concurrency": 64,
                "max_num_seqs": 8,
                "lengths": "lognormal",
                "output_tokens_std": 60,
                "users": 0,
            }
        case "execution.transfer", _:
            return SERVING | {"prefill_replicas": 1}
        case "serving.arrivals", _:
            return SERVING | {"concurrency": 0, "rate": 20}
        case "execution.overlap", _:
            return SERVING | {"tp": 4}
        case _, "expert-affinity" | "balanced-placement" | "redundant-experts":
            shared = {"dp": 4, "ep": 4, "expert_loads": "zipf:0.4+affinity:0.6"}
            return SERVING | shared | {"model": "mixtral-8x7b"}
        case _, "hybrid-experts":
            host = {"expert_offload": "host", "host_flops_per_s": 2e12, "host_memory_bytes_per_s": 3e11}
            return SERVING | host | {"model": "mixtral-8x7b", "tp": 2}
        case _, "speculative-decoding":
            return SERVING | given | {"draft_tokens": 3}
        case _, "ragged-speculation":
            return SERVING | {"draft_tokens": 4, "acceptance": 0.7, "engine": "transformers", "concurrency": 8}
        case _, "two-width-activations":
            return SERVING | given | {"device": "a100-sxm-80gb"}
        case _, "prefix-caching":
            return SERVING | {"prefix_tokens": 256}
        case _, "kv-swap":
            return SERVING | {
                "concurrency": 400,
                "input_tokens": 4096,
                "output_tokens": 512,
                "gpu_memory_utilization": 0.35,
            }
        case _, "lora-affinity":
            return SERVING | {"lora_adapters": 20, "lora_rank": 16, "max_loras": 4, "replicas": 2, "concurrency": 16}
        case _, "non-blocking-pipeline":
            return SERVING | {"pp": 2}
        case _, "peer-memory-pool":
            return SERVING | {"weight_offload_frac": 0.25}
        case _, "pooled-kv-cache":
            return SERVING | {"replicas": 2, "concurrency": 4, "input_tokens": 60000, "gpu_memory_utilization": 0.3}
        case _:
            return (TRAINING if lever.is_training else SERVING) | given


def plain(deployment):
    return {key: value for key, value in deployment.items() if value}


@cache
def tried(name):
    """The technique in a deployment that it is made for."""
    (found,) = what_if(name, break_even=(), **plain(changing(name))).results
    return found


@pytest.mark.parametrize("name", ASKABLE)
def test_each_changes_a_deployment_or_refuses_in_words(name):
    """Never the baseline's number in silence: it moves one, or says that and why it does not."""
    found = tried(name)
    assert found.because
    if found.outcome == "changes":
        assert any(d.frac for d in found.difference.values())
        assert found.without.figures != found.having.figures
    elif found.outcome == "no effect":
        assert found.because.startswith("no effect on this deployment: ")
        assert "same numbers" not in found.because, f"{name}: {found.because}"
    else:
        assert len(found.because.split()) > 5


def test_most_change_the_deployment_that_is_made_for_them():
    outcomes = {n: tried(n).outcome for n in ASKABLE}
    still = {n for n, outcome in outcomes.items() if outcome != "changes"}
    assert len(still) < len(outcomes) / 4, sorted(still)


@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 7)
def test_both_sides_are_the_plain_commands_numbers_bit_for_bit(data):
    name = data.draw(st.sampled_from(ASKABLE))
    base = plain(changing(name))
    if base.get("concurrency"):
        base["concurrency"] = data.draw(st.integers(1, 64))
    if "global_batch" in base:
        base["global_batch"] = 64 * data.draw(st.integers(1, 4))
    comparer = Comparer(read_scenario(base | {"seed": data.draw(st.integers(0, 3))}))
    found = comparer.what_if(get_lever(name), comparer.metric())
    for side in (found.without, found.having):
        if side is None or side.answer is None:
            continue
        again = PLAIN[side.question](read_scenario(side.settings))
        if side.infeasible is not None:
            assert isinstance(again, InfeasibleAnswer)
            continue
        figures = side_of(side.question, read_scenario(side.settings)).figures
        assert {k: v for k, v in side.figures.items() if k in figures} == figures
        description, key = again.to_json(), {"simulate": "output_throughput", "train": "step_time_s"}
        ours = {"simulate": "output_tokens_per_s", "train": "step_time_s"}.get(side.question, "output_tokens_per_s")
        assert description[key.get(side.question, "output_tokens_per_s")] == side.figures[ours]


@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 8)
def test_off_is_absent(data):
    """Switching a technique to what the deployment does without it gives the deployment's own numbers."""
    name = data.draw(st.sampled_from([n for n in ASKABLE if get_lever(n).off and get_lever(n).on]))
    base, lever = plain(changing(name)), get_lever(name)
    base |= {k: v for k, v in lever.off.items() if v is not None}
    comparer = Comparer(read_scenario(base))
    found = comparer.what_if(lever, comparer.metric())
    if found.without is not None and not found.because.startswith("the deployment does not fit"):
        about_answers = {"success"}  # means nothing to the single calls of the side without a shape
        own = read_scenario(base).written()
        assert found.without.settings == {k: v for k, v in own.items() if k not in about_answers}


@pytest.mark.parametrize("name", ["sequential", "fcfs", "plain-copy", "poisson", "1f1b", "expert-serial", "in-order"])
def test_what_stands_for_off_changes_no_number(name):
    found = tried(name)
    assert found.because == "no effect on this deployment: it does so already."
    assert found.without.figures == found.having.figures


@pytest.mark.parametrize("name", ["token-split", "ladder-residual", "prefix-aware", "fp8-weights", "domino"])
def test_the_gain_vanishes_where_nothing_is_left_to_act_on(name):
    limit = TRAINING | {"tp": 1, "pp": 4, "sharding": "zero1"} if get_lever(name).is_training else SERVING | {"tp": 1}
    (found,) = what_if(name, **limit, **({"weights": "fp8"} if name == "fp8-weights" else {})).results
    if name == "fp8-weights":
        assert "on already" in found.because
        return
    assert found.outcome == "no effect"
    assert re.search(r"(tp|replicas) is 1", found.because)
    assert all(d.frac == d.low_80 == d.high_80 == 0.0 or d.frac == 0.0 for d in found.difference.values())


def test_shared_errors_cancel_by_hand():
    """Half-widths of logarithms: sqrt(ha^2 + hb^2 - 2 x 0.7 ha hb), narrower than those of two strangers."""
    (found,) = what_if("fp8-weights", break_even=(), engine_version="0.11.0", **SERVING).results
    a, b = found.without, found.having
    ha = log(a.intervals["tpot_s"].high_80 / a.figures["tpot_s"])
    hb = log(b.figures["tpot_s"] / b.intervals["tpot_s"].low_80)
    ratio = b.figures["tpot_s"] / a.figures["tpot_s"]
    low = ratio * exp(-sqrt(ha**2 + hb**2 - 2 * 0.7 * ha * hb)) - 1
    assert found.difference["tpot_s"].low_80 == pytest.approx(low)
    assert low > ratio * exp(-hypot(ha, hb)) - 1
    assert differences(a, a)["tpot_s"].frac == 0.0


def test_break_even_of_a_known_crossing():
    """Helps above 37 by construction: the grid finds the side, halving the number."""
    found = break_even("concurrency", 32, lambda x: x > 37)
    assert (found.helps, found.value, found.turns) == ("above", 38, 1)
    found = break_even("acceptance", 0.7, lambda x: x > 0.333)
    assert (found.helps, found.value) == ("above", pytest.approx(0.333, rel=0.02))
    assert break_even("input_tokens", 100, lambda x: x < 1000).helps == "below"
    assert str(break_even("rate", 4, lambda x: True)) == "rate: it helps everywhere from 0.25 to 64"
    assert break_even("rate", 4, lambda x: None) is None
    twice = break_even("concurrency", 32, lambda x: 20 < x < 100)
    assert (twice.turns, twice.value) == (2, 21)
    assert isinstance(BY_NAME["concurrency"], Setting)
    assert grid(BY_NAME["concurrency"], 3)[0] == 1


def test_break_even_is_where_both_sides_meet():
    """At the break-even's value the metric is the same to the grid's last step; on the other side it hurts."""
    (found,) = what_if("int4-weights", break_even=("concurrency",), metric="throughput", **SERVING).results
    (turn,) = found.break_even
    if turn.value is None:
        pytest.skip("it helps over the whole range with today's constants")

    def gain_at(x):
        (r,) = what_if("int4-weights", break_even=(), **(SERVING | {"concurrency": int(x)})).results
        return r.gain

    inside = 1 if turn.helps == "above" else -1
    assert gain_at(turn.value + inside) > 0
    assert gain_at(turn.value) == pytest.approx(0.0, abs=0.05)


def test_all_is_ranked_and_says_why_of_the_rest():
    description = []
    answer = what_if("all", metric="tpot", on_progress=lambda done, total: description.append((done, total)), **SERVING)
    gains = [r.gain for r in answer.results if r.outcome == "changes"]
    assert gains == sorted(gains, reverse=True)
    assert description[-1][0] == description[-1][1] == len(answer.results)
    by_name = {r.technique: r for r in answer.results}
    assert by_name["token-split"].because == ("no effect on this deployment: tp is 1: there is no all-reduce to hide.")
    assert "--success" in by_name["best-of-n"].because
    assert not any(r.lever.is_training for r in answer.results)


def test_the_list_shows_what_a_command_takes_and_nothing_else():
    from orrery.base.technique import discover, technique_folders
    from orrery.cli.main import cli
    from orrery.scenario.show import show_all

    rows = {row["name"]: row["use"] for row in show_all("techniques").rows}
    files = {t.name: t.extension_point for folder in technique_folders() for t in discover(folder)}
    hidden = {extension_point for name, extension_point in files.items() if name not in rows}
    assert hidden == HIDDEN, "every seam with a hidden technique is named in the changelog"
    for name, use in rows.items():
        words = use.split()
        command = cli.get_command(None, words[1])
        flags = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
        assert words[0] == "orrery"
        assert {w for w in words if w.startswith("--")} <= flags, f"{name}: {use}"


def test_each_technique_of_an_experiment_is_in_it():
    from pathlib import Path

    import orrery

    studies = {
        f.stem.replace("_", "-"): f.read_text(encoding="utf-8")
        for f in Path(orrery.__file__).parent.rglob("studies/*.py")
    }
    for lever in levers().values():
        if lever.command.startswith("orrery experiment"):
            text = studies[lever.command.split()[2]]
            assert f'"{lever.name}"' in text, f"{lever.name}: {lever.command}"


@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 8)
def test_a_note_of_no_effect_is_true(data):
    """Where a plain command says that a technique changes no number, leaving it out changes none."""
    noted = [lever for lever in map(get_lever, ASKABLE) if set(lever.on) & set(NOTED)]
    on_any_model = [x for x in noted if "expert_placement" not in x.on]  # refused where there are no experts
    lever = data.draw(st.sampled_from(on_any_model))
    name = lever.name
    base = dict(TRAINING | {"tp": 1, "pp": 4, "sharding": "zero1"} if lever.is_training else SERVING)
    question = lever.questions[0]
    if not lever.is_training:
        base |= {"tp": data.draw(st.sampled_from([1, 2])), "concurrency": data.draw(st.sampled_from([1, 4, 64, 300]))}
    if question in BY_NAME["replicas"].commands:
        base["replicas"] = data.draw(st.integers(1, 2))
    if "local_updates" in lever.on:
        base["sharding"] = "none"
    if name == "lora-affinity":
        base["lora_adapters"] = 4
    if "expert_placement" in lever.on:
        base["model"] = "qwen3-30b-a3b"
    having = PLAIN[question](**base, **lever.on)
    if any("no effect on this deployment" in note for note in having.notes):
        for key in ("step_time_s", "output_throughput", "p99_ttft_ms", "mean_tpot_ms", "energy_j"):
            with_it, without = (found.to_json().get(key, 0.0) for found in (having, PLAIN[question](**base)))
            assert with_it == pytest.approx(without, rel=1e-9), (name, key)  # sums in another order


def test_json_is_as_scripts_rely_on():
    found = json.loads(json.dumps(what_if("fp8-weights", **SERVING).to_json()))
    (result,) = found["results"]
    assert {"technique", "command", "without", "with", "difference", "break_even", "must_be_measured"} <= result.keys()
    assert set(result["difference"]["tpot_s"]) == {"frac", "low_80", "high_80"}
    assert result["command"].startswith("orrery estimate --model")
    assert "--weights fp8" in result["command"]


@pytest.mark.parametrize("word", CHOICES)
def test_metrics_by_word(word):
    comparers = Comparer(read_scenario(SERVING)), Comparer(read_scenario(TRAINING))
    found = []
    for comparer in comparers:
        try:
            found.append(comparer.metric(word).name)
        except ScenarioError as error:
            found.append(str(error))
    assert any(name in BY_METRIC for name in found)
    assert all(name in BY_METRIC or "has no" in name for name in found)


def test_mistakes_are_said():
    with pytest.raises(OrreryError, match="fp8-weights"):
        what_if("fp8-weight", **SERVING)
    with pytest.raises(ScenarioError, match="no command takes it"):
        what_if("polynomial-softmax", **SERVING)
    with pytest.raises(ScenarioError, match="metric: got 'spede'"):
        what_if("fp8-weights", metric="spede", **SERVING)
    with pytest.raises(ScenarioError, match="states no rate"):
        what_if("fp8-weights", break_even=("rate",), **SERVING)
    with pytest.raises(ScenarioError, match="no numeric setting"):
        what_if("fp8-weights", break_even=("model",), **SERVING)


def test_disaggregation_takes_no_more_devices():
    (found,) = what_if("disaggregated", break_even=(), **(SERVING | {"replicas": 4})).results
    assert found.without.settings["replicas"] == 4
    assert (found.having.settings["replicas"], found.having.settings["prefill_replicas"]) == (2, 2)


def test_plans_are_compared_by_their_first():
    inputs = {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "max_devices": 2,
        "rate": 4,
        "input_tokens": 512,
        "output_tokens": 64,
    }
    (found,) = what_if("fp8-kv-cache", break_even=(), metric="cost", **inputs).results
    assert found.without.question == "plan"
    best = orrery.plan(**inputs).plans[0]
    assert found.without.figures["usd_per_million_tokens"] == best.usd_per_million_tokens


def test_a_side_that_does_not_fit_is_infeasible():
    (found,) = what_if(
        "fp8-weights", model="llama-3.1-70b", device="h100-sxm", tp=1, input_tokens=64, output_tokens=16, concurrency=1
    ).results
    assert found.outcome == "infeasible"
    assert isinstance(found.without, Side)
    assert found.to_json()["without"]["infeasible"]["need"] > 0


def test_what_makes_a_deployment_fit_comes_first_and_best_first():
    """70e9 weights of 2 bytes do not fit 80 GB, of half a byte they do; of a training job, states that are shared."""
    answer = what_if("all", model="llama-3.1-70b", device="h100-sxm", input_tokens=64, output_tokens=16, concurrency=1)
    fitting = [r.technique for r in answer.results if r.outcome == "makes it fit"]
    assert fitting[0] == answer.results[0].technique == "int4-weights"
    assert "fp8-kv-cache" not in fitting
    job = {"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 16, "tp": 2, "seq_len": 4096, "global_batch": 64}
    answer = what_if(["optimizer-sharding", "1f1b"], **job)
    shared, still = answer.results
    assert (shared.outcome, shared.verdict) == ("makes it fit", "makes it fit")
    assert shared.without.infeasible.need > shared.without.infeasible.have
    assert shared.having.figures["peak_memory_bytes"] < shared.without.infeasible.have
    assert still.outcome == "infeasible"
    assert "sharding: none (as megatron-lm does by default)" in answer.notes, "of the job as it is"
    ranked = [r for r in what_if("all", **job).results if r.outcome == "makes it fit"]
    steps = [r.having.figures["step_time_s"] for r in ranked]
    assert len(steps) > 2
    assert steps == sorted(steps)


def test_only_the_engines_own_policy_is_on_by_default():
    """Where no step mixes phases all policies come to the same numbers; that does not make each the default."""
    pools = SERVING | {"concurrency": 0, "rate": 2, "num_requests": 20, "prefill_replicas": 1}
    found = what_if(["chunked-prefill", "alternating", "layered-prefill"], break_even=(), **plain(pools)).results
    assert [r.state for r in found[1:]] == ["on", "on"]
    (mixed,) = what_if("chunked-prefill", break_even=(), **SERVING).results
    assert mixed.state == "default"


def test_a_share_that_means_nothing_without_its_technique_is_taken_away_too():
    """Blocks of two widths against what is served: int4 weights alone, or 16 bits."""
    served = SERVING | {"device": "a100-sxm-80gb", "wide_frac": 0.1}
    for weights in ({}, {"weights": "int4"}):
        (found,) = what_if("two-width-activations", break_even=(), **plain(served | weights)).results
        assert found.outcome == "changes"
        assert "wide_frac" not in found.without.settings
        assert found.difference["output_tokens_per_s"].frac > 0.1
