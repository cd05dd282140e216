"""kubectl, unchanged, against an emulated fleet over TLS: it looks up what there is, lists and scales."""

import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agreement import served

from orrery.base.errors import ScenarioError
from orrery.emulator.tls import tls_files

FLEET = {"model": "llama-3.1-8b", "device": "h100-sxm", "replicas_min": 1, "replicas_max": 4, "cold_start_s": 20}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A certificate of this machine's own, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed; it makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    names = ("-keyout", folder / "key.pem", "-out", folder / "cert.pem")
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names, *subject)
    subprocess.run(command, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def test_without_files_there_is_no_tls_and_one_alone_is_refused(files):
    certificate, key = files
    assert tls_files(None, None) is None
    assert tls_files(certificate, key).key == key
    for wrong, words in (((certificate, None), "needs both"), ((certificate, certificate), "cannot be used")):
        with pytest.raises(ScenarioError, match=words):
            tls_files(*wrong)


@pytest.mark.slow
def test_kubectl_lists_and_scales_a_fleet(files, tmp_path):
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed; https://kubernetes.io/docs/tasks/tools says how")
    certificate, key = files

    def told(*words):
        flags = ("--server", url, "--certificate-authority", certificate, "--token", "secret", "--cache-dir", tmp_path)
        done = subprocess.run(
            [str(w) for w in ("kubectl", *flags, *words)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "KUBECONFIG": str(tmp_path / "none")},
        )
        return done.returncode, done.stdout + done.stderr

    tls = ("--ssl-certfile", str(certificate), "--ssl-keyfile", str(key))
    with served(FLEET, "--admin", "--api-key", "secret", "--speed", "50", *tls) as url:
        assert url.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert urllib.request.urlopen(f"{url}/health", context=trusted).status == 200
        code, resources = told("api-resources", "-o", "name")
        assert (code, "deployments.apps" in resources) == (0, True)
        assert told("get", "deployments", "-o", "name") == (0, "deployment.apps/orrery\n")
        assert told("scale", "deployment", "orrery", "--replicas=3") == (0, "deployment.apps/orrery scaled\n")
        found = json.loads(told("get", "deploy", "orrery", "-o", "json")[1])
        assert (found["spec"]["replicas"], found["metadata"]["namespace"]) == (3, "default")
        patched = told("patch", "deployment", "orrery", "-p", '{"spec": {"replicas": 2}}')
        assert patched == (0, "deployment.apps/orrery patched\n")
        code, many = told("scale", "deployment", "orrery", "--replicas=9")
        assert (code, "the pools run 1 to 4" in many) == (1, True)
        metric = told("get", "--raw", "/apis/external.metrics.k8s.io/v1beta1/namespaces/a/vllm_num_requests_waiting")
        assert json.loads(metric[1])["items"][0]["value"] == "0"
