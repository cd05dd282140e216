"""Training rows through ``check``: every metric counted as the row counts, declines with reasons, outcomes foreseen."""

import pytest

from orrery.evidence.check import check

HEAD = (
    "kind,model,device,num_devices,tp,pp,dp,micro_batch,global_batch,seq_len,precision,recompute,sharding,framework,"
    "status,note,step_time_s,tokens_per_s_per_device,mfu_frac,peak_memory_bytes"
)
GOOD = "training,gpt3-1.3b,a100-sxm-80gb,8,1,1,8,4,64,2048,bf16,none,zero1,megatron-lm,ok,,{},{},{},{}"


def report_of(tmp_path, *rows):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return check([path])


def error_of(report, metric):
    return next(g.score for g in report.groups if g.metric == metric and not g.by).bias_frac


def test_metrics_agree_with_each_other(tmp_path):
    """A step that takes t is 64 x 2048 / t / 8 tokens a second and device: both errors say the same of one run."""
    step_s = 2.0
    tokens = 64 * 2048 / step_s / 8
    report = report_of(tmp_path, GOOD.format(step_s, tokens, 0.4, 4e10))
    by_time, by_rate = error_of(report, "step_time_s"), error_of(report, "tokens_per_s_per_device")
    assert 1 / (1 + by_time) == pytest.approx(1 + by_rate)
    assert report.rows == 1
    assert error_of(report, "fits") == 0


def test_full_attention_counts_more_operations(tmp_path):
    plain = report_of(tmp_path, GOOD.format("", "", 0.4, ""))
    full = report_of(tmp_path, GOOD.replace("ok,,", "ok,model flops count full s^2 attention,").format("", "", 0.4, ""))
    assert error_of(full, "mfu_frac") > error_of(plain, "mfu_frac")


def test_out_of_memory_is_an_outcome(tmp_path):
    too_big = GOOD.replace("gpt3-1.3b", "gpt3-13b").replace("ok,,", "oom,,").format("", "", "", "")
    report = report_of(tmp_path, too_big, GOOD.format(2.0, "", "", ""))
    assert error_of(report, "fits") == 0
    assert next(g.score for g in report.groups if g.metric == "fits").rows == 2


def test_what_cannot_be_read_is_declined_with_its_reason(tmp_path):
    odd = GOOD.replace("gpt3-1.3b", "no-such-model").format(1.0, "", "", "")
    clash = GOOD.replace("8,1,1,8,4", "8,3,1,8,4").format(1.0, "", "", "")
    report = report_of(tmp_path, odd, clash, GOOD.format(1.0, "", "", ""))
    assert sum(report.declined.values()) == 2
    assert all(len(reason) > 10 for reason in report.declined)


def test_golden_values_hold_the_last_ranks_memory(tmp_path):
    """Two stages without recomputation: the first has two micro-batches in flight, the last one and the logits."""
    row = GOOD.replace("8,1,1,8,4", "8,1,2,4,4").replace("gpt3-1.3b", "gpt3-13b")
    fullest = report_of(tmp_path, row.format("", "", "", 6e10))
    last = report_of(tmp_path, row.replace("ok,,", "ok,golden-value file,").format("", "", "", 6e10))
    assert error_of(last, "peak_memory_bytes") < error_of(fullest, "peak_memory_bytes")


def test_rates_that_no_model_of_that_size_can_have_are_declined(tmp_path):
    """24 layers of 12 x 2,048^2 make 7.2e9 operations a token: 1,000 tokens a second are no 3e12 operations."""
    head = HEAD + ",model_flops_per_s_per_device"
    rows = [f"{GOOD.format('', 1000, '', '')},{flops}" for flops in ("3e12", "7.3e12", "9e12")]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    declined = check([path]).declined
    assert sum(declined.values()) == 1
    assert "operations a token" in next(iter(declined))
