"""Two ends of a connection that really add up; a team of processes that starts, answers, and always ends."""

import socket
import threading

import numpy as np
import psutil
import pytest

from orrery.base.errors import OrreryError
from orrery.calibrate.measure.exchange.tcp import KINDS, Tcp
from orrery.calibrate.measure.exchange.team import Team


def connected():
    """Both ends of a loopback connection."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        return socket.create_connection(door.getsockname()), door.accept()[0]


def both(kind, buffers):
    """Runs ``kind`` on both ends at once."""
    ends = [Tcp(connection, rank) for rank, connection in enumerate(connected())]
    other = threading.Thread(target=lambda: (ends[1].barrier(), ends[1].run(kind, buffers[1])))
    other.start()
    ends[0].barrier()
    ends[0].run(kind, buffers[0])
    other.join(timeout=30)
    for end in ends:
        end.close()


@pytest.fixture
def drawn():
    """Larger than what a socket buffers, so that sending before receiving would hang."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(1_000_000, dtype=np.float32) for _ in range(2)]


def test_all_reduce_leaves_the_sum_on_both(drawn):
    total = drawn[0] + drawn[1]
    both("all_reduce", drawn)
    np.testing.assert_array_equal(drawn[0], total)
    np.testing.assert_array_equal(drawn[1], total)


def test_all_gather_leaves_both_halves_on_both(drawn):
    whole = np.concatenate([drawn[0][:500_000], drawn[1][500_000:]])
    both("all_gather", drawn)
    np.testing.assert_array_equal(drawn[0], whole)
    np.testing.assert_array_equal(drawn[1], whole)


@pytest.mark.parametrize("kind", ["send_recv", "broadcast"])
def test_there_and_back_leaves_what_the_first_had(drawn, kind):
    first = drawn[0].copy()
    both(kind, drawn)
    np.testing.assert_array_equal(drawn[0], first)
    np.testing.assert_array_equal(drawn[1], first)


def test_an_end_that_leaves_is_noticed():
    here, there = connected()
    there.close()
    end = Tcp(here, 0)
    with pytest.raises(OSError, match=r"has left|reset|pipe"):
        end.barrier()
    end.close()


def test_a_team_times_every_kind_and_leaves_nobody_behind():
    with Team("tcp") as team:
        assert len(psutil.Process().children()) >= 2
        for kind in KINDS:
            timed = team.time(kind, 4096, budget_s=0.01, least_samples=3)
            assert 0 < timed.fastest_s <= timed.time_s
        with pytest.raises(OrreryError, match="at least 8"):
            team.time("all_reduce", 4)
        with pytest.raises(LookupError, match="all_reduce"):
            team.time("all-reduce", 4096)
        workers = psutil.Process().children()
    _, alive = psutil.wait_procs([w for w in workers if "worker" in " ".join(_line(w))], timeout=10)
    assert not alive


def _line(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_worker_that_dies_is_an_error_in_words():
    with Team("tcp") as team:
        team.time("all_reduce", 64, budget_s=0.001, least_samples=3)
        workers = [c for c in psutil.Process().children() if "orrery.calibrate.measure.exchange.worker" in _line(c)]
        workers[-1].kill()
        workers[-1].wait(timeout=10)
        with pytest.raises(OrreryError, match="of the tcp team"):
            team.time("all_reduce", 64)


def test_teams_that_cannot_be_are_refused():
    with pytest.raises(LookupError, match="tcp"):
        Team("mpi")
    with pytest.raises(OrreryError, match="of two"):
        Team("tcp", 3)
    with pytest.raises(OrreryError, match="not there"):
        Team("tcp").time("all_reduce", 64)


def test_a_library_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setattr("orrery.calibrate.measure.exchange.team.load", lambda: None)
    with pytest.raises(OrreryError, match="pip install torch"):
        Team("gloo")


@pytest.mark.slow
def test_gloo_times_every_kind():
    pytest.importorskip("torch")
    with Team("gloo") as team:
        for kind in KINDS:
            assert team.time(kind, 2**16, budget_s=0.02).time_s > 0
