"""``orrery web``: everything in a browser, served by this machine to itself."""

from pathlib import Path

import click

from orrery.cli.options import as_json

EXAMPLES = """\b
Examples:
  orrery web
  orrery web --port 9000 --open
  orrery web --export site --site-url https://example.org/orrery
  orrery web --host 0.0.0.0 --allow-host sizing.example.org
Every view has an address that can be shared; runs, uploads and marks are kept in one folder (--home)."""


@click.command("web", epilog=EXAMPLES)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; other than this machine: with care."
)
@click.option("--port", default=8080, type=click.IntRange(0, 65535), show_default=True, help="0: any free one.")
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which browsers may ask; repeat for more (localhost is known).",
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where runs and uploads are kept (default: the user's data folder).",
)
@click.option(
    "--library",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The library of papers (default: as for `orrery papers`).",
)
@click.option(
    "--export",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the public part as a static site into DIR, and serve nothing.",
)
@click.option("--site-url", default="", metavar="URL", help="With --export: where it will be, for link previews.")
@click.option(
    "--fetch-every",
    "fetch_every_hours",
    type=click.FloatRange(min=1.0),
    metavar="HOURS",
    help="Fetch new papers from arXiv and the daily list at the start and every so many hours.",
)
@click.option("--open", "opens", is_flag=True, help="Open a browser.")
@as_json
def command(
    host: str,
    port: int,
    hosts: tuple[str, ...],
    home: Path | None,
    library: Path | None,
    folder: Path | None,
    site_url: str,
    fetch_every_hours: float | None,
    opens: bool,
    is_json: bool,
) -> int:
    """Plans, designs, simulations and papers in a browser; works offline, and shares every view as an address."""
    import sys
    import webbrowser

    from orrery.base.errors import ScenarioError
    from orrery.base.listening import address_of, listening
    from orrery.cli.output import print_json

    try:
        from orrery.web.place import place_at
        from orrery.web.serve import serve
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        raise ScenarioError(f"web needs {error.name}: pip install 'orrery-ai[web]'.") from None
    if folder is not None:
        return _export(folder, site_url, is_json)
    with listening(host, port) as listener:
        address = address_of(listener)

        def started() -> None:
            if is_json:
                print_json({"address": address})
                sys.stdout.flush()
            print(f"orrery is at {address}; Ctrl-C stops.", file=sys.stderr, flush=True)
            if opens:
                webbrowser.open(address)

        serve(
            place_at(home, library), listener, (*hosts, host), started, fetch_every_hours and fetch_every_hours * 3600.0
        )
    return 0


def _export(folder: Path, site_url: str, is_json: bool) -> int:
    """Write the static site; ScenarioError where the folder holds other files."""
    from orrery.cli.output import print_json
    from orrery.web.site.write import export

    num_pages = export(folder, site_url)
    if is_json:
        print_json({"folder": str(folder), "pages": num_pages})
    else:
        print(f"{num_pages} pages in {folder}; open {folder / 'index.html'}, or let any web server serve the folder.")
    return 0


NEEDED = frozenset({"starlette", "uvicorn", "jinja2", "markupsafe", "python_multipart", "httptools"})
"""Packages of the extra ``web``."""
