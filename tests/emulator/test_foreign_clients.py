"""Frameworks and clients that others wrote, unchanged, against the emulator: each in an environment of its own.

ORRERY_OPENAI_AGENTS, ORRERY_PYDANTIC_AI and ORRERY_KUBERNETES name the Python of each; tools/checks/clients.sh installs
them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agreement import served

SCENARIO = {"model": "llama-3.1-8b", "device": "h100-sxm"}
FLEET = {**SCENARIO, "replicas_min": 1, "replicas_max": 4, "cold_start_s": 20}
NAMED = ("--served-model-name", "llama", "--speed", "20")

pytestmark = pytest.mark.slow


def told(package, script, *words):
    """What a script of another environment prints."""
    python = os.environ.get(f"ORRERY_{package.upper().replace('-', '_')}")
    if python is None:
        pytest.skip(f"{package} is not installed; tools/checks/clients.sh does that")
    command = [python, str(Path(__file__).parent / "foreign" / script), *words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_openai_agents_runs_its_loop():
    """A forced call and an answer, twice: whole, then streamed."""
    with served(SCENARIO, *NAMED) as url:
        found = told("openai-agents", "agents_loop.py", url)
    assert set(found) == {"OpenAIChatCompletionsModel", "OpenAIResponsesModel"}
    for one in found.values():
        assert (one["turns"], one["calls"], one["answers"], one["typed"]) == (2, 2, [True, True], "Book")
        assert one["events"] > 100


def test_pydantic_ai_gets_its_types():
    with served(SCENARIO, *NAMED) as url:
        found = told("pydantic-ai", "typed_agent.py", url)
    assert found == {
        name: {"typed": "Book", "tokens": 40, "streamed": True} for name in ("OpenAIChatModel", "OpenAIResponsesModel")
    }


def test_the_kubernetes_client_scales_a_fleet():
    with served(FLEET, "--admin", "--api-key", "secret", "--speed", "50") as url:
        found = told("kubernetes", "scale_client.py", url, "secret")
    assert found == {
        "replicas": [1, 3, 2, 1, 4],
        "after": 1,
        "version": "1",
        "listed": True,
        "items": [["vllm_num_requests_waiting", "0"]],
        "stale": [409, "Conflict"],
        "unknown": [404, "NotFound"],
        "many": [422, "Invalid"],
    }
