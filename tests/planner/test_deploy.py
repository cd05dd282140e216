"""Files of orchestrators: every field is a recorded one, and every value is the plan's."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from orrery import plan
from orrery.base.errors import ScenarioError
from orrery.catalog.deploy import kinds
from orrery.cli.main import run
from orrery.planner.deploy.files import WRITERS, written
from orrery.planner.deploy.yaml_text import yaml_text
from orrery.scenario.deploy import deploy_files

yaml = pytest.importorskip("yaml")

ASK = {
    "model": "llama-3.1-70b",
    "device": "h100-sxm",
    "rate": 40,
    "input_tokens": 1000,
    "output_tokens": 200,
    "pp": 1,
    "dp": 1,
}


@pytest.fixture(scope="module")
def answer():
    return plan(**ASK, slo=["tpot:40"], max_devices=16, weights="fp8", tp=2)


@pytest.fixture(scope="module")
def files(answer):
    return deploy_files(answer, ",".join(WRITERS))[0]


def paths(value, before=""):
    """Every leaf of plain data as a dotted path."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from paths(item, f"{before}.{key}" if before else key)
    elif isinstance(value, list) and value:
        for item in value:
            yield from paths(item, before + "[]")
    else:
        yield before


def is_recorded(path, fields):
    pattern = [re.escape(f).replace(r"\*", r"[^\[\]]+") for f in fields]
    return any(re.fullmatch(p, path) for p in pattern)


@pytest.mark.parametrize("name", [file for file, _, _ in WRITERS.values() if file.endswith(".yaml")])
def test_every_field_is_a_recorded_one(files, name):
    documents = list(yaml.safe_load_all(files[name]))
    assert documents
    for document in documents:
        kind = kinds()[document.get("kind", "RayServe")]
        if "kind" in document:
            assert document.pop("apiVersion") == kind.api
            document.pop("kind")
        wrong = [path for path in paths(document) if not is_recorded(path, kind.fields)]
        assert not wrong, wrong


def test_values_are_the_plans(answer, files):
    best = answer.plans[0].operation
    assert best.replicas > 1
    deployment, _, scaler = yaml.safe_load_all(files["kubernetes.yaml"])
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert deployment["spec"]["replicas"] == scaler["spec"]["maxReplicas"] == best.replicas
    assert container["resources"]["limits"]["nvidia.com/gpu"] == best.deployment.layout.num_devices == 2
    assert scaler["spec"]["metrics"][0]["pods"]["target"]["averageValue"] == str(int(best.max_concurrency))
    assert container["command"] == ["vllm", "serve", "meta-llama/Llama-3.1-70B"]
    args = container["args"]
    assert args[args.index("--tensor-parallel-size") + 1] == "2"
    assert args[args.index("--kv-cache-dtype") + 1] == best.deployment.formats.kv
    ray = yaml.safe_load(files["ray-serve.yaml"])["applications"][0]["args"]["llm_configs"][0]
    assert ray["engine_kwargs"]["tensor_parallel_size"] == 2
    assert ray["deployment_config"]["autoscaling_config"]["max_replicas"] == best.replicas
    frontend, worker = yaml.safe_load(files["dynamo.yaml"])["spec"]["components"]
    (served,) = worker["podTemplate"]["spec"]["containers"]
    assert (frontend["type"], frontend["replicas"]) == ("frontend", 1)
    assert (worker["type"], worker["replicas"], served["resources"]["limits"]["nvidia.com/gpu"]) == (
        "worker",
        best.replicas,
        "2",
    )
    assert served["command"] == ["python3", "-m", "dynamo.vllm"]
    assert yaml.safe_load(files["llm-d.yaml"])["spec"]["parallelism"] == {"tensor": 2}
    assert "--tensor-parallel-size" not in files["llm-d.yaml"]
    assert yaml.safe_load(files["kserve.yaml"])["spec"]["predictor"]["scaleTarget"] == int(best.max_concurrency)


def test_a_start_that_lasts_is_allowed_twice_as_long(answer):
    one = written(answer.plans[0], "vllm", 100.0)
    probe = next(iter(yaml.safe_load_all(WRITERS["kubernetes"][1](one))))["spec"]["template"]["spec"]["containers"][0]
    assert probe["startupProbe"]["failureThreshold"] * probe["startupProbe"]["periodSeconds"] == 200


def test_the_slurm_script_is_one_that_a_shell_reads(answer, files, tmp_path):
    text = files["slurm.sh"]
    options = dict(line.removeprefix("#SBATCH ").split("=") for line in text.splitlines() if line.startswith("#SBATCH"))
    assert set(options) <= set(kinds()["sbatch"].fields)
    assert options["--array"] == f"0-{answer.plans[0].operation.replicas - 1}"
    assert options["--gpus-per-node"] == "2"
    path = tmp_path / "slurm.sh"
    path.write_text(text)
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    assert shlex.split(text.splitlines()[-1])[:3] == ["srun", "vllm", "serve"]


def test_yaml_comes_back_as_it_went_in():
    data = {
        "a": [{"b": 1, "c": ["yes", "x: y", "", "1e3"]}, {"d": {}}],
        "e": {"f": 'q"uote', "g": True, "h": 1.5},
        "i": [],
    }
    assert yaml.safe_load(yaml_text(data)) == data


def test_the_command_writes_the_folder(tmp_path, capsys):
    flags = [w for k, v in ASK.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    words = ["plan", *flags, "--weights", "fp8", "--max-devices", "16", "--slo", "tpot:40", "--tp", "2"]
    assert run([*words, "--manifest", "keda,slurm", "--out", str(tmp_path / "x"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    names = sorted(path.name for path in (tmp_path / "x").iterdir())
    assert names == sorted(printed["manifests"]) == ["keda.yaml", "slurm.sh"]


def test_what_an_orchestrator_cannot_start_is_refused(answer):
    with pytest.raises(ScenarioError, match="write one or several of kubernetes"):
        deploy_files(answer, "nomad")
    other = plan(**ASK, slo=["tpot:40"], max_devices=16, weights="fp8", tp=2, engine="sglang")
    with pytest.raises(ScenarioError, match="kserve starts vllm, not sglang"):
        deploy_files(other, "kserve")
    text = deploy_files(other, "kubernetes")[0]["kubernetes.yaml"]
    assert "sglang.launch_server" in text
    assert "sglang:num_running_reqs" in text


@pytest.mark.slow
@pytest.mark.skipif("ORRERY_KUBERNETES" not in os.environ, reason="tools/checks/clients.sh installs the client")
def test_recorded_fields_are_those_of_the_kubernetes_client():
    """And it says so of a field that is none."""
    asked = {name: kinds()[name].fields for name in ("Deployment", "Service", "HorizontalPodAutoscaler")}
    asked["Service"] = (*asked["Service"], "spec.ports[].nothing")
    script = Path(__file__).parent / "foreign" / "kubernetes_fields.py"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [os.environ["ORRERY_KUBERNETES"], str(script)]
    found = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=True, env=environment
    )
    assert json.loads(found.stdout) == [["Service", "spec.ports[].nothing"]]
