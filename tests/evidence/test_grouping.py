"""Groups of measured rows by campaign and side, and rows that are left out."""

import hashlib
import json

import pytest

from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.evidence.check import check
from orrery.evidence.grouping import campaigns_of, words_of
from orrery.evidence.split import sides_of
from orrery.evidence.tables import Table

HEAD = "kind,source,device,op,format,m,n,k,time_s\n"
ROWS = (
    "kernel,lab@1:a,h100-sxm,gemm,bf16,8,4096,4096,1e-5\n"
    "kernel,lab (b),h100-sxm,gemm,bf16,64,4096,4096,1e-5\n"
    "kernel,lab,a100-sxm-80gb,gemm,bf16,64,512,4096,1e-5\n"
    "kernel,me,h900,gemm,bf16,64,4096,4096,1e-5\n"
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(HEAD + ROWS)
    return path


def side_by_hand(*words):
    """The first eight bytes of the hash as a share of 2^64: a fifth fits, a fifth calibrates, the rest tests."""
    share = int(hashlib.sha256("|".join(words).encode()).hexdigest()[:16], 16) / 2**64
    return "fit" if share < 0.2 else "calibrate" if share < 0.4 else "test"


def table_of(**columns):
    return Table("t.csv", columns)


def test_errors_are_grouped_by_campaigns_that_no_column_names(table):
    found = [(g.by, g.score.rows) for g in check([table], by=["campaign"]).groups]
    assert found == [({}, 3), ({"campaign": "lab: a100-sxm-80gb"}, 1), ({"campaign": "lab: h100-sxm"}, 2)]


def test_a_side_is_that_of_the_shape(table):
    found = {g.by["side"]: g.score.rows for g in check([table], by=["side"]).groups if g.by}
    large, small = side_by_hand("4096", "4096"), side_by_hand("512", "4096")
    assert large != small, "else this test shows nothing"
    assert found == {large: 2, small: 1}


def test_every_kind_has_the_sides_of_its_shapes():
    rows = table_of(
        kind=["kernel", "kernel", "collective", "collective", "serving", "kernel", "diffusion"],
        op=["grouped_gemm", "norm", "", "", "", "sort", ""],
        collective=["", "", "all_reduce", "moe_combine", "", "", ""],
        n=["512", "", "", "", "", "", ""],
        k=["64", "", "", "", "", "", ""],
        tokens=["", "7", "", "", "", "", ""],
        width=["", "128", "", "", "", "", ""],
        num_devices=["", "", "8", "16", "2", "", ""],
        message_bytes=["", "", "1024", "", "", "", ""],
        hidden_size=["", "", "", "4096", "", "", ""],
        num_experts=["", "", "", "64", "", "", ""],
        experts_per_token=["", "", "", "6", "", "", ""],
        model=["", "", "", "", "m", "", "d"],
    )
    assert sides_of(rows).tolist() == [
        side_by_hand("512", "64"),
        side_by_hand("norm", "7", "128"),
        side_by_hand("all_reduce", "8", "1024"),
        side_by_hand("4096", "64", "6"),
        side_by_hand("m", "2"),
        "test",
        "test",
    ]


def test_own_columns_win_and_a_row_that_cannot_be_told_has_a_blank():
    own = table_of(kind=["serving"] * 2, side=["left", ""], campaign=["spring", ""], device=["h100-sxm", "h900"])
    assert words_of(own, "side").tolist() == ["left", ""]
    assert campaigns_of(own).tolist() == ["spring", ""]
    assert words_of(own, "colour").tolist() == ["", ""]


def test_rows_are_left_out_by_campaign_and_by_column(table):
    report = check([table], exclude=["campaign=lab: a100*", "m=8"])
    assert dict(report.excluded) == {"campaign=lab: a100*": 1, "m=8": 1}
    assert (report.rows, dict(report.declined)) == (2, {"unknown device h900": 1})
    assert [(g.by, g.score.rows) for g in report.groups] == [({}, 1)]
    assert check([table]).excluded == {}
    assert report.to_json()["excluded"] == [{"where": "campaign=lab: a100*", "rows": 1}, {"where": "m=8", "rows": 1}]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("campaign", "got 'campaign'; write column=pattern"),
        ("=x", "got '=x'; write column=pattern"),
        ("devise=x", "no table has a column 'devise'; did you mean 'device'"),
        ("device=b200*", "no row has device=b200*; words of device: a100-sxm-80gb; h100-sxm; h900"),
    ],
)
def test_a_condition_that_says_nothing_is_refused(table, condition, message):
    with pytest.raises(ScenarioError) as found:
        check([table], exclude=[condition])
    assert str(found.value).startswith(f"--exclude: {message}")


def test_the_command_says_what_it_left_out(table, capsys):
    assert run(["check", str(table), "--by", "side", "--exclude", "device=h*"]) == 0
    assert "excluded 3: device=h*" in capsys.readouterr().out
    assert run(["check", str(table), "--exclude", "m=8", "--exclude", "m=6*", "--json"]) == 0
    excluded = json.loads(capsys.readouterr().out)["excluded"]
    assert excluded == [{"where": "m=8", "rows": 1}, {"where": "m=6*", "rows": 3}]
