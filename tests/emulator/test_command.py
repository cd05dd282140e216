"""The command itself: where it says it listens, how it ends, and what it says without its packages."""

import json
import signal
import subprocess
import sys

import httpx

from orrery.cli.main import run

DEPLOYED = ["emulate", "--model", "llama-3.1-8b", "--device", "h100-sxm", "--port", "0"]


def test_it_serves_until_it_is_told_to_stop():
    words = [sys.executable, "-m", "orrery", *DEPLOYED, "--json", "--served-model-name", "mine", "--speed", "20"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            text = ""
            while not text.rstrip().endswith("}"):
                line = process.stdout.readline()
                assert line, process.stderr and process.stderr.read()
                text += line
            message = json.loads(text)
            assert message["models"] == ["mine"]
            got = httpx.post(f"{message['address']}/v1/completions", json={"prompt": "a", "max_tokens": 3}, timeout=20)
            assert got.json()["model"] == "mine"
        finally:
            process.send_signal(signal.SIGTERM)
        _, usage_json = process.communicate(timeout=20)
    assert f"Serving mine at {message['address']}/v1" in usage_json
    assert process.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in usage_json


def test_a_missing_package_is_named(monkeypatch, capsys):
    for name in [x for x in sys.modules if x.startswith("orrery.emulator.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(DEPLOYED) == 2
    assert "pip install 'orrery-ai[emulate]'" in capsys.readouterr().err


def test_what_cannot_be_served_is_said_before_anything_listens(capsys):
    assert run([*DEPLOYED, "--max-model-len", "10000000"]) == 2
    assert "131,072" in capsys.readouterr().err
    assert run(["emulate", "--model", "llama-3.1-405b", "--device", "h100-sxm", "--port", "0"]) == 3
