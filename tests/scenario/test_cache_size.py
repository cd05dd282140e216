"""``orrery cache-size`` from a file to its answer: three turns of one session, and the prompts of a trace."""

import json

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.cache_size import cache_size

ASK = {"model": "llama-3.2-1b", "device": "h100-sxm", "tp": 2}
TOKEN_BYTES = 16 * 2 * 8 * 64 * 2  # layers, keys and values, heads, features, bytes: both devices together


@pytest.fixture
def sessions(tmp_path):
    """A second turn after 50 s repeats 110 tokens, a third after 150 s more 210."""
    path = tmp_path / "mine.csv"
    path.write_text(
        "session,t_s,input_tokens,output_tokens,shared_prefix_tokens\na,0,100,10,0\na,50,200,10,110\na,200,400,10,210\n"
    )
    return str(path)


def test_three_turns_by_hand(sessions):
    """Nobody else used the cache: 110 tokens make the second turn hit and 210 both, 220 of 320 tokens before."""
    found = cache_size(**ASK, sessions=sessions)
    assert found.cache_hit_frac == 0.95
    assert found.token_bytes == TOKEN_BYTES
    assert (found.needed_tokens, found.needed_bytes) == (210, 210 * TOKEN_BYTES)
    assert cache_size(**ASK, sessions=sessions, cache_hit=0.5).needed_tokens == 110
    assert len(found.curve) == 12
    first, last = found.curve[0], found.curve[-1]
    assert first == pytest.approx((110, 0.5, 220 / 320))
    assert last == pytest.approx((210, 1.0, 1.0))
    assert found.returning == ((60.0, 0.5), (300.0, 1.0), (3600.0, 1.0), (86400.0, 1.0))
    assert any("all turns count" in note for note in found.notes)
    assert any(note.startswith("sessions_per_hour: 60 (default)") for note in found.notes)
    said = cache_size(**ASK, sessions=sessions, sessions_per_hour=10)
    assert not any("sessions_per_hour" in note for note in said.notes)


def test_a_task_finds_what_its_last_tier_holds(sessions):
    """The devices hold all: 700 tokens come in, and 320 of them need not be computed."""
    task = cache_size(**ASK, sessions=sessions).task
    assert (task.turns_ratio, task.input_tokens, task.output_tokens) == (3, 700, 30)
    assert task.computed_tokens == 380


def test_blocks_of_a_file_have_the_tokens_that_are_said(tmp_path):
    path = tmp_path / "blocks.csv"
    path.write_text("session,t_s,input_tokens,output_tokens,shared_prefix_blocks\na,0,1000,10,0\na,5,1000,10,2\n")
    assert cache_size(**ASK, sessions=str(path)).needed_tokens == 2 * 64
    assert cache_size(**ASK, sessions=str(path), block_tokens=100).needed_tokens == 200


def test_prompts_of_a_trace_that_name_their_blocks(tmp_path):
    """The second request repeats two blocks of 512 of the first, the third nothing."""
    path = tmp_path / "trace.jsonl"
    rows = [(0, 1024, [1, 2]), (1000, 1536, [1, 2, 3]), (2000, 512, [9])]
    lines = [
        json.dumps({"timestamp": at, "input_length": size, "output_length": 8, "hash_ids": blocks})
        for at, size, blocks in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    found = cache_size(**ASK, trace=str(path))
    assert found.needed_tokens == 1024
    assert (found.shape.num_sessions, found.shape.shared_frac) == (3, pytest.approx(1024 / 3072))
    assert any(note.startswith("trace: outputs take no cache") for note in found.notes)
    with pytest.raises(ScenarioError, match="block_tokens: is about sessions"):
        cache_size(**ASK, trace=str(path), block_tokens=16)


def test_what_cannot_be_asked(sessions, tmp_path):
    for both in ({}, {"sessions": sessions, "trace": "chat"}):
        with pytest.raises(ScenarioError, match="one of both"):
            cache_size(**ASK, **both)
    with pytest.raises(ScenarioError, match="does not say what its prompts share"):
        cache_size(**ASK, trace="chat")
    alone = tmp_path / "alone.csv"
    alone.write_text("session,t_s,input_tokens,output_tokens,shared_prefix_tokens\na,0,100,10,0\n")
    with pytest.raises(ScenarioError, match=r"alone\.csv: no turn shares a beginning"):
        cache_size(**ASK, sessions=str(alone))
    large = cache_size(model="llama-3.1-70b", device="h100-sxm", sessions=sessions)
    assert large.infeasible.need > large.infeasible.have
