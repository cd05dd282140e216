"""The tenants of a fleet at its gateway: whose request it is, at what priority, and whether a budget lets it in."""

from dataclasses import replace
from math import ceil, isfinite

from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import EmulatedRequest
from orrery.fleet.service.tenants import Bucket, Tenant

ORIGIN_HEADER = b"x-orrery-origin"
"""The request header that names an origin of the fleet."""


def origin_of(name: str, origins: tuple[str, ...]) -> int:
    """Number of the origin that a request names, the first where it names none; 400 where there is no such origin."""
    if not name:
        return 0
    if name not in origins:
        known = f"write one of {', '.join(origins)}" if origins else "this service stands in no regions"
        raise RequestError(400, f"X-Orrery-Origin: there is no origin {name[:100]!r}; {known}.")
    return origins.index(name)


class Gateway:
    """Requests whose ``user`` is a tenant's name are the tenant's; others pass as they are."""

    def __init__(self, tenants: tuple[Tenant, ...]) -> None:
        self._tenants = {t.name: t for t in tenants}
        self._buckets = {
            t.name: Bucket(t.budget_requests_per_s, t.burst_requests)
            for t in tenants
            if isfinite(t.budget_requests_per_s)
        }

    def let_in(self, request: EmulatedRequest, at_s: float) -> EmulatedRequest:
        """The request as its tenant's; 429 where that is beyond its budget."""
        tenant = self._tenants.get(request.user)
        if tenant is None:
            return request
        bucket = self._buckets.get(tenant.name)
        if bucket is not None and not bucket.lets_through(at_s):
            rate = tenant.budget_requests_per_s
            again = ((b"retry-after", str(max(1, ceil(1.0 / rate) if rate else 60)).encode()),)
            raise RequestError(
                429, f"The tenant {tenant.name!r} is beyond its budget of {rate:g} requests/s.", headers=again
            )
        return replace(request, priority_ratio=tenant.priority_rank, session="")
