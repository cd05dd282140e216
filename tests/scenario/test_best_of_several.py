"""The fastest row of a kernel and the best way to spend a budget."""

from types import SimpleNamespace

from orrery.base.cost import Interval
from orrery.scenario import answer_budget
from orrery.scenario.answer_ways import Spent
from orrery.scenario.kernel.answer import KernelAnswer, KernelRow, Measured


def row(device, time_s, point=1, **more):
    usual = {"op": "gemm", "variant": "v", "format": "bf16", "engine": "", "interval": None, "flops": 6.0, "bytes": 9.0}
    usual |= {"roofs_s": {"compute": 1.0}, "bound_by": "compute", "details": {"tile": "8x8", "parts": [1]}}
    return KernelRow(device=device, time_s=time_s, sizes={"m": point}, varied={"m": point}, because="", **usual | more)


def test_the_fastest_of_every_point_and_device():
    rows = (row("a", 3.0), row("a", 2.0), row("a", 2.0, engine="later"), row("a", 9.0, 2), row("b", 5.0))
    answer = KernelAnswer(op="gemm", rows=rows, declined=(), swept={}, notes=())
    assert [(r.device, r.time_s, r.engine) for r in answer.fastest()] == [
        ("a", 2.0, ""),
        ("a", 9.0, ""),
        ("b", 5.0, ""),
    ]
    assert [r.time_s for r in answer.at(m=2)] == [9.0]


def test_a_row_as_cells():
    ends = Interval(low_80=1.5, high_80=2.5, low_95=1.0, high_95=3.0)
    measured = Measured(time_s=2.2, spread_frac=0.1, num_samples=3, library="l")
    cells = row("a", 2.0, interval=ends, measured=measured).cells()
    assert (cells["low_80_s"], cells["high_80_s"], cells["measured_s"]) == (1.5, 2.5, 2.2)
    assert (cells["roof_compute_s"], cells["tile"]) == (1.0, "8x8")
    assert "parts" not in cells
    bare = row("a", 2.0).cells()
    assert (bare["low_80_s"], bare["high_80_s"], bare["measured_s"]) == (None, None, None)
    plain = row("a", 2.0).to_json()
    assert (plain["flops_per_s"], plain["bytes_per_s"]) == (3.0, 4.5)
    nothing = row("a", 0.0).to_json()
    assert (nothing["flops_per_s"], nothing["bytes_per_s"]) == (0.0, 0.0)


def way(shape, usd, right_frac):
    return Spent(shape=shape, way=SimpleNamespace(usd=usd, right_frac=right_frac))


def test_a_budget_is_spent_where_answers_are_right_most_often():
    """Of equal shares the cheaper way; what is dearer than the budget, or of unknown share or price, is none."""
    cheap, same, better, dear = way("a", 1.0, 0.5), way("a", 0.5, 0.5), way("b", 2.0, 0.6), way("b", 2.01, 0.9)
    free, unknown, priceless = way("c", 0.0, 0.0), way("c", 0.1, None), way("c", None, 0.9)
    found = answer_budget.ranked(2.0, [cheap, same, better, dear, free, unknown, priceless])
    assert found.ranked == (better, same, free)
    assert found.cheapest_usd == 0.0
    assert answer_budget.ranked(0.1, [cheap, better]).cheapest_usd == 1.0
    assert answer_budget.ranked(1.0, [unknown]).cheapest_usd == float("inf")
