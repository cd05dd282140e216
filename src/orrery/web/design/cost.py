"""Energy and cost of a design, as text."""

from orrery.planner.money import J_PER_KWH, S_PER_HOUR
from orrery.reports.words import format_value
from orrery.scenario.ask import Answer

HOURS_A_MONTH = 730.0


def cost_rows(answer: Answer) -> tuple[tuple[str, str], ...]:
    """(what, how much)."""
    e, tariff = answer.estimate, answer.tariff
    usd_per_s = tariff.usd_per_s(e.num_devices, e.power_w)
    hourly = None if usd_per_s is None else S_PER_HOUR * usd_per_s
    price = (
        "no price is known"
        if tariff.usd_per_hour is None
        else f"{format_value(tariff.usd_per_hour, 'usd')} ({tariff.because})"
    )
    return (
        ("$/device-hour", price),
        ("All devices, an hour", format_value(hourly, "usd")),
        ("A month of 730 hours", format_value(None if hourly is None else HOURS_A_MONTH * hourly, "usd")),
        ("Cost per 1M output tokens", format_value(answer.usd_per_million_tokens, "usd")),
        ("Cost per 1M total tokens", format_value(answer.usd_per_million_total_tokens, "usd")),
        ("Electricity in that", _electricity(answer, usd_per_s)),
        ("Energy of a million output tokens", f"{1e6 * e.energy_j_per_token / J_PER_KWH:,.3g} kWh"),
        (
            "Power",
            f"{format_value(e.power_w, 'w')}, of {format_value(e.num_devices * _limit_w(answer), 'w')} that "
            f"they may draw",
        ),
    )


def _limit_w(answer: Answer) -> float:
    return answer.question.deployment.cluster.device.power_limit_w


def _electricity(answer: Answer, usd_per_s: float | None) -> str:
    """The share of the bill that is paid for electricity apart."""
    per_kwh = answer.tariff.electricity_usd_per_kwh
    if not per_kwh:
        return "inside the price of the devices; set a price per kWh to have it apart"
    own = answer.estimate.power_w * per_kwh / J_PER_KWH
    share = f", {format_value(own / usd_per_s, 'frac')} of the bill" if usd_per_s else ""
    return f"{format_value(own * S_PER_HOUR, 'usd')} an hour{share}"
