"""Servers of images: what unpacking and copying take beside a vision transformer, for medium and large images."""

from collections.abc import Iterator

from orrery.base.experiment import Row
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.experiments import rows_of

DIFFERS = (
    "images, cores and their rates, none of which was found: the share follows from pixels over the rate of unpacking "
    "them, and from how fast the network is"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The share of a lone request's latency; what is lost of the network's throughput, on the better side."""
    claims = {claim.id: claim for claim in paper.claims}
    medium, _ = served(claims["latency"].setup)
    yield Prediction(
        claim="latency",
        predicted=float(medium["overhead_frac"]),
        because=f"{_ms(medium, 'unpacking_s')} to unpack and resize on one core, {_ms(medium, 'copying_s')} to copy, "
        f"{_ms(medium, 'network_s')} for the network",
        differs=DIFFERS,
    )
    large = served(claims["throughput"].setup)
    best = min(large, key=lambda row: float(row["lost_frac"]))
    rate, lost = float(best["images_per_s"]), float(best["lost_frac"])
    yield Prediction(
        claim="throughput",
        predicted=lost,
        because=f"unpacked on the {best['unpacked_on']}: {rate:.0f} images a second of {rate / (1.0 - lost):.0f} that "
        "the network makes",
        differs=DIFFERS,
    )


def _ms(row: Row, name: str) -> str:
    return f"{float(row[name]) * 1e3:.2f} ms"


def served(setup: Setup) -> tuple[Row, ...]:
    """The set-up's image unpacked on the host and on the device, by orrery experiment image-server."""
    return rows_of(
        "image-server",
        {
            "image_px": setup.number("num_image_pixels"),
            "packed_ratio": setup.number("packed_bytes_ratio"),
            "num_layers": setup.number("num_layers"),
            "num_hidden": setup.number("num_hidden"),
            "num_ffn": setup.number("num_ffn_features"),
            "num_heads": setup.number("num_heads"),
            "num_side": setup.number("num_network_side_pixels"),
            "num_patch": setup.number("num_patch_side_pixels"),
            "num_batch": setup.number("num_batch"),
            "num_cores": setup.number("num_cores"),
            "num_core_pixels_per_s": setup.number("num_core_pixels_per_s"),
            "num_device_pixels_per_s": setup.number("num_device_pixels_per_s"),
            "format": setup.word("weights_format"),
        },
        device=setup.word("device"),
    )
