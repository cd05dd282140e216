"""Where the copies of a token go when its k experts are spread over n devices, each expert equally likely."""

from dataclasses import dataclass

from orrery.network.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Tokens that choose ``experts_per_token`` of ``num_experts``, which the group holds in equal parts."""

    group: Group
    num_experts: int
    experts_per_token: int

    def places_hit(self, num_places: int) -> float:
        """Expected number of places, of ``num_places`` equal ones, that hold at least one of a token's experts.

        P (1 - prod_i (E - E/P - i) / (E - i)): drawing k of E without putting back.
        """
        total, each, missed = self.num_experts, self.num_experts / num_places, 1.0
        for i in range(min(self.experts_per_token, total)):
            missed *= max(total - each - i, 0.0) / (total - i)
        return num_places * (1.0 - missed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Copies of one token: to other devices of the node, across the network, and handled in all (own ones too).

    ``num_out_steps`` messages between nodes wait for each other.
    """

    inside_ratio: float
    across_ratio: float
    local_ratio: float
    num_out_steps: int
    transport: str
