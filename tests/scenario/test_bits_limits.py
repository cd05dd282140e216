"""``orrery bits``: limits as shares and as numbers, and the words it refuses, on tables of round numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.execution.memory import Infeasible
from orrery.kernels.ops import Gemm, MoE
from orrery.planner.bits.layer import Layer
from orrery.scenario import bits as page
from orrery.scenario.bits import BitsQuestion

H100, FPGA = get_device("h100-sxm"), get_device("alveo-u280")
TOTALS = {"latency": [2.0, 6.0], "size": [30.0, 10.0], "energy": [1.0, 4.0]}
OPTIONS = SimpleNamespace(uniform=lambda metric: np.array(TOTALS[metric]))


def question(**settings):
    return BitsQuestion.model_validate(settings)


def test_shares_are_of_the_worst_format_for_all_and_the_tighter_limit_holds():
    assert page._limits(question(), OPTIONS) == {}
    assert page._limits(question(latency_ratio=0.5, size_bytes=12.0), OPTIONS) == {"latency": 3.0, "size": 12.0}
    assert page._limits(question(energy_ratio=0.5, energy_j=1.5), OPTIONS) == {"energy": 1.5}
    assert page._limits(question(energy_ratio=0.25, energy_j=1.5), OPTIONS) == {"energy": 1.0}


@pytest.mark.parametrize(
    ("unit", "need", "says"),
    [
        ("s", 2.0, "latency_ratio = 0.3334"),  # a third, rounded up to four digits
        ("bytes", 15.0, "size_ratio = 0.5,"),
        ("j", 4.0, "energy_ratio = 1,"),
    ],
)
def test_what_cannot_be_met_says_the_share_that_can(unit, need, says):
    lacks = Infeasible(what="limit", need=need, have=0.1, unit=unit, smallest_change="")
    assert says in page._in_settings(lacks, question(), OPTIONS).smallest_change


def test_circuits_are_for_devices_with_lookup_tables():
    assert page._fabric(question(), H100) is None
    built = page._fabric(question(cost="lut"), FPGA)
    assert (built.device, built.cost, built.num_terms) == (FPGA, "lut", page.SUM_TERMS)
    assert page._fabric(question(cost="dsp", sum_terms=7), FPGA).cost == "dsp"
    assert page._fabric(question(cost="dsp", sum_terms=7), FPGA).num_terms == 7
    with pytest.raises(ScenarioError, match="h100-sxm states no lookup tables"):
        page._fabric(question(cost="lut"), H100)
    with pytest.raises(ScenarioError, match="engine: of kernels, and circuits have none"):
        page._fabric(question(cost="lut", engine="vllm"), FPGA)


def layer(name="a", work=None):
    return Layer(name=name, group="g", count=1, num_parameters=16, work=work or Gemm(m=1, n=4, k=4, format="bf16"))


def test_whole_numbers_are_multiplied_where_a_device_does():
    page._check_integers([layer()], ["int8"], H100)
    for format in ("fp8", "int8_weight_only", "int4_int4"):  # no integers; weights alone; not on Hopper
        with pytest.raises(ScenarioError, match=f"multiplies no integers of {format}"):
            page._check_integers([layer()], ["int8", format], H100)
    routed = MoE(tokens=1, hidden_size=4, ffn_size=4, num_experts=2, experts_per_token=1, format="bf16")
    with pytest.raises(ScenarioError, match="experts is a block of experts"):
        page._check_integers([layer(), layer("experts", routed)], ["int8"], H100)


def test_what_is_known_of_a_layer_goes_to_it_alone():
    layers = (layer("a"), layer("b"), layer("c"))
    a, b, c = page._weighed(layers, {"a": 3.0, "b": {"int8": 0.5}})
    assert (a.weight_ratio, a.perturbations) == (3.0, {})
    assert (b.weight_ratio, b.perturbations) == (layers[1].weight_ratio, {"int8": 0.5})
    assert c == layers[2]
    with pytest.raises(ScenarioError, match="there is no layer 'd'; layers are called like 'a'"):
        page._weighed(layers, {"d": 1.0})


def test_one_source_of_layers_and_two_formats():
    for given, says in (({}, "all missing"), ({"model": "m", "layers": "f"}, "got model and layers")):
        with pytest.raises(ScenarioError, match=says):
            page._layers(question(**given), ("bf16",), [])
    with pytest.raises(ScenarioError, match="a list of layers says its own m"):
        page._layers(question(layers="f.csv", tokens=3), ("bf16",), [])
    assert page._formats(question(formats="bf16,fp8,bf16")) == ("bf16", "fp8")
    for few in (None, "bf16", "bf16,bf16"):
        with pytest.raises(ScenarioError, match="write two or more"):
            page._formats(question(formats=few))
    notes = []
    page._layers(question(model="llama-3.2-1b"), ("bf16",), notes)
    assert "tokens: 16 in a step (default)" in notes
    said = []
    page._layers(question(model="llama-3.2-1b", tokens=16), ("bf16",), said)
    assert not any(note.startswith("tokens") for note in said)


def test_errors_are_drawn_only_for_layers_without_their_own(monkeypatch):
    monkeypatch.setattr(page, "drawn_errors", lambda formats, device, seed, is_fabric: {"seed": seed, "on": is_fabric})
    own = Layer(
        name="a", group="g", count=1, num_parameters=1, work=Gemm(m=1, n=1, k=1, format="bf16"), errors={"int8": 1.0}
    )
    notes = []
    assert page._errors([own], ["int8"], H100, question(), notes) == {}
    assert notes == []
    assert page._errors([own, layer()], ["int8"], H100, question(), notes) == {"seed": 0, "on": False}
    assert page._errors([layer()], ["int8"], H100, question(seed=4, cost="dsp"), notes) == {"seed": 4, "on": True}
    assert "(seed 0)" in notes[0]
