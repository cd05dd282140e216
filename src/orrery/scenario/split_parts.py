"""Parts of a split's settings: the network, its exits and bottlenecks, the filter and the rates."""

from math import inf
from pathlib import Path

from orrery.base.errors import OutOfRange, ScenarioError, UnknownName
from orrery.catalog.models import get_model
from orrery.execution.edge.exits import Exit
from orrery.models.image_networks import BUILDERS, find_network, network_of
from orrery.models.language_network import language_network
from orrery.models.network_file import read_network
from orrery.models.networks import Network
from orrery.scenario.link_trace import BYTES_PER_S_OF_MBIT

MAX_RATES, MAX_PARTS, MAX_WIDTHS, MAX_WIDTH = 1000, 100, 20, 10**6


def network_named(name: str, input_tokens: int | None) -> Network:
    """An image network by name, a network file, or a language model for a prompt of so many tokens."""
    if find_network(name) or name.endswith(".toml"):
        if input_tokens is not None:
            raise ScenarioError(f"input_tokens: {name[:80]} takes no tokens; leave it out.")
        return network_of(name) if find_network(name) else read_network(Path(name))
    try:
        model = get_model(name)
    except UnknownName:
        raise ScenarioError(
            f"model: got {name[:80]!r}; write {', '.join(BUILDERS)}, a network's .toml file or a language model's name."
        ) from None
    if input_tokens is None:
        raise ScenarioError(f"input_tokens: missing; {name[:80]} is a language model, write input_tokens = 128.")
    try:
        return language_network(model, input_tokens)
    except OutOfRange as error:
        raise ScenarioError(f"model: {error}") from None


def bottlenecks_of(text: str, network: Network) -> list[tuple[int, int]]:
    """Index of the unit and channels of each "AFTER:CHANNELS" with commas."""
    names = [unit.name for unit in network.units[:-1]]
    found = list[tuple[int, int]]()
    for after, channels, part in _pairs("bottleneck", text, names, "UNIT:CHANNELS"):
        index = names.index(after)
        most = network.units[index].num_channels
        if not (channels.isascii() and channels.isdigit() and len(channels) < 9 and 1 <= int(channels) <= most):
            raise ScenarioError(
                f"bottleneck: got {part[:80]!r}; write 1 to {most} channels, such as {after}:{max(1, most // 8)}."
            )
        found.append((index, int(channels)))
    return found


def exits_of(text: str, network: Network, easy_frac: float | None) -> list[Exit]:
    """The exit of each "AFTER" or "AFTER:SHARE" with commas, in the network's order."""
    names = [unit.name for unit in network.units[:-1]]
    found = dict[int, Exit]()
    for after, written, part in _pairs("exits", text, names, "UNIT or UNIT:SHARE"):
        try:
            share = float(written) if written else easy_frac
        except ValueError:
            share = -1.0
        if share is None:
            raise ScenarioError(f"exits: {after} has no share; write {after}:0.6, or easy_frac = 0.6 for all.")
        if not 0.0 <= share <= 1.0:
            raise ScenarioError(f"exits: got {part[:80]!r}; write a share of the inputs from 0 to 1, as {after}:0.6.")
        index = names.index(after)
        if index in found:
            raise ScenarioError(f"exits: {after} stands twice; write each unit once.")
        found[index] = Exit(index=index, easy_frac=share)
    return [found[index] for index in sorted(found)]


def _pairs(setting: str, text: str, names: list[str], form: str) -> list[tuple[str, str, str]]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MAX_PARTS:
        raise ScenarioError(f"{setting}: {len(parts)} of them; write at most {MAX_PARTS}.")
    found = list[tuple[str, str, str]]()
    for part in parts:
        after, _, rest = part.partition(":")
        if after not in names:
            shown = ", ".join(names[:40]) + (", …" if len(names) > 40 else "")
            raise ScenarioError(f"{setting}: got {part[:80]!r}; write {form} with a unit of {shown}.")
        found.append((after, rest, part))
    return found


def widths_of(text: str, network: Network) -> list[int]:
    """Widths of a converter's fully connected layers; it takes an input and makes one."""
    parts = [part.strip() for part in text.split(",")]
    fit = all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts)
    found = [int(part) for part in parts] if fit else []
    elements = network.num_elements
    if not (3 <= len(found) <= MAX_WIDTHS and all(1 <= width <= MAX_WIDTH for width in found)) or not (
        found[0] == found[-1] == elements
    ):
        raise ScenarioError(
            f"converter: got {text[:80]!r}; write widths that begin and end with the {elements} elements of an "
            f"input, such as {elements},{max(1, elements // 8)},{elements}."
        )
    return found


def rates_of(text: str) -> list[float]:
    """Bytes per second of Mbit/s with commas."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = list[float]()
    if not 0 < len(found) <= MAX_RATES or not all(0.0 < rate < inf for rate in found):
        raise ScenarioError(f'link_rates: got {text[:80]!r}; write Mbit/s above 0, such as link_rates = "1,10,100".')
    return [rate * BYTES_PER_S_OF_MBIT for rate in found]
