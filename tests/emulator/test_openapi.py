"""The published description is true: of the paths, of what they take, and of what they answer."""

import json
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

from orrery.emulator import admin, app, bodies, ranking, response_bodies
from orrery.emulator.app import App
from orrery.emulator.settings import Settings

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
    "/tokenize": bodies.TokenizeRequest,
    "/detokenize": bodies.DetokenizeRequest,
    "/admin/replicas": admin.ReplicaChange,
    "/admin/scale": admin.Scaling,
    "/admin/failures": admin.FailureInjection,
    "/admin/load": admin.Loading,
}
OPERATIONS = [(p, m) for p, methods in DOCUMENT["paths"].items() for m in methods]
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


def test_its_paths_are_those_of_the_server(fast):
    routes = App(fast.pace, Settings(names=("a",), context_tokens=9, block_tokens=1, has_admin=True)).routes
    assert {(p, m.upper()) for p, m in OPERATIONS} == {(p, m) for p, methods in routes.items() for m in methods}


def test_it_describes_the_bodies_that_are_read():
    _, found = msgspec.json.schema_components(list(BODIES.values()), ref_template="#/components/schemas/{name}")
    published = DOCUMENT["components"]["schemas"]
    assert {name: published.get(name) for name in found} == json.loads(json.dumps(found))
    for path, kind in BODIES.items():
        (content,) = DOCUMENT["paths"][path]["post"]["requestBody"]["content"].values()
        assert content["schema"]["$ref"].endswith(f"/{kind.__name__}")


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
    assert usage_json == may_be


@pytest.fixture(scope="module")
def quick(start):
    """A thousand times as fast, and short sequences: what is drawn at random takes no time."""
    with start({"max_model_len": 64}, speed_ratio=1000.0, has_admin=True) as found:
        yield found


@pytest.fixture(scope="module")
def described(quick):
    return schemathesis.openapi.from_url(f"{quick.url}/openapi.json")


CHANGES = ("/admin/replicas", "/admin/scale", "/admin/failures", "/admin/load")


def draw(schema, mode, max_examples, paths):
    """Send requests that are drawn from the description; those of the wrong kind are told so."""

    def sent(case):
        case.call_and_validate(checks=list(CHECKS), timeout=20)

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


ASKING = [path for path in BODIES if path not in CHANGES]


def test_drawn_requests_are_answered_as_described(described):
    draw(described, GenerationMode.POSITIVE, 2, ASKING)


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
