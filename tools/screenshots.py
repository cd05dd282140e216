"""Take the pictures of ``orrery web``, docs/images/web-*.png and docs/images/pages, from a fresh server in Chromium.

Needs the development packages and a Chromium. With Pillow at hand the pictures are kept in a palette of 256 colours.
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
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
    "--renderer-process-limit=1",  # none is started ahead, for a page that may never come
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


LOOP = "input_tokens=1024&output_tokens=256&concurrency=32"
PAGES: Mapping[str, tuple[str, str]] = {
    "plan": (PLANS, "#front svg"),
    "estimate": (DESIGN, "#why li"),
    "train": (
        "/training?model=llama-3.1-8b&device=h100-sxm&devices=64&tp=2&sharding=zero1&global_batch=512&seq_len=8192",
        "figure svg",
    ),
    "compare": ("/compare", "#compared td"),
    "designs": (
        f"/designs?whole=1&model=llama-3.1-70b&device=h100-sxm&tp=4&{LOOP}&with=device=h200-sxm;weights=fp8 kv=fp8",
        "main table",
    ),
    "what-if": (
        f"/what-if?whole=1&technique=token-split&model=llama-3.1-70b&device=h100-sxm&tp=4&{LOOP}",
        "main table",
    ),
    "disaggregate": ("/disaggregate", "form"),
    "fleet": (
        "/fleet?whole=1&model=llama-3.1-8b&device=h100-sxm&input_tokens=1000&output_tokens=200&rate=30&days=0.01"
        "&replicas_min=1&replicas_max=4&autoscaler=hpa&cold_start_s=90&slo=p99_ttft:2000",
        "main table",
    ),
    "agents": ("/cache-size", "form"),
    "diagnose": ("/diagnose", "form"),
    "my-gpu": ("/my-device", "form"),
    "sweep": (SWEEP, "#sweep svg"),
    "runs": ("/runs", "main"),
    "kernel": ("/kernel?whole=1&op=gemm&device=h100-sxm,mi300x&m=4096&n=4096&k=4096", "main table"),
    "split": (
        "/split?whole=1&model=vgg-16&device=raspberry-pi-4-8gb&server=rtx-4090&link_rates=0.5,5,50",
        "main table",
    ),
    "images": ("/pictures", "form"),
    "search": ("/search", "form"),
    "papers-by-date": ("/papers/day/2024-03", ".paper"),
    "papers-trending": ("/papers/trending", ".paper"),
    "papers-library": ("/papers/library?q=long prompts stall decodes", ".paper"),
    "papers-lists": ("/papers/lists", "main"),
    "papers-scorecard": ("/papers/scorecard", "figure svg"),
    "papers-digest": ("/papers/subscribe", "form"),
    "paper": (f"/papers/splitwise?model=llama-3.1-8b&device=h100-sxm&{LOOP}", "#beside code"),
    "uploads": ("/uploads", "form"),
}
"""Every page of the menu and of the papers but the first: an address, and what must be there."""

PAGE_SIZES = {"": (1280, 900, False), "-phone": (390, 844, True)}
"""Each is taken in light at a desk, and in dark on a phone."""

WEBP_QUALITY = 38
MAX_PAGE_BYTES = 70_000


@contextmanager
def served(home: Path) -> Generator[str]:
    """The address of an ``orrery web`` that keeps everything under ``home``."""
    command = [sys.executable, "-m", "orrery", "web", "--port", "0", "--json"]
    command += ["--home", str(home / "web")]
    own = os.environ | {"ORRERY_LIBRARY": str(home / "library.sqlite")}  # so that no command names its place
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=own) as server:
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
        page.locator(f"{picture.shows}:visible").first.wait_for(timeout=60_000)
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
    (IMAGES / "pages").mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as home, served(Path(home)) as address, sync_playwright() as play:
        started = play.chromium.launch(executable_path=program, args=FLAGS)
        for picture in PICTURES:
            png = packed(take(started, address, picture))
            if len(png) > MAX_BYTES:
                sys.exit(f"{picture.name} has {len(png):,} bytes, more than {MAX_BYTES:,}.")
            (IMAGES / f"{picture.name}.png").write_bytes(png)
            print(f"{picture.name}.png: {len(png):,} bytes")
        for name, picture in page_pictures():
            (IMAGES / "pages" / f"{name}.webp").write_bytes(as_webp(name, take(started, address, picture)))
        started.close()


def page_pictures() -> Iterator[tuple[str, Picture]]:
    """Each page as it opens, at a desk and on a phone."""
    for name, (address, shows) in PAGES.items():
        for end, (width, height, is_dark) in PAGE_SIZES.items():
            top = "#beside" if name == "paper" else "body"
            yield (
                f"{name}{end}",
                Picture(name=name, address=address, shows=shows, top=top, width=width, height=height, is_dark=is_dark),
            )


def as_webp(name: str, png: bytes) -> bytes:
    """A picture of a page, small."""
    from PIL import Image

    written = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(written, "WEBP", quality=WEBP_QUALITY, method=6)
    if len(found := written.getvalue()) > MAX_PAGE_BYTES:
        sys.exit(f"{name} has {len(found):,} bytes, more than {MAX_PAGE_BYTES:,}.")
    return found


if __name__ == "__main__":
    main()
