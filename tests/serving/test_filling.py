"""Fine-tuning beside requests: rates by hand, what requests take from it, and what the command says."""

import json

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.serving import filling, filling_passes
from orrery.serving.filling import Finetuned, alone_tokens_per_s
from orrery.serving.simulation.service import Filling
from orrery.web.runs.served import _finetuning

SERVED = {"model": "llama-3.2-1b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 50, "num_requests": 60}
FILLED = {"fill_tokens": 2048, "fill_until_s": 0.03}


def simulated(**settings):
    return orrery.simulate(**SERVED | settings)


def test_what_is_left_by_hand():
    found = Finetuned(tokens_per_s=300.0, idle_tokens_per_s=100.0, alone_tokens_per_s=500.0)
    assert found.retained_frac == pytest.approx(0.8)
    assert Finetuned(tokens_per_s=0.0, idle_tokens_per_s=0.0, alone_tokens_per_s=0.0).retained_frac is None


def test_alone_by_hand(monkeypatch):
    """A step of l tokens takes l milliseconds, and what its host does not hide: of 16, 32, 48 and 50 tokens a limit of
    40 ms lets 32 through; each token trained passes twice."""
    deployment = simulated(rate=1.0).service.pools[0].deployment
    engine = deployment.engine
    hidden_s = (1.0 - engine.overlap_frac) * engine.step_s
    monkeypatch.setattr(filling, "_step_s", lambda d, tokens: 1e-3 * np.asarray(tokens, dtype=float))
    within = alone_tokens_per_s(deployment, Filling(step_tokens=50, until_s=0.04))
    assert within == pytest.approx(32 / (2 * (0.032 + hidden_s)))
    assert alone_tokens_per_s(deployment, Filling(step_tokens=50)) == pytest.approx(50 / (2 * (0.05 + hidden_s)))
    assert alone_tokens_per_s(deployment, Filling(step_tokens=50, until_s=0.001)) == 0.0


def test_sequences_that_go_back_by_layers_alone_by_hand(monkeypatch):
    """100 tokens in three steps of at most 48 (48 ms each), and 16 layers of 100 / 16 ms back: three in a step of at
    most 20 ms."""
    deployment = simulated(rate=1.0).service.pools[0].deployment
    engine = deployment.engine
    hidden_s = (1.0 - engine.overlap_frac) * engine.step_s
    for module in (filling, filling_passes):
        name = "_step_s" if module is filling else "pass_s"
        monkeypatch.setattr(module, name, lambda d, tokens: 1e-3 * np.asarray(tokens, dtype=float))
    assert deployment.model.num_layers == 16
    ways = {"step_tokens": 48, "sequence_tokens": 100, "backward_layers": 4}
    free = alone_tokens_per_s(deployment, Filling(**ways))
    assert free == pytest.approx(100 / (3 * (0.048 + hidden_s) + 0.1 + 4 * hidden_s))
    within = alone_tokens_per_s(deployment, Filling(**ways, until_s=0.02))
    assert within == pytest.approx(100 / (7 * (0.016 + hidden_s) + 0.1 + 6 * hidden_s))
    assert alone_tokens_per_s(deployment, Filling(**ways | {"sequence_tokens": 1000}, until_s=0.02)) == 0.0


def test_layers_that_go_back_take_steps_of_their_own_and_need_to_be_asked_for():
    by_layers = FILLED | {"fill_backward_layers": 4, "fill_sequence_tokens": 4096}
    few, many = (simulated(rate=rate, **by_layers).finetuned for rate in (0.5, 40.0))
    assert 0.9 < few.retained_frac <= 1.02
    assert 0.0 < many.retained_frac < few.retained_frac
    assert many.tokens_per_s < simulated(rate=40.0, **FILLED).finetuned.tokens_per_s
    for wrong in ({"fill_backward_layers": 1}, {"fill_sequence_tokens": 512}, FILLED | {"fill_sequence_tokens": 512}):
        with pytest.raises(ScenarioError, match=r"fill_(backward_layers|sequence_tokens): "):
            simulated(rate=1.0, **wrong)


def test_requests_take_from_it_and_without_them_all_is_left():
    few, many = (simulated(rate=rate, **FILLED).finetuned for rate in (0.5, 40.0))
    assert 0.9 < few.retained_frac <= 1.02
    assert many.retained_frac < 0.9 * few.retained_frac
    assert many.alone_tokens_per_s == few.alone_tokens_per_s
    twice = simulated(rate=80.0, replicas=2, **FILLED).finetuned
    assert twice.alone_tokens_per_s == 2 * many.alone_tokens_per_s


def test_nothing_is_said_where_nothing_fills():
    assert simulated(rate=4.0).finetuned is None
    assert simulated(rate=4.0).to_json()["finetuning"] is None


def test_the_page_of_a_run_says_it():
    filled, plain = (_finetuning(simulated(rate=9.0, **more).to_json()) for more in (FILLED, {}))
    assert plain == ()
    assert filled[0].note.endswith("without requests")


def test_the_command_says_it(capsys):
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in (SERVED | FILLED | {"rate": 20}).items()]
    assert run(["simulate", *flags]) == 0
    assert "without requests" in capsys.readouterr().out
    assert run(["simulate", *flags, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["finetuning"] == simulated(rate=20, **FILLED).finetuned.to_json()
