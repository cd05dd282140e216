"""The certificate and key of a server that answers over TLS."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSFiles:
    """PEM files of a certificate and its private key."""

    certificate: Path
    key: Path


def tls_files(certificate: Path | None, key: Path | None) -> TLSFiles | None:
    """Both files, checked to belong together; None where neither is given."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ScenarioError("ssl-certfile, ssl-keyfile: a server over TLS needs both; write the other one too.")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise ScenarioError(
            f"ssl-certfile, ssl-keyfile: {certificate} and {key} cannot be used ({error}); write PEM files of a "
            "certificate and its key, without a password."
        ) from None
    return TLSFiles(certificate=certificate, key=key)
