"""The card that stands for a link to the landing page: the answer, large, and the best accelerators as bars."""

from orrery.web.cards.card import CardBar, ShareCard
from orrery.web.cards.drawn import MAX_ROWS, picture
from orrery.web.landing.best import Best
from orrery.web.landing.view import MS, Choice, best_of


def card(choice: Choice) -> bytes:
    """The picture as PNG."""
    priced = [b for b in best_of(choice) if b.usd_per_million][:MAX_ROWS]
    scale_usd = 1.05 * max((_ends_usd(b)[1] for b in priced), default=1.0)
    first = priced[0] if priced else None
    rate = f"on {first.device.title}, {first.row['rate']:,.0f} tokens/s per device" if first else ""
    return picture(
        ShareCard(
            kicker="Best accelerator for",
            title=choice.title,
            number=f"${first.usd_per_million:.3g}" if first else "",
            beside=("per M output tokens", rate) if first else ("", ""),
            bars=tuple(_bar(best, scale_usd) for best in priced),
            foot=(
                f"orrery: TTFT within {choice.ttft_s * MS:g} ms, TPOT within {choice.tpot_s * MS:g} ms",
                f"{choice.lengths[0]:,} in, {choice.lengths[1]:,} out",
            ),
        )
    )


def _bar(best: Best, scale_usd: float) -> CardBar:
    """One accelerator: its cost with the 80 % interval."""
    usd = best.usd_per_million or 0.0
    low_usd, high_usd = _ends_usd(best)
    return CardBar(
        name=best.device.title,
        value_frac=usd / scale_usd,
        low_frac=low_usd / scale_usd,
        high_frac=high_usd / scale_usd,
        text=f"${usd:.3g}",
    )


def _ends_usd(best: Best) -> tuple[float, float]:
    """The ends of the cost's 80 % interval: those of the rate are in percent of it."""
    usd = best.usd_per_million or 0.0
    return usd * 100 / best.row["rate_high"], usd * 100 / best.row["rate_low"]
