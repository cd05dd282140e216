"""A game of two players whose payoffs lie with many workers, solved by messages that are compressed both ways.

    min over x, max over y of   mean over workers of  x' A_m y + a_m' x - b_m' y  + (weight / 2) (|x|^2 - |y|^2)

z = (x, y) moves along F(z) = (gradient for x, minus gradient for y). An extragradient step asks all workers twice. With
a reference point w whose F(w) everybody knows, only the difference to it needs to travel, compressed (masha-2022)::

    c = t z + (1 - t) w     z_half = c - s F(w)     z = c - s (F(w) + C[mean of C(F_m(z_half) - F_m(w))])

and now and then, with probability 1 - t, w moves to z and F(w) travels whole. A biased compressor C remembers what it
left out and adds it to the next message.
"""

from dataclasses import dataclass, field

import numpy as np

from orrery.base.technique import Technique
from orrery.engine.streams import stream
from orrery.fleet.decentral.compressor import NUMBER_BITS, Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Game:
    """F_m(z) = matrices[m] z + offsets[m] of every worker; its only solution; and how steep F is."""

    matrices: Floats  # workers x size x size
    offsets: Floats  # workers x size
    solution: Floats
    steepness_ratio: float

    @property
    def num_workers(self) -> int:
        """That hold a part of the payoff."""
        return len(self.matrices)

    def error(self, point: Floats) -> float:
        """Squared distance to the solution, as a part of that of zero."""
        return float(((point - self.solution) ** 2).sum() / (self.solution**2).sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Path:
    """The error against the bits that one worker sent and was sent."""

    num_bits: Floats
    error_frac: Floats

    def bits_to(self, error_frac: float) -> float:
        """Until the error is that small; infinite where it never is."""
        good = np.flatnonzero(self.error_frac <= error_frac)
        return float(self.num_bits[good[0]]) if good.size else float("inf")


@dataclass(slots=True, kw_only=True, eq=False)
class _Channel:
    """One sender's compressor and what it has left out so far."""

    technique: Technique
    knobs: object
    remembers: bool
    draw: np.random.Generator
    left_out: Floats
    num_bits: float = field(default=0.0)

    def send(self, vector: Floats) -> Floats:
        """The vector that arrives."""
        target = vector + self.left_out if self.remembers else vector
        message = self.technique.rule(target, self.knobs, self.draw)
        if self.remembers:
            self.left_out = target - message.received
        self.num_bits += message.num_bits
        return message.received


def game(num_workers: int, size: int, weight_ratio: float, spread_ratio: float, seed: int = 0) -> Game:
    """Random payoffs of ``size`` moves a player, of steepness one in the mean.

    ``weight_ratio`` draws both players to zero; a worker's payoff differs from what all share by ``spread_ratio``.
    """
    draw = stream(seed, "saddle/game")
    shared = draw.standard_normal((size, size))
    payoffs = shared + spread_ratio * draw.standard_normal((num_workers, size, size))
    payoffs /= np.linalg.norm(payoffs.mean(axis=0), 2)
    matrices = np.zeros((num_workers, 2 * size, 2 * size))
    matrices[:, :size, size:], matrices[:, size:, :size] = payoffs, -np.swapaxes(payoffs, 1, 2)
    matrices += weight_ratio * np.eye(2 * size)
    offsets = draw.standard_normal((num_workers, 2 * size))
    mean: Floats = matrices.mean(axis=0)
    solution = np.asarray(np.linalg.solve(mean, -offsets.mean(axis=0)), dtype=np.float64)
    return Game(
        matrices=matrices,
        offsets=offsets,
        solution=solution,
        steepness_ratio=float(np.linalg.norm(mean, 2)),
    )


LOST_FRAC = 1e6
"""An error so many times that of zero will not come back."""


def extragradient(of: Game, step_ratio: float, num_steps: int, until_frac: float) -> Path:
    """Whole messages, two rounds a step, each up and down; until the error is that small, or lost."""
    matrix, offset = of.matrices.mean(axis=0), of.offsets.mean(axis=0)
    point, step = np.zeros(offset.size), step_ratio / of.steepness_ratio
    errors = [of.error(point)]
    for _ in range(num_steps):
        half = point - step * (matrix @ point + offset)
        point = point - step * (matrix @ half + offset)
        errors.append(of.error(point))
        if not until_frac < errors[-1] < LOST_FRAC:
            break
    bits = 4.0 * NUMBER_BITS * offset.size * np.arange(len(errors))
    return Path(num_bits=bits, error_frac=np.array(errors))


def compressed(
    of: Game,
    technique: Technique,
    knobs: object,
    *,
    remembers: bool,
    move_frac: float,
    step_ratio: float,
    num_steps: int,
    until_frac: float,
    seed: int = 0,
    participating_frac: float = 1.0,
    compresses_down: bool = True,
) -> Path:
    """Differences to a reference point, compressed up and down; the reference moves with probability ``move_frac``.

    In each step ``participating_frac`` of the workers, drawn anew, send; bits are of the mean worker. Without
    ``compresses_down`` the server's messages travel whole, and only what workers send counts.
    """
    size, draw = int(of.offsets.shape[1]), stream(seed, "saddle/steps")
    channels = [
        _Channel(technique=technique, knobs=knobs, remembers=remembers, draw=draw, left_out=np.zeros(size))
        for _ in range(of.num_workers + 1)
    ]
    matrix, offset = of.matrices.mean(axis=0), of.offsets.mean(axis=0)
    point, step = np.zeros(size), step_ratio / of.steepness_ratio
    ways = 2.0 if compresses_down else 1.0
    reference, known, whole = point, matrix @ point + offset, ways * NUMBER_BITS * size
    bits, errors, server = [whole], [of.error(point)], channels.pop()
    for _ in range(num_steps):
        centre = (1.0 - move_frac) * point + move_frac * reference
        half = centre - step * known
        present: list[int] = list(range(of.num_workers))
        if participating_frac < 1.0:
            present = draw.permutation(of.num_workers)[: max(1, round(participating_frac * of.num_workers))].tolist()
        sent = [channels[i].send(of.matrices[i] @ (half - reference)) for i in present]
        arrived = np.mean(sent, axis=0)
        point = centre - step * (known + (server.send(arrived) if compresses_down else arrived))
        if draw.random() < move_frac:
            reference, known, whole = point, matrix @ point + offset, whole + ways * NUMBER_BITS * size
        bits.append(whole + sum(c.num_bits for c in channels) / of.num_workers + server.num_bits)
        errors.append(of.error(point))
        if not until_frac < errors[-1] < LOST_FRAC:
            break
    return Path(num_bits=np.array(bits), error_frac=np.array(errors))
