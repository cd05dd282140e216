"""Properties of a shape beside its calls: the knob that counts its samples, and the choice of its one answer."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from orrery.base.knobs import check_above


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One answer out of ``num_tries`` independent ones, by a vote or by what a verifier says of each.

    Each try is the last of ``num_rounds``, which mend a wrong answer as likely as a first try is right and spoil none.
    """

    by: Literal["vote", "check"]
    num_tries: int = 1
    num_rounds: int = 1
    num_checks: int = 1  # of each try, where a verifier chooses


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeKnobs:
    """The knobs of a shape."""

    samples: ClassVar[str] = ""
    """The knob that more samples turn up; empty where a shape has none."""

    @property
    def choice(self) -> Choice | None:
        """The rule that chooses the answer; None where no law gives its accuracy."""
        return None

    @property
    def num_answers(self) -> int:
        """Questions that one graph answers."""
        return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledKnobs(ShapeKnobs):
    """``num_samples`` independent answers."""

    samples: ClassVar[str] = "num_samples"
    num_samples: int = 16

    def __post_init__(self) -> None:
        check_above(self, "num_samples", 0)
