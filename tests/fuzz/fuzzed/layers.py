"""Lists of layers and sensitivities, experts' loads, runs in FP4, corrections by own runs, and papers of one's own."""

from pathlib import Path

from fuzzed import describe
from orrery.base.errors import OrreryError
from orrery.catalog.corrected import read_corrected
from orrery.evidence.feed.own import add_paper
from orrery.scenario.bits_files import read_layers, read_sensitivity
from orrery.scenario.expert_loads import read_loads
from orrery.scenario.scaling_runs import read_runs

NAME = "list"
SEEDS = (
    b"name,m,n,k,count,group,error_int8,error_fp16\na,16,64,64,2,g,0.1,0.0\nb,16,64,64,1,g,0.2,0.0\n",
    b'[[layer]]\nname = "a"\nm = 16\nn = 64\nk = 64\n',
    b'{"a": 0.2, "b": {"int8": 0.1, "fp16": 0.0}}',
    b"[0.5, 0.25, 0.25]",
    b"0.5,0.25\n0.25\n",
    b"token,layer,expert\n0,0,1\n0,1,0\n1,0,1\n1,1,1\n",
    b"name,weight\na,0.5\n",
    b"parameters,tokens,loss,fp4\n3e7,7e8,3.4,forward\n3e7,6e9,3.1,backward\n",
    b'kind = "engine"\nbase = "vllm"\nversion = "0.11.0"\ndevice = "h100-sxm"\nat = "12 runs"\n[sources.runs]\n'
    b'title = "Mine"\n[constants]\nstep_s = 0.002\n[spread."closed.tpot_s"]\nlow_80 = 0.9\nhigh_80 = 1.1\nlow_95 = 0.8\n'
    b"high_95 = 1.2\n",
    b'title = "T"\nyear = 2024\narxiv = "2401.09670"\nlayer = "serving"\nkind = "system"\nfit = "core"\nmechanism = "m"\n'
    b'techniques = []\ngains = "g"\ncosts = "c"\nmissing = "all"\n[sources.paper]\ntitle = "T"\n[[setup]]\nname = "s"\n'
    b'model = { value = "opt-13b", from = "paper", at = "table 1" }\n[[claim]]\nid = "x"\nmetric = "request_rate_ratio"\n'
    b'reported = [2.0, 4.6]\nunit = "ratio"\nbaseline = "vllm"\nsetup = "s"\nfrom = "paper"\nat = "6.2"\nmissing = "m"\n',
)
WORDS = (
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"[]",
    b"{}",
    b"by_format",
    b"[[layer]]",
    b'"weight"',
    b"9" * 400,
    b"null",
    b"true",
)
REFUSALS = (OrreryError,)


def read(path: Path) -> str:
    """By each of these readers: what each says."""
    named = {ending: path.with_suffix(ending) for ending in (".csv", ".toml", ".json")}
    for place in named.values():
        place.write_bytes(path.read_bytes())
    return describe(
        *(lambda place=place: read_layers(place, ("int8", "fp16")) for place in named.values()),
        *(lambda place=place: read_sensitivity(place, ("int8", "fp16")) for place in named.values()),
        lambda: read_loads(str(path)),
        lambda: read_runs(path),
        lambda: read_corrected(str(named[".toml"]), "engine", ("step_s",)),
        lambda: add_paper(named[".toml"], path.parent / "library.sqlite", replaces=True),
    )
