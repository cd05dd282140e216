"""Experiments with the user's sizes, seeds, data and device: limits, bands, curves, every door, refusals."""

import json

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.decentral import COMPRESSORS
from orrery.fleet.decentral.saddle import compressed, extragradient, game
from orrery.numerics.experiments.studies.dfp import Counts, FixedPointProduct
from orrery.scenario.experiment import known_experiments, run_experiment
from orrery.training.small.layerwise import layerwise_descent


def gains(*sizes, steps=4000):
    rows = run_experiment("compressed-saddle", steps=steps, sizes=sizes).rows
    return {(row["method"], row["workers"]): row["gain_at_target"] for row in rows}


def test_keeping_everything_is_extragradient():
    """The reference moves to the point in every step, so both take the same way to the solution."""
    of, technique = game(3, 6, 0.05, 0.5), COMPRESSORS.get("send-random")
    plain = extragradient(of, 0.5, 30, 1e-9)
    found = compressed(
        of,
        technique,
        technique.knobs(kept_frac=1.0),
        remembers=False,
        move_frac=1.0,
        step_ratio=0.5,
        num_steps=30,
        until_frac=1e-9,
    )
    assert found.error_frac == pytest.approx(plain.error_frac)


def test_the_gain_grows_with_workers_where_they_send():
    found = gains("down=whole", "workers=2,12", "target_frac=0.02", "features=8", steps=1500)
    assert found["random", 12] > found["random", 2]


def test_workers_that_stay_away_send_nothing():
    of, technique = game(8, 6, 0.05, 0.5), COMPRESSORS.get("send-random")
    bits = [
        compressed(
            of,
            technique,
            technique.knobs(kept_frac=0.5),
            remembers=False,
            move_frac=0.0,
            step_ratio=0.1,
            num_steps=20,
            until_frac=1e-9,
            participating_frac=share,
            compresses_down=False,
        ).num_bits
        for share in (1.0, 0.25)
    ]
    assert bits[1][-1] - bits[1][0] == pytest.approx(0.25 * (bits[0][-1] - bits[0][0]))


def test_equal_speeds_give_groups_of_clients_no_gain():
    rows = run_experiment("federated", sizes=("speeds=1,1,1", "run_s=20")).rows
    speedup = {row["schedule"]: row["speedup_over_average"] for row in rows}
    assert speedup["federated-compass"] == pytest.approx(1.0)


def test_a_federation_needs_many_rounds():
    rows = [r for r in run_experiment("federated").rows if r["schedule"] == "federated-average"]
    assert rows[0]["target_s"] > 5 * 0.01 * 8 * 40, "more than five rounds of the slowest client"
    assert rows[-1]["accuracy_frac"] > rows[0]["accuracy_frac"]


def test_one_group_is_plain_training():
    rows = run_experiment("layerwise-update", steps=40, sizes=("groups=1", "hidden=16,16")).rows
    losses = {
        order: [r["loss"] for r in rows if r["order"] == order] for order in ("all layers", "bottom-up", "random")
    }
    assert losses["all layers"] == losses["bottom-up"] == losses["random"]
    assert (layerwise_descent("random", 2, 20, 0) != layerwise_descent("bottom-up", 2, 20, 0)).any()


def test_seldom_exchanges_lose_more_and_gradients_in_every_step_do_not_care():
    rows = run_experiment("local-updates", steps=48, sizes=("local_steps=1,4,24",)).rows
    found = {(row["update"], row["local_steps"]): row["loss_ratio"] for row in rows}
    assert found["co2", 1] < found["co2", 4] < found["co2", 24] < 1.0
    assert len({found["synchronous", count] for count in (1, 4, 24)}) == 1
    assert found["co2", 24] > 1.3 * found["synchronous", 24]


def test_experts_mixed_by_their_chances_come_near_the_exact_flow():
    """One expert is the one model however it is mixed; several need to know whose data a point is of."""
    rows = run_experiment("decentralized-experts", steps=400, sizes=("experts=1,4", "hidden=16")).rows
    error = {(row["mixed_by"], row["experts"]): row["error_frac"] for row in rows}
    assert error["router", 1] == error["exact chances", 1] == error["equal shares", 1] < 0.2
    assert error["exact chances", 4] < error["router", 4] < 0.2 < error["equal shares", 4]


def test_a_stage_like_its_neighbours_hardly_sets_back():
    rows = run_experiment("stage-recovery", steps=60, sizes=("stages=3",)).rows
    jump = {way: max(r["loss_jump_ratio"] for r in rows if r["way"] == way) for way in ("weighted", "random")}
    assert jump["weighted"] < jump["random"]


@pytest.fixture
def data(tmp_path):
    draws = np.random.default_rng(0)
    y = draws.integers(0, 3, 240)
    x = draws.standard_normal((240, 5)) + 4.0 * np.eye(3, 5)[y]
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    return str(tmp_path / "mine.npz")


def test_rules_learn_the_users_points_and_are_priced(data):
    sizes = ("widths=16,16", "batch=16")
    rows = run_experiment("mono-forward", steps=30, sizes=sizes, data=data, device="l4").rows
    found = {(row["rule"], row["stops_early"]): row for row in rows}
    assert len(found) == 8
    assert found["backpropagation", True]["accuracy_frac"] > 0.8
    assert all(row["time_s"] > 0 and row["energy_j"] > 0 and row["memory_bytes"] > 0 for row in rows)
    plain = run_experiment("mono-forward", steps=30, sizes=sizes, data=data).rows
    assert "time_s" not in plain[0]
    assert [row["accuracy_frac"] for row in plain] == [row["accuracy_frac"] for row in rows]


def test_fixed_point_of_16_bits_trains_as_fp32_does_unless_accumulators_overflow(data):
    rows = run_experiment("dfp", steps=40, sizes=("bits=16,3", "hidden=16"), data=data).rows
    loss = {row["products"]: row["loss"] for row in rows}
    assert loss["dfp16"] == pytest.approx(loss["fp32"], rel=1e-2)
    assert loss["dfp3"] > 1.2 * loss["fp32"]
    wrapped = run_experiment("dfp", steps=40, sizes=("bits=16", "hidden=16", "chain=64"), data=data).rows[1]
    assert rows[1]["overflow_frac"] == 0.0 < wrapped["overflow_frac"]
    assert wrapped["spills_per_sum"] < rows[1]["spills_per_sum"]
    assert wrapped["loss"] > 2.0 * loss["fp32"]


def test_fixed_points_and_four_bits_learn_the_users_own_points(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    x = rng.normal(size=(240, 16)) + 2.0 * np.eye(3, 16)[y]
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    data = str(tmp_path / "mine.npz")
    rows = run_experiment("qfx", steps=20, sizes=("bits=3,8",), data=data).rows
    loss = {(row["width_bits"], row["points"]): row["loss"] for row in rows}
    assert loss[0, "none"] < np.log(3)  # better than a guess, on points that it did not learn from
    assert loss[8, "no overflow"] == pytest.approx(loss[0, "none"], rel=0.05)
    assert loss[3, "no overflow"] > loss[8, "no overflow"]
    found = run_experiment("fp4-design-space", steps=3, sizes=("hidden=16", "layers=1"), data=data).rows
    assert len(found) == len(run_experiment("fp4-design-space", steps=1, sizes=("hidden=16", "layers=1")).rows)
    assert all(0.0 < row["loss"] < 10.0 for row in found)
    np.savez(tmp_path / "bad.npz", x=x[:4], y=y[:4])
    with pytest.raises(ScenarioError, match="16 points or more"):
        run_experiment("qfx", steps=1, data=str(tmp_path / "bad.npz"))


def test_a_product_in_fixed_point_by_hand():
    """Three bits reach from -3 to 3, in steps of 1/2 where the largest is 1: 0.3 becomes 1/2, so 1 + 0.3 is 1.5."""
    counts = Counts()
    found = FixedPointProduct(bits=3, chain=1, counts=counts)(
        np.array([[1.0, 0.3]]), np.array([[1.0, 1.0]]), np.random.default_rng(0)
    )
    assert (found.item(), counts.sums, counts.spills, counts.overflows) == (1.5, 1, 2, 0)


def test_a_federation_on_the_users_points(data):
    rows = run_experiment("federated", sizes=("speeds=1,2", "run_s=4"), data=data).rows
    assert rows[-1]["accuracy_frac"] > 0.5


def test_bands_hold_every_seed():
    sizes = ("hidden=8,8", "groups=2")
    three = run_experiment("layerwise-update", steps=24, seeds=3, sizes=sizes)
    singles = [run_experiment("layerwise-update", steps=24, seed=seed, sizes=sizes).rows for seed in range(3)]
    for place, row in enumerate(three.rows):
        values = [run[place]["loss"] for run in singles]
        assert row["loss"] == pytest.approx(np.mean(values))
        assert (row["loss_low"], row["loss_high"]) == (min(values), max(values))
    assert three.svg().startswith("<svg")
    assert "3 seeds" in three.svg()


def test_a_recipes_place_is_told_with_its_spread():
    rows = run_experiment("fp4-design-space", steps=2, seeds=2, sizes=("hidden=16",)).rows
    assert all(0.0 <= row["is_on_front_low"] <= row["is_on_front"] <= row["is_on_front_high"] <= 1.0 for row in rows)
    assert all(row["loss_low"] <= row["loss"] <= row["loss_high"] for row in rows)


def test_defaults_are_what_is_not_set():
    known = known_experiments()["layerwise-update"]
    assert known(seed=1, steps=12) == known(seed=1, steps=12, sizes={"groups": "3"})


def test_command_and_python_agree(tmp_path, capsys):
    from orrery.cli.main import run

    out = tmp_path / "curves.svg"
    words = ["--set", "groups=2", "--set", "hidden=8,8", "--steps", "24", "--seeds", "2", "--out", str(out), "--json"]
    assert run(["experiment", "layerwise-update", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    same = run_experiment("layerwise-update", steps=24, seeds=2, sizes=("groups=2", "hidden=8,8")).to_json()
    assert found == json.loads(json.dumps(same))
    assert out.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("layerwise-update", {"sizes": ("depth=3",)}, "has no 'depth'"),
        ("layerwise-update", {"sizes": ("groups=two",)}, "write a whole number"),
        ("layerwise-update", {"sizes": ("groups=9",)}, "write 1 to 6"),
        ("layerwise-update", {"sizes": ("groups",)}, "write NAME=VALUE"),
        ("layerwise-update", {"device": "l4"}, "reads none"),
        ("fp4-recipes", {"sizes": ("hidden=3",)}, "has fixed sizes"),
        ("federated", {"sizes": ("speeds=1",)}, "two clients or more"),
        ("compressed-saddle", {"sizes": ("down=half",)}, "compressed or whole"),
        ("compressed-saddle", {"sizes": ("keep=2",)}, "comma-separated numbers"),
        ("layerwise-update", {"seeds": 0}, "write 1 to 100"),
        ("dfp", {"sizes": ("bits=17",)}, "from 2 to 16"),
        ("dfp", {"sizes": ("points=0",)}, "write 1 to"),
        ("local-updates", {"sizes": ("local_steps=3",)}, "write 1 to 2|from 1 to 2"),
        ("local-updates", {"sizes": ("local_steps=1", "momentum_ratio=1")}, "momentum in"),
        ("decentralized-experts", {"sizes": ("clusters=far",)}, "write near or dealt"),
        ("decentralized-experts", {"sizes": ("experts=17",)}, "from 1 to 16|write 1 to 16"),
    ],
)
def test_what_makes_no_sense_is_refused(name, more, words):
    with pytest.raises(ScenarioError, match=words):
        run_experiment(name, steps=2, **more)


def test_wrong_data_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 2)), y=np.zeros(4))
    with pytest.raises(ScenarioError, match="16 points or more"):
        run_experiment("mono-forward", steps=2, data=str(tmp_path / "a.npz"))


def test_no_number_is_a_dash():
    from orrery.scenario.show import cell

    assert [cell("mbit", {"mbit": value}) for value in (float("nan"), 0.5, "a", 3)] == ["-", "0.5", "a", "3"]
