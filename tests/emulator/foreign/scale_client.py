"""The Kubernetes client for Python against an emulated fleet: Scale and external metrics, as it parses them."""

import json
import sys

from kubernetes import client
from kubernetes.client.rest import ApiException

NAME = ("orrery", "prod")


def status_of(call, *arguments, **options):
    """Status and reason of a call that is refused."""
    try:
        call(*arguments, **options)
    except ApiException as error:
        return [error.status, json.loads(error.body)["reason"]]
    return []


def main(url, key):
    api = client.ApiClient(client.Configuration(host=url), header_name="authorization", header_value=f"Bearer {key}")
    apps, custom = client.AppsV1Api(api), client.CustomObjectsApi(api)
    scale = apps.read_namespaced_deployment_scale(*NAME)
    before = scale.spec.replicas
    stale = apps.read_namespaced_deployment_scale(*NAME)
    scale.spec.replicas = 3
    put = apps.replace_namespaced_deployment_scale(*NAME, scale).spec.replicas
    merged = apps.patch_namespaced_deployment_scale(*NAME, {"spec": {"replicas": 2}}).spec.replicas
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 1}]
    patched = apps.patch_namespaced_deployment_scale(*NAME, operations).spec.replicas
    dry = apps.patch_namespaced_deployment_scale(*NAME, {"spec": {"replicas": 4}}, dry_run="All").spec.replicas
    group = ("external.metrics.k8s.io", "v1beta1")
    listed = custom.get_api_resources(*group)
    metric = custom.list_namespaced_custom_object(
        *group, "prod", "vllm_num_requests_waiting", label_selector="engine=0"
    )
    print(
        json.dumps(
            {
                "replicas": [before, put, merged, patched, dry],
                "after": apps.read_namespaced_deployment_scale(*NAME).spec.replicas,
                "version": scale.metadata.resource_version,
                "listed": "vllm_num_requests_waiting" in {r.name for r in listed.resources},
                "items": [[item["metricName"], item["value"]] for item in metric["items"]],
                "stale": status_of(apps.replace_namespaced_deployment_scale, *NAME, stale),
                "unknown": status_of(apps.read_namespaced_deployment_scale, "nobody", "prod"),
                "many": status_of(apps.patch_namespaced_deployment_scale, *NAME, {"spec": {"replicas": 99}}),
            }
        )
    )


main(*sys.argv[1:])
