"""(n, s) gradient codes: n workers each send one vector, and any n - s of them give the sum of all n partial gradients.

Worker i sends ``sum_j M[i, j] g_j`` over the s + 1 chunks that it holds. The master looks for coefficients a, zero
for whoever is missing, with ``a M = (1, …, 1)``; then ``a answers`` is the sum of all g_j. [tandon-2017]

Two constructions. Fractional repetition, where s + 1 divides n: groups of s + 1 workers hold the same s + 1 chunks and
send their plain sum; one answer a group is enough. Cyclic: worker i holds chunks i … i + s (mod n), with real
coefficients in the null space of a random s x n matrix whose columns sum to zero.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.engine.streams import stream

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RESIDUAL = 1e-6
"""Largest distance of ``a M`` from all ones at which decoding is accepted; rounding leaves far less."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientCode:
    """One code: its matrix, and how answers are put together."""

    num_stragglers: int
    is_repetition: bool
    matrix_ratio: Floats  # (workers, chunks); zero where the worker does not hold the chunk

    @property
    def num_workers(self) -> int:
        """Workers, and chunks of a job."""
        return self.matrix_ratio.shape[0]

    @property
    def load_frac(self) -> float:
        """Share of a job's data that one worker computes on: (s + 1) / n."""
        return (self.num_stragglers + 1) / self.num_workers

    def encode(self, chunks: Floats) -> Floats:
        """Messages of all workers, (workers, width), for partial gradients (chunks, width)."""
        return self.matrix_ratio @ chunks

    def decode(self, answers: Floats, answered: Bools) -> Floats:
        """The sum of all partial gradients from the answers (workers, width) of those who answered."""
        return self.coefficients(answered) @ np.where(answered[:, None], answers, 0.0)

    def coefficients(self, answered: Bools) -> Floats:
        """Factors of the answers; zero for the missing. Refused where more than s are missing."""
        missing = int(np.count_nonzero(~answered))
        if self.is_repetition:
            return self._one_a_group(answered, missing)
        if missing > self.num_stragglers:
            raise self._refusal(missing)
        who = np.flatnonzero(answered)
        known = np.linalg.lstsq(self.matrix_ratio[who].T, np.ones(self.num_workers), rcond=None)[0]
        if np.abs(known @ self.matrix_ratio[who] - 1.0).max() > RESIDUAL:
            raise OutOfRange(
                f"gradient code: n = {self.num_workers}, s = {self.num_stragglers} is too badly conditioned for these "
                "stragglers; choose s so that s + 1 divides n."
            )
        found = np.zeros(self.num_workers)
        found[who] = known
        return found

    def _one_a_group(self, answered: Bools, missing: int) -> Floats:
        """The first answer of every group of s + 1."""
        grouped = answered.reshape(-1, self.num_stragglers + 1)
        if not grouped.any(axis=1).all():
            raise self._refusal(missing)
        found = np.zeros(grouped.shape)
        found[np.arange(len(grouped)), grouped.argmax(axis=1)] = 1.0
        return found.ravel()

    def _refusal(self, missing: int) -> OutOfRange:
        return OutOfRange(
            f"gradient code: {missing} of {self.num_workers} workers are missing and the code tolerates "
            f"{self.num_stragglers}; wait for more workers or choose a larger s."
        )


def gradient_code(num_workers: int, num_stragglers: int, *, kind: str = "", seed: int = 0) -> GradientCode:
    """The code of that ``kind``: "repetition", "cyclic", or "" for repetition where s + 1 divides n.

    >>> gradient_code(4, 1).matrix_ratio[0].tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    n, s = num_workers, num_stragglers
    if not 0 <= s < n:
        raise ScenarioError(f"max_stragglers: got {s} of {n} workers; write 0 to {n - 1}.")
    divides = n % (s + 1) == 0
    if kind not in ("", "repetition", "cyclic"):
        raise ScenarioError(f"gradient code: kind = {kind!r}; write 'repetition' or 'cyclic'.")
    if kind == "repetition" and not divides:
        raise ScenarioError(f"gradient code: s + 1 = {s + 1} does not divide n = {n}; write kind = 'cyclic'.")
    if divides and kind != "cyclic":
        group = np.arange(n) // (s + 1)
        matrix = (group[:, None] == group).astype(np.float64)
        return GradientCode(num_stragglers=s, is_repetition=True, matrix_ratio=matrix)
    return GradientCode(num_stragglers=s, is_repetition=False, matrix_ratio=_cyclic(n, s, seed))


def _cyclic(n: int, s: int, seed: int) -> Floats:
    """Row i lives on i … i + s and is orthogonal to every row of a random matrix H with H 1 = 0, as 1 is too."""
    parity = stream(seed, f"coding/cyclic/{n}/{s}").standard_normal((s, n))
    parity[:, -1] = -parity[:, :-1].sum(axis=1)
    matrix = np.zeros((n, n))
    for i in range(n):
        held = (i + np.arange(s + 1)) % n
        matrix[i, held[0]] = 1.0
        if s:
            matrix[i, held[1:]] = -np.linalg.solve(parity[:, held[1:]], parity[:, held[0]])
    return matrix
