"""Which dotted fields the Kubernetes client's models lack: kind -> fields on standard input, those missing out."""

import json
import sys
import types
import typing

from kubernetes.client import models

ROOTS = {
    "Deployment": models.V1Deployment,
    "Service": models.V1Service,
    "HorizontalPodAutoscaler": models.V2HorizontalPodAutoscaler,
}


def bare(kind):
    """A type without what may be missing, and without its notes."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return bare(next(arm for arm in typing.get_args(kind) if arm is not type(None)))
    return bare(typing.get_args(kind)[0]) if origin is typing.Annotated else kind


def inside(kind, word):
    """The type behind one word of a path; None where there is none."""
    kind, name = bare(kind), word.removesuffix("[]")
    if name == "*":
        return typing.get_args(kind)[1] if typing.get_origin(kind) is dict else None
    fields = {f.serialization_alias or n: f.annotation for n, f in getattr(kind, "model_fields", {}).items()}
    found = bare(fields.get(name))
    if found is None or not word.endswith("[]"):
        return found
    return typing.get_args(found)[0] if typing.get_origin(found) is list else None


def has(kind, path):
    for word in path.split("."):
        kind = inside(kind, word)
        if kind is None:
            return False
    return True


asked = json.load(sys.stdin)
print(json.dumps([[kind, path] for kind, paths in asked.items() for path in paths if not has(ROOTS[kind], path)]))
