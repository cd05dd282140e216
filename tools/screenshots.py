"""Take the README's pictures of ``orrery web``: docs/images/web-*.png, from a fresh server in Debian's Chromium.

Needs the development packages and a Chromium. With Pillow at hand the pictures are kept in a palette of 256 colours.
"""

import io
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from orrery.reports.pdf import browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
MAX_BYTES = 250_000
"""Of one picture."""

NO_BROWSER = "No browser: install Chromium, Chrome or Edge, or name one in ORRERY_BROWSER."
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

PLANS = "/plans?model=llama-3.1-70b&device=h100-sxm,mi300x&max_devices=8&trace=chat&slo=ttft:1000&slo=tpot:50"
DESIGN = (
    "/design?model=llama-3.1-70b&device=h100-sxm&tp=4&weights=fp8&concurrency=64&input_tokens=1024&output_tokens=256"
)
SWEEP = (
    "/sweep?model=llama-3.1-70b&device=h100-sxm&tp=4&weights=fp8&input_tokens=1024&output_tokens=256"
    "&vary=concurrency&by=device&lines=h100-sxm,h200-sxm,b200-sxm"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A view, and how it is looked at."""

    name: str
    address: str
    shows: str  # what must be there before it is taken
    top: str = "body"  # what stands at the upper edge
    width: int = 1280
    height: int = 860
    is_dark: bool = False


PICTURES = (
    Picture(name="web-best", address="/", shows="#rows button", height=1240),
    Picture(name="web-best-dark", address="/?y=usd", shows="#rows button", is_dark=True, height=1240),
    Picture(name="web-best-phone", address="/", shows="#rows button", width=390, height=1180),
    Picture(name="web-plans", address=PLANS, shows="#front svg", height=1180),
    Picture(name="web-design", address=DESIGN, shows="#why li", height=1000),
    Picture(name="web-sweep", address=SWEEP, shows="#sweep svg", top="#sweep", height=1100),
    Picture(name="web-papers", address="/papers?q=long prompts stall decodes", shows=".paper", height=900),
    Picture(name="web-design-dark", address=DESIGN, shows="#why li", is_dark=True, height=1000),
    Picture(name="web-phone", address=DESIGN, shows="#why li", top="#design", width=390, height=844),
)


@contextmanager
def served(home: Path) -> Generator[str]:
    """The address of an ``orrery web`` that keeps everything under ``home``."""
    command = [sys.executable, "-m", "orrery", "web", "--port", "0", "--json"]
    command += ["--home", str(home / "web"), "--library", str(home / "library.sqlite")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout
        try:
            yield json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["address"]
        finally:
            server.terminate()


def take(browser: "Browser", address: str, picture: Picture) -> bytes:
    """The picture as PNG."""
    context = browser.new_context(
        base_url=address,
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.is_dark else "light",
        reduced_motion="reduce",
    )
    with context:
        page = context.new_page()
        page.goto(picture.address)
        page.locator(picture.shows).first.wait_for(timeout=60_000)
        _scroll(page, picture.top)
        return page.screenshot()


def _scroll(page: "Page", top: str) -> None:
    page.locator(top).evaluate("one => one.scrollIntoView()")
    page.wait_for_load_state("networkidle")


def packed(png: bytes) -> bytes:
    """The same picture in 256 colours, where Pillow is installed."""
    try:
        Image: Any = import_module("PIL.Image")  # noqa: N806
    except ModuleNotFoundError:
        return png
    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return min(png, out.getvalue(), key=len)


def main() -> None:
    """Take them all."""
    from playwright.sync_api import sync_playwright

    program = browser()
    if program is None:
        sys.exit(NO_BROWSER)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as home, served(Path(home)) as address, sync_playwright() as play:
        started = play.chromium.launch(executable_path=program, args=FLAGS)
        for picture in PICTURES:
            png = packed(take(started, address, picture))
            if len(png) > MAX_BYTES:
                sys.exit(f"{picture.name} has {len(png):,} bytes, more than {MAX_BYTES:,}.")
            (IMAGES / f"{picture.name}.png").write_bytes(png)
            print(f"{picture.name}.png: {len(png):,} bytes")
        started.close()


if __name__ == "__main__":
    main()
