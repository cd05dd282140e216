"""A plan as files of Kubernetes (with HPA or KEDA), KServe, llm-d, Dynamo, Ray Serve and Slurm."""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from orrery.base.errors import UnknownName
from orrery.catalog.deploy import deploy_facts, kind_of
from orrery.planner.deploy.yaml_text import yaml_text
from orrery.planner.plan import Plan

PORT = 8000
METRICS = {"vllm": "vllm:num_requests_running", "sglang": "sglang:num_running_reqs"}
"""Each engine's own gauge of requests in flight."""

STARTUP_PERIOD_S = 10
STABLE_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One replica's command, taken apart, and the numbers that files take from the plan."""

    name: str
    engine: str
    model: str
    args: tuple[str, ...]  # behind the model's name
    replicas: int
    devices: int  # of one replica
    node_devices: int
    target: int  # requests in flight at which a replica is full within the objectives
    startup_s: float
    tp: int
    pp: int
    dp: int

    @property
    def command(self) -> tuple[str, ...]:
        """Return the engine's own program."""
        if self.engine == "sglang":
            return ("python3", "-m", "sglang.launch_server", "--model-path", self.model)
        return ("vllm", "serve", self.model)


def written(plan: Plan, engine: str, startup_s: float) -> Written:
    """Return what a plan says, for one engine. ``startup_s`` is how long a replica takes to start."""
    o = plan.operation
    words = [word for word in shlex.split(plan.launch[engine].replace("\\\n", " "), comments=True) if word.strip()]
    start = next(i for i, word in enumerate(words) if word.startswith("-") and word not in ("-m", "--model-path"))
    model = o.deployment.model.name
    layout = o.deployment.layout
    return Written(
        name=re.sub(r"[^a-z0-9]+", "-", model.casefold().rpartition("/")[2]).strip("-")[:50],
        engine=engine,
        model=model,
        args=tuple(words[start:]),
        replicas=o.replicas,
        devices=layout.num_devices,
        node_devices=o.deployment.cluster.devices_per_node,
        target=max(1, int(o.max_concurrency)),
        startup_s=startup_s,
        tp=layout.tp,
        pp=layout.pp,
        dp=layout.dp,
    )


def _head(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": kind_of(kind).api, "kind": kind, "metadata": {"name": name}}


def _deployment(w: Written) -> dict[str, Any]:
    labels = {"app": w.name}
    probe = {"httpGet": {"path": "/health", "port": PORT}}
    container = {
        "name": "server",
        "image": str(deploy_facts()[f"{w.engine}_image"].value),
        "command": list(w.command),
        "args": [*w.args, "--port", str(PORT)],
        "ports": [{"containerPort": PORT}],
        "resources": {"limits": {"nvidia.com/gpu": w.devices}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        "startupProbe": {
            **probe,
            "periodSeconds": STARTUP_PERIOD_S,
            "failureThreshold": ceil(2 * w.startup_s / STARTUP_PERIOD_S),
        },
        "readinessProbe": probe,
    }
    pod = {"containers": [container], "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}
    spec = {
        "replicas": w.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {**_head("Deployment", w.name), "spec": spec}


def _service(w: Written) -> dict[str, Any]:
    ports = [{"port": 80, "targetPort": PORT}]
    return {**_head("Service", w.name), "spec": {"selector": {"app": w.name}, "ports": ports}}


def _kubernetes(w: Written) -> str:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": w.name}
    metric = {"metric": {"name": METRICS[w.engine]}, "target": {"type": "AverageValue", "averageValue": str(w.target)}}
    scaler = {
        **_head("HorizontalPodAutoscaler", w.name),
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": w.replicas,
            "metrics": [{"type": "Pods", "pods": metric}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": STABLE_S}},
        },
    }
    return yaml_text(_deployment(w), _service(w), scaler)


def _keda(w: Written) -> str:
    trigger = {
        "serverAddress": "http://prometheus-operated.monitoring:9090",
        "query": f'sum({METRICS[w.engine]}{{app="{w.name}"}}) + sum(vllm:num_requests_waiting{{app="{w.name}"}})',
        "threshold": str(w.target),
    }
    scaler = {
        **_head("ScaledObject", w.name),
        "spec": {
            "scaleTargetRef": {"name": w.name},
            "minReplicaCount": 0,
            "maxReplicaCount": w.replicas,
            "cooldownPeriod": max(STABLE_S, ceil(2 * w.startup_s)),
            "triggers": [{"type": "prometheus", "metadata": trigger}],
        },
    }
    return yaml_text(_deployment(w), _service(w), scaler)


def _kserve(w: Written) -> str:
    model = {
        "modelFormat": {"name": "huggingface"},
        "storageUri": f"hf://{w.model}",
        "args": list(w.args),
        "resources": {"limits": {"nvidia.com/gpu": w.devices}},
    }
    predictor = {"minReplicas": 1, "maxReplicas": w.replicas, "scaleMetric": "concurrency", "scaleTarget": w.target}
    return yaml_text({**_head("InferenceService", w.name), "spec": {"predictor": {**predictor, "model": model}}})


LAID_OUT = frozenset({"--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"})
"""Flags that a file says in fields of its own."""


def _others(args: tuple[str, ...]) -> list[str]:
    """The flags without those of the layout."""
    found: list[str] = []
    skips = False
    for word in args:
        if not skips and word not in LAID_OUT:
            found.append(word)
        skips = word in LAID_OUT
    return found


def _llm_d(w: Written) -> str:
    degrees = {"tensor": w.tp, "pipeline": w.pp, "data": w.dp}
    container = {
        "name": "main",
        "env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": shlex.join(_others(w.args))}],
        "resources": {"limits": {"nvidia.com/gpu": w.devices}},
    }
    spec: dict[str, Any] = {
        "model": {"uri": f"hf://{w.model}", "name": w.model},
        "replicas": w.replicas,
        "parallelism": {name: n for name, n in degrees.items() if n > 1 or name == "tensor"},
        "router": {"route": {}, "gateway": {}, "scheduler": {}},
        "template": {"containers": [container]},
    }
    return yaml_text({**_head("LLMInferenceService", w.name), "spec": spec})


def _dynamo(w: Written) -> str:
    image = str(deploy_facts()["dynamo_image"].value)
    worker: dict[str, Any] = {
        "workingDir": "/workspace/examples/backends/vllm",
        "command": ["python3", "-m", "dynamo.vllm"],
        "args": ["--model", w.model, *w.args],
        "resources": {"limits": {"nvidia.com/gpu": str(w.devices)}},
    }
    parts = (("Frontend", "frontend", 1, dict[str, Any]()), ("VllmDecodeWorker", "worker", w.replicas, worker))
    components = [
        {
            "name": name,
            "type": kind,
            "replicas": replicas,
            "podTemplate": {"spec": {"containers": [{"name": "main", "image": image, **container}]}},
        }
        for name, kind, replicas, container in parts
    ]
    return yaml_text({**_head("DynamoGraphDeployment", w.name), "spec": {"components": components}})


def _ray(w: Written) -> str:
    kwargs: dict[str, Any] = {}
    pairs = zip(w.args, (*w.args[1:], "--"), strict=True)
    for word, after in pairs:
        if word.startswith("--"):
            kwargs[word[2:].replace("-", "_")] = True if after.startswith("--") else _number(after)
    config = {
        "model_loading_config": {"model_id": w.name, "model_source": w.model},
        "deployment_config": {
            "autoscaling_config": {
                "min_replicas": 1,
                "max_replicas": w.replicas,
                "target_ongoing_requests": w.target,
            }
        },
        "engine_kwargs": kwargs,
    }
    application = {
        "name": w.name,
        "route_prefix": "/",
        "import_path": "ray.serve.llm:build_openai_app",
        "args": {"llm_configs": [config]},
    }
    return yaml_text({"applications": [application]})


def _number(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _slurm(w: Written) -> str:
    nodes = ceil(w.devices / w.node_devices)
    options = {
        "--job-name": w.name,
        "--nodes": nodes,
        "--ntasks-per-node": 1,
        "--gpus-per-node": min(w.devices, w.node_devices),
        "--array": f"0-{w.replicas - 1}",
        "--output": f"{w.name}-%A-%a.log",
    }
    lines = ["#!/bin/bash", *(f"#SBATCH {flag}={value}" for flag, value in options.items()), ""]
    return "\n".join([*lines, f"srun {shlex.join([*w.command, *w.args, '--port', str(PORT)])}", ""])


WRITERS: Mapping[str, tuple[str, Callable[[Written], str], frozenset[str]]] = {
    "kubernetes": ("kubernetes.yaml", _kubernetes, frozenset({"vllm", "sglang"})),
    "keda": ("keda.yaml", _keda, frozenset({"vllm"})),
    "kserve": ("kserve.yaml", _kserve, frozenset({"vllm"})),
    "llm-d": ("llm-d.yaml", _llm_d, frozenset({"vllm"})),
    "dynamo": ("dynamo.yaml", _dynamo, frozenset({"vllm"})),
    "ray": ("ray-serve.yaml", _ray, frozenset({"vllm"})),
    "slurm": ("slurm.sh", _slurm, frozenset({"vllm", "sglang"})),
}
"""Orchestrator -> file, its writer, and the engines whose command it can start."""


def deploy_file(kind: str, w: Written) -> tuple[str, str]:
    """Return the file's name and text for one orchestrator."""
    if kind not in WRITERS:
        raise UnknownName("orchestrator", kind, WRITERS)
    name, write, _ = WRITERS[kind]
    return name, write(w)
