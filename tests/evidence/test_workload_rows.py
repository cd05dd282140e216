"""Runs of speech, image networks, embeddings and recommendation: predicted as estimate does, and shipped ones."""

import math

import pytest

import orrery
from orrery.evidence.check import check_table
from orrery.evidence.tables import read_table
from orrery.evidence.workload_rows import METRICS, PUBLISHED

OWN = """kind,model,device,engine,weights_format,window_batch,num_beams,batch_size,input_tokens,output_tokens,audio_s,\
latency_s,encoder_s,decoder_step_s,embeddings_per_s
workload,whisper-large-v3,rtx-3090,faster-whisper,int8,8,5,,,,3600,60,,,
workload,whisper-tiny,m4-max,whisper.cpp,,,1,,,256,,,0.0105,0.00086,
workload,bge-large-en-v1.5,l4,,,,,32,449,,,,,,138
workload,nobody,l4,,,,,,,,30,1,,,
workload,whisper-large-v3,jetson-nano,faster-whisper,,64,5,,,,9000,1,,,
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    file = tmp_path_factory.mktemp("runs") / "runs.csv"
    file.write_text(OWN)
    return check_table(read_table(file)).answers


def test_rows_are_predicted_as_estimate_does(own):
    recorded = orrery.estimate(
        model="whisper-large-v3", device="rtx-3090", weights="int8", window_batch=8, num_beams=5, audio_s=3600
    )
    assert own.predicted["latency_s"][0] == recorded.latency_s
    assert own.intervals["latency_s"]["low_80"][0] == recorded.intervals()["latency_s"].low_80
    read = orrery.estimate(model="bge-large-en-v1.5", device="l4", batch=32, input_tokens=449)
    assert own.predicted["embeddings_per_s"][2] == read.embeddings_per_s
    assert own.predicted["power_w"][2] == read.estimate.power_w


def test_a_step_is_told_without_the_choice_of_its_tokens(own):
    found = orrery.estimate(model="whisper-tiny", device="m4-max", engine="whisper.cpp", num_beams=1, output_tokens=256)
    done = found.transcribed
    assert own.predicted["decoder_step_s"][1] == pytest.approx(done.step_s - found.runtime.step_s)
    assert own.predicted["encoder_s"][1] == pytest.approx(done.stages[0].time_s + done.stages[1].time_s)


def test_rows_that_cannot_be_are_declined_in_words(own):
    assert "nobody" in own.declined[3]
    assert own.declined[4] == "does not fit in the device's memory"


def test_an_attention_that_no_formula_speaks_for_is_declined(tmp_path):
    head, row = (
        "kind,model,device,engine,audio_s,latency_s,attention_backend\n",
        "workload,whisper-tiny,l4,transformers,30,1",
    )
    (tmp_path / "runs.csv").write_text(f"{head}{row},better-transformer\n{row},sdpa\n{row},\n")
    answers = check_table(read_table(tmp_path / "runs.csv")).answers
    assert "attention by better-transformer is not modelled" in answers.declined[0]
    assert answers.predicted["latency_s"][1] == answers.predicted["latency_s"][2] > 0


def test_every_shipped_row_says_where_it_stands_and_states_one_thing():
    table = read_table(PUBLISHED)
    measured = (*METRICS, "encoder_s", "decoder_step_s")
    for i in range(len(table)):
        row = {column: cells[i] for column, cells in table.columns.items()}
        assert row["source"].startswith("https://")
        assert row["note"]
        assert row["campaign"]
        assert any(row.get(metric) for metric in measured)


def test_shipped_rows_of_speech_lie_within_a_factor_of_three():
    """Before hosts were counted, published recordings took 2.7 to 19 times as long."""
    table = read_table(PUBLISHED)
    checked = check_table(table)
    declined = set(checked.answers.declined)
    assert {table.columns["attention_backend"][i] for i in declined} == {"better-transformer"}
    told = [i for i, cell in enumerate(table.columns["latency_s"]) if cell and i not in declined]
    assert len(told) >= 15
    assert len({table.columns["source"][i] for i in told}) >= 4
    for i in told:
        ratio = checked.answers.predicted["latency_s"][i] / float(table.columns["latency_s"][i])
        assert abs(math.log(ratio)) < math.log(3.0), table.columns["note"][i]
