"""Rollouts of one synchronous step: every sequence simulated, and what becomes of the slowest.

wait      all sequences of the step are begun at once, and the step waits for the last
partial   more prompts are begun than are needed; once enough have all their responses, the others stop, keep what they
          have written, and go on first in the next step [zhou-2025]
batching  short rounds begin more prompts and more responses than they need and take the first of both; prompts that
          were left behind are answered later, in long rounds that wait for all of them [gao-2025]
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.rl.engine import Begun, run
from orrery.rl.job import RlJob, Tail
from orrery.rl.lengths import Lengths, lengths_of
from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation.result import Simulated

ROUNDS, SETTLED = 7, 3
"""Steps that are simulated where one leaves work to the next, and the last of them that count."""

BULK_FRAC = 0.9
"""The tail is the time after so many of the sequences have ended."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """Rollouts of one step."""

    lengths: Lengths  # of what is trained on
    time_s: float
    tail_s: float  # of it, after nine tenths of the sequences had ended
    busy_s: Floats  # of each replica
    written_tokens: float  # by all sequences of the round, also those that are dropped
    preemptions: int
    energy_j: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rollouts:
    """The steps that stand for all; figures are their means."""

    rounds: tuple[Round, ...]
    simulated: Simulated  # the last one

    @property
    def time_s(self) -> float:
        """From the first prompt to the last sequence that is waited for."""
        return float(np.mean([r.time_s for r in self.rounds]))

    @property
    def tail_s(self) -> float:
        """Seconds of ``time_s`` after nine tenths of the sequences had ended."""
        return float(np.mean([r.tail_s for r in self.rounds]))

    @property
    def busy_s(self) -> float:
        """Busy time (s) of the mean replica."""
        return float(np.mean([r.busy_s.mean() for r in self.rounds]))

    @property
    def written_tokens(self) -> float:
        """Output tokens of a step, those that are dropped too."""
        return float(np.mean([r.written_tokens for r in self.rounds]))

    @property
    def energy_j(self) -> float:
        """Energy (J) of all devices that generate."""
        return float(np.mean([r.energy_j for r in self.rounds]))

    @property
    def preemptions(self) -> int:
        """In the fullest round."""
        return max(r.preemptions for r in self.rounds)


def rollouts(job: RlJob) -> Rollouts | Infeasible:
    """The rollouts of a step that waits for them."""
    return TAILS[job.tail](job)


def whole_batch(job: RlJob, batch: int = 0) -> tuple[Begun, Lengths]:
    """All sequences of one step; of dynamic sampling also those of groups that teach nothing."""
    prompts = ceil(job.num_prompts / job.kept_frac)
    lengths = lengths_of(job.prompt, job.response, prompts, job.group, job.seed, batch)
    return begun_of(lengths, job.group), _first(lengths, job.num_samples)


def begun_of(lengths: Lengths, group: int) -> Begun:
    """Sequences from their first token."""
    return Begun(
        input_tokens=lengths.prompt,
        output_tokens=lengths.response,
        prompt_tokens=lengths.prompt,
        prompt=np.arange(lengths.prompt.size) // group,
    )


def _first(lengths: Lengths, count: int) -> Lengths:
    return Lengths(prompt=lengths.prompt[:count], response=lengths.response[:count])


def _wait(job: RlJob) -> Rollouts | Infeasible:
    begun, lengths = whole_batch(job)
    found = run(job, begun)
    if isinstance(found, Infeasible):
        return found
    ends = found.finish_s
    return Rollouts(
        rounds=(_round(job, lengths, found, ends, float(ends.max()), float(begun.output_tokens.sum())),),
        simulated=found,
    )


def _round(job: RlJob, lengths: Lengths, found: Simulated, ends: Floats, time_s: float, written: float) -> Round:
    """A round that is over after ``time_s``, whatever goes on then."""
    busy = np.zeros(job.replicas)
    np.maximum.at(busy, found.machine, np.minimum(ends, time_s))
    needed = np.sort(ends[ends <= time_s])
    bulk_s = float(needed[max(0, ceil(BULK_FRAC * needed.size) - 1)])
    return Round(
        lengths=lengths,
        time_s=time_s,
        tail_s=time_s - bulk_s,
        busy_s=busy,
        written_tokens=written,
        preemptions=int(found.preemptions.sum()),
        energy_j=found.energy_j * time_s / found.duration_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Flight:
    """Groups in flight: (groups, group) tokens, and what is written of each response."""

    prompt: Ints
    response: Ints
    written: Ints

    def then(self, other: Lengths, group: int) -> "_Flight":
        """These groups, and new ones behind them."""
        shape = (-1, group)
        return _Flight(
            prompt=np.concatenate((self.prompt, other.prompt.reshape(shape))),
            response=np.concatenate((self.response, other.response.reshape(shape))),
            written=np.concatenate((self.written, np.zeros_like(other.response).reshape(shape))),
        )

    def only(self, rows: Ints) -> "_Flight":
        return _Flight(prompt=self.prompt[rows], response=self.response[rows], written=self.written[rows])


def _partial(job: RlJob) -> Rollouts | Infeasible:
    none = np.zeros((0, job.group), dtype=np.int64)
    flight, rounds = _Flight(prompt=none, response=none, written=none), list[Round]()
    most, found = ceil(job.num_prompts * job.oversampling_ratio / job.kept_frac), None
    needed = ceil(job.num_prompts / job.kept_frac)
    for number in range(ROUNDS):
        new = lengths_of(job.prompt, job.response, most - len(flight.prompt), job.group, job.seed, number)
        flight = flight.then(new, job.group)
        found = _go_on(job, flight)
        if isinstance(found, Infeasible):
            return found
        ends = np.zeros(flight.prompt.shape)
        ends[flight.written < flight.response] = found.finish_s
        by_end = np.argsort(ends.max(axis=1), kind="stable")
        done, left = by_end[:needed], np.sort(by_end[needed:])
        time_s = float(ends[done].max())
        written = _written_at(flight, found, time_s)
        lengths = Lengths(prompt=flight.prompt[done].ravel(), response=flight.response[done].ravel())
        rounds.append(
            _round(
                job,
                _first(lengths, job.num_samples),
                found,
                found.finish_s,
                time_s,
                float((written - flight.written).sum()),
            )
        )
        flight = _Flight(prompt=flight.prompt, response=flight.response, written=written).only(left)
    assert found is not None
    return Rollouts(rounds=tuple(rounds[-SETTLED:]), simulated=found)


def _go_on(job: RlJob, flight: _Flight) -> Simulated | Infeasible:
    """Serve what is left of every response: what is written is read again, as a longer prompt."""
    open_, group = flight.written < flight.response, np.indices(flight.prompt.shape)[0]
    return run(
        job,
        Begun(
            input_tokens=(flight.prompt + flight.written)[open_],
            output_tokens=(flight.response - flight.written)[open_],
            prompt_tokens=flight.prompt[open_],
            prompt=np.unique(group[open_], return_inverse=True)[1],
        ),
    )


def _written_at(flight: _Flight, found: Simulated, time_s: float) -> Ints:
    """Tokens written of each response at a moment: evenly from a sequence's first token to its last."""
    open_ = flight.written < flight.response
    first, last = found.first_token_s, found.finish_s
    share = np.clip((time_s - first) / np.maximum(last - first, 1e-12), 0.0, 1.0)
    left = (flight.response - flight.written)[open_]
    part = np.where(last <= time_s, left, np.where(first <= time_s, np.minimum(1 + share * (left - 1), left - 1), 0))
    written = flight.written.copy()
    written[open_] += part.astype(np.int64)
    return written


def _batching(job: RlJob) -> Rollouts | Infeasible:
    ratio, group = job.oversampling_ratio, job.group
    prompts, responses = ceil(job.num_prompts * ratio), ceil(group * ratio)
    rounds, later, found = list[Round](), list[Lengths](), None
    while sum(x.prompt.size for x in later) < job.num_samples and prompts > job.num_prompts:
        drawn = lengths_of(job.prompt, job.response, prompts, responses, job.seed, len(rounds))
        found = run(job, begun_of(drawn, responses))
        if isinstance(found, Infeasible):
            return found
        ends = found.finish_s.reshape(prompts, responses)
        quick = np.argsort(ends, axis=1, kind="stable")[:, :group]
        each = np.take_along_axis(ends, quick, axis=1).max(axis=1)
        order = np.argsort(each, kind="stable")
        done, left = order[: job.num_prompts], order[job.num_prompts :]
        time_s = float(each[done].max())
        length = drawn.response.reshape(prompts, responses)
        taken = Lengths(
            prompt=np.repeat(drawn.prompt[::responses][done], group),
            response=np.take_along_axis(length, quick, axis=1)[done].ravel(),
        )
        share = np.clip(time_s / np.maximum(found.finish_s, 1e-12), 0.0, 1.0)
        rounds.append(_round(job, taken, found, found.finish_s, time_s, float((share * drawn.response).sum())))
        later.append(
            Lengths(prompt=np.repeat(drawn.prompt[::responses][left], group), response=length[left][:, :group].ravel())
        )
    if found is None:
        return _wait(job)
    put_off = _first(
        Lengths(prompt=np.concatenate([x.prompt for x in later]), response=np.concatenate([x.response for x in later])),
        job.num_samples,
    )
    found = run(job, begun_of(put_off, group))
    if isinstance(found, Infeasible):
        return found
    rounds.append(
        _round(job, put_off, found, found.finish_s, float(found.finish_s.max()), float(put_off.response.sum()))
    )
    return Rollouts(rounds=tuple(rounds), simulated=found)


TAILS: dict[Tail, Callable[[RlJob], Rollouts | Infeasible]] = {
    "wait": _wait,
    "partial": _partial,
    "batching": _batching,
}
"""Treatments of the slowest sequences, by name."""
