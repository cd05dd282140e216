"""Paths, loaders and published times of cold starts, and files of agents' sessions, against their lines."""

from dataclasses import asdict

import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.agent_sessions import read_sessions
from orrery.catalog.cold_start import LOADERS, PATHS, constants, path_of, published_starts, rates_of
from orrery.catalog.devices import get_device

GB = 1e9
USUAL = {"stream_bytes_per_s": 0.0, "num_streams": 1, "is_per_device": False, "is_fetched": False}
READ = {
    "registry": {"bytes_per_s": 1.57 * GB, "is_fetched": True},
    "object-store": {
        "bytes_per_s": 12.5 * GB,
        "stream_bytes_per_s": 87.5e6,
        "num_streams": 32,
        "is_fetched": True,
    },
    "network-disk": {"bytes_per_s": 1.049 * GB, "stream_bytes_per_s": 357e6, "num_streams": 16},
    "nvme": {"bytes_per_s": 29.4 * GB, "stream_bytes_per_s": 8.06 * GB, "num_streams": 16},
    "page-cache": {"bytes_per_s": 0.0},
    "peer": {"bytes_per_s": 50.0 * GB, "is_per_device": True},  # 400 Gb/s InfiniBand of an H100
}


def test_paths_of_weights_as_their_lines_say():
    h100 = get_device("h100-sxm")
    assert set(READ) == set(PATHS)
    for name, facts in READ.items():
        assert asdict(path_of(name, h100)) == {**USUAL, **facts, "name": name}
        given = path_of(name, h100, 3.0 * GB)
        rate = 0.0 if name == "page-cache" else 3.0 * GB  # memory is no path of a rate
        assert asdict(given) == {**USUAL, **facts, "name": name, "bytes_per_s": rate}
    with pytest.raises(UnknownName, match="floppy"):
        path_of("floppy", h100)


def test_loaders_by_what_they_do():
    assert {name: (x.name, x.is_streaming, x.reads_whole) for name, x in LOADERS.items()} == {
        "safetensors": ("safetensors", False, True),
        "runai_streamer": ("runai_streamer", True, False),
        "fastsafetensors": ("fastsafetensors", True, False),
        "tensorizer": ("tensorizer", True, False),
        "sharded_state": ("sharded_state", False, False),
    }


def test_rates_of_a_host_and_constants_of_a_start():
    """A Grace host is a slow thread at a fast link: NVLink-C2C of 450 GB/s each way, 1.2 times as long a step."""
    h100, grace = rates_of(get_device("h100-sxm")), rates_of(get_device("gh200"))
    assert (h100.link_bytes_per_s, h100.copy_frac, h100.host_bytes_per_s) == (63 * GB, 0.83, 5.26 * GB)
    assert (grace.link_bytes_per_s, grace.copy_frac) == (450 * GB, 0.83)
    assert grace.host_bytes_per_s == pytest.approx(5.26 / 1.2 * GB)
    found = constants()
    assert (found.node_s, found.image_bytes, found.image_bytes_per_s) == (77.0, 12.64 * GB, 0.2 * GB)
    assert (found.process_s, found.profile_s, found.wake_frac) == (25.0, 8.0, 0.4)


def test_published_times_as_their_rows_say():
    rows = {row.name: row for row in published_starts()}
    assert (len(rows), sum(row.is_fitted for row in rows.values())) == (29, 8)
    disk, ranks = rows["io2, streamed"], rows["host memory, tensor by tensor, 8 ranks"]
    assert (disk.part, disk.model, disk.device) == ("weights", "llama-3-8b", "a10g")
    assert (disk.path, disk.loader, disk.tp) == ("network-disk", "runai_streamer", 1)
    assert (disk.path_bytes_per_s, disk.model_bytes, disk.measured_s) == (2.0 * GB, 0.0, 7.6)
    assert (ranks.tp, ranks.path_bytes_per_s, ranks.model_bytes) == (8, 0.0, pytest.approx(70.55 * GB))
    assert not disk.is_fitted
    woken = rows["woken, level 1, 0.6B"]
    assert (woken.path, woken.loader, woken.is_fitted, woken.measured_s) == ("", "", True, 0.26)
    assert woken.fact.source is not None
    assert "sleep-mode" in woken.fact.source.url
    assert woken.fact.basis == "measured"


def sessions(tmp_path, text):
    path = tmp_path / "sessions.csv"
    path.write_text(text, encoding="utf-8")
    return read_sessions(path, 16)


def test_sessions_are_numbered_as_they_come_and_chains_by_their_agent(tmp_path):
    turns = sessions(
        tmp_path,
        "session, t_s ,input_tokens,output_tokens,shared_prefix_tokens,agent,think_time_s\n"
        "b,0,100,10,0,,\n"
        "a,1.5,200,20,300,main,2.5\n"  # cannot share more than its prompt
        "b,3,120,30,110,,0.5\n"
        "b,4,50,5,0,sub,\n"
        "a,5,210,7,200,sub,0\n",
    )
    assert turns.at_s.tolist() == [0.0, 1.5, 3.0, 4.0, 5.0]
    assert turns.session.tolist() == [0, 1, 0, 0, 1]
    assert turns.chain.tolist() == [0, 1, 0, 2, 3]
    assert turns.input_tokens.tolist() == [100, 200, 120, 50, 210]
    assert turns.output_tokens.tolist() == [10, 20, 30, 5, 7]
    assert turns.shared_tokens.tolist() == [0, 200, 110, 0, 200]
    assert turns.think_s.tolist() == [0.0, 2.5, 0.5, 0.0, 0.0]


def test_shared_blocks_are_of_so_many_tokens(tmp_path):
    text = "session,t_s,input_tokens,output_tokens,shared_prefix_blocks\nx,0,100,1,3\nx,1,40,1,3\n"
    turns = sessions(tmp_path, text)
    assert turns.shared_tokens.tolist() == [48, 40]
    assert (turns.chain.tolist(), turns.think_s.tolist()) == ([0, 0], [0.0, 0.0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: no trace of sessions"),
        ("session,t_s,input_tokens,output_tokens\n", "line 1: no trace of sessions"),
        ("session,t_s,input_tokens,shared_prefix_tokens\n", "line 1: no trace of sessions"),
        ("session,t_s,input_tokens,output_tokens,shared_prefix_tokens\n", "holds no request"),
        (
            "session,t_s,input_tokens,output_tokens,shared_prefix_tokens\na,0,1,1,0\na,0,-1,1,0\n",
            "line 3: input_tokens: got '-1'",
        ),
        ("session,t_s,input_tokens,output_tokens,shared_prefix_tokens\na,x,1,1,0\n", "line 2: t_s: got 'x'"),
        ("session,t_s,input_tokens,output_tokens,shared_prefix_tokens\na,0,1,1e15,0\n", "line 2: output_tokens"),
        ("session,t_s,input_tokens,output_tokens,shared_prefix_tokens\na,0,nan,1,0\n", "line 2: input_tokens"),
        ("session,t_s,input_tokens,output_tokens,shared_prefix_tokens\na,0,1,1\n", "line 2: shared_prefix_tokens"),
        ("session,t_s,input_tokens,output_tokens,shared_prefix_tokens,think_time_s\na,0,1,1,0,-2\n", "think_time_s"),
    ],
)
def test_no_sessions_are_refused_with_their_line(tmp_path, text, words):
    with pytest.raises(ScenarioError, match=words):
        sessions(tmp_path, text)
