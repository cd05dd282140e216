"""The serving engine as it generates rollouts: its host also brings log-probabilities back, and prompts are shared.

Log-probabilities of sampled tokens cost the host so much for each sequence of a step, between its logits and the next
step, so nothing hides them. An engine of several devices that Ray executes does not schedule the next step while one
runs. The rest is the engine as it serves. Responses to one prompt share its blocks of the cache.
"""

from dataclasses import dataclass, replace

import numpy as np

from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.rl.job import RlJob
from orrery.serving.requests import NONE, Floats, Ints, Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery.serving.synthesis.blocks import ranges


def deployed(job: RlJob) -> Deployment:
    """The replica that generates, with what the framework makes of its host."""
    engine, framework = job.generation.engine, job.framework
    if framework.returns_logprobs:
        engine = replace(engine, sampling_s=engine.sampling_s + framework.logprob_s)
    if framework.runs_engines_by_ray and job.generation.layout.num_devices > 1:
        engine = replace(engine, overlap_frac=0.0)
    return replace(job.generation, engine=engine)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Begun:
    """Sequences that enter the engine: one entry each, in the order of their prompts."""

    input_tokens: Ints  # the prompt, and of one that goes on what it has written
    output_tokens: Ints  # that are still to be written
    prompt: Ints  # which prompt each answers: 0, 1, … without gaps, in order
    prompt_tokens: Ints


def run(job: RlJob, begun: Begun, arrive_s: Floats | None = None, in_flight: int = 0) -> Simulated | Infeasible:
    """Serve the sequences. All at once, each replica has a run of them, dealt out before any begins; those that come
    over time, or as earlier ones end, go where there is least to do. Times follow the order of ``begun``."""
    is_static = arrive_s is None and not in_flight
    service = Service(
        pools=(Pool(deployment=deployed(job), replicas=job.replicas),),
        router="round-robin" if is_static else "least-loaded",
    )
    order = _dealt(begun.prompt.size, job.replicas) if is_static else np.arange(begun.prompt.size)
    start, ids, block = _shared_prompts(job, begun, order)
    found = simulate(
        service,
        Requests(
            arrive_s=np.zeros(order.size) if arrive_s is None else arrive_s,
            input_tokens=begun.input_tokens[order],
            output_tokens=begun.output_tokens[order],
            prefix_start=start,
            prefix_ids=ids,
            prefix_block_tokens=block,
        ),
        seed=job.seed,
        concurrency=in_flight,
    )
    if isinstance(found, Infeasible):
        return found
    back = np.argsort(order)
    return replace(
        found,
        finish_s=found.finish_s[back],
        first_token_s=found.first_token_s[back],
        machine=found.machine[back],
        admitted_s=found.admitted_s[back],
        preemptions=found.preemptions[back],
    )


def _dealt(count: int, replicas: int) -> Ints:
    """The order in which taking turns gives every replica a run of neighbours."""
    runs = np.array_split(np.arange(count), replicas)
    return np.array([x[turn] for turn in range(runs[0].size) for x in runs if turn < x.size], dtype=np.int64)


def _shared_prompts(job: RlJob, begun: Begun, order: Ints) -> tuple[Ints, Ints, int]:
    """(prefix_start, prefix_ids, tokens of a block): the whole blocks of each prompt, numbered by first use."""
    engine = job.generation.engine
    size = engine.block_tokens
    if not engine.has_prefix_caching or job.group == 1:
        return NONE.copy(), NONE.copy(), 0
    blocks = begun.prompt_tokens[order] // size
    if not blocks.any():
        return NONE.copy(), NONE.copy(), 0
    requested, first, which = np.unique(begun.prompt[order], return_index=True, return_inverse=True)
    by_use = np.argsort(first)
    begin = np.zeros(requested.size, dtype=np.int64)
    begin[by_use[1:]] = np.cumsum(blocks[first[by_use]])[:-1]
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(blocks))), ranges(begin[which], blocks), size
