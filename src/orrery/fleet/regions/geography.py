"""Distance on the earth, and the least time that light in a fibre needs there and back."""

from math import asin, cos, radians, sin, sqrt

LIGHT_M_PER_S = 299_792_458.0
EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the ellipsoid of WGS 84."""

Place = tuple[float, float]
"""Latitude and longitude in degrees, north and east positive."""


def distance_m(a: Place, b: Place) -> float:
    """Great-circle distance of two places, by the haversine formula."""
    (lat_a, lon_a), (lat_b, lon_b) = ((radians(x), radians(y)) for x, y in (a, b))
    half = sin((lat_b - lat_a) / 2.0) ** 2 + cos(lat_a) * cos(lat_b) * sin((lon_b - lon_a) / 2.0) ** 2
    return 2.0 * EARTH_RADIUS_M * asin(min(1.0, sqrt(half)))


def least_round_trip_s(a: Place, b: Place, index_ratio: float) -> float:
    """Time of light there and back in a straight fibre of a group index: no round trip is shorter."""
    return 2.0 * distance_m(a, b) * index_ratio / LIGHT_M_PER_S
