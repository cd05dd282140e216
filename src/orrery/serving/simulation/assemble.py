"""From a service to the plain arrays that the loop runs on: machines, units, lanes, pools, and tables of step costs.

A replica is a machine. Its ranks that share experts are the lanes of one unit; each batch in flight of its pipeline is
a unit; split between prompts and answers it has a unit for each. Independent data-parallel ranks are machines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from orrery.execution.adapters import adapter_bytes, reading_s, reading_work_s
from orrery.execution.batch import Batch, decodes_of
from orrery.execution.compression import compressed, compressing_s
from orrery.execution.host import graph_seqs, graph_tokens, launches_s, pieces_s
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory, max_num_batched_tokens, memory_of, recv_interval
from orrery.execution.shard import has_exchange, shard
from orrery.execution.sm_share import memory_demand_frac, with_share
from orrery.execution.speculation import verified_tokens
from orrery.execution.step import step
from orrery.execution.surface import Surface, stacked, surface_of
from orrery.execution.surface._kernel import CHANNELS, MATRIX_WORK, MEMORY_WORK
from orrery.execution.transfer import holders, host_link, link_between
from orrery.execution.weight_offload import fetches_s
from orrery.hardware.device import Device
from orrery.kernels.energy import step_law
from orrery.serving.requests import Floats, Ints, Requests
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables

LONGEST_PASS_TOKENS = 65_536
"""Tables reach so far; beyond, a step costs in proportion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of the tables that the requests need."""

    block_tokens: int
    longest_prompt_tokens: int
    longest_tokens: int
    mean_context_tokens: float
    has_answers: bool = True  # tokens beyond a prompt's first one

    @staticmethod
    def of(requests: Requests, block_tokens: int) -> "Sizes":
        """The longest and the mean of some requests."""
        total = requests.input_tokens + requests.output_tokens
        return Sizes(
            block_tokens=block_tokens,
            longest_prompt_tokens=int(requests.input_tokens.max()),
            longest_tokens=int(total.max()),
            mean_context_tokens=float((requests.input_tokens + requests.output_tokens / 2).mean()),
            has_answers=bool((requests.output_tokens > 1).any()),
        )


@dataclass(slots=True)
class _Lists:
    """The fleet while it is put together."""

    unit_lane: list[int] = field(default_factory=lambda: [0])
    unit_machine: list[int] = field(default_factory=list[int])
    lane_unit: list[int] = field(default_factory=list[int])
    lane_pool: list[int] = field(default_factory=list[int])
    lane_role: list[int] = field(default_factory=list[int])
    lane_deployment: list[int] = field(default_factory=list[int])
    twin: list[int] = field(default_factory=list[int])
    max_seqs: list[int] = field(default_factory=list[int])
    stages: list[int] = field(default_factory=list[int])
    sharing: list[int] = field(default_factory=list[int])  # by machine, how its models share it
    awake: list[int] = field(default_factory=list[int])  # by machine, the deployment that is awake at the start
    send_share: list[float] = field(default_factory=list[float])
    stage_share: list[float] = field(default_factory=list[float])
    capacity: list[float] = field(default_factory=list[float])

    def add_machine(self, stages: int, send_share: float, stage_share: float, sharing: int, awake: int) -> int:
        """A new machine; its number."""
        self.stages.append(stages)
        self.send_share.append(send_share)
        self.stage_share.append(stage_share)
        self.sharing.append(sharing)
        self.awake.append(awake)
        return len(self.stages) - 1

    def add_lane(self, pool: int, role: int, deployment: int, max_seqs: int, twin: int = -1) -> None:
        """One more lane of the unit that is being built."""
        self.lane_unit.append(len(self.unit_machine) - 1)
        self.lane_pool.append(pool)
        self.lane_role.append(role)
        self.lane_deployment.append(deployment)
        self.max_seqs.append(max_seqs)
        self.twin.append(twin)
        self.unit_lane[-1] += 1

    def add_unit(self, machine: int) -> None:
        """A new unit of a machine, without lanes yet."""
        if self.unit_machine:
            self.unit_lane.append(self.unit_lane[-1])
        else:
            self.unit_lane.append(0)
        self.unit_machine.append(machine)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assembled:
    """The fleet as tables (columns as the loop names them), and what the result needs of it."""

    deployments: tuple[Deployment, ...]
    memories: tuple[Memory, ...]  # by pool
    num_machines: int
    unit_lane: Ints
    unit_machine: Ints
    lanes: Ints
    rates: Floats
    machines: Ints
    send_share: Floats
    stage_share: Floats
    capacity: Ints  # bytes by cache
    host_capacity: Ints
    held: Ints  # (deployment, blocks)
    surfaces: Surface
    num_variants: int
    retained: Floats
    num_layers: float
    lending_s: float


_ROLES = {"all": tables.BOTH, "prompts": tables.PROMPTS, "answers": tables.ANSWERS}


def assemble(service: Service, sizes: Sizes) -> Assembled | Infeasible:
    """The fleet of a service; Infeasible where a model does not fit."""
    memories = memories_of(service)
    if isinstance(memories, Infeasible):
        return memories
    lists = _Lists()
    deployments = [p.deployment for p in service.pools for _ in range(2 if service.split else 1)]
    for number, pool in enumerate(service.pools):
        if pool.host < 0:
            _add_pool(lists, service, number, memories, has_answers=sizes.has_answers)
    lanes = len(lists.lane_pool)
    each = 2 if service.split else 1
    owner = [d // each for d in lists.lane_deployment]  # a split pool has its deployment twice
    memory_by_lane = [memories[k] for k in owner]
    cut = [service.pools[k].deployment for k in owner]
    capacity = np.array(lists.capacity)
    pooled = capacity[_ints(lists.lane_pool)]
    if service.lends_cache:
        pooled = np.full(lanes, capacity.sum())
    budget = [m.max_num_batched_tokens for m in memory_by_lane]
    surfaces, variants = _surfaces(service, deployments, memory_by_lane, sizes, max(lists.max_seqs), max(budget))
    links = [_link(service, cut[lane]) for lane in range(lanes)]
    hosts = [(host_link(d), holders(d)) for d in cut]
    return Assembled(
        deployments=tuple(deployments),
        memories=memories,
        num_machines=len(lists.stages),
        unit_lane=_ints(lists.unit_lane),
        unit_machine=_ints(lists.unit_machine),
        lanes=_columns(
            tables.LANES,
            lanes,
            np.int64,
            unit=lists.lane_unit,
            pool=lists.lane_pool,
            role=lists.lane_role,
            deployment=lists.lane_deployment,
            max_seqs=lists.max_seqs,
            budget=budget,
            twin=lists.twin,
            pooled=pooled,
            waiting=[-1] * lanes,
            next_end=[tables.NEVER] * lanes,
            unseen=[-1] * lanes,
            recv_interval=[recv_interval(d) for d in cut],
        ),
        rates=_columns(
            tables.RATES,
            lanes,
            np.float64,
            device_ways=[float(d.layout.tp * d.layout.cp) for d in cut],
            host_step_s=[d.engine.step_s for d in cut],
            host_per_sequence_s=[d.engine.per_sequence_s for d in cut],
            host_overlap_frac=[d.engine.overlap_frac for d in cut],
            link_bytes_per_s=[rate for rate, _ in links],
            link_latency_s=[latency for _, latency in links],
            host_bytes_per_s=[link.bandwidth_bytes_per_s / ways for link, ways in hosts],
            host_latency_s=[link.latency_s for link, _ in hosts],
            host_launch_s=[launches_s(d) for d in cut],
            graph_seqs=[graph_seqs(d) for d in cut],
            host_pieces_s=[pieces_s(d) for d in cut],
            graph_tokens=[graph_tokens(d) for d in cut],
            sampling_s=[d.engine.sampling_s for d in cut],
            wake_s=[service.pools[k].wake_s for k in owner],
        ),
        machines=np.array(
            [
                [stages, _first_split(service), sharing, awake]
                for stages, sharing, awake in zip(lists.stages, lists.sharing, lists.awake, strict=True)
            ],
            dtype=np.int64,
        ),
        send_share=np.array(lists.send_share),
        stage_share=np.array(lists.stage_share),
        capacity=capacity.astype(np.int64),
        host_capacity=np.full(
            capacity.size, int(service.host_cache_bytes / max(holders(d) for d in cut)), dtype=np.int64
        ),
        held=_held(service, deployments, memories, sizes),
        surfaces=surfaces,
        num_variants=variants,
        retained=np.array(
            [
                [
                    service.compression.kept_bytes_frac,
                    compressing_s(d, service.compression, sizes.longest_prompt_tokens) / sizes.longest_prompt_tokens,
                    (law := step_law(d.cluster.device)).span_w,
                    law.concave_power,
                    adapter_bytes(d),
                    reading_s(d),
                    reading_work_s(d),
                    fetches_s(d),
                    d.model.num_layers * d.engine.per_layer_s,
                ]
                for d in deployments
            ]
        ),
        num_layers=float(cut[0].model.num_layers),
        lending_s=_lending_s(service) if service.lends_cache else -1.0,
    )


def memories_of(service: Service) -> tuple[Memory, ...] | Infeasible:
    """The memory of a replica of each pool; Infeasible where a model does not fit."""
    found: list[Memory] = []
    for pool in service.pools:
        memory = memory_of(pool.deployment)
        if isinstance(memory, Infeasible):
            return memory
        found.append(memory)
    return tuple(found)


def _columns(names: tuple[str, ...], rows: int, dtype: Any, **given: Any) -> Any:
    """A table with these columns; those that are not given start at 0."""
    table = np.zeros((rows, len(names)), dtype=dtype)
    for name, values in given.items():
        table[:, names.index(name)] = values
    return table


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _send_share(deployment: Deployment) -> float:
    """Part of a full step's network time that is from one pipeline stage to the next."""
    batch = decodes_of(np.array([max(1, max_num_batched_tokens(deployment))]), 1)
    parts = [p for p in step(deployment, batch).parts if p.group == "network" and p.op != "fetch"]
    total_s = sum(float(p.time_s[0]) for p in parts)
    sends_s = sum(float(p.time_s[0]) for p in parts if p.op == "send_recv")
    return sends_s / total_s if total_s > 0.0 else 0.0


def _add_pool(lists: _Lists, service: Service, number: int, memories: Sequence[Memory], *, has_answers: bool) -> None:
    """The machines of one pool, with those models of other pools that run on them too.

    A pipeline holds a batch a stage: an answer's next token waits for its last one, and a further batch would make it
    wait for one more. Prompts alone wait for nothing, so that one more is on its way where sends do not block.
    """
    pool = service.pools[number]
    d, layout = pool.deployment, pool.deployment.layout
    together = layout.dp if has_exchange(d) else 1
    first = 2 * number if service.split else number
    comes_back = pool.role == "answers" or (pool.role == "all" and has_answers)
    in_flight = layout.pp + (service.overlaps_sends and layout.pp > 1 and not comes_back)
    seqs = max(1, memories[number].max_num_seqs // layout.pp)
    guests = [k for k, p in enumerate(service.pools) if p.host == number]
    for _ in range(pool.replicas * (1 if together > 1 else layout.dp)):
        machine = lists.add_machine(
            layout.pp,
            _send_share(d) if service.overlaps_sends else 0.0,
            shard(d).stage_share if layout.pp > 1 else 1.0,
            sharing=0 if not guests else tables.BY_SLEEP if service.sharing == "sleep" else tables.BY_STEP,
            awake=first,
        )
        base = len(lists.capacity)
        lists.capacity.extend([memories[number].kv_capacity_bytes] * together)
        if service.split:
            lane = len(lists.lane_pool)
            lists.add_unit(machine)
            lists.add_lane(base, tables.PROMPTS, first, seqs, twin=lane + 1)
            lists.add_unit(machine)
            lists.add_lane(base, tables.ANSWERS, first + 1, seqs, twin=lane)
            continue
        for _ in range(in_flight):
            lists.add_unit(machine)
            for rank in range(together):
                lists.add_lane(base + rank, _ROLES[pool.role], first, seqs)
        for guest in guests:
            lists.capacity.append(memories[guest].kv_capacity_bytes)
            lists.add_unit(machine)
            lists.add_lane(len(lists.capacity) - 1, tables.BOTH, guest, memories[guest].max_num_seqs)


def _held(service: Service, deployments: list[Deployment], memories: Sequence[Memory], sizes: Sizes) -> Ints:
    """Bytes on the fullest device of a sequence of 0, 1, 2, … blocks, by deployment."""
    most = ceil(sizes.longest_tokens / sizes.block_tokens) + 2
    rows: list[Ints] = []
    for k in range(len(deployments)):
        memory = memories[k * len(memories) // len(deployments)]
        memory = replace(memory, cache=compressed(memory.cache, service.compression))
        rows.append(_held_by_blocks(memory, sizes.block_tokens, most))
    return np.stack(rows)


@lru_cache(maxsize=64)
def _held_by_blocks(memory: Memory, block_tokens: int, most: int) -> Ints:
    """The same of one deployment; searches ask for it again with every rate that they try."""
    held = np.rint([0.0, *(memory.taken_bytes(b * block_tokens) for b in range(1, most + 1))]).astype(np.int64)
    held.flags.writeable = False
    return held


def _surfaces(
    service: Service, deployments: list[Deployment], memories: Sequence[Memory], sizes: Sizes, seqs: int, budget: int
) -> tuple[Surface, int]:
    """The tables of all deployments; of a split machine, for every split, alone and in company."""
    speculation = service.speculation
    checked = 0
    if speculation is not None:
        checked = verified_tokens(speculation) - 1
    filled = service.filling.step_tokens if service.filling else 0
    tokens = min(max(budget, seqs * (1 + checked), filled), LONGEST_PASS_TOKENS)

    limits = {
        "most_tokens": tokens,
        "most_sequences": seqs * (1 + checked),
        "most_context_tokens": sizes.longest_tokens,
        "most_prompt_tokens": min(sizes.longest_prompt_tokens, tokens),
        "guesses": checked,
    }
    if not service.split:
        return _stacked(tuple(deployments), **limits), 1
    fracs = service.split.answers_fracs
    return _stacked_splits(tuple(deployments), fracs, sizes, **limits), 2 * len(fracs)


@lru_cache(maxsize=8)
def _stacked(deployments: tuple[Deployment, ...], **limits: int) -> Surface:
    """The tables of whole machines: megabytes, which searches ask for again with every rate that they try."""
    return stacked([surface_of(d, **limits) for d in deployments])


@lru_cache(maxsize=8)
def _stacked_splits(
    deployments: tuple[Deployment, ...], answers_fracs: tuple[float, ...], sizes: Sizes, **limits: int
) -> Surface:
    """The same of split ones."""
    found: list[Surface] = []
    for k, d in enumerate(deployments):
        for answers in sorted(answers_fracs):
            own, other = (1.0 - answers, answers) if k % 2 == 0 else (answers, 1.0 - answers)
            parts = with_share(d, own), _in_company(d, own, other, k % 2 == 0, sizes)
            found += [_drawing(d, surface_of(part, **limits), own) for part in parts]
    return stacked(found)


def _first_split(service: Service) -> int:
    """Where the first of a split's parts stands among all in order of size."""
    fracs = service.split.answers_fracs if service.split else (0.0,)
    return sorted(fracs).index(fracs[0])


def _drawing(d: Deployment, tables: Surface, own: float) -> Surface:
    """The tables of a part of the units, which draws that part of what the whole device would above idle."""
    share = np.ones(CHANNELS)
    share[[MATRIX_WORK, MEMORY_WORK]] = own ** (1.0 / step_law(d.cluster.device).concave_power)
    return Surface(*(t * share if t.ndim > 1 else t for t in tables))


def _in_company(d: Deployment, own: float, other: float, is_prompts: bool, sizes: Sizes) -> Deployment:
    """A part of a device while the other part works too: where both ask for more than the memory gives, each gets its
    demand's share."""
    device = d.cluster.device
    mine, theirs = (
        _demand_frac(with_share(d, f), p, sizes, device) for f, p in ((own, is_prompts), (other, not is_prompts))
    )
    if mine + theirs <= 1.0:
        return with_share(d, own)
    return with_share(d, own, bandwidth_frac=min(1.0, mine / (mine + theirs)))


def _demand_frac(d: Deployment, is_prompts: bool, sizes: Sizes, device: Device) -> float:
    """Share of the whole device's memory bandwidth that a usual step of a phase uses."""
    none, one = np.array([0]), np.array([1])
    prompt = np.array([min(2048, max(1, sizes.longest_prompt_tokens))])
    decodes, context = np.array([64]), np.array([max(1, round(sizes.mean_context_tokens))])
    batch = Batch(
        prompt_sequences=one if is_prompts else none,
        prompt_tokens=prompt if is_prompts else none,
        prompt_context_tokens=prompt if is_prompts else none,
        decode_sequences=none if is_prompts else decodes,
        decode_context_tokens=none if is_prompts else context,
    )
    return min(1.0, memory_demand_frac(device, step(d, batch), 0))


def _link(service: Service, d: Deployment) -> tuple[float, float]:
    """The way from a replica to the pools for answers, for the bytes of its fullest device."""
    targets = [p.deployment for p in service.pools if p.role == "answers"] or [d]
    links = [link_between(d, t, same_node=service.is_same_node, parts=parts_of(service)) for t in targets]
    return min(x.bandwidth_bytes_per_s for x in links) / holders(d), max(x.latency_s for x in links)


def parts_of(service: Service) -> int:
    """Parts in which a cache goes over: its layers, or all at once."""
    return service.pools[0].deployment.model.num_layers if service.is_layerwise else 1


def _lending_s(service: Service) -> float:
    """Step time added where part of the attention runs elsewhere: a query out and a partial sum back, each layer."""
    d = service.pools[0].deployment
    link = link_between(d, replace(d), same_node=service.is_same_node)
    query_bytes = 2.0 * 2.0 * d.model.hidden_size
    return d.model.num_layers * 2.0 * (link.latency_s + query_bytes / link.bandwidth_bytes_per_s)
