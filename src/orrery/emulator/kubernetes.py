"""A fleet as Kubernetes' interfaces show it: gauges as external metrics, pools as Deployments with a Scale subresource.

An autoscaler that reads ``external.metrics.k8s.io/v1beta1`` and writes ``autoscaling/v1`` drives the fleet as it would
drive a Deployment. Any namespace is taken; a fleet with prefill and decode pools has a Deployment for each.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec import Meta, Struct, field

from orrery.base.errors import ScenarioError
from orrery.emulator.bodies import read
from orrery.emulator.exchange import Exchange
from orrery.emulator.kubernetes_discovery import discovery_routes, resource_list
from orrery.emulator.metrics import EngineMetrics
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError
from orrery.emulator.selector import labels_match
from orrery.emulator.settings import Settings
from orrery.fleet.service.live_fleet import LiveFleet
from orrery.fleet.service.replicas import DRAINING, SERVING, STARTING

EXTERNAL = "external.metrics.k8s.io/v1beta1"
METRICS = f"/apis/{EXTERNAL}"
METRIC = f"{METRICS}/namespaces/{{namespace}}/{{name}}"
EVERYWHERE = "/apis/apps/v1/deployments"
LISTED = "/apis/apps/v1/namespaces/{namespace}/deployments"
DEPLOYMENT = f"{LISTED}/{{name}}"
SCALE = f"{DEPLOYMENT}/scale"
DEFAULT_NAMESPACE = "default"
WATCH, FIELDS = "watch", "fieldSelector"
DRY_RUN = "dryRun"
NAME, PREFILL_NAME = "orrery", "orrery-prefill"
"""Names of the Deployments: all pools, or those for answers; those for prompts alone. With regions each has its own,
and its name at the end."""

MAX_BODY_BYTES = 65_536
MERGE = ("application/merge-patch+json", "application/strategic-merge-patch+json")
OPERATIONS = "application/json-patch+json"

PUT_KINDS = ("application/json", "")
"""The Kubernetes client for Python (37.0.2) names no type, which is JSON to the API server."""

Replicas = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class ScaleSpec(Struct):
    """Replicas that should run."""

    replicas: Replicas


class ScaleMeta(Struct):
    """Name and version of what is written."""

    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 (Kubernetes' word)


class Scale(Struct, kw_only=True):
    """``autoscaling/v1`` Scale, as a PUT or a merge patch sends it."""

    spec: ScaleSpec
    kind: Literal["Scale"] = "Scale"
    metadata: ScaleMeta = field(default_factory=ScaleMeta)


class DeploymentSpec(Struct, forbid_unknown_fields=True):
    """A Deployment's replicas, which alone of its spec can be changed."""

    replicas: Replicas


class DeploymentPatch(Struct, kw_only=True, forbid_unknown_fields=True):
    """A merge patch of a Deployment."""

    spec: DeploymentSpec
    apiVersion: Literal["apps/v1"] = "apps/v1"  # noqa: N815 (Kubernetes' word)
    kind: Literal["Deployment"] = "Deployment"
    metadata: ScaleMeta = field(default_factory=ScaleMeta)


class PatchOperation(Struct):
    """One operation of a JSON patch."""

    op: Literal["replace", "add"]
    path: Literal["/spec/replicas"]
    value: Replicas


class Kubernetes:
    """The paths under ``/api`` and ``/apis``."""

    def __init__(self, pace: RealTimeDriver, live: LiveFleet, settings: Settings) -> None:
        self._pace, self._live, self._settings = pace, live, settings
        self._engines, self._versions = EngineMetrics(pace, settings), [1] * len(live.groups)
        self._created = _stamp(time.time())
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            METRICS: {"GET": self._list},
            METRIC: {"GET": self._metric},
            SCALE: {"GET": self._scale, "PUT": self._put, "PATCH": self._patch},
            EVERYWHERE: {"GET": self._deployments},
            LISTED: {"GET": self._deployments},
            DEPLOYMENT: {"GET": self._deployment, "PATCH": self._patch},
            **discovery_routes(),
        }

    # -- external metrics ---------------------------------------------------------------------------------------------

    def _gauges(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Name -> labels and values of every gauge; a colon is no letter of a metric's name in Kubernetes."""
        return {
            family.name.replace(":", "_"): [(s.labels, s.value) for s in family.samples]
            for family in self._engines.collect()
            if family.type == "gauge"
        }

    async def _list(self, exchange: Exchange) -> None:
        kind = {"singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
        await exchange.json(resource_list(EXTERNAL, tuple({"name": name, **kind} for name in self._gauges())))

    async def _metric(self, exchange: Exchange) -> None:
        name = exchange.path.rsplit("/", 1)[-1].replace(":", "_")
        found = self._gauges().get(name)
        if found is None:
            raise RequestError(404, f"There is no metric {name[:200]!r}; {METRICS} lists those that there are.")
        now = _stamp(time.time())
        await exchange.json(
            {
                "kind": "ExternalMetricValueList",
                "apiVersion": EXTERNAL,
                "metadata": {},
                "items": [
                    {"metricName": name, "metricLabels": labels, "timestamp": now, "value": quantity(value)}
                    for labels, value in found
                    if labels_match(exchange.query, labels)
                ],
            }
        )

    # -- the scale of a group of pools --------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        """Names of the Deployments that there are."""
        return _deployments(self._live)[::-1]

    def _group(self, exchange: Exchange) -> int:
        """The group that a path names."""
        name, found = exchange.path.split("/")[7], self._names()
        if name not in found:
            raise RequestError(404, f'deployments.apps "{name[:200]}" not found; there is {" and ".join(found)}.')
        return self._of(name)

    def _of(self, name: str) -> int:
        return _deployments(self._live).index(name)

    def _meta(self, name: str, namespace: str, group: int) -> dict[str, Any]:
        return {
            "name": name,
            "namespace": namespace,
            "resourceVersion": str(self._versions[group]),
            "creationTimestamp": self._created,
        }

    def _counts(self, group: int) -> tuple[int, int, int]:
        """Replicas of a group that should run, that there are, and that serve."""
        pools, targets = self._live.groups[group].pools, self._live.targets
        states = [state for pool, state, _, _ in self._live.replicas if pool in pools]
        there = sum(state in (STARTING, SERVING, DRAINING) for state in states)
        return sum(targets[p] for p in pools), there, states.count(SERVING)

    def _object(self, exchange: Exchange, group: int) -> dict[str, Any]:
        namespace, name = exchange.path.split("/")[5], exchange.path.split("/")[7]
        target, there, _ = self._counts(group)
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": self._meta(name, namespace, group),
            "spec": {"replicas": target},
            "status": {"replicas": there, "selector": f"app={name}"},
        }

    def _described(self, name: str, namespace: str) -> dict[str, Any]:
        """A group of pools as a Deployment; its one container stands for the engine."""
        group = self._of(name)
        target, there, serving = self._counts(group)
        labels, version = {"app": name}, self._versions[group]
        return {
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "metadata": self._meta(name, namespace, group)
            | {"uid": str(uuid5(NAMESPACE_URL, f"{namespace}/{name}")), "generation": version, "labels": labels},
            "spec": {
                "replicas": target,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "engine", "image": "orrery"}]},
                },
            },
            "status": {
                "observedGeneration": version,
                "replicas": there,
                "updatedReplicas": there,
                "readyReplicas": serving,
                "availableReplicas": serving,
                "unavailableReplicas": max(0, target - serving),
            },
        }

    async def _deployment(self, exchange: Exchange) -> None:
        self._group(exchange)
        await exchange.json(self._described(exchange.path.split("/")[7], exchange.path.split("/")[5]))

    async def _deployments(self, exchange: Exchange) -> None:
        """The Deployments of a namespace; all namespaces are shown as one."""
        query = parse_qs(exchange.query.decode("latin-1"), max_num_fields=32)
        if query.get(WATCH, ["false"])[-1] not in ("false", "0"):
            raise RequestError(400, "watch: changes are not streamed; list again.", WATCH)
        parts = exchange.path.split("/")
        namespace = parts[5] if len(parts) > 5 else DEFAULT_NAMESPACE
        names = [
            n for n in self._names() if labels_match(exchange.query, {"app": n}) and _is_field(query, n, namespace)
        ]
        await exchange.json(
            {
                "kind": "DeploymentList",
                "apiVersion": "apps/v1",
                "metadata": {"resourceVersion": str(sum(self._versions))},
                "items": [self._described(name, namespace) for name in names],
            }
        )

    async def _scale(self, exchange: Exchange) -> None:
        await exchange.json(self._object(exchange, self._group(exchange)))

    async def _put(self, exchange: Exchange) -> None:
        group = self._writable(exchange)
        wish = read(Scale, await exchange.body(kinds=PUT_KINDS, most_bytes=MAX_BODY_BYTES))
        name = exchange.path.split("/")[7]
        if wish.metadata.name not in ("", name):
            raise RequestError(400, f"metadata.name: got {wish.metadata.name[:200]!r}, and the path says {name!r}.")
        self._check_version(group, wish.metadata.resourceVersion)
        await self._set(exchange, group, wish.spec.replicas)

    async def _patch(self, exchange: Exchange) -> None:
        group = self._writable(exchange)
        raw = await exchange.body(kinds=(*MERGE, OPERATIONS), most_bytes=MAX_BODY_BYTES)
        if exchange.header(b"content-type").partition(";")[0].strip().lower() == OPERATIONS:
            found = read_operations(raw)
        else:
            wish = read(Scale if exchange.path.endswith("/scale") else DeploymentPatch, raw)
            self._check_version(group, wish.metadata.resourceVersion)
            found = wish.spec.replicas
        await self._set(exchange, group, found)

    def _writable(self, exchange: Exchange) -> int:
        """The group that a path names, which only somebody with a key may scale."""
        if not self._settings.has_admin or not self._settings.api_key:
            raise RequestError(403, "Replicas are set with a key only; start the server with --admin and --api-key.")
        return self._group(exchange)

    def _check_version(self, group: int, version: str) -> None:
        if version and version != str(self._versions[group]):
            raise RequestError(409, "The object has been modified; read it again, and send your change to what it is.")

    async def _set(self, exchange: Exchange, group: int, replicas: int) -> None:
        dry = parse_qs(exchange.query.decode("latin-1"), max_num_fields=32).get(DRY_RUN, [])
        if dry not in ([], ["All"]):
            raise RequestError(422, f'{DRY_RUN}: Unsupported value: "{dry[-1][:40]}": supported values: "All"', DRY_RUN)
        try:
            self._live.check_replicas(replicas, group)
        except ScenarioError as error:
            raise RequestError(422, f"spec.{error}") from None
        if not dry:
            self._pace.scale(replicas, group)
            self._versions[group] += 1
        if exchange.path.endswith("/scale"):
            found = self._object(exchange, group)
        else:
            found = self._described(exchange.path.split("/")[7], exchange.path.split("/")[5])
        await exchange.json(found | {"spec": found["spec"] | {"replicas": replicas}})


def _is_field(query: dict[str, list[str]], name: str, namespace: str) -> bool:
    """Whether a Deployment is one that a query's field selector chooses."""
    there = {"metadata.name": name, "metadata.namespace": namespace}
    for word in query.get(FIELDS, [""])[-1].split(","):
        field_name, equals, value = word.replace("==", "=").partition("=")
        if word and (not equals or field_name not in there):
            raise RequestError(400, f"{FIELDS}: got {word[:200]!r}; write metadata.name=NAME.", FIELDS)
        if word and there[field_name] != value:
            return False
    return True


def read_operations(raw: bytes) -> int:
    """The replicas that a JSON patch sets last."""
    try:
        found = msgspec.json.decode(raw, type=Annotated[list[PatchOperation], Meta(min_length=1, max_length=16)])
    except msgspec.MsgspecError as error:
        raise RequestError(400, f"The patch cannot be read: {str(error)[:500]}.") from None
    return found[-1].value


def quantity(value: float) -> str:
    """A number as Kubernetes writes quantities: whole, or in thousandths."""
    return str(int(value)) if value == int(value) else f"{round(1000.0 * value)}m"


def _stamp(seconds_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds_s))


def _deployments(live: LiveFleet) -> list[str]:
    """The name of every group of pools, in their order."""
    kinds = [PREFILL_NAME, NAME] if live.setup.has_prefill else [NAME]
    regions = live.setup.regions
    return kinds if regions is None else [f"{kind}-{r.name}" for r in regions.regions for kind in kinds]
