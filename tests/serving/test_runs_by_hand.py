"""Runs with an end on a machine whose steps take round times: waves, fills and drains, worked out by hand."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.serving import drafted as drafting
from orrery.serving import ragged, runs
from orrery.serving.drafted import Drafted, drafted, in_steps
from orrery.serving.ragged import Rounds, padded, pooled, realigned
from orrery.serving.saturation import notes_near, waiting_notes
from orrery.serving.workload import Workload


@dataclass(frozen=True)
class Memory:
    """Room for ``room`` sequences in batches of at most ``max_num_seqs``, with so many tokens a step."""

    room: float = 100.0
    max_num_seqs: int = 8
    max_num_batched_tokens: int = 1000

    def sequences(self, tokens: float) -> float:
        """As many of any length."""
        return self.room


def deployment(pp: int = 1):
    return SimpleNamespace(layout=SimpleNamespace(pp=pp), engine=SimpleNamespace(pass_tokens=0))


@pytest.fixture
def priced(monkeypatch):
    """A decode step takes 2 s and a thousandth a token of context; a prompt step 10 s a prompt, 5 s a stage."""
    asked = []

    def tick(deployment, batch):
        asked.append(batch)
        prompts = np.asarray(batch.prompt_sequences, float)
        time_s = np.where(prompts > 0, 10 * prompts, 2 + 0.001 * np.asarray(batch.decode_context_tokens, float))
        return SimpleNamespace(time_s=time_s, stage_s=np.where(prompts > 0, 5 * prompts, time_s))

    monkeypatch.setattr(runs, "tick", tick)
    return asked


def test_one_wave_reads_its_prompts_and_decodes(priced):
    """4 prompts of 250 fill a step of 1000 tokens: 40 s. 20 steps at a mean context of 261: 2.261 s each."""
    run = runs.static_run(deployment(), Memory(), 4, 250, 21)
    assert run.batch == 4
    assert run.tpot_s == pytest.approx((run.latency_s - run.ttft_s) / 20)
    assert run.latency_s == pytest.approx(40 + 20 * 2.261, rel=1e-4)
    assert run.ttft_s == pytest.approx(40)
    assert run.prompt_share == pytest.approx(40 / run.latency_s)
    assert priced[0].decode_sequences.tolist() == [4, 4, 4, 0]
    assert priced[0].prompt_tokens.tolist() == [0, 0, 0, 250]


def test_prompts_beyond_the_budget_come_step_after_step(priced):
    """8 prompts of 400, two a step: four steps, of which the first takes 20 s and the others a stage's 10 s. The mean
    request hears after the mean of the first and the last one: (50 + 12.5) / 2."""
    run = runs.static_run(deployment(), Memory(), 8, 400, 11)
    prefill_s = 20 + 3 * 10
    assert run.ttft_s == pytest.approx((prefill_s + prefill_s / 4) / 2)
    assert run.latency_s == pytest.approx(prefill_s + 10 * (2 + 0.001 * (400 + 1 + 5)), rel=1e-4)


def test_a_prompt_longer_than_a_step_takes_several(priced):
    """2500 tokens in steps of 1000 are 2.5 steps; the first 10 s, 1.5 further stages of 5 s."""
    run = runs.static_run(deployment(), Memory(), 1, 2500, 11)
    assert run.ttft_s == pytest.approx((17.5 + 17.5 / 2.5) / 2)
    assert priced[0].prompt_tokens.tolist() == [0, 0, 0, 1000]
    assert priced[0].prompt_context_tokens.tolist() == [0, 0, 0, 1750]


def test_batches_of_a_pipeline_share_its_stages(priced):
    runs.static_run(deployment(pp=2), Memory(), 8, 100, 11)
    assert priced[0].decode_sequences.tolist() == [4, 4, 4, 0]
    assert priced[0].prompt_sequences.tolist() == [0, 0, 0, 4]


def test_waves_follow_each_other(priced):
    """20 requests in batches of 8: two full waves and one of 4. The second waits one wave, the last one two."""
    run = runs.static_run(deployment(), Memory(), 20, 100, 11)
    full = runs.static_run(deployment(), Memory(), 8, 100, 11)
    rest = runs.static_run(deployment(), Memory(), 4, 100, 11)
    assert run.batch == 8
    assert run.latency_s == pytest.approx(2 * full.latency_s + rest.latency_s)
    waited = (8 * 1 + 4 * 2) * full.latency_s / 20
    assert run.ttft_s == pytest.approx(full.ttft_s + waited)


def test_the_cache_bounds_a_wave_in_whole_sequences(priced):
    assert runs.static_run(deployment(), Memory(room=3.7), 8, 100, 11).batch == 3
    assert runs.static_run(deployment(), Memory(room=0.2), 8, 100, 11).batch == 1


def test_answers_of_a_token_end_with_the_batch_and_without_prompts_all_is_decoding(priced):
    one = runs.static_run(deployment(), Memory(), 4, 250, 1)
    assert one.ttft_s == one.latency_s == pytest.approx(40)
    bare = runs.static_run(deployment(), Memory(), 4, 0, 11)
    step_s = 2 + 0.001 * 6
    assert bare.latency_s == pytest.approx(11 * step_s, rel=1e-4)
    assert bare.ttft_s == pytest.approx(step_s, rel=1e-4)
    assert bare.prompt_share == 0


@pytest.mark.parametrize(
    ("requests", "full", "rest", "has_rest"), [(20, 2, 4.0, True), (16, 2, 1.0, False), (5, 1, 1.0, False)]
)
def test_all_at_once_is_full_batches_a_rest_and_a_drain(monkeypatch, requests, full, rest, has_rest):
    """A cycle of a full batch takes 80 s and one of the rest 10 s a request; prompts fill up in 8 / 2 steps, half of
    which the batch drains. A request waits half of what the run takes beyond a cycle."""
    batch = min(8, requests)

    def steady(deployment, memory, input_tokens, output_tokens, sizes):
        assert sizes.tolist() == pytest.approx([rest, batch])
        return SimpleNamespace(
            requests_per_s=np.array([0.1, batch / 80.0]),
            full_prompts=np.array([9.0, 2.0]),
            decode_s=np.array([7.0, 3.0]),
            behind_s=np.array([0.0, 4.0]),
            prefill_s=np.array([0.0, 6.0]),
            decoding=np.array([0.0, 7.5]),
            tpot_s=np.array([0.0, 1.5]),
        )

    monkeypatch.setattr(runs, "steady", steady)
    monkeypatch.setattr(runs, "batch_limit", lambda *_: 8.0)
    run = runs.offline_run(deployment(), Memory(), requests, 100, 50)
    drain_s = 0.5 * batch / 2 * 3
    latency_s = full * 80 + (rest * 10 if has_rest else 0) + drain_s
    assert run.latency_s == pytest.approx(latency_s)
    assert run.ttft_s == pytest.approx((latency_s - 80) / 2 + 10)
    assert (run.batch, run.tpot_s) == (7.5, 1.5)
    short = runs.offline_run(deployment(), Memory(), requests, 100, 2)
    assert short.latency_s == pytest.approx(latency_s - drain_s + 0.5 * 3)


# --- drafted answers


def test_an_answer_takes_a_step_for_the_first_token_and_then_what_a_step_yields(monkeypatch):
    """101 tokens at 2.5 a step are 41 steps; the mean context is 30 ahead of what the steps say, and room for sequences
    of 120.5 mean tokens stands for those of 150.5."""

    @dataclass(frozen=True)
    class Head:
        ahead_tokens: float = 0.0

        @property
        def tokens_per_step(self) -> float:
            return 2.5

    @dataclass(frozen=True)
    class Deployment:
        draft_head: Head | None = None

    @dataclass(frozen=True)
    class Cached:
        kv_capacity_bytes: float = 1000.0
        token_bytes: float = 10.0

        def taken_bytes(self, tokens):
            return self.token_bytes * tokens

    monkeypatch.setattr(drafting, "room_for_kept", lambda deployment, memory, *_: (deployment, memory))
    found = drafted(Deployment(Head()), Cached(), 100, 101)
    assert (found.output_steps, found.tokens_per_step) == (41, 2.5)
    assert found.deployment.draft_head.ahead_tokens == 30
    assert found.memory.kv_capacity_bytes == pytest.approx(1000 * 120.5 / 150.5)
    none = drafted(Deployment(), Cached(), 100, 101)
    assert (none.output_steps, none.tokens_per_step, none.memory.kv_capacity_bytes) == (101, 1, 1000)
    assert drafted(Deployment(Head()), Cached(), 100, 1).output_steps == 1
    assert drafted(Deployment(Head()), Cached(), 100, 2).output_steps == 1.4
    free = Cached(token_bytes=0.0)
    assert drafted(Deployment(Head()), free, 100, 101).memory.kv_capacity_bytes == 1000


def test_a_workload_in_steps():
    workload = Workload(mode="closed", input_tokens=100, output_tokens=101, output_tokens_std=25.0)
    drafted = Drafted(deployment=None, memory=None, output_steps=41.0, tokens_per_step=2.5)
    assert (in_steps(drafted, workload).output_tokens, in_steps(drafted, workload).output_tokens_std) == (41, 10)
    plain = Drafted(deployment=None, memory=None, output_steps=101.0)
    assert in_steps(plain, workload) is workload


# --- ragged rounds

ROUNDS = Rounds(
    draft_s=lambda n, length: 1.0 * n,
    check_s=lambda n, length: 0.01 * length,
    shift_s=lambda n, length: 100.0 * n,
    stack_s=lambda n, length: 7.0,
    prompt_s=lambda n, length: 1000.0 * n + length,
    draft_tokens=2,
    acceptance_frac=0.5,
    output_tokens=6,
)


@pytest.fixture
def taken(monkeypatch):
    """Tokens that sequences take in their rounds: 0 takes 3 and 3, 1 takes 1, 2 and 3, 2 takes 2, 1 and 3."""

    class Draws:
        def __init__(self, rounds, seed):
            self.left = {0: [3, 3], 1: [1, 2, 3], 2: [2, 1, 3]}

        def next(self, sequence):
            return self.left[sequence].pop(0)

    monkeypatch.setattr(ragged, "_Draws", Draws)


def test_realigned_by_hand(taken):
    """Prompts of 10 and 12, read in 2012 s and padded to 12. Round 1: both draft (2 s), check 12, and advance by 3 and
    1: shifted to 13. Round 2: by 3 and 2; the first is done, so one length is left: no shift, and the longer has 16.
    Round 3: one drafts, both are checked."""
    run = realigned(ROUNDS, np.array([10, 12]), 2)
    assert run.prompt_s == 2012
    assert [r.length for r in run.rounds] == [12, 13, 16]
    assert [r.taken for r in run.rounds] == [(3, 1), (3, 2), (0, 3)]
    assert run.draft_s == 2 + 2 + 1
    assert run.check_s == pytest.approx(0.12 + 0.13 + 0.16)
    assert (run.align_s, run.num_shifts, run.num_rounds, run.num_tokens) == (200, 1, 3, 12)
    assert run.align_overhead_frac == 200 / 205
    assert run.tokens_per_s == pytest.approx(12 / (2012 + 5 + 0.41 + 200))
    assert run.starts_s == {0: 0, 1: 0}
    assert run.firsts_s == {0: 2012, 1: 2012}
    assert (run.rounds[0].start_s, run.rounds[0].end_s) == (2012, pytest.approx(2014.12))


def test_padded_by_hand(taken):
    """The tensor grows by all three columns after round 1, by what the one that is left took after round 2."""
    run = padded(ROUNDS, np.array([10, 12]), 2)
    assert [r.length for r in run.rounds] == [12, 15, 17]
    assert (run.align_s, run.num_shifts, run.num_tokens) == (0, 0, 12)


def test_batches_follow_in_their_order(taken):
    run = realigned(ROUNDS, np.array([10, 12, 5]), 2)
    assert [r.members for r in run.rounds] == [(0, 1)] * 3 + [(2,)] * 3
    assert run.prompt_s == 2012 + 1005
    assert run.firsts_s[2] - run.starts_s[2] == pytest.approx(1005)


def test_pools_take_groups_of_one_length(taken):
    """Prompts 5, 10 and 12 of answers 2, 1 and 0: the shortest first; the one without an answer is only read."""
    run = pooled(ROUNDS, np.array([10, 12, 5]), 1, 2, outputs=np.array([3, 0, 2]))
    assert run.firsts_s[1] == run.prompt_s - 1010 - 1005 == 1012
    assert [r.members for r in run.rounds] == [(2,), (0,)]
    assert [r.taken for r in run.rounds] == [(2,), (3,)]
    assert (run.num_grouped, run.num_shifts) == (2, 0)


# --- notes


def test_rates_near_the_highest_are_told():
    assert notes_near(8.99, 10.0) == ()
    assert notes_near(5.0, 0.0) == ()
    assert "at 90 % of the highest sustainable rate (10 requests/s): 11.1 % more" in notes_near(9.0, 10.0)[0]
    assert "25.0 % beyond the highest" in notes_near(12.5, 10.0)[0]
    assert "0.0 % beyond the highest" in notes_near(10.0, 10.0)[0]


def test_requests_that_wait_for_a_slot_are_told():
    def told(concurrency, slots, replicas=1):
        state = SimpleNamespace(concurrency=np.array([1.0, concurrency]), slots=np.array([1.0, slots]))
        return waiting_notes(Memory(), state, replicas)

    assert told(8.9, 8.0) == ()
    assert told(8.5, 8.0, 3)[0].startswith("about 2 of 26 requests in flight")
    assert "max_num_seqs = 8 admits about 8 at a time" in told(10.0, 8.0)[0]
    assert "the cache holds about 5 at a time on each replica" in told(10.0, 5.0, 2)[0]
    assert "about 10 of 20 requests" in told(10.0, 5.0, 2)[0]
