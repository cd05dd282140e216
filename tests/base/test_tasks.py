"""Independent tasks: every result once, whatever happens to the processes and machines that work on them."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from cluster_tasks import busy, noted, waited
from fake_ray import fake_ray

from orrery.base.errors import ScenarioError
from orrery.base.tasks import LostTask, processes, results

HAS_RAY = importlib.util.find_spec("ray") is not None


def square(number):
    """The task of most tests."""
    if number < 0:
        raise ValueError(f"{number} is below 0")
    return number * number


def ends_at_two(number):
    """A task that the system ends, and others that it does not."""
    if number == 2:
        os._exit(9)
    return number


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_comes_once_and_one_that_raises_ends_no_other(jobs):
    found = list(results(square, {name: (n,) for name, n in (("a", 3), ("b", -1), ("c", 5))}, jobs=jobs))
    assert sorted(key for key, _ in found) == ["a", "b", "c"]
    assert dict(found) == {"a": 9, "b": LostTask(kind="ValueError", message="-1 is below 0"), "c": 25}


def test_results_of_a_cluster_do_not_live_in_its_memory(monkeypatch):
    """A cluster gives back what a worker put into its memory, and takes the memory back when the work is over."""
    store, fake = np.zeros(3), fake_ray([])

    def get(ref):
        found = ref[2]()
        if isinstance(found, np.ndarray):  # as Ray does it: a view
            store[:] = found
            return store
        return found

    fake.get, fake.shutdown = get, lambda: store.fill(-1.0)
    monkeypatch.setitem(sys.modules, "ray", fake)
    found = dict(results(np.full, {1: (3, 7.0)}, ray="auto"))
    assert found[1].tolist() == [7.0, 7.0, 7.0]


def test_no_tasks_are_no_results():
    assert list(results(square, {}, jobs=2)) == []


def test_a_process_that_dies_fails_only_its_run(monkeypatch):
    monkeypatch.setattr(processes, "get_context", lambda kind: __import__("multiprocessing").get_context("fork"))
    found = dict(results(ends_at_two, {n: (n,) for n in (1, 2, 3)}, jobs=2))
    assert (found[1], found[3]) == (1, 3)
    assert "memory" in found[2].message
    assert os.environ.get("MKL_NUM_THREADS") is None or os.environ["MKL_NUM_THREADS"] != "1"


def test_a_cluster_runs_the_same_tasks_and_holds_few_ahead(monkeypatch):
    calls = []
    monkeypatch.setitem(sys.modules, "ray", fake_ray(calls))
    found = {}
    for key, value in results(square, {n: (n,) for n in range(-1, 9)}, ray="auto"):
        found[key] = value
        assert calls.count("asked") - len(found) < 4  # four for each core
    assert (calls[0], calls[-1]) == ("auto", "shutdown")
    assert found == dict(results(square, {n: (n,) for n in range(-1, 9)}, jobs=1))


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", fake_ray([]))
    with pytest.raises(ScenarioError, match="no cluster at 'nowhere'"):
        list(results(square, {1: (1,)}, ray="nowhere"))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ScenarioError, match=r"pip install 'orrery-ai\[ray\]'"):
        list(results(square, {1: (1,)}, ray="auto"))


@pytest.fixture
def cluster(monkeypatch):
    """Three machines of one core each, as processes of this one."""
    ray_cluster = pytest.importorskip("ray.cluster_utils")
    here = [str(Path(__file__).parents[1] / "every"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(here))
    found = ray_cluster.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    yield found
    found.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not HAS_RAY, reason="needs the package ray")
def test_nothing_is_lost_and_nothing_comes_twice_when_a_machine_is_killed(cluster, tmp_path):
    second, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    todo = {n: (n, str(tmp_path)) for n in range(30)}

    def notes():
        return [path.name.split("-") for path in tmp_path.glob("*-*")]

    def kill_when_all_work():
        while len({node for _, node, _, _ in notes()}) < 3:
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)
        for pid in {int(pid) for _, node, pid, _ in notes() if node == second.node_id}:
            with contextlib.suppress(ProcessLookupError):  # its workers live on for a moment
                os.kill(pid, signal.SIGKILL)
        (tmp_path / "go on").touch()

    killer = threading.Thread(target=kill_when_all_work, daemon=True)
    killer.start()
    found = list(results(noted, todo, ray=cluster.address))
    killer.join(60)
    assert sorted(key for key, _ in found) == list(range(30))
    assert dict(found) == {n: b"%d" % (n * n) for n in range(30)}
    assert len(notes()) > 30  # what the killed one had begun was begun again


@pytest.mark.bench
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not HAS_RAY or (os.cpu_count() or 1) < 2, reason="needs the package ray and two cores")
def test_two_machines_are_nearly_twice_as_fast_as_one(cluster):
    todo = {n: (n,) for n in range(32)}  # of half a second each: joining the cluster takes one or two
    list(results(busy, {n: (n,) for n in range(2)}, ray=cluster.address))  # workers start
    begun_s = time.monotonic()
    alone = dict(results(busy, todo, ray=cluster.address))
    alone_s = time.monotonic() - begun_s
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    list(results(busy, {n: (n,) for n in range(4)}, ray=cluster.address))  # the new one's too
    begun_s = time.monotonic()
    assert dict(results(busy, todo, ray=cluster.address)) == alone
    ratio = alone_s / (time.monotonic() - begun_s)
    print(f"\n32 tasks: {alone_s:.1f} s on one machine, {ratio:.2f} times as fast on two")
    assert ratio > 1.7


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not HAS_RAY, reason="needs the package ray")
def test_sharing_tasks_out_leaves_two_machines_hardly_waiting(cluster):
    """Tasks that take time and no core, so that a busy machine measures it too: what is lost is the sharing out.
    Joining the cluster takes one to three seconds more, once, and is left out."""
    todo = {n: (n,) for n in range(33)}
    took_s = []
    for machines in (1, 2):
        list(results(waited, {n: (n,) for n in range(2 * machines)}, ray=cluster.address))  # workers start
        came = [(value, time.monotonic()) for _, value in results(waited, todo, ray=cluster.address)]
        assert sorted(value for value, _ in came) == list(todo)
        took_s.append(came[-1][1] - came[0][1])
        if machines == 1:
            cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
    print(f"\n32 tasks of half a second: {took_s[0]:.1f} s on one machine, {took_s[1]:.1f} s on two")
    assert took_s[0] > 1.7 * took_s[1]


def test_a_worker_ends_with_its_parent():
    child = os.fork()
    if not child:
        processes.end_with_parent()
        os._exit(signal.getsignal(signal.SIGINT) is not signal.SIG_DFL)
    assert os.waitpid(child, 0)[1] == 0


SCRIPT = """
from orrery.base.tasks import results
{guard}print([found for _, found in results(abs, {{1: (-1,), 2: (-2,)}}, jobs=2)])
"""


def test_a_script_that_each_process_reads_again_is_told_what_to_write(tmp_path):
    """Without the guard no process gets as far as a task; with it each does."""
    for guard, code in (("", 1), ('if __name__ == "__main__":\n    ', 0)):
        path = tmp_path / "mine.py"
        path.write_text(SCRIPT.format(guard=guard))
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert ('write `if __name__ == "__main__":` around' in done.stderr) == bool(code)
        assert "MemoryError" not in done.stderr
