"""How a user says where tokens go, and that it matters."""

import json
from pathlib import Path

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.execution.batch import Batch
from orrery.execution.step import step
from orrery.kernels.ops import Popularity
from orrery.scenario.expert_loads import expert_loads
from orrery.scenario.resolve import held_format, resolve
from orrery.scenario.schema import Scenario

MODEL = get_model("qwen3-30b-a3b")


def test_words_are_laws():
    assert expert_loads(None, MODEL) is None
    assert expert_loads("balanced", MODEL) == Popularity(is_dealt=True)
    assert expert_loads("Zipf:0.8", MODEL) == Popularity(exponent=0.8)


@pytest.mark.parametrize("form", ["lines", "commas", "json"])
def test_a_file_is_shares(tmp_path: Path, form: str):
    loads = [3.0] + [1.0] * 127
    text = {"lines": "\n".join, "commas": ",".join, "json": None}[form]
    path = tmp_path / "loads"
    path.write_text(json.dumps(loads) if text is None else text(map(str, loads)))
    found = expert_loads(str(path), MODEL)
    assert found is not None
    assert found.shares[0] == pytest.approx(3 / 130)
    assert sum(found.shares) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("zipf:x", "write zipf:S with S from 0 to 4"),
        ("zipf:9", "write zipf:S"),
        ("even", "write balanced, zipf:S"),
    ],
)
def test_words_that_mean_nothing_are_refused_with_what_to_write(word: str, says: str):
    with pytest.raises(ScenarioError, match=says):
        expert_loads(word, MODEL)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,2,3", "3 shares, but .* has 128 experts"),
        ("a,b", "no list of numbers"),
        ("1,-1", "none below 0"),
        ("0,0", "not all of them 0"),
        ("[1, null]", "no list of numbers"),
        ("nan,1", "finite"),
        ("", "finite"),
    ],
)
def test_files_that_mean_nothing_are_refused_with_what_to_write(tmp_path: Path, text: str, says: str):
    path = tmp_path / "loads.csv"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=says):
        expert_loads(str(path), MODEL)


def test_a_model_without_experts_refuses_them():
    with pytest.raises(ScenarioError, match="has no experts; leave expert_loads out"):
        expert_loads("balanced", get_model("llama-3.1-8b"))


ASKED = {"model": "qwen3-30b-a3b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 128, "concurrency": 16}


def test_loads_that_gather_on_few_experts_are_read_faster():
    """Fewer experts hit, fewer weights read: a decode step of 16 is shorter the steeper the law."""
    times = [
        orrery.estimate(**ASKED, expert_loads=w).estimate.tpot_s for w in ("balanced", "zipf:0", "zipf:1", "zipf:2")
    ]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("device", ["h100-sxm", "b200"])
def test_throughput_never_falls_as_the_batch_grows(device: str):
    """Tokens a second of one decode step, batches of 1 to 256. Experts never take more than in proportion; of the whole
    step waves of attention may take back a percent."""
    deployment = resolve(Scenario(**(ASKED | {"device": device}))).deployment
    n = np.arange(1, 257)
    zero = np.zeros_like(n)
    batch = Batch(
        prompt_sequences=zero,
        prompt_tokens=zero,
        prompt_context_tokens=zero,
        decode_sequences=n,
        decode_context_tokens=np.full_like(n, 1024),
    )
    found = step(deployment, batch)
    experts = next(n / p.time_s for p in found.parts if p.name == "experts")
    assert (experts[1:] >= experts[:-1]).all()
    rate = n / found.time_s
    assert (rate[1:] >= 0.99 * rate[:-1]).all()


def test_fp8_of_a_checkpoint_in_blocks_is_its_own():
    """A table that says fp8 of MiniMax-M2.5, whose checkpoint is FP8 in blocks of 128, means the checkpoint."""
    assert held_format("fp8", get_model("MiniMaxAI/MiniMax-M2.5")) == "fp8_block"
    assert held_format("fp8", MODEL) == "fp8"
    assert held_format("nvfp4", get_model("MiniMaxAI/MiniMax-M2.5")) == "nvfp4"
