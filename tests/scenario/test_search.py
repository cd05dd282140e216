"""Searches of networks: limit cases, oracles by hand and by trying everything, and one answer through every door."""

import itertools
import json

import pytest

import orrery
from orrery.base.errors import OutOfRange, ScenarioError
from orrery.cli.main import run
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fields_search import METHODS

SPACE = """
[[choices]]
name = "first"
[[choices.alternatives]]
name = "big"
latency_s = { l4 = 4.0, a10g = 1.0 }
parameters = 10
score = 0.0
[[choices.alternatives]]
name = "small"
latency_s = { l4 = 1.0, a10g = 3.0 }
parameters = 4
score = -1.0
[[choices]]
name = "second"
times = 2
[[choices.alternatives]]
name = "big"
latency_s = { l4 = 2.0, a10g = 5.0 }
parameters = 20
score = 0.0
[[choices.alternatives]]
name = "middle"
latency_s = { l4 = 1.5, a10g = 2.0 }
parameters = 8
score = -0.25
[[choices.alternatives]]
name = "none"
score = -3.0
latency_s = 0.0
"""
ONE = '[[choices]]\nname = "only"\n[[choices.alternatives]]\nname = "it"\nlatency_s = 1.0\nscore = 0.5\n'
LATENCY = {"l4": ((4.0, 1.0), (2.0, 1.5, 0.0)), "a10g": ((1.0, 3.0), (5.0, 2.0, 0.0))}
SCORE = ((0.0, -1.0), (0.0, -0.25, -3.0))


@pytest.fixture
def space(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return str(path)


def best_by_hand(device, limit):
    """The greatest score of all 18 networks within the limit."""
    latency = LATENCY[device]
    networks = itertools.product(range(2), range(3), range(3))
    within = [
        SCORE[0][a] + SCORE[1][b] + SCORE[1][c]
        for a, b, c in networks
        if latency[0][a] + latency[1][b] + latency[1][c] <= limit
    ]
    return max(within)


def test_no_limit_returns_the_reference(space):
    for device in orrery.search(space=space, device="l4,a10g").devices:
        assert set(device.best.alternatives.values()) == {"big"}
        assert device.best.metrics == pytest.approx(device.reference)
        assert device.bound == 0.0


@pytest.mark.parametrize("limit", [1.0, 3.0, 4.5, 6.0, 7.5, 11.0])
@pytest.mark.parametrize("method", ["program", "enumeration"])
@pytest.mark.parametrize("device", ["l4", "a10g"])
def test_exact_methods_find_what_trying_by_hand_finds(space, device, method, limit):
    (found,) = orrery.search(space=space, device=device, method=method, latency_s=limit).devices
    assert found.best.metrics["score"] == pytest.approx(best_by_hand(device, limit))
    assert found.best.metrics["latency"] <= limit
    assert found.bound == pytest.approx(found.best.metrics["score"])
    assert found.is_proven


@pytest.mark.parametrize("method", ["evolution", "differentiable", "policy"])
def test_drawn_methods_keep_the_limit_and_never_beat_the_bound(space, method):
    answer = orrery.search(space=space, device="l4", method=method, latency_s=6.0, seeds=3)
    (found,) = answer.devices
    assert found.best.metrics["latency"] <= 6.0
    assert found.best.metrics["score"] <= best_by_hand("l4", 6.0) + 1e-12
    assert not found.is_proven
    assert len(found.goals) + found.num_failed == 3
    for point, band in zip(found.front, found.band, strict=True):
        assert band.low <= band.high
        assert band.high == pytest.approx(point.metrics["score"])


def test_each_devices_network_wins_on_its_own_device(space):
    answer = orrery.search(space=space, device="l4,a10g", objective="latency,score", min_score=-1.25)
    first, second = answer.devices
    assert first.best.alternatives != second.best.alternatives
    for name in ("l4", "a10g"):
        own = next(d for d in answer.devices if d.device == name)
        assert own.latency_s_on[name] == min(d.latency_s_on[name] for d in answer.devices)
    assert first.latency_s_on["a10g"] > second.latency_s_on["a10g"]


@pytest.mark.parametrize("method", METHODS)
def test_a_space_of_one_returns_it(tmp_path, method):
    (tmp_path / "one.toml").write_text(ONE)
    (found,) = orrery.search(space=str(tmp_path / "one.toml"), device="l4", method=method).devices
    assert found.best.alternatives == {"only": "it"}
    assert found.best.metrics["score"] == 0.5


def test_the_front_is_what_nothing_beats_in_both(space):
    (found,) = orrery.search(space=space, device="l4", method="enumeration").devices
    scores = [n.metrics["score"] for n in found.front]
    latencies = [n.metrics["latency"] for n in found.front]
    assert scores == sorted(scores)
    assert latencies == sorted(latencies)
    tried = {
        sum(LATENCY["l4"][i > 0][a] for i, a in enumerate(n)): n
        for n in itertools.product(range(2), range(3), range(3))
    }
    assert len(found.front) <= len(tried)
    assert latencies[0] == 1.0  # small, none, none


def test_a_models_own_blocks_come_back_without_a_limit_and_parameters_limit_them():
    ask = {"space": "blocks", "model": "llama-3.2-1b", "device": "l4", "concurrency": 8}
    (whole,) = orrery.search(**ask).devices
    assert set(whole.best.alternatives.values()) == {"kv 1 ffn 1"}
    assert whole.served.child_tokens_per_s == pytest.approx(whole.served.parent_tokens_per_s)
    (half,) = orrery.search(**ask, max_parameters=7e8).devices
    assert half.best.metrics["parameters"] <= 7e8
    assert half.served.gain_ratio > 1.0


def test_the_program_of_cells_finds_what_trying_all_15625_finds():
    ask = {"space": "cells", "device": "v100-sxm-16gb", "batch": 128, "memory_ratio": 0.4, "objective": "score,memory"}
    program, tried = (orrery.search(**ask, method=m).devices[0] for m in ("program", "enumeration"))
    assert tried.num_evaluated == 15625
    assert program.best.metrics["score"] == pytest.approx(tried.best.metrics["score"])


def test_formats_without_a_limit_stay_wide_and_narrow_under_one():
    ask = {"space": "formats", "model": "llama-3.2-1b", "device": "b200", "formats": "bf16,fp8,nvfp4"}
    (wide,) = orrery.search(**ask).devices
    assert set(wide.best.alternatives.values()) == {"bf16"}
    (narrow,) = orrery.search(**ask, memory_ratio=0.4).devices
    assert "nvfp4" in narrow.best.alternatives.values()
    same = orrery.bits(model="llama-3.2-1b", device="b200", formats="bf16,fp8,nvfp4", size_ratio=0.4)
    assert -narrow.best.metrics["score"] == pytest.approx(same.best.perturbation_ratio)


def test_shapes_are_tried_one_by_one_and_larger_ones_take_longer():
    ask = {"space": "transformer-shape", "model": "llama-3.2-1b", "device": "mi300x", "seq_len": 1024}
    (found,) = orrery.search(**ask, objective="latency,score", min_score=-0.36).devices
    assert found.num_evaluated == 810
    assert found.best.metrics["score"] >= -0.36
    assert found.best.metrics["latency"] <= found.reference["latency"]
    with pytest.raises(ScenarioError, match="no sum over choices"):
        orrery.search(**ask, method="program")


def test_mobilenet_v2_stands_beside_its_relatives():
    ask = {"space": "mbconv", "device": "v100-sxm-16gb", "batch": 8, "scores": "work", "objective": "latency,score"}
    (found,) = orrery.search(**ask, min_score_ratio=1.0).devices
    assert found.reference["parameters"] == pytest.approx(3.47e6, rel=1e-3)
    assert found.reference["score"] == pytest.approx(300.8e6, rel=1e-3)
    assert found.best.metrics["score"] >= found.reference["score"]
    assert found.best.metrics["latency"] < found.reference["latency"]


def test_a_score_file_decides_and_a_stand_in_says_so(space, tmp_path):
    plain = orrery.search(space="cells", device="t4")
    assert any("stand-in" in note for note in plain.notes)
    lines = ["choice,alternative,damage"]
    lines += [f",{name},{value}" for name, value in (("big", 3.0), ("small", 0.0), ("middle", 1.0), ("none", 2.0))]
    scores = tmp_path / "scores.csv"
    scores.write_text("\n".join(lines) + "\n")
    (found,) = orrery.search(space=space, device="l4", scores=str(scores)).devices
    assert list(found.best.alternatives.values()) == ["small", "middle", "middle"]
    assert found.best.metrics["score"] == -2.0


def test_a_score_file_that_leaves_something_out_is_refused(space, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("choice,alternative,score\nfirst,big,1\n")
    with pytest.raises(ScenarioError, match="has no score for 'small' of 'first'"):
        orrery.search(space=space, device="l4", scores=str(scores))


def test_what_cannot_be_met_says_what_can(space):
    found = orrery.search(space=space, device="l4", latency_s=0.5)
    assert isinstance(found, InfeasibleAnswer)
    assert found.infeasible.need == 1.0
    assert "latency_s = 1" in found.infeasible.smallest_change


def test_products_are_counted_by_hand():
    (found,) = orrery.search(space="docs/data/space.toml", device="l4").devices
    early, late = 128 * 576 + 64 * 128, 2048 * 4608 + 512 * 2048
    assert found.reference["parameters"] == 2 * early + 2 * late
    assert found.reference["work"] == 2 * 50176 * early + 2 * 784 * late
    assert found.reference["memory"] == 2 * found.reference["parameters"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"space": "nowhere"}, "space: got 'nowhere'"),
        ({"device": None}, "device: missing"),
        ({"objective": "speed"}, "objective: got 'speed'"),
        ({"method": "luck"}, "method: got 'luck'"),
        ({"tokens": 4}, "tokens: has no effect with space cells"),
        ({"population": 4}, "population: has no effect with method program"),
        ({"seeds": 3}, "seeds: program draws nothing"),
        ({"min_score_ratio": 0.5}, "none above zero"),
        ({"objective": "score,latency", "scores": "nowhere.csv"}, "nowhere.csv"),
        ({"batch": 0}, "batch"),
    ],
)
def test_what_makes_no_sense_is_refused(change, words):
    ask = {"space": "cells", "device": "t4", **change}
    with pytest.raises(ScenarioError, match=words):
        orrery.search(**{name: value for name, value in ask.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"write \[\[choices\]\]|choices: got"),
        ("[[choices]]\nname = 'a'\n", "alternatives: got"),
        ("[[choices]]\nname = 'a'\n[[choices.alternatives]]\nname = 'b'\nproducts = [[1, 2]]\n", r"\[m, n, k\]"),
        ("[[choices]]\nname = 'a'\n[[choices.alternatives]]\nname = 'b'\nspeed = 3\n", "no 'speed'"),
        ("[[choices]]\nname = 'a'\n[[choices.alternatives]]\nname = 'b'\nlatency_s = -1\n", "number from 0"),
        ("[[choices]]\nname = 'a'\ntimes = 0\n[[choices.alternatives]]\nname = 'b'\n", "times: got 0"),
    ],
)
def test_a_space_file_that_says_nonsense_is_refused(tmp_path, text, words):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ScenarioError, match=words):
        orrery.search(space=str(tmp_path / "bad.toml"), device="l4")


def test_a_filter_that_nothing_meets_is_refused():
    with pytest.raises(OutOfRange, match="higher limit"):
        orrery.search(space="cells", device="t4", method="evolution", first_parameters=1.0)


def test_terminal_file_and_python_say_the_same(space, tmp_path, capsys):
    settings = {"space": space, "device": "l4,a10g", "latency_ratio": 0.6}
    flags = ["--space", space, "--device", "l4,a10g", "--latency-ratio", "0.6"]
    saved = tmp_path / "asked.toml"
    assert run(["search", *flags, "--json", "--save-scenario", str(saved)]) == 0
    typed = json.loads(capsys.readouterr().out)
    assert run(["search", "--scenario", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == typed
    assert json.loads(json.dumps(orrery.search(**settings).to_json())) == typed
    assert run(["search", *flags]) == 0
    assert "Pareto front on l4" in capsys.readouterr().out
    assert run(["search", *flags[:4], "--latency-s", "0.01"]) == 3


def test_trained_scores_come_from_training_and_say_so():
    ask = {"space": "cells", "device": "t4", "scores": "trained", "train_steps": 10, "latency_ratio": 0.5}
    answer = orrery.search(**ask, method="evolution", population=4, generations=2)
    (found,) = answer.devices
    assert found.best.metrics["score"] < 0.0
    assert found.num_evaluated == 8
    assert found.searched_latency_s > 4 * found.best.metrics["latency"] / 10
    assert any("really trained" in note for note in answer.notes)
    with pytest.raises(ScenarioError, match="train all 15,625 networks"):
        orrery.search(**ask)


def test_joint_training_of_paths_keeps_its_limit_and_counts_paths_in_memory():
    ask = {"space": "cells", "device": "t4", "scores": "trained", "train_steps": 10, "latency_ratio": 0.5}
    answer = orrery.search(**ask, method="differentiable")
    (found,) = answer.devices
    assert found.best.metrics["latency"] <= found.limits["latency"]
    held = answer.paths_bytes
    assert held["two"] == 2 * held["one"]
    assert held["all"] == pytest.approx(5 * held["one"])  # five operations on every edge


def test_formats_and_policy_are_trained_together():
    ask = {"space": "formats", "formats": "mxfp8,mxfp4", "device": "b200", "scores": "trained", "train_steps": 5}
    (found,) = orrery.search(**ask, method="policy", memory_ratio=0.8).devices
    assert found.best.metrics["memory"] <= found.limits["memory"]
    with pytest.raises(ScenarioError, match="leave model out"):
        orrery.search(**ask, model="llama-3.2-1b")
    with pytest.raises(ScenarioError, match="train_steps: nothing is trained"):
        orrery.search(space="cells", device="t4", train_steps=5)


def test_a_filter_keeps_later_generations_small():
    ask = {"space": "cells", "device": "t4", "method": "evolution", "population": 20, "generations": 8}
    plain, filtered = (orrery.search(**ask, **more).devices[0] for more in ({}, {"first_parameters": 4e5}))
    assert filtered.num_evaluated == plain.num_evaluated == 160
    assert filtered.searched_latency_s < plain.searched_latency_s


def test_a_policy_ends_near_the_best_mixture_of_its_size():
    ask = {"space": "formats", "model": "llama-3.2-1b", "device": "b200", "formats": "fp8,nvfp4", "memory_ratio": 0.75}
    drawn, best = (orrery.search(**ask, method=m).devices[0].best.metrics["score"] for m in ("policy", "program"))
    assert best >= drawn >= 2.0 * best  # losses, as scores below zero
