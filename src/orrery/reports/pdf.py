"""A page printed to PDF by a browser of the Chromium family that is found on the machine."""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from orrery.base.errors import ScenarioError

VARIABLE = "ORRERY_BROWSER"

KNOWN = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "brave-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)

QUIET = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-quic",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--mute-audio",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
"""No window and no network: the page needs neither."""

PATIENCE_S = 120.0
"""A page takes seconds; a browser that takes longer hangs."""


def browser() -> str | None:
    """The browser that prints: the one that is named in the environment, else the first known one."""
    if named := os.environ.get(VARIABLE):
        if found := shutil.which(named):
            return found
        raise ScenarioError(f"{VARIABLE}: there is no program {named!r}; write the path of a Chromium-family browser.")
    return next((found for name in KNOWN if (found := shutil.which(name))), None)


def pdf(html: str) -> bytes:
    """The page as the browser prints it, in a profile of its own that is thrown away."""
    program = browser()
    if program is None:
        raise ScenarioError(
            "report: a PDF is printed by a browser, and neither Chromium, Chrome nor Edge is found; install one, "
            f"set {VARIABLE} to its path, or write .html and print that."
        )
    with TemporaryDirectory(prefix="orrery-report-", ignore_cleanup_errors=True) as folder:
        page, out = Path(folder) / "report.html", Path(folder) / "report.pdf"
        page.write_text(html, encoding="utf-8")
        _print(program, page, out, Path(folder) / "profile")
        try:
            found = out.read_bytes()
        except OSError:
            found = b""
    if not found.startswith(b"%PDF-"):
        raise ScenarioError(f"report: {program} printed nothing; write .html and print that, or set {VARIABLE}.")
    return found


def _print(program: str, page: Path, out: Path, profile: Path) -> None:
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    line = [
        program,
        *QUIET,
        *(["--no-sandbox"] if is_root else []),
        f"--user-data-dir={profile}",
        "--no-pdf-header-footer",
        f"--print-to-pdf={out}",
        page.as_uri(),
    ]
    try:
        subprocess.run(line, check=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, capture_output=True)
    except subprocess.TimeoutExpired:
        raise ScenarioError(
            f"report: {program} did not print within {PATIENCE_S:.0f} s; write .html instead."
        ) from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise ScenarioError(f"report: {program} could not print: {_last_line(error)}; write .html instead.") from None


def _last_line(error: Exception) -> str:
    text = getattr(error, "stderr", b"") or b""
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else str(error)[:200]
