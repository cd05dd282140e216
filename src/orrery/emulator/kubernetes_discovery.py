"""Discovery as clients of Kubernetes begin with it: versions, groups, and the resources of each."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from orrery.emulator.exchange import Exchange

APPS, EXTERNAL_GROUP = "apps", "external.metrics.k8s.io"
GROUPS: Mapping[str, str] = {APPS: "v1", EXTERNAL_GROUP: "v1beta1"}
"""Groups that are served, each with its one version."""

DEPLOYMENTS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "deployments",
        "singularName": "deployment",
        "namespaced": True,
        "kind": "Deployment",
        "verbs": ["get", "list", "patch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
    },
    {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    },
)

Handler = Callable[[Exchange], Awaitable[None]]


def discovery_routes() -> dict[str, dict[str, Handler]]:
    """Paths that say what there is; those of a group's metrics are with the metrics."""
    versions: dict[str, Any] = {
        "kind": "APIVersions",
        "versions": [],
        "serverAddressByClientCIDRs": [],
    }  # nothing of the core group
    groups = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in GROUPS]}
    found: dict[str, dict[str, Any]] = {
        "/api": versions,
        "/apis": groups,
        f"/apis/{APPS}/v1": resource_list("apps/v1", DEPLOYMENTS),
        **{f"/apis/{name}": {"kind": "APIGroup", "apiVersion": "v1", **_group(name)} for name in GROUPS},
    }
    return {path: {"GET": _said(document)} for path, document in found.items()}


def resource_list(version: str, resources: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
    """An APIResourceList."""
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": list(resources)}


def _group(name: str) -> dict[str, Any]:
    version = {"groupVersion": f"{name}/{GROUPS[name]}", "version": GROUPS[name]}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _said(document: Mapping[str, Any]) -> Handler:
    async def handler(exchange: Exchange) -> None:
        await exchange.json(document)

    return handler
