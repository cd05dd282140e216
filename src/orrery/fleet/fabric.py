"""How many switches a fat tree takes: half of a leaf's ports go down, half up, and so on. [leiserson-1985]"""

from math import ceil

from orrery.base.errors import OutOfRange


def num_switches(num_endpoints: int, num_ports: int, num_layers: int) -> int:
    """Number of switches in a fat tree of two or three layers, without over-subscription.

    >>> num_switches(800, 40, 2)
    60
    """
    half = num_ports // 2
    leaves = ceil(num_endpoints / half)
    if num_layers == 2:
        if leaves > num_ports:
            raise OutOfRange(
                f"fat tree: {num_endpoints} endpoints on {num_ports}-port switches take more than two layers; "
                f"they hold {half * num_ports}. Write three layers, or split the endpoints."
            )
        return leaves + ceil(leaves * half / num_ports)
    if num_layers != 3:
        raise OutOfRange(f"fat tree: {num_layers} layers; write 2 or 3.")
    if num_endpoints > half**2 * num_ports:
        raise OutOfRange(
            f"fat tree: {num_endpoints} endpoints on {num_ports}-port switches take more than three layers; "
            f"they hold {half**2 * num_ports}. Split the endpoints."
        )
    return 2 * leaves + ceil(leaves * half / num_ports)
