"""Label selectors of Kubernetes, in their form of equalities: ``engine=0,model_name!=other``."""

from collections.abc import Mapping
from urllib.parse import parse_qs

from orrery.emulator.refusal import RequestError

FIELD = "labelSelector"


def labels_match(query: bytes, labels: Mapping[str, str]) -> bool:
    """Whether labels are those that a query's selector chooses; without one all are."""
    text = parse_qs(query.decode("latin-1"), max_num_fields=32).get(FIELD, [""])[-1]
    return all(_holds(word.strip(), labels) for word in text.split(",") if word.strip())


def _holds(word: str, labels: Mapping[str, str]) -> bool:
    name, is_other, value = word.partition("!=")
    if not is_other:
        name, equals, value = word.replace("==", "=").partition("=")
        if not equals:
            raise RequestError(400, f"{FIELD}: got {word[:200]!r}; write NAME=VALUE or NAME!=VALUE, by comma.", FIELD)
    return (labels.get(name.strip()) == value.strip()) != bool(is_other)
