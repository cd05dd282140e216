"""A fleet as an autoscaler of Kubernetes reads and drives it."""

import asyncio
import math

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from orrery.emulator.kubernetes import quantity

NAMESPACE = "/apis/external.metrics.k8s.io/v1beta1/namespaces/prod"
SCALE = "/apis/apps/v1/namespaces/prod/deployments/orrery/scale"
FLEET = {"replicas_min": 1, "replicas_max": 4, "cold_start_s": 20.0, "max_num_seqs": 2}
KEY = {"authorization": "Bearer secret"}
OPERATIONS = {"content-type": "application/json-patch+json"}
MERGE = {"content-type": "application/merge-patch+json"}


@pytest.fixture(scope="module")
def fleet(start_fleet):
    with (
        start_fleet(FLEET, speed_ratio=200.0, has_admin=True, api_key="secret") as found,
        httpx.Client(base_url=found.url, headers=KEY, timeout=20) as http,
    ):
        yield found, http


@pytest.mark.parametrize(
    ("value", "text"), [(3.0, "3"), (0.0, "0"), (0.25, "250m"), (2.0004, "2000m"), (1e12, "1000000000000")]
)
def test_quantities_are_whole_or_in_thousandths(value, text):
    assert quantity(value) == text


def test_metrics_are_listed_and_read_by_name_and_label(fleet):
    _, http = fleet
    listed = http.get("/apis/external.metrics.k8s.io/v1beta1").json()
    assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", "external.metrics.k8s.io/v1beta1")
    assert "vllm_num_requests_waiting" in {r["name"] for r in listed["resources"]}
    found = http.get(f"{NAMESPACE}/vllm_num_requests_running", params={"labelSelector": "engine=0"}).json()
    assert found["kind"] == "ExternalMetricValueList"
    (item,) = found["items"]
    assert (item["metricName"], item["value"]) == ("vllm_num_requests_running", "0")
    assert item["metricLabels"] == {"model_name": "llama", "engine": "0"}
    assert item["timestamp"].endswith("Z")
    assert (
        http.get(f"{NAMESPACE}/vllm_num_requests_running", params={"labelSelector": "engine!=0"}).json()["items"] == []
    )
    for wrong, status in (({"labelSelector": "engine in (0)"}, 400), ({}, 404)):
        got = http.get(f"{NAMESPACE}/{'vllm_num_requests_running' if wrong else 'none'}", params=wrong)
        assert (got.status_code, got.json()["kind"], got.json()["code"]) == (status, "Status", status)


def test_an_autoscaler_drives_the_replicas(fleet, until):
    """HPA's rule on what it reads: ceil(sum of waiting and running / target), here 8 answers at 2 each: four."""
    _, http = fleet
    before = http.get(SCALE).json()
    assert (before["apiVersion"], before["kind"], before["spec"]) == ("autoscaling/v1", "Scale", {"replicas": 1})

    async def drive():
        async with httpx.AsyncClient(base_url=str(http.base_url), headers=KEY, timeout=20) as many:
            body = {"prompt": ["a"] * 8, "max_tokens": 4000, "ignore_eos": True}
            asked = asyncio.create_task(many.post("/v1/completions", json=body))
            await asyncio.sleep(0.1)
            read = [await many.get(f"{NAMESPACE}/vllm_num_requests_{kind}") for kind in ("running", "waiting")]
            in_flight = sum(float(i["value"]) for r in read for i in r.json()["items"])
            wish = {**before, "spec": {"replicas": math.ceil(in_flight / 2)}}
            return in_flight, await many.put(SCALE, json=wish), await asked

    in_flight, put, asked = asyncio.run(drive())
    assert (in_flight, put.status_code, asked.status_code) == (8.0, 200, 200)
    assert put.json()["spec"] == {"replicas": 4}
    assert int(put.json()["metadata"]["resourceVersion"]) == int(before["metadata"]["resourceVersion"]) + 1
    assert put.json()["status"]["replicas"] == 4
    until(lambda: sum(r["state"] == "serving" for r in http.get("/admin").json()["replicas"]) == 4)
    patched = http.patch(SCALE, content='{"spec": {"replicas": 2}}', headers=MERGE)
    assert patched.json()["spec"] == {"replicas": 2}
    operations = '[{"op": "replace", "path": "/spec/replicas", "value": 1}]'
    assert http.patch(SCALE, content=operations, headers=OPERATIONS).status_code == 200
    until(lambda: http.get(SCALE).json()["status"]["replicas"] == 1)


def test_what_cannot_be_scaled_is_refused_in_kubernetes_words(fleet):
    _, http = fleet
    spec = {"spec": {"replicas": 1}}
    for got, status, reason in (
        (http.put(SCALE, json={"spec": {"replicas": 9}}), 422, "Invalid"),
        (http.put(SCALE, json={"spec": {"replicas": -1}}), 400, "BadRequest"),
        (http.put(SCALE, json={**spec, "metadata": {"resourceVersion": "0"}}), 409, "Conflict"),
        (http.put(SCALE, json={**spec, "metadata": {"name": "other"}}), 400, "BadRequest"),
        (http.put(SCALE.replace("orrery", "other"), json=spec), 404, "NotFound"),
        (http.patch(SCALE, json=spec), 415, "UnsupportedMediaType"),
        (http.patch(SCALE, content="[]", headers=OPERATIONS), 400, "BadRequest"),
        (http.put(SCALE, json={**spec, "more": "x" * 70_000}), 413, "RequestEntityTooLarge"),
        (http.put(SCALE, json=spec, headers={"authorization": "Bearer wrong"}), 401, "Unauthorized"),
        (http.put(SCALE, json=spec, headers={"origin": "http://evil.example"}), 403, "Forbidden"),
        (http.get(SCALE, headers={"host": "evil.example"}), 421, "BadRequest"),
    ):
        assert (got.status_code, got.json()["kind"], got.json()["reason"]) == (status, "Status", reason), got.text


def test_a_dry_run_changes_nothing(fleet):
    _, http = fleet
    before = http.get(SCALE).json()
    asked = {"params": {"dryRun": "All"}, "json": {"spec": {"replicas": 3}}}
    assert http.put(SCALE, **asked).json() == before | {"spec": {"replicas": 3}}
    assert http.get(SCALE).json() == before
    assert http.put(SCALE, params={"dryRun": "All"}, json={"spec": {"replicas": 9}}).status_code == 422
    wrong = http.put(SCALE, params={"dryRun": "some"}, json={"spec": {"replicas": 3}})
    assert (wrong.status_code, wrong.json()["reason"]) == (422, "Invalid")


def test_a_body_of_no_type_is_json(fleet):
    _, http = fleet
    got = http.put(SCALE, content='{"spec": {"replicas": 1}}')
    assert (got.status_code, got.json()["spec"]) == (200, {"replicas": 1})


def test_nobody_without_a_key_scales(start_fleet):
    with start_fleet(FLEET, has_admin=True) as found:
        got = httpx.put(f"{found.url}{SCALE}", json={"spec": {"replicas": 2}})
    assert (got.status_code, got.json()["reason"]) == (403, "Forbidden")


def test_an_autoscaler_of_the_fleets_own_is_not_overruled(start_fleet):
    with start_fleet({**FLEET, "autoscaler": {"name": "hpa"}}, has_admin=True, api_key="secret") as found:
        got = httpx.put(f"{found.url}{SCALE}", json={"spec": {"replicas": 2}}, headers=KEY)
    assert got.status_code == 422
    assert "hpa decides" in got.json()["message"]


def test_prefill_and_decode_pools_are_scaled_apart(start_fleet):
    fleet = {"prefill_replicas_min": 1, "prefill_replicas_max": 2, "replicas_min": 1, "replicas_max": 3}
    with (
        start_fleet(fleet, has_admin=True, api_key="secret") as found,
        httpx.Client(base_url=found.url, headers=KEY) as http,
    ):
        prefill = http.put(SCALE.replace("orrery", "orrery-prefill"), json={"spec": {"replicas": 2}}).json()
        decode = http.get(SCALE).json()
    assert (prefill["spec"]["replicas"], decode["spec"]["replicas"]) == (2, 1)


def test_a_replica_has_a_page_of_its_own_while_it_runs(fleet):
    _, http = fleet
    found = {s.name for f in text_string_to_metric_families(http.get("/replicas/0/metrics").text) for s in f.samples}
    assert "vllm:num_requests_running" in found
    assert not any(name.startswith("orrery:") for name in found)
    assert http.get("/replicas/3/metrics").status_code == 503
    assert http.get("/replicas/9/metrics").status_code == 404


DEPLOYMENTS = "/apis/apps/v1/namespaces/prod/deployments"


def test_what_there_is_can_be_looked_up(fleet):
    """As kubectl goes about it: versions, groups, a group's resources, then the objects of one."""
    _, http = fleet
    assert http.get("/api").json()["versions"] == []  # kubectl takes a version without resources for an error
    groups = {g["name"]: g["preferredVersion"]["groupVersion"] for g in http.get("/apis").json()["groups"]}
    assert groups == {"apps": "apps/v1", "external.metrics.k8s.io": "external.metrics.k8s.io/v1beta1"}
    for name, version in groups.items():
        assert http.get(f"/apis/{name}").json()["versions"][0]["groupVersion"] == version
        assert http.get(f"/apis/{version}").json()["groupVersion"] == version
    assert {r["name"]: r["kind"] for r in http.get("/apis/apps/v1").json()["resources"]} == {
        "deployments": "Deployment",
        "deployments/scale": "Scale",
    }


def test_pools_are_deployments(fleet):
    _, http = fleet
    one = http.get(f"{DEPLOYMENTS}/orrery").json()
    scale = http.get(SCALE).json()
    assert (one["kind"], one["apiVersion"], one["metadata"]["namespace"]) == ("Deployment", "apps/v1", "prod")
    assert one["spec"]["replicas"] == scale["spec"]["replicas"]
    assert one["status"]["replicas"] == scale["status"]["replicas"]
    listed = http.get(DEPLOYMENTS).json()
    assert (listed["kind"], [d["metadata"]["name"] for d in listed["items"]]) == ("DeploymentList", ["orrery"])
    (everywhere,) = http.get("/apis/apps/v1/deployments").json()["items"]
    assert everywhere["metadata"]["namespace"] == "default"
    chosen = {
        "labelSelector=app=orrery": 1,
        "labelSelector=app=other": 0,
        "fieldSelector=metadata.name=orrery": 1,
        "fieldSelector=metadata.name=x": 0,
    }
    assert {query: len(http.get(f"{DEPLOYMENTS}?{query}").json()["items"]) for query in chosen} == chosen


def test_a_deployments_replicas_are_patched_and_nothing_else(fleet):
    _, http = fleet
    path = f"{DEPLOYMENTS}/orrery"
    strategic = {"content-type": "application/strategic-merge-patch+json"}
    dry = http.patch(f"{path}?dryRun=All", content='{"spec": {"replicas": 3}}', headers=strategic).json()
    assert (dry["kind"], dry["spec"]["replicas"]) == ("Deployment", 3)
    assert dry["spec"]["selector"] == {"matchLabels": {"app": "orrery"}}
    before = int(http.get(path).json()["metadata"]["resourceVersion"])
    done = http.patch(path, content='[{"op": "replace", "path": "/spec/replicas", "value": 1}]', headers=OPERATIONS)
    assert (done.status_code, done.json()["spec"]["replicas"]) == (200, 1)
    assert int(done.json()["metadata"]["resourceVersion"]) == before + 1
    for got, status, reason in (
        (http.patch(path, content='{"spec": {"paused": true}}', headers=MERGE), 400, "BadRequest"),
        (http.patch(path, content='{"spec": {"replicas": 1, "paused": true}}', headers=MERGE), 400, "BadRequest"),
        (http.patch(path, content='{"spec": {"replicas": 9}}', headers=MERGE), 422, "Invalid"),
        (http.patch(path.replace("orrery", "x"), content="{}", headers=MERGE), 404, "NotFound"),
        (http.patch(path, content='{"spec": {"replicas": 1}}' + " " * 70_000, headers=MERGE), 413, None),
        (http.get(path.replace("orrery", "x")), 404, "NotFound"),
        (http.get(f"{DEPLOYMENTS}?watch=true"), 400, "BadRequest"),
        (http.get(f"{DEPLOYMENTS}?fieldSelector=spec.replicas=1"), 400, "BadRequest"),
        (http.get("/api/v1/pods"), 404, "NotFound"),
        (http.get("/apis", headers={"authorization": "Bearer wrong"}), 401, "Unauthorized"),
        (http.get("/api", headers={"origin": "http://evil.example"}), 403, "Forbidden"),
        (http.get("/api", headers={"host": "evil.example"}), 421, "BadRequest"),
        (http.patch(path, content='{"spec": {"replicas": 1}}', headers={**MERGE, "origin": "http://x"}), 403, None),
    ):
        assert (got.status_code, got.json()["kind"]) == (status, "Status"), got.text
        assert reason in (None, got.json()["reason"])
