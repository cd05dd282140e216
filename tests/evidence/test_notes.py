"""Words of notes as columns: each applies where it says, and a filled cell stands."""

import pytest

from orrery.evidence.notes import sayings, with_notes
from orrery.evidence.row import Row
from orrery.evidence.training_row import read_training_row

OLD = "golden-value file that may predate the current config: see there"
SMALL = {
    "model": "gpt",
    "num_layers": "12",
    "hidden_size": "512",
    "num_heads": "8",
    "ffn_size": "2048",
    "vocab_size": "50000",
    "seq_len": "1024",
    "device": "a100-sxm-80gb",
    "num_devices": "1",
    "micro_batch": "4",
    "global_batch": "32",
    "framework": "megatron-lm",
    "precision": "bf16",
}


def test_every_saying_is_lower_case_and_sourced():
    assert sayings()
    for one in sayings():
        assert one.words == one.words.casefold()
        assert one.columns
        assert one.source.url
        assert one.at


def test_a_filled_cell_stands_but_for_corrections():
    assert with_notes({"note": OLD})["attention_backend"] == "unfused"
    assert with_notes({"note": OLD, "attention_backend": "flash"})["attention_backend"] == "flash"
    copied = {"note": "the 4-device rows show the 1-device runtime: suspect", "num_devices": "4"}
    assert with_notes(copied | {"task": "lora"})["num_devices"] == "1"
    assert with_notes(copied | {"task": "full_finetune"})["num_devices"] == "4"
    unnamed = {"note": "step_time_s is the median; file name does not say the device"}
    assert with_notes(unnamed)["device"] == "a100-sxm-80gb"
    assert with_notes(unnamed | {"device": "h100-sxm"})["device"] == "h100-sxm"
    cells = {"note": "nothing of interest"}
    assert with_notes(cells) is cells


@pytest.mark.parametrize(("word", "is_fused"), [("", True), ("unfused", False), ("flash", True)])
def test_attention_backend_says_whether_scores_are_in_memory(word, is_fused):
    job, _ = read_training_row(Row(SMALL | {"attention_backend": word}))
    assert job.framework.has_fused_attention == is_fused


def test_an_unknown_attention_backend_is_told():
    with pytest.raises(Exception, match="unknown attention_backend fast; write unfused, local"):
        read_training_row(Row(SMALL | {"attention_backend": "fast"}))


MLPERF = {
    "model": "gpt3-175b",
    "device": "h100-sxm",
    "num_devices": "512",
    "tp": "4",
    "pp": "8",
    "seq_len": "2048",
    "micro_batch": "1",
    "global_batch": "2048",
    "framework": "nemo",
    "precision": "fp8",
}
"""Cells of a submission's row, but for its round."""


def test_tuned_submissions_interleave_two_layers_to_a_chunk():
    row = Row(MLPERF | {"mlperf_round": "v3.1"})
    assert read_training_row(row)[1].vp == 6
    assert "vp: 6" in row.assumed
    assert read_training_row(Row(MLPERF))[1].vp == 1
    assert read_training_row(Row(MLPERF | {"mlperf_round": "v3.1", "vp": "12"}))[1].vp == 12


@pytest.mark.parametrize(("mlperf_round", "overlaps"), [("v3.0", False), ("v3.1", True), ("v4.1", True)])
def test_submissions_cut_tensor_collectives_once_the_library_could(mlperf_round, overlaps):
    job, _ = read_training_row(Row(MLPERF | {"mlperf_round": mlperf_round}))
    assert job.framework.overlaps_tensor == overlaps
