"""How the pieces of a replica's steady state are put together: each is a round number here."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.serving import steady as steadying
from orrery.serving.mix import Mix
from orrery.serving.steady import _Costs, _costs, _tick_nodes, _together_s, _unseen_s, steady


def one(*values):
    return np.array([float(v) for v in values])


def mix(**given):
    usual = {"decoding": 4.0, "prompts": 0.5, "load": 0.4, "waiting": 0.0, "own_steps": 1.0, "wait_steps": 2.0}
    usual |= {"room_tokens": 1000.0, "dense": 1.0} | {k: v for k, v in given.items() if k not in ("chunks", "shares")}
    values = {k: one(v) for k, v in usual.items()}
    chunks, shares = given.get("chunks", (100.0, 300.0)), given.get("shares", (0.3, 0.1))
    return Mix(**values, chunks=np.array(chunks).reshape(2, 1), shares=np.array(shares).reshape(2, 1))


COSTS = _Costs(
    decode_s=one(2.0),
    chunk_s=np.array([[3.0], [5.0]]),
    together_s=np.zeros((2, 1)),
    full_s=one(10.0),
    full_prompts=one(4.0),
    node_tokens=np.zeros((3, 1)),
    node_s=np.zeros((3, 1)),
    node_together_s=np.zeros((3, 1)),
)


@dataclass
class Memory:
    max_num_batched_tokens: int = 1000


def deployment(*, mixes=True, pp=1, graphs=True, dp=1):
    engine = SimpleNamespace(has_mixed_steps=mixes, entry_s=lambda tokens: tokens / 100, has_cuda_graphs=graphs)
    return SimpleNamespace(engine=engine, layout=SimpleNamespace(pp=pp, dp=dp, shares_experts=dp > 1))


@pytest.fixture
def pieces(monkeypatch):
    """A limit of 8 slots; half of the prompts are computed twice; the front end takes 12 s with the rest of a step; a
    mean step takes 3 s, a prompt's own ones 40 s, and those behind others 7 s."""
    asked = {}

    def settled(name):
        def settle(slots, prompt, steps, budget, away, spread, rounds, own_frac=None, gathered=None, interval=None):
            call = [slots, prompt, steps, budget, away, spread, rounds, own_frac, gathered, interval]
            asked.setdefault(name, []).append([None if x is None else float(np.ravel(x)[0]) for x in call])
            return mix(**asked.get("mix", {}))

        return settle

    def use(name, value):
        def piece(*args, **named):
            asked.setdefault(name, []).append(args)
            return value

        monkeypatch.setattr(steadying, name, piece)

    for name, value in (
        ("batch_limit", 8.0),
        ("_preempted", one(0.5)),
        ("looks_every", 1.0),
        ("_tick_nodes", "ticks"),
        ("_costs", COSTS),
        ("_at_chunks", COSTS),
        ("_mean_s", one(3.0)),
        ("_own_s", (one(40.0), one(7.0))),
        ("_away_s", one(12.0)),
        ("_unseen_s", one(15.0)),
        ("_gathered", one(6.0)),
    ):
        use(name, value)
    monkeypatch.setattr(steadying, "mixed", settled("mixed"))
    monkeypatch.setattr(steadying, "apart", settled("apart"))
    asked["use"] = use
    return asked


def test_six_slots_of_mixed_steps(pieces):
    """A prompt of 100 is computed one and a half times; 9 tokens follow the first. Away are 12 s or 4 steps; a life has
    9 + 1 own, 2 waiting and 4 away steps. Own steps see 40 + 7 s, and 4 times the 1 s that a mean step has more than a
    decode, less 3 decodes: 45 s. Of a life's 12 steps of 1 s more 12 - 45 < 0 are left: a token is a decode."""
    found = steady(deployment(), Memory(), 100.0, 10.0, one(6.0), 5.0, 0.2)
    first, then = pieces["mixed"]
    assert first == [6.0, 150.0, 9.0, 1000.0, 1.0, 0.2, 5.0, None, None, None]
    assert then == [6.0, 150.0, 9.0, 1000.0, 4.0, 0.2, 5.0, pytest.approx(10 / 16), 6.0, None]
    assert (found.slots[0], found.tpot_s[0], found.behind_s[0], found.prefill_s[0]) == (6.0, 2.0, 7.0, 40.0)
    cycle = 40.0 + 7.0 + 9 * 2.0
    assert found.requests_per_s[0] == pytest.approx(6 / (cycle + 12.0))
    assert (found.queue_s[0], found.away_s[0]) == (pytest.approx(0.0, abs=1e-9), 12.0)
    assert (found.decoding[0], found.full_prompts[0], found.load[0], found.ticks) == (4.0, 4.0, 0.4, "ticks")
    assert (found.decode_entry, found.prompt_entry) == (1, 3)
    assert found.mixed_share[0] == pytest.approx(1 - 0.6 * 2 / 3)


def test_what_is_left_of_a_life_is_its_tokens(pieces):
    """Of 12 steps of 1 s more a request sees 3 + 1 + 4 / 2 - 3 x 2 in its own, with prompts twice as dense; where
    nothing is seen, 12 s go to 9 tokens."""
    pieces["use"]("_own_s", (one(7.0), one(1.0)))
    pieces["mix"] = {"dense": 2.0}
    found = steady(deployment(), Memory(), 100.0, 10.0, one(6.0))
    seen = 8.0 + 4 * 1.0 / 2.0 - 3 * 2.0
    assert found.tpot_s[0] == pytest.approx(2.0 + (12.0 - seen) / 9)


def test_requests_beyond_the_slots_wait(pieces):
    """Two of ten wait: at half a prompt a step they hide 4 steps of the front end, so that no slot is away; a slot is
    free for 0 s of 12, and Little's law gives what the two wait."""
    found = steady(deployment(), Memory(), 100.0, 10.0, one(10.0))
    assert pieces["mixed"][1][4] == 0.0
    assert pieces["mixed"][1][7] == pytest.approx(10 / 12)
    seen = 47.0 - 6.0
    tpot = 2.0 + max(8 / 0.5 - seen, 0) / 9
    cycle = 47.0 + 9 * tpot
    assert found.slots[0] == 8.0
    assert found.queue_s[0] == pytest.approx(10 * cycle / 8 - cycle - 12.0)
    assert found.requests_per_s[0] == pytest.approx(8 / cycle)
    assert pieces["_preempted"][0][2:5] == (8.0, 100.0, 9.0)
    assert pieces["_preempted"][0][5].tolist() == [2.0]


def test_half_a_slot_waits(pieces):
    """Half a request waits, which hides one of 4 steps: 3 steps of 3 s show."""
    found = steady(deployment(), Memory(), 100.0, 10.0, one(8.5))
    assert pieces["mixed"][1][4] == pytest.approx(3.0)
    seen = 47.0 + 3.0 - 6.0
    cycle = 47.0 + 9 * (2.0 + max(8 / 0.5 - seen, 0) / 9)
    rate = 8 / (cycle + 9.0)
    assert found.queue_s[0] == pytest.approx(8.5 / rate - cycle - 12.0)


def test_prompts_in_steps_of_their_own(pieces):
    """The first of those that are gathered is computed before the others decode: half a decode of 2 s for each of them
    that comes in its look, 6 x 1 x 0.5 / 6 of them."""
    found = steady(deployment(mixes=False), Memory(), 100.0, 10.0, one(6.0))
    assert pieces["apart"][0][9] == 1.0
    assert pieces["apart"][1][8] == 6.0
    assert found.prefill_s[0] == pytest.approx(40.0 - 0.5 * 2.0 / 2)
    seen = 47.0 + 4.0 * 1.0
    assert found.tpot_s[0] == pytest.approx(2.0 + max(12.0 - seen, 0.0) / 9)
    assert found.away_s[0] == 12.0
    pieces["mix"] = {"prompts": 12.0}
    assert steady(deployment(mixes=False), Memory(), 100.0, 10.0, one(6.0)).prefill_s[0] == pytest.approx(40.0 - 6.0)


def test_a_scheduler_that_looks_seldom(pieces):
    pieces["use"]("looks_every", 4.0)
    found = steady(deployment(mixes=False), Memory(), 100.0, 10.0, one(6.0))
    assert found.away_s[0] == 15.0
    assert pieces["_unseen_s"][0][-1] == 4.0
    assert pieces["apart"][0][9] == 4.0


def test_a_pipeline_divides_slots_among_its_batches(pieces):
    found = steady(deployment(pp=4), Memory(), 100.0, 10.0, one(6.0))
    assert pieces["mixed"][0][0] == 1.5
    assert (found.decoding[0], found.full_prompts[0]) == (16.0, 16.0)
    steady(deployment(pp=4), Memory(), 100.0, 10.0, one(2.0))
    assert pieces["mixed"][2][0] == 1.0
    steady(deployment(pp=4), Memory(), 100.0, 10.0, one(10.0))
    assert pieces["mixed"][5][4] == pytest.approx(4.0 - 2 / 4 / 0.5)


def test_answers_of_a_token_and_no_prompt(pieces):
    found = steady(deployment(), Memory(), 0.0, 1.0, one(6.0))
    assert pieces["mixed"][0][1:3] == [1.5, 0.0]
    assert found.tpot_s[0] == pytest.approx(2.0 + max(12.0 - 45.0, 0.0))


# --- costs


def test_decodes_between_two_whole_numbers(monkeypatch):
    """4.25 decodes: three quarters of the step of 4 and a quarter of that of 5; below one, that of one."""
    times = one(2.0, 3.0, 4.0, 6.0, 20.0)
    monkeypatch.setattr(steadying, "_passes_s", lambda deployment, ticks: times)
    monkeypatch.setattr(steadying, "_together_s", lambda *_: one(0.5, 1.0, 2.0, 3.0, 4.0).reshape(5, 1))
    kept = {}

    def keep(costs, mix):
        kept["costs"] = costs
        return costs

    monkeypatch.setattr(steadying, "_at_chunks", keep)
    found = _costs(deployment(), None, mix(decoding=4.25), one(8.0), one(100.0))
    assert found.decode_s[0] == pytest.approx(2.25)
    assert found.chunk_s.ravel().tolist() == [4.0, 6.0]
    assert found.together_s.ravel().tolist() == [2.0, 3.0]
    assert (found.full_s[0], found.full_prompts[0]) == (20.0, 10.0)
    assert found.node_s.ravel().tolist() == [4.0, 6.0, 20.0]
    assert found.node_together_s.ravel().tolist() == [1.0, 2.0, 3.0]
    assert found.node_tokens.ravel().tolist() == [100.0, 300.0, 800.0]
    for decoding in (0.25, 5.0, 1.0):
        few = _costs(deployment(), None, mix(decoding=decoding), one(8.0), one(100.0))
        assert few.decode_s[0] == (3.0 if decoding < 1 else 2.0)


def test_steps_that_are_costed(monkeypatch):
    """4.25 decodes: 4 and 5 of them (padded to 4 and 8), 4.25 beside chunks of 100 and 250 tokens, 2.125 beside eight
    prompts of 100. The context of padding is read by those that there are; a chunk ends half way on average."""
    asked = []

    def steps(*sizes):
        asked.append([np.asarray(x).tolist() for x in sizes])

    monkeypatch.setattr(steadying, "steps_of", steps)
    monkeypatch.setattr(steadying, "tick", lambda deployment, batch: None)
    monkeypatch.setattr(steadying, "captured", lambda sizes: np.where(sizes > 4, 8, sizes))
    chosen = mix(decoding=4.25, chunks=(100.0, 250.0))
    _tick_nodes(deployment(), chosen, one(8.0), one(100.0), 640.0)
    prompts, tokens, ends, decodes, contexts = asked[0]
    assert prompts == [0, 0, 1, 3, 8]
    assert tokens == [0, 0, 100, pytest.approx(250 / 3), 100]
    assert ends == [50, 50, 100, pytest.approx((100 + 250 / 3) / 2), 100]
    assert decodes == [4, 8, 4.25, 4.25, 2.125]
    assert contexts == [640, 400, 640, 640, 640]
    _tick_nodes(deployment(mixes=False, graphs=False), chosen, one(8.0), one(100.0), 640.0)
    assert asked[1][3] == [4, 5, 0, 0, 0]
    assert asked[1][4] == [640] * 5
    _tick_nodes(deployment(graphs=False), replace(chosen, decoding=one(0.25)), one(8.0), one(100.0), 640.0)
    assert asked[2][3][:2] == [1, 1]


def test_what_ranks_do_together():
    parts = [
        SimpleNamespace(name=n, time_s=one(1, 2, 3, 4, 5)) for n in ("experts", "dispatch", "combine", "attention")
    ]
    ticks = SimpleNamespace(done=SimpleNamespace(parts=parts))
    shared = SimpleNamespace(layout=SimpleNamespace(shares_experts=True))
    found = _together_s(shared, ticks, 1)
    assert found.ravel().tolist() == [3, 6, 9, 12, 15]
    assert _together_s(deployment(), ticks, 1).ravel().tolist() == [0, 0, 0, 0, 0]


def test_looks_beyond_sixty_four_steps_are_averaged():
    """Every 128 decodes of 2 s: 64 points, the first 0.5 and the last 126.5 decodes before the next look. A front end
    of no time is in time for all but none."""
    quiet = mix(shares=(0.0, 0.0))
    found = _unseen_s(0.0, one(2.0), one(2.0), quiet, one(1e6), 128.0)
    assert found[0] == pytest.approx(2.0 * (0.5 + 126.5) / 2)
    three = _unseen_s(0.0, one(2.0), one(2.0), quiet, one(1e6), 3.0)
    # 0, 1 or 2 decodes to come: those that find none come after three more
    assert three[0] == pytest.approx((3 * 2.0 + 2.0 + 4.0) / 3)
