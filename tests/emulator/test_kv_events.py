"""Events of the prefix cache as a real subscriber gets them: put together, they are what the cache holds.

Hashes are those that vLLM 0.33.0's own functions gave for the same tokens; messages are read as plain MessagePack.
"""

import socket
import sys
import time
from contextlib import contextmanager
from itertools import count

import httpx
import msgspec
import pytest
import zmq

from orrery.base.errors import ScenarioError
from orrery.emulator.engine_blocks import EngineBlocks, names_for
from orrery.emulator.kv_settings import KVEventSettings
from orrery.emulator.lora import LoraModules
from orrery.emulator.prefix import NumberedBlocks
from orrery.emulator.settings import Settings
from orrery.serving.simulation.memory._kernel import ABSENT

SMALL = {"gpu_memory_utilization": 0.28, "max_model_len": 2048}  # 488 blocks
BLOCK = 16
END = (-1).to_bytes(8, signed=True)


class Subscriber:
    """Whoever follows one engine's cache."""

    def __init__(self, context, address, topic=b"", binds=False):
        self.socket = context.socket(zmq.SUB)
        (self.socket.bind if binds else self.socket.connect)(address)
        self.socket.subscribe(topic)
        self.batches, self.numbers, self.topics = [], [], set()
        self.held = {}  # medium -> hashes

    def read(self, patience_ms=3000):
        """Take what comes within a while, and what comes shortly after."""
        while self.socket.poll(patience_ms):
            patience_ms = 150
            topic, number, batch = self.socket.recv_multipart()
            self.topics.add(topic)
            self.numbers.append(int.from_bytes(number))
            self.batches.append(batch)
            for event in msgspec.msgpack.decode(batch)[1]:
                self.apply(event)
        return self

    def apply(self, event):
        """One event on what was held before; nothing is stored twice, or removed that is not there."""
        if event["type"] == "AllBlocksCleared":
            self.held = {}
            return
        held, hashes = self.held.setdefault(event["medium"], set()), set(event["block_hashes"])
        if event["type"] == "BlockRemoved":
            assert hashes <= held
            held -= hashes
        else:
            assert not hashes & held
            assert len(event["token_ids"]) == BLOCK * len(hashes) == event["block_size"] * len(hashes)
            held |= hashes


@contextmanager
def followed(start, tmp_path, scenario, num_engines=1, **options):
    """A server with a subscriber for each engine."""
    told = {"kv_events": f"ipc://{tmp_path}/e", "kv_events_replay": f"ipc://{tmp_path}/r", "speed_ratio": 50.0}
    with zmq.Context() as context, start(scenario, **{**told, **options}) as found:
        ends = [f"ipc://{tmp_path}/e" + (f"_dp{k}" if k else "") for k in range(num_engines)]
        seen = [Subscriber(context, end, options.get("kv_events_topic", "").encode()) for end in ends]
        time.sleep(0.2)  # until the publisher knows of them
        try:
            yield found, seen
        finally:
            for one in seen:
                one.socket.close(0)


def ask(found, first, num_tokens=320, **more):
    body = {"prompt": list(range(first, first + num_tokens)), "max_tokens": 2, **more}
    return httpx.post(f"{found.url}/v1/completions", json=body, timeout=30).raise_for_status().json()


def test_hashes_are_the_engines_own():
    """Two blocks, and one of an adapter with a salt: numbers from vLLM 0.33.0's hash_block_tokens and sha256."""
    lora = LoraModules.of(("sql=adapters/sql",), 1, 8, ())
    names = EngineBlocks(Settings(names=("a",), context_tokens=99, block_tokens=BLOCK, lora=lora))
    first, second = names.follow([*range(100, 116), 128000, 7, 65536, *range(13), 5], names.root(None, -1))
    assert (first.number, second.number) == (15126711022707342677, 1774471337125834801)
    assert (first.parent, second.parent) == (None, first.number)
    (salted, next_one) = names.follow([*range(100, 116), *range(16)], names.root("me", 0))
    assert salted.number == 10609297415883649792
    assert (salted.extra_keys, next_one.extra_keys) == (("sql", "me"), ("sql",))
    assert names.follow(range(100, 116), names.root(None, -1)) == [first]


def test_blocks_have_quick_names_where_nobody_is_told():
    bare = Settings(names=("a",), context_tokens=99, block_tokens=BLOCK)
    assert isinstance(names_for(bare), NumberedBlocks)


def test_a_seed_of_the_environment_changes_the_hashes(monkeypatch):
    bare = Settings(names=("a",), context_tokens=99, block_tokens=BLOCK)
    before = EngineBlocks(bare).follow(range(16), EngineBlocks(bare).root(None, -1))
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert EngineBlocks(bare).follow(range(16), EngineBlocks(bare).root(None, -1)) != before


def test_the_first_event_is_vllms_to_the_field(start, tmp_path):
    with followed(start, tmp_path, {}, kv_events_topic="kv@a@llama") as (found, (seen,)):
        ask(found, 100, 20)
        seen.read()
    at_s, (event,), rank = msgspec.msgpack.decode(seen.batches[0])
    assert abs(at_s - time.time()) < 60
    assert rank == 0
    assert event == {
        "type": "BlockStored",
        "block_hashes": [15126711022707342677],
        "parent_block_hash": None,
        "token_ids": list(range(100, 116)),
        "block_size": BLOCK,
        "lora_id": None,
        "medium": "GPU",
        "lora_name": None,
        "extra_keys": [None],
        "group_idx": 0,
        "kv_cache_spec_kind": "full_attention",
    }
    assert seen.topics == {b"kv@a@llama"}


def device_blocks(found):
    return int((found.pace.live.world.memory.users != ABSENT).sum())


def content(found):
    """What the tables of all devices hold."""
    return {name.number for place, name in found.pace.live.watch_cache().content().items() if not place.is_host}


def test_replayed_events_are_the_content_of_a_cache_that_evicts(start, tmp_path):
    """8 prompts of 100 blocks in a cache of 488: 312 and more have to go."""
    with followed(start, tmp_path, SMALL) as (found, (seen,)):
        for k in range(8):
            ask(found, 10_000 * k, 1600)
        ask(found, 70_000, 1600)  # is there still
        seen.read()
        assert seen.held["GPU"] == content(found)
        assert 300 < len(seen.held["GPU"]) == device_blocks(found) <= 488
        removed = [e for b in seen.batches for e in msgspec.msgpack.decode(b)[1] if e["type"] == "BlockRemoved"]
        assert len(removed) >= 312
        assert seen.numbers == list(range(len(seen.numbers)))


def replayed(found, tmp_path, first):
    """Batches from a number on, as a socket that may take several answers gets them."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as asking:
        asking.linger = 0
        asking.connect(f"ipc://{tmp_path}/r")
        asking.send_multipart((b"", b"too short"))
        asking.send_multipart((b"", first.to_bytes(8)))
        batches = []
        while asking.poll(2000):
            _, topic, number, batch = asking.recv_multipart()
            if number == END:
                assert (topic, batch) == (b"", b"")
                return batches
            batches.append((int.from_bytes(number), batch))
        raise AssertionError("no end came")


def test_who_missed_events_asks_for_them(start, tmp_path):
    with followed(start, tmp_path, {}) as (found, (seen,)):
        for k in range(4):
            ask(found, 1000 * k, 40)
        seen.read()
        every = list(zip(seen.numbers, seen.batches, strict=True))
        assert len(every) >= 4
        assert replayed(found, tmp_path, 0) == every
        assert replayed(found, tmp_path, 2) == every[2:]
        assert replayed(found, tmp_path, 10_000) == []


def test_blocks_that_leave_the_device_are_told_on_the_host(start, tmp_path):
    with followed(start, tmp_path, {**SMALL, "host_cache_bytes": 4e9}) as (found, (seen,)):
        for k in range(7):
            ask(found, 10_000 * k, 1600)
        seen.read()
        assert len(seen.held["GPU"]) == device_blocks(found)
        assert len(seen.held["CPU"]) == int(found.pace.live.world.memory.on_host.sum()) > 0
        assert not seen.held["GPU"] & seen.held["CPU"]


def test_every_engine_has_a_socket_of_its_own_and_a_lost_one_is_cleared(start, tmp_path):
    with followed(start, tmp_path, {"replicas": 2, "router": "round-robin"}, 2, has_admin=True) as (found, seen):
        for k in range(4):
            ask(found, 1000 * k)
        first, second = (one.read() for one in seen)
        assert first.held["GPU"]
        assert second.held["GPU"]
        assert first.held["GPU"] | second.held["GPU"] == content(found)
        assert msgspec.msgpack.decode(second.batches[0])[2] == 1
        httpx.post(f"{found.url}/admin/replicas", json={"replica": 1, "action": "kill"}).raise_for_status()
        assert second.read().held == {}
        assert first.read(0).held["GPU"] == content(found)


def test_ranks_that_share_experts_have_caches_of_their_own(start, tmp_path):
    """One replica of two ranks, each with its own cache, which may hold the same block."""
    scenario = {"model": "qwen3-30b-a3b", "dp": 2, "ep": 2, "router": "round-robin"}
    with followed(start, tmp_path, scenario, 2) as (found, seen):
        for _ in range(4):
            ask(found, 100)
        held = [one.read().held["GPU"] for one in seen]
        assert found.pace.live.snapshot().is_up.size == 1
        assert held[0] & held[1]
        assert len(held[0]) + len(held[1]) == device_blocks(found)


def test_an_adapters_blocks_name_it(start, tmp_path):
    with followed(start, tmp_path, {}, lora_modules=("sql=adapters/sql",)) as (found, (seen,)):
        ask(found, 100, 40, model="sql", cache_salt="me")
        ask(found, 100, 40)
        seen.read()
    stored = [msgspec.msgpack.decode(batch)[1][0] for batch in seen.batches]
    assert stored[0]["block_hashes"][0] == 10609297415883649792
    assert (stored[0]["lora_id"], stored[0]["lora_name"]) == (1, "sql")
    assert stored[0]["extra_keys"] == [["sql", "me"], ["sql"]]
    assert stored[-1]["lora_name"] is None


def test_load_and_played_traffic_are_told_too(start_fleet, tmp_path):
    fleet = {"replicas_max": 2, "replicas_min": 2, "rate": 4.0, "num_requests": 40, "input_tokens": 200}
    fleet |= {"output_tokens": 20, "prefix_tokens": 64}
    with (
        zmq.Context() as context,
        start_fleet(fleet, plays_traffic=True, speed_ratio=50.0, kv_events=f"ipc://{tmp_path}/e"),
    ):
        both = [Subscriber(context, f"ipc://{tmp_path}/e{k}") for k in ("", "_dp1")]
        time.sleep(0.5)
        held = [one.read().held for one in both]
        for one in both:
            one.socket.close(0)
    assert any(h.get("GPU") for h in held)


def test_a_subscriber_that_binds_is_connected_to(start):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with zmq.Context() as context:
        seen = Subscriber(context, address, binds=True)
        with start({}, speed_ratio=50.0, kv_events=address, kv_events_connect=True) as found:
            number = count()
            while not seen.held:  # what is sent before a subscriber is known is lost, as with the engine
                ask(found, 1000 * next(number))
                seen.read(100)
            assert seen.held["GPU"] <= content(found)
        seen.socket.close(0)


@pytest.mark.parametrize(
    ("address", "engine", "expected"),
    [
        ("tcp://127.0.0.1:5557", 0, "tcp://127.0.0.1:5557"),
        ("tcp://127.0.0.1:5557", 3, "tcp://127.0.0.1:5560"),
        ("tcp://*:5557", 1, "tcp://*:5558"),
        ("ipc://a/b", 0, "ipc://a/b"),
        ("ipc://a/b", 2, "ipc://a/b_dp2"),
    ],
)
def test_engines_have_the_next_ports(address, engine, expected):
    assert KVEventSettings.address_of(address, engine) == expected


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"kv_events": "http://a:1"}, "kv-events: got 'http://a:1'; write tcp://HOST:PORT"),
        ({"kv_events": "tcp://127.0.0.1:0"}, "kv-events: got"),
        ({"kv_events": "tcp://127.0.0.1:70000"}, "kv-events: got"),
        ({"kv_events": "tcp://127.0.0.1:5557", "kv_events_replay": "5558"}, "kv-events-replay: got '5558'"),
        ({"kv_events": "tcp://127.0.0.1:5557", "kv_events_replay": "tcp://127.0.0.1:5557"}, "write another port"),
        ({"kv_events_topic": "a"}, "only part of it is said"),
    ],
)
def test_what_cannot_be_told_is_refused(start, told, says):
    with pytest.raises(ScenarioError, match=says), start({}, **told):
        pass


def test_it_says_what_to_install(start, monkeypatch):
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(ScenarioError, match=r"pyzmq: pip install 'orrery-ai\[kv-events\]'"), start({}, kv_events="x"):
        pass
