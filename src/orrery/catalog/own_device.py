"""A device file from a few figures of a data sheet: what they leave open is assumed to be as on a known device."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from orrery.base.arguments import typed
from orrery.base.errors import FactError, ScenarioError
from orrery.catalog.device_file import FLAGS, OPTIONAL, RATES, REQUIRED, read_device
from orrery.catalog.devices import get_device, toml_text, written

PEAKS = tuple(f"dense_{rate}_flops_per_s" for rate in RATES)
FACTS = (*REQUIRED, *OPTIONAL, *PEAKS)
"""Facts that may be stated."""

MAX_TITLE = 80


@typed
def own_device(like: str = "h100-sxm", facts: Mapping[str, str] | None = None, title: str = "My accelerator") -> str:
    """The text of a device file: ``facts`` as they are stated (``{"memory_capacity_bytes": "32 GB"}``), every other
    one as on the device ``like``, marked as assumed. It is read once, so that what is wrong with it is said here.
    """
    stated = facts or {}
    base = get_device(like)
    if unknown := sorted(stated.keys() - {*FACTS}):
        raise ScenarioError(f"{unknown[0]}: is no fact of a device; write one of {', '.join(FACTS)}.")
    if not title.strip() or len(title) > MAX_TITLE:
        raise ScenarioError(f"title: got {title[:20]!r}; write 1 to {MAX_TITLE} characters.")
    note = toml_text(f"as on {base.name}")
    lines = [
        f"title = {toml_text(title)}",
        *(f"{key} = {toml_text(getattr(base, key))}" for key in ("vendor", "kind", "generation")),
        "",
        "[sources.owner]",
        'title = "Stated by the owner of the device"',
        "",
        "[facts]",
        *(
            f'{name} = {{ value = {_value(name, text)}, from = "owner", at = "as given" }}'
            for name, text in stated.items()
        ),
        *(
            f'{fact.name} = {{ value = {written(fact)}, basis = "assumed", note = {note} }}'
            for fact in base.facts.values()
            if fact.name not in stated
        ),
    ]
    return _checked("\n".join(lines) + "\n")


def _value(name: str, text: str) -> str:
    """Words and quantities in quotes; counts, ratios and switches bare."""
    plain = text.strip()
    is_bare = plain in ("true", "false") if name in FLAGS else name.startswith("num_") or name.endswith("_ratio")
    if is_bare:
        try:
            return plain if plain in ("true", "false") else f"{float(plain):g}"
        except ValueError:
            raise ScenarioError(f"{name}: got {plain[:40]!r}; write a number.") from None
    return toml_text(plain)


def _checked(text: str) -> str:
    with TemporaryDirectory() as folder:
        (path := Path(folder) / "device.toml").write_text(text, encoding="utf-8")
        try:
            read_device(path)
        except FactError as error:
            raise ScenarioError(str(error).removeprefix(f"{path.name}: ")) from None
    return text
