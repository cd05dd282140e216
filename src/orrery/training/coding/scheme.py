"""Interface of a coded scheme: its load, its delay, the stragglers that it tolerates, and the decoded gradients.

Jobs are gradients g(0), g(1), …; round t starts job t, and job t must be decoded by the end of round t + delay. Two
schemes at ``training.straggler`` differ only in what they make of stragglers.
"""

from dataclasses import dataclass
from typing import Protocol

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.coding.gradient_code import Bools, Floats, GradientCode


class Scheme(Protocol):
    """One way to spread redundant work over workers and rounds."""

    @property
    def num_workers(self) -> int:
        """Workers that take part in every round."""
        ...

    @property
    def num_chunks(self) -> int:
        """Parts into which the data of a job is cut."""
        ...

    @property
    def delay_rounds(self) -> int:
        """Rounds after its own in which a job must be done; 0 = within its round."""
        ...

    @property
    def load_frac(self) -> float:
        """Share of a job's data that a worker computes on in a round."""
        ...

    def tolerates(self, late: Bools) -> bool:
        """Whether the newest round of ``late`` (rounds, workers) may be given up on, the earlier ones being allowed."""
        ...

    def decode(self, chunks: Floats, late: Bools) -> Floats:
        """All gradients (jobs, width) from partial gradients (jobs, chunks, width), without the late answers.

        ``late`` is (jobs + delay, workers). Refused where a job cannot be decoded in time.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneCode:
    """The part of a scheme that uses a single code for every job."""

    code: GradientCode

    @property
    def num_workers(self) -> int:
        """Workers of the code."""
        return self.code.num_workers

    @property
    def num_chunks(self) -> int:
        """As many chunks as workers."""
        return self.code.num_workers

    @property
    def load_frac(self) -> float:
        """(s + 1) / n, with the code's own s."""
        return self.code.load_frac


@dataclass(frozen=True, slots=True, kw_only=True)
class CodingKnobs:
    """Parameters of a scheme.

    ``num_stragglers``: s of the plain code, lambda of the sequential ones: distinct stragglers in a window of
    ``window_rounds`` (W), each for at most ``burst_rounds`` (B) in a row. The plain code reads only the first.
    """

    num_stragglers: int = 15
    burst_rounds: int = 1
    window_rounds: int = 2

    def __post_init__(self) -> None:
        if self.num_stragglers < 0 or self.burst_rounds < 1 or self.window_rounds <= self.burst_rounds:
            raise ScenarioError(
                f"coding: got {self.num_stragglers} stragglers, bursts of {self.burst_rounds} in windows of "
                f"{self.window_rounds}; write num_stragglers >= 0 and window_rounds > burst_rounds >= 1."
            )


def checked(scheme: Scheme, chunks: Floats, late: Bools) -> tuple[int, int]:
    """Jobs and width, where the shapes fit the scheme."""
    jobs, parts, width = chunks.shape
    if parts != scheme.num_chunks or late.shape != (jobs + scheme.delay_rounds, scheme.num_workers):
        raise ScenarioError(
            f"coding: got chunks {chunks.shape} and late {late.shape}; write (jobs, {scheme.num_chunks}, width) and "
            f"(jobs + {scheme.delay_rounds}, {scheme.num_workers})."
        )
    return jobs, width


def undecodable(job: int, need: int, have: int, what: str) -> OutOfRange:
    """The refusal of a job that misses answers at its deadline."""
    return OutOfRange(f"coding: job {job} needs {need} {what} and has {have} at its deadline; wait for more workers.")
