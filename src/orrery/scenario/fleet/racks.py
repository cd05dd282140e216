"""Where replicas stand: racks by their row, and the racks that each pool's replicas are dealt to in turn."""

from orrery.base.errors import ScenarioError
from orrery.scenario.fleet.blocks import PoolBlock
from orrery.scenario.fleet.read import FleetInputs


def racks_by_row(inputs: FleetInputs) -> dict[str, list[str]]:
    """The racks of every row; a row that nothing divides is one rack of its own name."""
    found: dict[str, list[str]] = {row.name or "": [] for row, _ in inputs.rows}
    for rack, _ in inputs.racks:
        if rack.row:
            found[rack.row].append(rack.name or "")
    return {row: racks or [row] for row, racks in found.items()}


def places_of(inputs: FleetInputs) -> list[str]:
    """All racks, and rows that nothing divides, in the order of the file."""
    undivided = [row for row, racks in racks_by_row(inputs).items() if racks == [row]]
    return [*undivided, *(rack.name or "" for rack, _ in inputs.racks)]


def racks_of(inputs: FleetInputs, block: PoolBlock) -> tuple[str, ...]:
    """The racks that a pool's replicas are dealt to; one without a name where there are none."""
    written = block.racks or inputs.top.racks
    if written is None:
        return tuple(places_of(inputs)) or ("",)
    return tuple(word.strip() for word in written.split(","))


def checked_racks(inputs: FleetInputs) -> None:
    """Refuse rows and racks that contradict each other, and pools that stand where nothing is."""
    names = [block.name for block, _ in (*inputs.rows, *inputs.racks)]
    if None in names:
        raise ScenarioError('row, rack: a name is missing; write name = "r1" in each.')
    if twice := [name for name in names if names.count(name) > 1]:
        raise ScenarioError(f"row, rack: {twice[0]!r} is there twice; give each a name of its own.")
    rows = [row.name for row, _ in inputs.rows]
    for rack, _ in inputs.racks:
        if rack.row is not None and rack.row not in rows:
            raise ScenarioError(f"rack {rack.name}: there is no row {rack.row!r}; write [[row]] name = {rack.row!r}.")
    places = places_of(inputs)
    taken: dict[str, str | None] = {}  # each with the region of the pools in it
    for number, pool in enumerate(inputs.pools, start=1):
        found = racks_of(inputs, pool.block)
        for place in found:
            if (pool.block.racks or inputs.top.racks) and place not in places:
                known = f"write one of {', '.join(places)}" if places else "write it as [[rack]] too"
                raise ScenarioError(f"pool {pool.block.name or number}: there is no rack {place!r}; {known}.")
            if place in places and taken.setdefault(place, pool.block.region) != pool.block.region:
                raise ScenarioError(
                    f"rack {place}: pools of regions {taken[place]} and {pool.block.region} stand in it; write "
                    "racks in each [[pool]]."
                )
        if (priority := pool.block.power_priority or inputs.top.power_priority) not in (None, "low", "high"):
            raise ScenarioError(f"power_priority: got {priority!r}; write low or high.")
    if empty := [place for place in places if place not in taken and place not in inputs.racks_of_others]:
        raise ScenarioError(f"rack {empty[0]}: no pool stands in it; name it in a pool's racks, or leave it out.")
