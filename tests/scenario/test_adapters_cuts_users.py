"""Adapters, unequal cuts and people of a scenario, by hand."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.execution.memory import Infeasible
from orrery.scenario import users as people
from orrery.scenario.adapters import adapter_notes, adapters_of, with_adapters
from orrery.scenario.cuts import cut_of, degrees_of
from orrery.scenario.schema import read_scenario
from orrery.scenario.users import at_users, think_s, users_rate, users_requests
from orrery.serving.synthesis import Length, independent

LENGTHS = Length(mean_tokens=100.0), Length(mean_tokens=10.0)


def chosen(count, **settings):
    drawn = independent(count, 1.0, 0, input=LENGTHS[0], output=LENGTHS[1], law="poisson")
    return with_adapters(read_scenario(settings), drawn).adapter


def test_places_and_rank_of_adapters():
    """vLLM's defaults are a rank of 16 and one place; no more places than adapters."""
    usual = adapters_of(read_scenario({"lora_adapters": 50}))
    assert (usual.rank, usual.slots) == (16, 1)
    said = adapters_of(read_scenario({"lora_adapters": 3, "lora_rank": 8, "max_loras": 4}))
    assert (said.rank, said.slots) == (8, 3)
    assert adapters_of(read_scenario({})) is None
    assert adapters_of(read_scenario({"lora_adapters": 0})) is None


def test_popular_adapters_are_chosen_more():
    """Three with 1, 1/2 and 1/3: 6, 3 and 2 of 11; alike where nobody says, and where the exponent is 0."""
    counts = np.bincount(chosen(20_000, lora_adapters=3, lora_popularity="zipf:1"), minlength=3)
    assert counts / 20_000 == pytest.approx(np.array([6, 3, 2]) / 11, abs=0.01)
    for settings in ({}, {"lora_popularity": "uniform"}, {"lora_popularity": "zipf:0"}):
        even = np.bincount(chosen(20_000, lora_adapters=4, **settings), minlength=4)
        assert even / 20_000 == pytest.approx(np.full(4, 0.25), abs=0.01)
    assert chosen(5, lora_adapters=1).tolist() == [0] * 5
    assert np.array_equal(chosen(9, lora_adapters=5, seed=1), chosen(9, lora_adapters=5, seed=1))


@pytest.mark.parametrize("text", ["zipf", "zipf:-1", "zipf:10.1", "zipf:steep", "even"])
def test_other_popularities_are_refused(text):
    with pytest.raises(ScenarioError, match=r"write uniform, or zipf:1\.1"):
        adapters_of(read_scenario({"lora_adapters": 2, "lora_popularity": text}))


@pytest.mark.parametrize("name", ["lora_rank", "max_loras"])
def test_settings_without_adapters_are_refused(name):
    with pytest.raises(ScenarioError, match=f"{name}: there are no adapters"):
        adapters_of(read_scenario({name: 8}))
    assert adapters_of(read_scenario({"lora_adapters": 2, "lora_popularity": "zipf:10"})).slots == 1


def test_nothing_to_say_without_adapters():
    assert adapter_notes(read_scenario({}), SimpleNamespace(adapters=None)) == ()


MIXTURE, DENSE = get_model("mixtral-8x7b"), get_model("llama-3.2-1b")


def test_devices_of_unequal_cuts():
    """Attention over 2 of 8 devices is four copies, experts over all 8 one; the other way round one and four."""
    assert cut_of(read_scenario({"cut": "attention=2, ffn=8"}), MIXTURE) == (2, 8)
    assert degrees_of((2, 8)) == {"tp": 2, "dp": 4, "ep": 1, "etp": 8}
    assert degrees_of((8, 2)) == {"tp": 8, "dp": 1, "ep": 4, "etp": 2}
    assert cut_of(read_scenario({"cut": "ffn=1,attention=1"}), MIXTURE) == (1, 1)
    assert cut_of(read_scenario({"cut": "any"}), MIXTURE) is None
    assert cut_of(read_scenario({}), DENSE) is None


@pytest.mark.parametrize(
    "text",
    ["attention=2", "attention=2,ffn=3", "attention=0,ffn=2", "attention=2,ffn=0", "attention=2,ffn=4,tp=2", "x"],
)
def test_cuts_are_multiples(text):
    with pytest.raises(ScenarioError, match="one a multiple of the other"):
        cut_of(read_scenario({"cut": text}), MIXTURE)


def test_cuts_that_make_no_sense():
    with pytest.raises(ScenarioError, match="has no experts"):
        cut_of(read_scenario({"cut": "attention=2,ffn=8"}), DENSE)
    with pytest.raises(ScenarioError, match="cut and tp exclude each other"):
        cut_of(read_scenario({"cut": "attention=2,ffn=8", "tp": 2}), MIXTURE)


@dataclass(frozen=True)
class Load:
    concurrency: int = 0


@dataclass(frozen=True)
class Asked:
    """A question, as far as people change it."""

    workload: Load
    deployment: str = ""
    notes: tuple[str, ...] = ()


@pytest.mark.parametrize(("users", "in_flight"), [(10, 2), (14, 2), (15, 3), (1000, 200), (1, 1)])
def test_people_who_think_between_requests(monkeypatch, users, in_flight):
    """c in flight for 2 s each make c / 2 requests a second, whose people think for 8 s: c + 4 c of them."""
    monkeypatch.setattr(people, "estimate", lambda _, load: SimpleNamespace(requests_per_s=load.concurrency / 2))
    found = at_users(read_scenario({"users": users, "think_s": 8}), Asked(workload=Load()))
    assert found.workload.concurrency == in_flight
    assert found.notes[-1].endswith(f"request: {in_flight:,} in flight")


def test_people_where_nothing_fits_and_where_there_are_none(monkeypatch):
    never = Infeasible(what="memory", need=2.0, have=1.0, unit="bytes", smallest_change="")
    monkeypatch.setattr(people, "estimate", lambda *_: never)
    assert at_users(read_scenario({"users": 5}), Asked(workload=Load())) is never
    asked = Asked(workload=Load())
    assert at_users(read_scenario({}), asked) is asked


def test_requests_of_people_follow_each_other():
    """Seven of three people: 3, 2 and 2, each behind its person's one before; with a last pause each person's are as
    long on average as is said."""
    scenario = read_scenario({"users": 3, "think_s": 10})
    found = users_requests(scenario, 7, LENGTHS)
    assert sorted(np.bincount(found.session).tolist()) == [2, 2, 3]
    assert np.array_equal(found.session, found.client)
    starts = np.flatnonzero(np.diff(found.session, prepend=-1))
    assert found.after[starts].tolist() == [-1] * 3
    rest = np.setdiff1d(np.arange(7), starts)
    assert found.after[rest].tolist() == (rest - 1).tolist()
    first = found.arrive_s[starts]
    assert np.all(np.diff(first) >= 0)
    for person in range(3):
        pauses = found.arrive_s[found.session == person]
        assert 0 < pauses.sum() < 10.0 * (pauses.size + 1)
    many = users_requests(read_scenario({"users": 1, "think_s": 10}), 5000, LENGTHS)
    assert many.arrive_s.mean() == pytest.approx(10.0, rel=1e-3)
    assert users_requests(read_scenario({"users": 9}), 4, LENGTHS).count == 4


def test_rates_of_people():
    assert users_rate(read_scenario({"users": 60})) == 2.0
    assert users_rate(read_scenario({"users": 60, "think_s": 6})) == 10.0
    assert think_s(read_scenario({"think_s": 0})) == 0.0
    with pytest.raises(ScenarioError, match="a plan needs a rate"):
        users_rate(read_scenario({"users": 60, "think_s": 0}))
