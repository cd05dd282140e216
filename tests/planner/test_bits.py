"""A format for each layer: the integer program against every assignment, its limits, ties, and what it is fed."""

import itertools
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from orrery import bits, kernels
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.memory import Infeasible
from orrery.planner.bits.front import front
from orrery.planner.bits.layer import Layer, layers_of, product
from orrery.planner.bits.options import Options, arithmetic, options_of
from orrery.planner.bits.sensitivity import drawn_errors, relative_error
from orrery.planner.bits.solve import solve, uniform
from orrery.scenario.bits_checkpoint import layers_in

METRICS = ("latency", "size", "energy")


def drawn(rng, num_layers, num_formats, *, num_kinds=0, ties=()):
    """Random costs; ``num_kinds``: so many different layers, the others are copies."""
    kinds = rng.integers(0, num_kinds, num_layers) if num_kinds else np.arange(num_layers)
    tables = [rng.uniform(0.1, 1.0, (num_layers, num_formats))[kinds] for _ in range(4)]
    layers = tuple(
        Layer(name=f"layer {i}", group="all", work=product(1, 1, 1), num_parameters=1, tied="tied" if i in ties else "")
        for i in range(num_layers)
    )
    return Options(
        layers=layers,
        formats=tuple("abcd"[:num_formats]),
        perturbation_ratio=tables[0],
        latency_s=tables[1],
        size_bytes=tables[2],
        energy_j=tables[3],
    )


def sums(options, metric, choice):
    table = options.perturbation_ratio if metric == "perturbation" else options.cost(metric)
    return table[np.arange(len(choice)), list(choice)].sum()


def brute_force(options, limits, ties=()):
    """The least perturbation of any assignment within the limits; infinite where none is."""
    best = np.inf
    for choice in itertools.product(range(len(options.formats)), repeat=len(options.layers)):
        if len({choice[i] for i in ties}) > 1:
            continue
        if all(sums(options, metric, choice) <= limit * (1 + 1e-9) for metric, limit in limits.items()):
            best = min(best, sums(options, "perturbation", choice))
    return best


@pytest.mark.parametrize("seed", range(24))
def test_the_program_finds_what_trying_everything_finds(seed):
    rng = np.random.default_rng(seed)
    ties = (0, 2, 3) if seed % 3 == 0 else ()
    options = drawn(rng, 6, 3, num_kinds=3 if seed % 2 else 0, ties=ties)
    share = rng.uniform(0.3, 0.8)
    ends = {
        metric: (options.cost(metric).min(axis=1).sum(), options.cost(metric).max(axis=1).sum()) for metric in METRICS
    }
    limits = {
        metric: float((1 - share) * ends[metric][0] + share * ends[metric][1]) for metric in METRICS[: 1 + seed % 3]
    }
    found, best = solve(options, limits), brute_force(options, limits, ties)
    if isinstance(found, Infeasible):
        assert best == np.inf
        return
    assert found.is_proven
    assert found.perturbation_ratio == pytest.approx(best, rel=1e-9)
    assert all(found.total(metric) <= limit * (1 + 1e-9) for metric, limit in limits.items())
    assert len({found.choice[i] for i in ties}) <= 1


def test_without_limits_every_layer_takes_its_least_perturbation():
    options = drawn(np.random.default_rng(1), 30, 4)
    assert (solve(options, {}).choice == options.perturbation_ratio.argmin(axis=1)).all()


def test_a_tighter_limit_never_perturbs_less():
    options = drawn(np.random.default_rng(2), 20, 3)
    low, high = options.latency_s.min(axis=1).sum(), options.latency_s.max(axis=1).sum()
    found = [solve(options, {"latency": float(x)}).perturbation_ratio for x in np.linspace(low * 1.001, high, 12)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("metric", METRICS)
def test_a_limit_below_the_least_is_an_answer_with_numbers(metric):
    options = drawn(np.random.default_rng(3), 12, 3)
    least = options.cost(metric).min(axis=1).sum()
    found = solve(options, {metric: 0.5 * float(least)})
    assert isinstance(found, Infeasible)
    assert (found.need, found.have) == (pytest.approx(least), pytest.approx(0.5 * least))
    assert found.smallest_change
    assert not isinstance(solve(options, {metric: found.need}), Infeasible)


def test_limits_that_exclude_each_other_say_what_the_first_would_have_to_be():
    options = drawn(np.random.default_rng(4), 8, 3)
    options = replace(options, size_bytes=1.1 - options.latency_s)  # what is fast is large
    limits = {
        "latency": 1.05 * options.latency_s.min(axis=1).sum(),
        "size": 1.05 * options.size_bytes.min(axis=1).sum(),
    }
    found = solve(options, limits)
    assert isinstance(found, Infeasible)
    assert found.unit == "s"
    assert brute_force(options, {**limits, "latency": found.need}) < np.inf
    assert brute_force(options, {**limits, "latency": 0.999 * found.need}) == np.inf


def test_equal_layers_take_the_formats_in_the_order_they_were_given():
    options = drawn(np.random.default_rng(5), 10, 2, num_kinds=1)
    found = solve(options, {"latency": float(options.latency_s.mean(axis=1).sum())})
    assert list(found.choice) == sorted(found.choice)


def test_nothing_on_the_front_beats_another_point_of_it():
    options = drawn(np.random.default_rng(6), 15, 3)
    points = front(options, {})
    times, perturbed = [a.total("latency") for a in points], [a.perturbation_ratio for a in points]
    assert len(points) > 5
    assert times == sorted(times)
    assert perturbed == sorted(perturbed, reverse=True)
    assert perturbed[-1] == pytest.approx(options.perturbation_ratio.min(axis=1).sum())


def test_the_front_keeps_the_limits_on_everything_else():
    options = drawn(np.random.default_rng(7), 12, 3)
    limit = float(options.size_bytes.mean(axis=1).sum())
    assert all(a.total("size") <= limit * (1 + 1e-9) for a in front(options, {"size": limit, "latency": 1.0}))
    assert front(options, {"size": 0.01}) == ()


def test_layers_of_a_model_hold_its_parameters_and_leave_out_what_recipes_keep():
    model = get_model("llama-3.1-8b")
    layers = layers_of(model, tokens=16)
    assert len(layers) == 4 * model.num_layers
    assert len({layer.name for layer in layers}) == len(layers)
    assert sum(x.num_parameters for x in layers) == sum(
        b.count * sum(linear.num_parameters for linear in b.linears) for b in model.blocks
    )
    with_head = layers_of(model, tokens=16, kept_16bit=False)
    assert [x.group for x in with_head if x not in layers][-1] == "head"


def test_experts_are_a_choice_of_their_own():
    model = get_model("mixtral-8x7b")
    layers = [x for x in layers_of(model, tokens=64) if x.name.endswith("experts")]
    assert len(layers) == model.num_layers
    options = options_of(layers, ("bf16", "fp8"), get_device("h100-sxm"), {})
    assert (options.latency_s[:, 0] > options.latency_s[:, 1]).all()


def test_costs_are_those_of_the_kernels_and_of_the_stored_bits():
    device, layer = (
        get_device("h100-sxm"),
        Layer(name="a", group="a", work=product(4096, 8192, 8192), num_parameters=8192**2),
    )
    options = options_of((layer, replace(layer, count=3)), ("bf16", "fp8"), device, {"bf16": 1e-6, "fp8": 1e-3})
    assert options.size_bytes[0].tolist() == [2.0 * 8192**2, 1.0 * 8192**2]
    for table in (options.latency_s, options.size_bytes, options.energy_j, options.perturbation_ratio):
        assert table[1] == pytest.approx(3.0 * table[0])
    assert 1.3 < options.latency_s[0, 0] / options.latency_s[0, 1] < 2.2
    power_w = options.energy_j / options.latency_s
    assert (power_w > device.idle_power_w).all()
    assert (power_w <= device.power_limit_w).all()


def test_measured_times_and_errors_take_the_place_of_estimates():
    layer = Layer(
        name="a",
        group="a",
        work=product(64, 64, 64),
        num_parameters=4096,
        weight_ratio=2.0,
        times_s={"bf16": 5.0, "fp8": 4.0},
        errors={"bf16": 0.25, "fp8": 0.5},
    )
    device = get_device("h100-sxm")
    options = options_of((layer, replace(layer, perturbations={"bf16": 1.0, "fp8": 7.0})), ("bf16", "fp8"), device, {})
    assert options.latency_s.tolist() == [[5.0, 4.0], [5.0, 4.0]]
    assert options.perturbation_ratio.tolist() == [[0.5, 1.0], [1.0, 7.0]]


def test_what_a_device_cannot_multiply_runs_unpacked():
    assert arithmetic("nvfp4", get_device("b200")) == "nvfp4"
    assert arithmetic("nvfp4", get_device("h100-sxm")) == "int4_weight_only"


def test_fewer_bits_err_more_and_activations_count_only_where_they_are_narrowed():
    formats = ("bf16", "fp8", "nvfp4")
    blackwell, hopper = (drawn_errors(formats, get_device(name), seed=3) for name in ("b200", "h100-sxm"))
    assert blackwell["bf16"] < blackwell["fp8"] < blackwell["nvfp4"]
    assert hopper["fp8"] == blackwell["fp8"]
    assert hopper["nvfp4"] < blackwell["nvfp4"]  # weights alone: Hopper unpacks them
    assert drawn_errors(formats, get_device("b200"), seed=3) == blackwell


def write_safetensors(path, tensors):
    """A file as the format has it: eight bytes of length, a JSON header, the numbers."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        bits = (array.view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_a_checkpoint_gives_layers_and_their_errors(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "model.embed_tokens.weight": rng.standard_normal((32, 16)).astype(np.float32),
        "model.layers.0.mlp.up_proj.weight": rng.standard_normal((64, 32)).astype(np.float32),
        "model.layers.0.mlp.down_proj.weight": (rng.standard_t(3, (32, 64)) * 5).astype(np.float32),
        "model.norm.weight": np.ones(16, dtype=np.float32),
    }
    write_safetensors(tmp_path / "model.safetensors", tensors)
    formats, down = ("bf16", "nvfp4"), "model.layers.0.mlp.down_proj.weight"
    for path in (tmp_path, tmp_path / "model.safetensors"):
        layers = layers_in(path, 4, formats, {})
        assert [(x.name.split(".")[-2], x.num_parameters) for x in layers] == [("up_proj", 2048), ("down_proj", 2048)]
        stored = (tensors[down].view(np.uint32) >> 16 << 16).view(np.float32)
        assert layers[1].errors["nvfp4"] == pytest.approx(relative_error(stored, "nvfp4"))
        assert layers[1].errors["bf16"] == 0.0
    weighed = layers_in(tmp_path, 4, formats, {down: 0.5})[1]
    assert weighed.weight_ratio == 0.5
    assert weighed.errors["nvfp4"] == pytest.approx(
        layers[1].errors["nvfp4"] * float((stored.astype(float) ** 2).sum())
    )


@pytest.mark.parametrize("content", [b"", b"\x05\0\0\0\0\0\0\0abcde", b"\xff" * 16])
def test_what_is_no_checkpoint_is_refused(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(ScenarioError, match=r"a\.safetensors"):
        layers_in(tmp_path / "a.safetensors", 1, ("bf16", "fp8"), {})
    with pytest.raises(ScenarioError, match="holds no"):
        layers_in(tmp_path.parent / tmp_path.name / "..", 1, ("bf16", "fp8"), {})


def test_a_uniform_assignment_is_one_format_everywhere():
    options = drawn(np.random.default_rng(8), 5, 3)
    found = uniform(options, "b")
    assert found.formats == ("b",) * 5
    assert found.total("size") == pytest.approx(options.uniform("size")[1])


def test_a_missing_solver_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ScenarioError, match=r"pip install 'orrery-ai\[bits\]'"):
        solve(drawn(np.random.default_rng(0), 2, 2), {})


def test_integer_only_products_write_codes_and_off_writes_sixteen_bits():
    device, layer = get_device("t4"), Layer(name="a", group="a", work=product(4096, 512, 64), num_parameters=512 * 64)
    wide, codes = (
        options_of((layer,), ("int8", "int4_int4"), device, {"int8": 0.0, "int4_int4": 1.0}, is_integer_only=flag)
        for flag in (False, True)
    )
    for column, (format, bytes_each) in enumerate((("int8", 1.0), ("int4_int4", 0.5))):
        op = replace(layer.work, format=format)
        plain, narrow = (kernels.predict(replace(op, result_bytes=b), device) for b in (0.0, bytes_each))
        assert wide.latency_s[0, column] == pytest.approx(float(plain.time_s))
        assert codes.latency_s[0, column] == pytest.approx(float(narrow.time_s))
        assert float(plain.bytes - narrow.bytes) == 4096 * 512 * (2.0 - bytes_each)
    # a long sum of few results gains nothing
    deep = replace(layer, work=product(64, 64, 1 << 16))
    few = [options_of((deep,), ("int8",), device, {"int8": 0.0}, is_integer_only=flag) for flag in (False, True)]
    assert few[1].latency_s[0, 0] == pytest.approx(few[0].latency_s[0, 0], rel=1e-2)


def test_integer_only_refuses_floats_experts_and_devices_without_them():
    asked = {"model": "llama-3.2-1b", "integer_only": True}
    for change, words in (
        ({"device": "h100-sxm", "formats": "bf16,int8"}, "multiplies no integers of bf16"),
        ({"device": "h100-sxm", "formats": "int8,int4_int4"}, "multiplies no integers of int4_int4"),
        ({"device": "t4", "formats": "int8,w4a4", "model": "mixtral-8x7b"}, "is a block of experts"),
    ):
        with pytest.raises(ScenarioError, match=words):
            bits(**asked | change)
