"""What takes long says how far it is; what is refused is refused before anything is prepared."""

import pytest

import orrery
from orrery.cli.progress import bar

ONE = ("--model", "llama-3.1-8b", "--device", "h100-sxm")
LENGTHS = ("--input-tokens", "100", "--output-tokens", "20")


@pytest.mark.parametrize("command", [("simulate",), ("simulate", "--find-capacity")])
@pytest.mark.parametrize(
    ("flags", "code"),
    [((*ONE, *LENGTHS, "--rate", "1", "--model", "llama-3.1-405b"), 3), ((*ONE, "--rate", "1"), 2),
     ((*ONE, "--trace", "nowhere.csv"), 2), ((*ONE, *LENGTHS, "--batch", "4"), 2)],
)  # fmt: skip
def test_refusals_come_before_preparation(command, flags, code, said, monkeypatch):
    for module in ("simulate", "capacity"):
        monkeypatch.setattr(f"orrery.scenario.{module}.warm_up", lambda service: pytest.fail("it was prepared"))
    assert said(*command, *flags)[0] == code


def test_a_search_tells_how_far_it_is():
    told = []
    orrery.plan(model="llama-3.1-8b", device="h100-sxm", rate=1, input_tokens=100, output_tokens=20, max_devices=1,
                weights="bf16", on_progress=lambda done, total: told.append((done, total)))  # fmt: skip
    assert told
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][0] == told[-1][1]
    assert all(done <= total for done, total in told)


def test_a_bar_is_only_for_terminals(capsys):
    with bar("runs") as tell:
        tell(1, 2)
    assert capsys.readouterr() == ("", "")
