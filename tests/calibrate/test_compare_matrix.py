"""Faults over models, devices and cuts; and faults that were made elsewhere than in the causes."""

import json
from dataclasses import replace
from math import log

import numpy as np
import pytest

import orrery
from orrery.calibrate.compare.compare import compare_runs, compare_tables
from orrery.calibrate.compare.problem import problem_of
from orrery.calibrate.compare.read import read_measured
from orrery.calibrate.compare.registry import known_causes
from orrery.calibrate.compare.run import predict
from orrery.catalog.devices import FOLDER
from orrery.evidence.check import check_table
from orrery.evidence.tables import Table
from orrery.serving.metrics.latencies import latencies
from orrery.serving.requests import Requests
from orrery.serving.simulation.simulate import simulate

CAUSES = {cause.name: cause for cause in known_causes()}

METRICS = ("ttft_s", "tpot_s", "output_tokens_per_s")
LOADS = ((1, 256, 256), (96, 256, 256), (1, 2048, 128), (48, 2048, 128))

DEPLOYMENTS = [
    ("llama-3.1-8b", "h100-sxm", 1, "bf16"),
    ("llama-3.1-8b", "a100-sxm-80gb", 4, "bf16"),
    ("qwen2.5-32b", "h100-sxm", 4, "fp8"),
    ("qwen2.5-32b", "a100-sxm-80gb", 1, "bf16"),
    ("mixtral-8x7b", "h100-sxm", 4, "fp8"),
]

PLAIN_RATIO, HIDDEN_RATIO = 1.5, 0.25
"""Misfit of a fault without any noise, over what makes one cause as likely as nothing: of one that stands out of the
prediction's own error, and of one that hides in it."""

FAULTS = [
    ("host-bound", 8.0),
    ("synchronous-host", 6.0),
    ("wrong-clocks", 0.4),
    ("slow-memory", 0.4),
    ("pcie-instead-of-nvlink", 0.4),
    ("batch-limit", 12.0),
    ("kv-preemption", 0.04),
    ("padded-batches", 3.0),
    ("static-batches", 1.0),
    ("network-to-client", 0.4),
    ("front-end", 3e-4),
    ("unquantised", 2.0),
    ("fewer-devices", 2.0),
]
"""With the severity at which each is planted, or the first one beyond it on the cause's ladder that stands out."""

STEPWISE = ("batch-limit", "static-batches", "unquantised", "fewer-devices", "pcie-instead-of-nvlink")
"""Faults that are there or not."""


def rows(model, device, tp, weights, loads=LOADS):
    return [
        {
            "kind": "serving",
            "model": model,
            "device": device,
            "num_devices": str(tp),
            "tp": str(tp),
            "weights_format": weights,
            "engine": "vllm",
            "engine_version": "0.11.0",
            "mode": "closed",
            "concurrency": str(c),
            "input_tokens": str(i),
            "output_tokens": str(o),
            **dict.fromkeys(METRICS, "1"),
        }
        for c, i, o in loads
    ]


def table(rows):
    return Table("runs.csv", {c: [row[c] for row in rows] for c in rows[0]})


def with_fault(plain, fault, severity, seed=0, noise=0.04):
    """Rows as a fault makes them, with noise; None where the fault cannot show in any of them."""
    rng = np.random.default_rng(seed)
    runs = read_measured([table(plain)]).runs
    changed = [CAUSES[fault].change(run, severity) for run in runs]
    if not any(changed):
        return None
    out = []
    for row, run, other in zip(plain, runs, changed, strict=True):
        values = predict(other or run, METRICS)
        found = {m: repr(float(values[m].value * np.exp(noise * rng.standard_normal()))) for m in METRICS}
        out.append(row | found)
    return out


def misfit_ratio(plain, fault, severity):
    """Misfit of a fault by itself, over the gain at which exp(S / 2) of one cause is the number of causes."""
    measured = read_measured([table(plain)])
    problem = problem_of(measured.runs, measured.cells)
    effect = problem.effect_ratio(CAUSES[fault], severity)
    needed = 2.0 * log(len(CAUSES)) + log(len(problem.cells))
    return 0.0 if effect is None else replace(problem, residual_ratio=effect).misfit_ratio() / needed


def harder(plain, fault, severity):
    """Severities of a cause's ladder beyond one, mildest first."""
    ladder = CAUSES[fault].ladder(read_measured([table(plain)]).runs)
    return [one for one in ladder if (one > severity) == (ladder[-1] > ladder[0]) and one != severity]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "severity"), FAULTS, ids=[f for f, _ in FAULTS])
@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=[f"{m}-{d}-tp{t}" for m, d, t, _ in DEPLOYMENTS])
def test_each_fault_that_stands_out_is_named_first_or_with_those_that_it_cannot_be_told_from(
    deployment, fault, severity
):
    plain = rows(*deployment)
    tried = (severity, *harder(plain, fault, severity))
    shown = next((one for one in tried if misfit_ratio(plain, fault, one) > PLAIN_RATIO), None)
    if shown is None or (slow := with_fault(plain, fault, shown)) is None:
        pytest.skip("cannot show in this deployment, or never beyond the prediction's own error")
    answer = compare_tables([table(slow)])
    assert fault not in answer.excluded
    assert answer.nothing_frac < 0.5
    assert fault in (answer.suspects[0].cause, *answer.suspects[0].not_told_from)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [f for f, _ in FAULTS if f not in STEPWISE])
@pytest.mark.parametrize("deployment", DEPLOYMENTS[1:3], ids=[f"{m}-{d}-tp{t}" for m, d, t, _ in DEPLOYMENTS[1:3]])
def test_a_fault_that_hides_in_the_interval_is_not_claimed(deployment, fault):
    """The first one of its ladder, halved until it hides."""
    plain = rows(*deployment)
    ladder = CAUSES[fault].ladder(read_measured([table(plain)]).runs)
    first, none = ladder[0], 1.0 if 0.5 < ladder[0] < 2.0 else 0.0
    mild = next(s for k in range(12) if misfit_ratio(plain, fault, s := none + (first - none) / 2**k) < HIDDEN_RATIO)
    if (slow := with_fault(plain, fault, mild)) is None:
        pytest.skip("cannot show in this deployment")
    answer = compare_tables([table(slow)])
    assert answer.verdict == "within the interval"
    assert answer.nothing_frac > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=[f"{m}-{d}-tp{t}" for m, d, t, _ in DEPLOYMENTS])
def test_healthy_runs_with_five_per_cent_noise_name_nothing(deployment):
    for seed in range(3):
        healthy = with_fault(rows(*deployment, LOADS[1:3]), "host-bound", 1.0, seed=seed, noise=0.05)
        assert compare_tables([table(healthy)]).verdict == "within the interval"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "cause"),
    [({}, ""), ({"max_num_seqs": 12}, "batch-limit"), ({"gpu_memory_utilization": 0.3}, "kv-preemption")],
    ids=["healthy", "batch-limit", "kv-preemption"],
)
def test_what_the_simulator_serves_with_a_fault_is_recognised_from_its_result_files(settings, cause, tmp_path):
    """Unlike the clients of rows that are checked, those of `orrery simulate` never pause."""
    requested = {"model": "llama-3.1-8b", "device": "h100-sxm", "engine": "vllm", "engine_version": "0.11.0"}
    paths = []
    for number, (concurrency, prompt, answer) in enumerate(((1, 512, 128), (96, 512, 128), (64, 3000, 200))):
        found = orrery.simulate(
            **requested,
            **settings,
            concurrency=concurrency,
            input_tokens=prompt,
            output_tokens=answer,
            num_requests=max(20, 5 * concurrency),
            seed=number,
        ).to_json()
        retained = {k: v for k, v in found.items() if k not in ("deployment", "settings", "counters", "notes")}
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(retained))
    answer = compare_runs(paths, requested)
    if not cause:
        assert answer.verdict == "within the interval"
    else:
        assert answer.suspects[0].cause == cause


@pytest.mark.slow
def test_a_host_that_is_slow_in_another_way_than_the_cause_has_it_is_recognised():
    """Only the work of a step takes longer, nothing hides it, and clients come back at once."""
    plain = rows("llama-3.1-8b", "h100-sxm", 1, "bf16")
    slow = []
    for row, run in zip(plain, read_measured([table(plain)]).runs, strict=True):
        pool = run.service.pools[0]
        engine = replace(pool.deployment.engine, step_s=8e-3, overlap_frac=0.0)
        service = replace(run.service, pools=(replace(pool, deployment=replace(pool.deployment, engine=engine)),))
        count, clients = max(16, 4 * run.workload.concurrency), run.workload.concurrency
        requests = Requests(
            arrive_s=np.zeros(count),
            after=np.maximum(np.arange(count) - clients, -1),
            input_tokens=np.full(count, int(row["input_tokens"])),
            output_tokens=np.full(count, int(row["output_tokens"])),
        )
        times = latencies(simulate(service, requests))
        rate = float(times.output_tokens.sum() / times.finish_s.max())
        found = dict(zip(METRICS, (times.ttft_s.mean(), times.long_tpot_s.mean(), rate), strict=True))
        slow.append(row | {m: repr(float(v)) for m, v in found.items()})
    answer = compare_tables([table(slow)])
    assert answer.suspects[0].cause == "synchronous-host"
    assert answer.suspects[0].severity_said.startswith(("7", "8", "9"))  # milliseconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fact", "share", "cause"),
    [("memory_bandwidth_bytes_per_s", 0.45, "slow-memory"), ("_flops_per_s", 0.4, "wrong-clocks")],
)
def test_a_device_file_with_lower_rates_is_recognised(fact, share, cause, tmp_path):
    """The slow device is a file of its own, with borrowed constants: neither facts nor errors are the cause's."""
    lines = (FOLDER / "h100-sxm.toml").read_text().splitlines()
    path = tmp_path / "slow.toml"
    path.write_text("\n".join(['measured_as = "h100-sxm"', *(_scaled(line, fact, share) for line in lines)]))
    plain = rows("llama-3.1-8b", "h100-sxm", 1, "bf16")
    found = check_table(table([row | {"device": str(path)} for row in plain])).answers.predicted
    slow = [row | {m: repr(float(found[m][i])) for m in METRICS} for i, row in enumerate(plain)]
    answer = compare_tables([table(slow)])
    assert answer.suspects[0].cause == cause
    assert answer.suspects[0].severity == pytest.approx(share, rel=0.2)


def _scaled(line, fact, share):
    """A line of a device file, its value scaled where the fact's name ends so."""
    name, _, rest = line.partition(" = ")
    if not name.endswith(fact) or not rest.startswith('{ value = "'):
        return line
    number, _, unit = rest.removeprefix('{ value = "').partition(" ")
    return f'{name} = {{ value = "{float(number) * share} {unit}'
