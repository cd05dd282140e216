"""The published description is true: of the paths, of what they take, and of what they answer."""

import json
from dataclasses import replace
from importlib.resources import files

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from orrery.emulator import admin, app, bodies, images, kubernetes, kubernetes_discovery, lora, ranking, response_bodies
from orrery.emulator.app import App
from orrery.emulator.image_pipeline import ImagePipeline
from orrery.emulator.lora import LoraModules
from orrery.emulator.openapi import described as described_of
from orrery.emulator.settings import Settings
from orrery.emulator.transcriber import Transcriber

DOCUMENT = json.loads((files("orrery.emulator") / "openapi.json").read_text())
BODIES = {
    "/v1/chat/completions": bodies.Chat,
    "/v1/completions": bodies.Completion,
    "/v1/responses": response_bodies.ResponseRequest,
    "/v1/messages": bodies.Claude,
    "/v1/messages/count_tokens": bodies.Counted,
    "/v1/embeddings": bodies.Embedding,
    "/v1/rerank": ranking.RerankRequest,
    "/v2/rerank": ranking.RerankRequest,
    "/v1/score": ranking.ScoreRequest,
    "/v1/images/generations": images.ImageRequest,
    "/v1/load_lora_adapter": lora.LoadAdapter,
    "/v1/unload_lora_adapter": lora.UnloadAdapter,
    "/tokenize": bodies.TokenizeRequest,
    "/detokenize": bodies.DetokenizeRequest,
    "/admin/replicas": admin.ReplicaChange,
    "/admin/scale": admin.Scaling,
    "/admin/failures": admin.FailureInjection,
    "/admin/load": admin.Loading,
}
OPERATIONS = [(p, m) for p, methods in DOCUMENT["paths"].items() for m in methods]
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


BARE = Settings(names=("a",), context_tokens=9, block_tokens=1)
WITH_ALL = replace(
    BARE,
    has_admin=True,
    lora=LoraModules.of((), 1, 8, ("a",)),
    images=ImagePipeline.of("flux.1-dev", "h100-sxm"),
    speech=Transcriber.of("whisper-large-v3", "h100-sxm"),
)


def operations(routes):
    """Every path of a server with its methods, as they are and as it describes them."""
    listed = json.loads(described_of(routes))["paths"]
    served = {(path, method) for path, methods in routes.items() for method in methods}
    assert {(path, m.upper()) for path, methods in listed.items() for m in methods} == served
    return served


@pytest.fixture(scope="module")
def fleet(start_fleet):
    with start_fleet({"replicas_max": 2}, speed_ratio=100.0, has_admin=True, api_key="secret") as found:
        yield found


def test_a_server_lists_the_paths_that_it_serves(fast, fleet):
    """Of one deployment without and with all that may stand beside it, and of a fleet; together those are all."""
    bare, full = (operations(App(fast.pace, told).routes) for told in (BARE, WITH_ALL))
    of_fleet = operations(App(fleet.pace, WITH_ALL).routes)
    assert bare < full
    assert ("/sleep", "POST") in full - of_fleet
    assert full | of_fleet == {(p, m.upper()) for p, m in OPERATIONS}
    page = httpx.get(f"{fleet.url}/openapi.json", headers={"authorization": "Bearer secret"}).json()["paths"]
    assert kubernetes.SCALE in page
    assert "/v1/images/generations" not in page


def test_it_describes_the_bodies_that_are_read():
    _, found = msgspec.json.schema_components(list(BODIES.values()), ref_template="#/components/schemas/{name}")
    published = DOCUMENT["components"]["schemas"]
    assert {name: published.get(name) for name in found} == json.loads(json.dumps(found))
    for path, kind in BODIES.items():
        (content,) = DOCUMENT["paths"][path]["post"]["requestBody"]["content"].values()
        assert content["schema"]["$ref"].endswith(f"/{kind.__name__}")


BODY = {400, 401, 408, 413, 415}
BESIDE = {
    "/v1/images/generations": BODY | {404, 429},
    "/v1/audio/transcriptions": BODY | {404, 429},
    "/v1/load_lora_adapter": BODY,
    "/v1/unload_lora_adapter": BODY | {404},
    "/replicas/{replica}/metrics": {404, 503},
    **{path: {401, 403} for path in (kubernetes.METRICS, *kubernetes_discovery.discovery_routes())},
    **{path: {400, 401, 403} for path in (kubernetes.EVERYWHERE, kubernetes.LISTED)},
    kubernetes.METRIC: {400, 401, 403, 404},
}
"""Statuses of paths that only some servers have, beside 200."""


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_it_names_every_status(path, method):
    usage_json = {int(s) for s in DOCUMENT["paths"][path][method]["responses"]}
    may_be = {200}
    if path in BODIES:
        may_be |= {400, 408, 413, 415}
        may_be |= set() if path.startswith("/admin") else {404}
    if path.startswith(("/v1/", "/v2/", "/admin")):
        may_be |= {401}
    if path.startswith("/admin"):
        may_be |= {403, 404}
    if path in BODIES and path.startswith(("/v1/", "/v2/")) and "count" not in path:
        may_be |= {429, 500, 503}
    if path in ("/health", "/health/ready", "/ping"):
        may_be |= {503}
    if path in app.SLEEP:
        may_be |= {401, 403} | ({400} if path == "/sleep" else set())
    if "{response_id}" in path:
        may_be |= {404} | (set() if method == "delete" else {400})
    if path in (kubernetes.SCALE, kubernetes.DEPLOYMENT):
        may_be |= {401, 403, 404} | (set() if method == "get" else BODY | {409, 422})
    assert usage_json == ({200} | BESIDE[path] if path in BESIDE else may_be)


@pytest.fixture(scope="module")
def quick(start):
    """A thousand times as fast, and short sequences: what is drawn at random takes no time."""
    with start({"max_model_len": 64}, speed_ratio=1000.0, has_admin=True) as found:
        yield found


@pytest.fixture(scope="module")
def described(quick):
    return schemathesis.openapi.from_url(f"{quick.url}/openapi.json")


CHANGES = ("/admin/replicas", "/admin/scale", "/admin/failures", "/admin/load")


def draw(schema, mode, max_examples, paths, headers=None):
    """Send requests that are drawn from the description; those of the wrong kind are told so."""

    def sent(case):
        statuses.add(case.call_and_validate(checks=list(CHECKS), timeout=20, headers=headers).status_code)

    statuses = set()

    for operation in (found.ok() for found in schema.get_all_operations()):
        if operation.path in paths:
            limits = settings(
                max_examples=max_examples,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            limits(given(operation.as_strategy(generation_mode=mode))(sent))()
    return statuses


ASKING = [path for path in BODIES if path not in CHANGES]


def test_drawn_requests_are_answered_as_described(described):
    draw(described, GenerationMode.POSITIVE, 2, ASKING)


def test_drawn_requests_of_a_fleet_are_answered_as_described(fleet):
    described, key = schemathesis.openapi.from_url(f"{fleet.url}/openapi.json"), {"authorization": "Bearer secret"}
    paths = [kubernetes.SCALE, *(path for path in BESIDE if not path.startswith("/v1/"))]
    assert 401 not in draw(described, GenerationMode.POSITIVE, 2, paths, key)


@pytest.mark.slow
def test_drawn_requests_to_what_stands_beside_are_answered_as_described(start):
    given = {"image_model": "flux.1-dev", "speech_model": "whisper-large-v3", "lora_modules": ("sql=a",)}
    with start({"max_model_len": 64}, speed_ratio=1000.0, **given) as found:
        described = schemathesis.openapi.from_url(f"{found.url}/openapi.json")
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            draw(described, mode, 10, [path for path in BESIDE if path.startswith("/v1/")])


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_many_drawn_requests_are_answered_as_described(described, mode):
    draw(described, mode, 25, ASKING)
    draw(described, mode, 15, CHANGES)


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
def test_metrics_come_in_the_form_that_is_asked_for(quick, accept):
    page = httpx.get(f"{quick.url}/metrics", headers={"accept": accept})
    assert page.headers["content-type"].startswith(accept.partition(";")[0])
    assert page.text.endswith("# EOF\n") == accept.startswith("application")
