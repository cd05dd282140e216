"""The slow, obvious oracle: collectives played out chunk by chunk, with every byte and every step counted."""

from collections import Counter
from itertools import combinations

Held = list[list[frozenset[int]]]  # what each device holds of each chunk: whose contributions are summed in it


def ring(n: int, kind: str) -> tuple[int, float, Held]:
    """Steps, bytes sent by the busiest device per byte of message, and who holds what afterwards."""
    held: Held = [[frozenset({d}) for _ in range(n)] for d in range(n)]
    if kind == "all_gather":
        held = [[frozenset(range(n)) if c == d else frozenset() for c in range(n)] for d in range(n)]
    sent: Counter[int] = Counter()
    steps = 0
    if kind in ("all_reduce", "reduce_scatter"):
        for step in range(n - 1):
            moves = [(d, (d - step) % n) for d in range(n)]
            for (d, c), parcel in [((d, c), held[d][c]) for d, c in moves]:
                held[(d + 1) % n][c] |= parcel
                sent[d] += 1
            steps += 1
    if kind in ("all_reduce", "all_gather"):
        shift = 1 if kind == "all_reduce" else 0
        for step in range(n - 1):
            moves = [(d, (d + shift - step) % n) for d in range(n)]
            for (d, c), parcel in [((d, c), held[d][c]) for d, c in moves]:
                held[(d + 1) % n][c] = parcel
                sent[d] += 1
            steps += 1
    return steps, max(sent.values()) / n, held


def one_shot(n: int) -> tuple[int, float, Held]:
    """Everybody sends the whole of its buffer to everybody."""
    held = [[frozenset(range(n))] for _ in range(n)]
    return 1, float(len([peer for peer in range(n) if peer != 0])), held


def two_shot(n: int) -> tuple[int, float, Held]:
    """Everybody sends chunk c to device c, which sums it and sends the sum to everybody."""
    sent: Counter[int] = Counter()
    sums = [frozenset[int]() for _ in range(n)]
    for d in range(n):
        for c in range(n):
            sums[c] |= {d}
            sent[d] += c != d
    for c in range(n):
        sent[c] += n - 1
    return 2, max(sent.values()) / n, [list(sums) for _ in range(n)]


def in_switch(n: int) -> tuple[int, float, Held]:
    """The switch reads chunk c of all devices for device c, which writes the sum back through the multicast."""
    sent: Counter[int] = Counter()
    for _chunk in range(n):
        for d in range(n):
            sent[d] += 1
    for c in range(n):
        sent[c] += 1
    return 2, max(sent.values()) / n, [[frozenset(range(n))] * n for _ in range(n)]


def all_to_all(n: int, per_node: int) -> tuple[float, float]:
    """Bytes that a device sends inside its node and to others, per byte of message."""
    near = far = 0
    for peer in range(1, n):
        near += peer // per_node == 0
        far += peer // per_node != 0
    return near / n, far / n


def double_tree(nodes: int) -> tuple[int, float]:
    """Depth of the binary tree over nodes 1.., and the most bytes that a node sends, half the buffer down each tree.

    An in-order tree over 1..N: a node is a leaf if odd; the second tree is the first shifted by one, so leaves of one
    are inner nodes of the other.
    """

    def children(low: int, high: int, depth: int, out: Counter[int], level: dict[int, int]) -> int | None:
        if low > high:
            return None
        step = 1
        while step * 2 <= high - low + 1:
            step *= 2
        middle = low + step - 1
        level[middle] = depth
        for span in ((low, middle - 1), (middle + 1, high)):
            if children(*span, depth + 1, out, level) is not None:
                out[middle] += 1
        return middle

    out: Counter[int] = Counter()
    level: dict[int, int] = {}
    children(1, nodes, 0, out, level)
    sent: Counter[int] = Counter()
    for shift in (0, 1):
        for node in range(nodes):
            own = (node + shift) % nodes + 1
            sent[node] += 0.5 * (out[own] + (level[own] > 0))  # half the buffer to each child, and up
    return max(level.values()), max(sent.values())


def copies(num_experts: int, k: int, n: int, per_node: int, start: int = 0) -> dict[str, float]:
    """Copies of a token of device ``start``, averaged over every choice of k experts."""
    total: Counter[str] = Counter()
    choices = list(combinations(range(num_experts), k))
    home = start // per_node
    for experts in choices:
        where = [e * n // num_experts for e in experts]
        total["expert_near"] += sum(d != start and d // per_node == home for d in where)
        total["expert_far"] += sum(d // per_node != home for d in where)
        total["devices"] += len(set(where))
        total["nodes"] += len({d // per_node for d in where})
        total["other_nodes"] += len({d // per_node for d in where} - {home})
    return {key: value / len(choices) for key, value in total.items()}
