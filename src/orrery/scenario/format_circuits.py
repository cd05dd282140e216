"""Circuits of a multiply-accumulate in a format on an FPGA: lookup tables alone, or multiplier blocks and tables."""

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.hardware.lut_count import Circuit, mac_circuit
from orrery.numerics.format import Format

COSTS = ("lut", "dsp")
SUM_TERMS = 1024


def check_cost(cost: str | None, sum_terms: int | None) -> None:
    """Refuse another word, and a length of sums that nothing is counted for."""
    if cost is None:
        if sum_terms is not None:
            raise ScenarioError('sum_terms: has no effect without cost; write cost = "lut" beside it.')
    elif cost not in COSTS:
        raise ScenarioError(f"cost: got {cost!r}; write {' or '.join(COSTS)}.")


def circuit_of(format: Format, cost: str, sum_terms: int | None, notes: list[str]) -> Circuit | None:
    """The circuit of the format's elements, scales aside; None, and a note, where none is counted."""
    if format.element is None:
        notes.append(f"{format.name}: a mixture of formats has no circuit of its own")
        return None
    try:
        return mac_circuit(format.element, "dsp" if cost == "dsp" else "lut", sum_terms or SUM_TERMS)
    except OutOfRange as error:
        notes.append(f"{format.name}: no circuit is counted: {error}")
        return None


def describe(cost: str, sum_terms: int | None) -> str:
    """The circuit as text, for a note."""
    means = "multiplier blocks of 27 x 18 bits with tables beside them" if cost == "dsp" else "lookup tables alone"
    return (
        f"cost: one multiply-accumulate of two elements of a format in {means}, sums of {sum_terms or SUM_TERMS} "
        "products exact; scales of blocks are not counted"
    )
