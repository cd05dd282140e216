"""Sequences of a batch, and the parts, operations and memory of a step that is made of them, worked out by hand."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.schema import read_scenario
from orrery.scenario.train_with import sequences as page
from orrery.training.sequences.step import StepTime


def batch(tmp_path, text, most_tokens, num_tokens):
    path = tmp_path / "lengths.csv"
    path.write_text(text)
    return page.lengths_of(read_scenario({"seq_lengths": str(path)}), most_tokens, num_tokens).tolist()


@pytest.mark.parametrize(
    ("num_tokens", "lengths"),
    [
        (10, [3, 5, 2]),
        (8, [3, 5]),
        (7, [3, 4]),  # the last one is cut
        (12, [3, 5, 2, 2]),  # and again from the start
        (23, [3, 5, 2, 3, 5, 2, 3]),
        (1, [1]),
    ],
)
def test_a_batch_is_the_file_s_lengths_in_order(tmp_path, num_tokens, lengths):
    assert batch(tmp_path, "3\n5\n2\n", 5, num_tokens) == lengths


@pytest.mark.parametrize("text", ["3\n6\n", "3\n4.5\n"])
def test_lengths_are_whole_and_no_longer_than_the_longest(tmp_path, text):
    with pytest.raises(ScenarioError, match="seq_len is 5"):
        batch(tmp_path, text, 5, 10)


def test_lengths_that_are_drawn_need_both_numbers():
    for text in ("lognormal:8", "lognormal:8:x"):
        with pytest.raises(ScenarioError, match="seq_lengths: got"):
            page.lengths_of(read_scenario({"seq_lengths": text}), 16, 64)
    assert int(page.lengths_of(read_scenario({"seq_lengths": "lognormal:8:1"}), 16, 64).sum()) == 64


@dataclass
class Job:
    seq_len: int
    global_batch: int = 2
    model: object = None
    cluster: object = field(default_factory=lambda: SimpleNamespace(num_devices=4))

    @property
    def tokens_per_step(self):
        return self.seq_len * self.global_batch


@dataclass
class Steps:
    model_flops: np.ndarray
    hardware_flops: np.ndarray


@dataclass
class Rank:
    parts: dict


@dataclass
class Changed:
    """A step of two sequences of eight tokens: 10 operations a token, and 3 more for each token of its sequence."""

    job: Job
    steps: Steps
    ranks: tuple
    parts: dict
    layout: object = None

    def with_parts(self, parts):
        return Changed(self.job, self.steps, self.ranks, parts)


def flops(job):
    return job.tokens_per_step * (10.0 + 3.0 * job.seq_len)


def changed(seq_len=8):
    job = Job(seq_len)
    parts = dict.fromkeys(("forward", "backward", "gradient reduction", "context parallel", "update", page.IDLE), 9.0)
    held = dict.fromkeys(("weights", "gradients", "optimizer", "activations", "other"), 9.0)
    return Changed(job, Steps(np.array([flops(job)]), np.array([0.0])), (Rank(held),), parts)


@pytest.fixture
def halves(monkeypatch):
    monkeypatch.setattr(page, "columns_of", lambda layouts: None)
    monkeypatch.setattr(page, "step_of", lambda job, columns: SimpleNamespace(model_flops=np.array([flops(job)])))


@pytest.mark.parametrize("lengths", [[8, 8], [4, 4, 4, 4], [8, 4, 2, 2], [1] * 16])
def test_attention_grows_with_the_squares_of_lengths(halves, lengths):
    """Sixteen tokens at 10 each, and 3 times every square."""
    expected = 160 + 3 * sum(n * n for n in lengths)
    assert page._model_flops(changed(), np.array(lengths)) == pytest.approx(expected)


def test_sequences_of_one_token_have_no_halves():
    assert page._model_flops(changed(seq_len=1), np.array([1, 1])) == 26.0


def test_parts_operations_and_memory_of_a_step(halves, monkeypatch):
    """Backward passes take twice the products and two and a half times the attention of forward ones."""
    assert (page.PRODUCTS_BACKWARD_RATIO, page.STATE_BYTES) == (2.0, 16.0)
    ahead = 6.0 / 3.0 + 7.0 / (1.0 + page.ATTENTION_BACKWARD_RATIO)
    step = StepTime(products_s=6.0, attention_s=7.0, ring_s=0.5, idle_s=0.25, sync_s=0.125, most_degree=2, num_pieces=3)
    trainer = SimpleNamespace(
        model=SimpleNamespace(num_parameters=100), num_devices=4, kept_bytes=50.0, token_bytes=7.0
    )
    found = page._priced(changed(), trainer, np.array([8, 4, 4]), step)
    assert found.parts["forward"] == pytest.approx(ahead)
    assert found.parts["backward"] == pytest.approx(13.0 - ahead)
    assert (found.parts["context parallel"], found.parts["gradient reduction"]) == (0.5, 0.125)
    assert (found.parts[page.IDLE], found.parts["update"]) == (0.25, 0.0)
    assert sum(found.parts.values()) == pytest.approx(step.time_s)
    total = 160 + 3 * (64 + 16 + 16)
    assert found.steps.model_flops.tolist() == pytest.approx([total])
    assert found.steps.hardware_flops.tolist() == pytest.approx([total / 4])
    # 400 bytes of states on each device: weights and gradients in 2 bytes, both moments and a copy in 12
    assert found.ranks[0].parts == {
        "weights": 50.0,
        "gradients": 50.0,
        "optimizer": 300.0,
        "activations": 50.0,
        "other": 0.0,
    }
    short = page._priced(changed(), trainer, np.array([4, 4, 4, 4]), step)
    assert short.ranks[0].parts["activations"] == 28.0


def timed(seconds):
    return StepTime(
        products_s=seconds, attention_s=0.0, ring_s=0.0, idle_s=0.0, sync_s=0.0, most_degree=1, num_pieces=1
    )


def test_the_fastest_way_is_taken_and_the_last_of_equals(monkeypatch):
    """Degrees alone take 5 s, equal work 4, offload 4 too: speedups over 8 s are 1, 1.6, 2 and 2."""

    def hybrid(trainer, lengths, offloads=True, balances=True):
        return {(False, False): five, (False, True): four, (True, True): same}[offloads, balances]

    five, four, same = timed(5.0), timed(4.0), timed(4.0)
    monkeypatch.setattr(page, "hybrid_step", hybrid)
    found, table = page._balanced(None, None, timed(8.0))
    assert [row["speedup_ratio"] for row in table.rows] == [1.0, 1.6, 2.0, 2.0]
    assert [row["step_s"] for row in table.rows] == [8.0, 5.0, 4.0, 4.0]
    assert found is same
