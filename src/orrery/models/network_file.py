"""A network of the user's own as a TOML file: its units, their layers and what leaves them.

num_elements = 784                 # elements of an input; 1 byte each unless element_bytes says otherwise

[[units]]
name = "conv1"
layers = [{ positions = 784, inputs = 1, outputs = 6, taps = 25 }]
num_results = 1176                 # elements that leave the unit, behind its pooling
num_channels = 6
branch = [{ positions = 1, inputs = 6, outputs = 10 }]   # classifier of an early exit behind it, if it has one
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from orrery.base.errors import ScenarioError, shown
from orrery.base.user_file import read_user_text
from orrery.base.user_tables import check_keys, check_names_differ, checked_list, checked_table
from orrery.base.user_text import toml_tables
from orrery.models.image_networks import BUILDERS, network_of
from orrery.models.networks import Convolution, Network, Unit

MAX_UNITS, MAX_LAYERS, MAX_COUNT, MAX_FILE_BYTES = 2_000, 200, 10**9, 4_000_000
EXAMPLE = "{ positions = 784, inputs = 1, outputs = 6, taps = 25 }"
LAYER_KEYS = {"positions": None, "inputs": None, "outputs": None, "taps": 1, "groups": 1}
UNIT_KEYS = frozenset({"name", "layers", "num_results", "num_channels", "branch"})
NETWORK_KEYS = frozenset({"num_elements", "element_bytes", "units", "base", "through"})


def read_network(path: Path) -> Network:
    """The network of that file; ScenarioError where it describes none."""
    text = read_user_text(path, "network file", MAX_FILE_BYTES)
    return network_from(toml_tables(text, path, "write a network's units"), path.stem, str(path))


def network_from(tables: Mapping[str, Any], name: str, where: str) -> Network:
    """The network that these tables describe."""
    check_keys(tables, NETWORK_KEYS, where)
    units = tuple(
        _unit(raw, f"{where}: units[{i}]") for i, raw in enumerate(checked_list(tables, "units", MAX_UNITS, where))
    )
    base = _base(tables, where)
    if base is not None:
        units += base.units[[unit.name for unit in base.units].index(tables["through"]) + 1 :]
        tables = {"num_elements": base.num_elements, "element_bytes": base.element_bytes, **tables}
    names = [unit.name for unit in units]
    check_names_differ(names, f"{where}: units")
    each = tables.get("element_bytes", 1.0)
    if isinstance(each, bool) or not isinstance(each, int | float) or not (isfinite(each) and 0 < each <= 1024):
        raise ScenarioError(f"{where}: element_bytes: got {shown(each)}; write a number above 0 to 1024.")
    return Network(
        name=name, units=units, num_elements=_count(tables, "num_elements", where), element_bytes=float(each)
    )


def _base(tables: Mapping[str, Any], where: str) -> Network | None:
    """The known network whose front the units replace; None where they are a whole one."""
    name, through = tables.get("base"), tables.get("through")
    if name is None and through is None:
        return None
    if not isinstance(name, str) or name not in BUILDERS:
        raise ScenarioError(f"{where}: base: got {shown(name)}; write {', '.join(BUILDERS)}.")
    found = network_of(name)
    known = [unit.name for unit in found.units[:-1]]
    if through not in known:
        raise ScenarioError(f"{where}: through: got {shown(through)}; write a unit of {name}: {', '.join(known)}.")
    return found


def _unit(raw: Any, where: str) -> Unit:
    table = checked_table(raw, where, f", such as {EXAMPLE}")
    check_keys(table, UNIT_KEYS, where)
    name = table.get("name")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 80 or set(name) & set(",:"):
        raise ScenarioError(f"{where}: name: got {shown(name)}; write up to 80 letters without comma and colon.")
    found = Unit(
        name=name,
        layers=_layers(table, "layers", where),
        num_results=_count(table, "num_results", where),
        num_channels=_count(table, "num_channels", where),
        branch=_layers(table, "branch", where) if "branch" in table else (),
    )
    if found.num_results % found.num_channels:
        raise ScenarioError(
            f"{where}: num_results {found.num_results} is no multiple of num_channels {found.num_channels}; "
            "write the elements of all channels."
        )
    return found


def _layers(table: Mapping[str, Any], key: str, where: str) -> tuple[Convolution, ...]:
    return tuple(
        _layer(raw, f"{where}: {key}[{i}]") for i, raw in enumerate(checked_list(table, key, MAX_LAYERS, where))
    )


def _layer(raw: Any, where: str) -> Convolution:
    table = checked_table(raw, where, f", such as {EXAMPLE}")
    check_keys(table, LAYER_KEYS, where)
    sizes: dict[str, Any] = {key: _count(table, key, where, default) for key, default in LAYER_KEYS.items()}
    found = Convolution(**sizes)
    if found.inputs % found.groups or found.outputs % found.groups:
        raise ScenarioError(f"{where}: groups {found.groups} must divide inputs and outputs.")
    return found


def _count(table: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    value = table.get(key, default)
    if type(value) is not int or not 1 <= value <= MAX_COUNT:
        raise ScenarioError(f"{where}: {key}: got {shown(value)}; write a whole number from 1 to {MAX_COUNT:,}.")
    return value
