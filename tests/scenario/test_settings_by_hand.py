"""Settings: the defaults that help names are those that answers take, and bounds and examples are what people write."""

import re
from collections.abc import Iterator

import pytest

from orrery.numerics.draws import ROWS
from orrery.scenario import attainment, cache_size, format_circuits, money, ownership, quantize, requests, rotation_fit
from orrery.scenario import users as asked_users
from orrery.scenario.fields import BY_NAME
from orrery.scenario.fields_bits import BITS_BY_NAME
from orrery.scenario.fields_experiment import EXPERIMENT_BY_NAME
from orrery.scenario.fields_fleet import (
    FAULT_SETTINGS,
    FLEET_SETTINGS,
    LIMIT_SETTINGS,
    ORIGIN_SETTINGS,
    OUTAGE_SETTINGS,
    POOL_SETTINGS,
    RACK_SETTINGS,
    REGION_SETTINGS,
    ROW_SETTINGS,
    TENANT_SETTINGS,
)
from orrery.scenario.fields_graph import GRAPH_BY_NAME, STAGE_BY_NAME
from orrery.scenario.fields_kernel import KERNEL_BY_NAME
from orrery.scenario.fields_owned import CLUSTER_BY_NAME, OWNED_BY_NAME
from orrery.scenario.fields_quantize import COMPARE_BY_NAME, QUANTIZE_BY_NAME
from orrery.scenario.fields_scaling import SCALING_BY_NAME
from orrery.scenario.fields_search import SEARCH_BY_NAME
from orrery.scenario.fields_shift import SHIFT_BY_NAME
from orrery.scenario.fields_split import SPLIT_BY_NAME
from orrery.scenario.kernel import fused
from orrery.scenario.objectives import percentile_limits, read_objectives, request_limits_s
from orrery.scenario.setting import Setting
from orrery.scenario.train_with import failures, stragglers

TABLES = {
    "estimate": BY_NAME,
    "bits": BITS_BY_NAME,
    "experiment": EXPERIMENT_BY_NAME,
    "graph": GRAPH_BY_NAME,
    "stage": STAGE_BY_NAME,
    "kernel": KERNEL_BY_NAME,
    "cluster": CLUSTER_BY_NAME,
    "owned": OWNED_BY_NAME,
    "quantize": QUANTIZE_BY_NAME,
    "compare": COMPARE_BY_NAME,
    "scaling": SCALING_BY_NAME,
    "search": SEARCH_BY_NAME,
    "shift": SHIFT_BY_NAME,
    "split": SPLIT_BY_NAME,
    **{
        name: {setting.name: setting for setting in settings}
        for name, settings in (
            ("fleet", FLEET_SETTINGS),
            ("origin", ORIGIN_SETTINGS),
            ("region", REGION_SETTINGS),
            ("pool", POOL_SETTINGS),
            ("tenant", TENANT_SETTINGS),
            ("fault", FAULT_SETTINGS),
            ("outage", OUTAGE_SETTINGS),
            ("limit", LIMIT_SETTINGS),
            ("row", ROW_SETTINGS),
            ("rack", RACK_SETTINGS),
        )
    },
}

DEFAULTS = {
    ("estimate", "think_s"): (30, asked_users.THINK_S),
    ("estimate", "num_requests"): (1000, requests.DEFAULT_REQUESTS),
    ("estimate", "attainment"): (0.9, attainment.DEFAULT_ATTAINMENT_FRAC),
    ("estimate", "sessions_per_hour"): (60, cache_size.SESSIONS_PER_HOUR),
    ("estimate", "cache_hit"): (0.95, cache_size.CACHE_HIT),
    ("estimate", "block_tokens"): (64, cache_size.BLOCK_TOKENS),
    ("estimate", "months"): (36, money.MONTHS),
    ("estimate", "life_months"): (48, ownership.LIFE_MONTHS),
    ("estimate", "upkeep_frac"): (0.2, ownership.UPKEEP_FRAC),
    ("owned", "life_months"): (48, ownership.LIFE_MONTHS),
    ("owned", "upkeep_frac"): (0.2, ownership.UPKEEP_FRAC),
    ("estimate", "parity_group_nodes"): (6, failures.GROUP_NODES),
    ("estimate", "parity_nodes"): (1, failures.PARITY_NODES),
    ("estimate", "max_stragglers"): (1, stragglers.DEFAULTS["max_stragglers"]),
    ("estimate", "burst_rounds"): (1, stragglers.DEFAULTS["burst_rounds"]),
    ("estimate", "window_rounds"): (2, stragglers.DEFAULTS["window_rounds"]),
    ("estimate", "wait_frac"): (1, stragglers.DEFAULTS["wait_frac"]),
    ("bits", "sum_terms"): (1024, format_circuits.SUM_TERMS),
    ("quantize", "sum_terms"): (1024, format_circuits.SUM_TERMS),
    ("compare", "sum_terms"): (1024, format_circuits.SUM_TERMS),
    ("quantize", "calibration_tokens"): (1048576, rotation_fit.CALIBRATION_TOKENS),
    ("quantize", "sequence_tokens"): (2048, rotation_fit.SEQUENCE_TOKENS),
    ("quantize", "rows"): (4096, ROWS),
    ("quantize", "columns"): (1024, quantize.COLUMNS),
}

OTHER_EXAMPLES = [
    "expert_cached",
    "expert_prefetch",
    "expert_repeat",
    "fill_sequence_tokens",
    "num_redundant_experts",
    "image_count",
    "scheduler_recv_interval",
    "max_loras",
    "cipher_bytes_per_s",
    "cached_frac",
    "busy_frac",
    "people_usd_per_month",
    "spare_frac",
    "ulysses_degree",
    "ring_degree",
    "patch_parallel",
    "patch_read_frac",
    "window_batch",
    "wrong_answers",
    "devices_per_host_link",
    "exchange_bits",
    "failure_shape",
    "max_stragglers",
    "window_rounds",
    "planes",
    "kept_groups",
    "reward_s",
    "seeds",
    "link_bytes_per_s",
    "tp",
    "cores",
    "times",
    "passed_bytes",
    "devices_per_port",
    "node_ports",
    "networks",
    "switch_layers",
    "joining_switches",
    "switch_w",
    "calibration_tokens",
    "block",
    "batch",
    "pue",
    "usd_per_tonne",
    "round_trips",
    "weekend",
    "turn_s",
    "zone_away_s",
    "region_away_s",
    "slow_length_s",
    "slow_ratio",
    "input_bytes",
]
"""Settings that are only written to change their default, or whose default is no bare number."""

REASONED = {
    "expert_repeat": "at 1 every token would go where the one before it went",
    "spare_frac": "of all nothing would be left to serve with",
    "life_months": "50 years",
    "months": "20 years",
    "parity_nodes": "one less than the nodes of a group of 256",
    "max_stragglers": "one less than the ranks of 65,536",
    "switch_layers": "fat trees are built of 2 or 3",
    "exponent_bits": "as many as FP64 has",
    "mantissa_bits": "as many as FP32 has",
    "round_trip_s": "a minute",
    "limit_s": "an hour",
    "latitude": "a pole",
    "longitude": "half way round",
    "utc_offset": "the last and the first place on the clock",
    "peak_hour": "a day",
    "start_hour": "a week",
    "days": "a year, and a month before it",
    "round_trips": "a handshake of many messages",
    "pue": "the worst of small rooms",
}
"""Bounds that are no powers of ten or two, and what they are."""


def stated_defaults(setting: Setting) -> list[float]:
    """The default that help states, where it is a number: "default 6", "default: at most 6" or "6 (default)"."""
    found = re.findall(r"default:? (?:at most )?(\d[\d.]*\d|\d)|\b(\d+) \(default\)", setting.help)
    return [float(after or before) for after, before in found]


def numeric() -> Iterator[tuple[str, Setting]]:
    return ((table, s) for table, settings in TABLES.items() for s in settings.values() if s.is_numeric)


@pytest.mark.parametrize(("key", "numbers"), DEFAULTS.items(), ids=str)
def test_the_default_that_help_names_is_taken(key, numbers):
    table, name = key
    stated, taken = numbers
    assert taken == stated
    assert re.search(rf"default:? (at most )?{stated:{'d' if stated > 1 else 'g'}}\b", TABLES[table][name].help)


def test_examples_show_the_default_where_people_write_it_too():
    changed: set[str] = set()
    for table, setting in numeric():
        for number in stated_defaults(setting):
            if float(setting.example) != number:
                assert setting.name in OTHER_EXAMPLES, f"{table}: {setting.name} = {setting.example}, {setting.help}"
                changed.add(setting.name)
    assert changed == {*OTHER_EXAMPLES}


FROM_ONE = {"pue", "peak_to_trough", "round_trips", "turns", "oversampling", "slow_ratio"}
"""Ratios and counts with parts that mean nothing below 1; a device of ratio 1 is not slow, so that one begins above."""


def test_ratios_that_begin_at_one():
    found = {setting.name for _, setting in numeric() if setting.kind == "number" and setting.least == 1.0}
    assert found == FROM_ONE
    for table, setting in numeric():
        if setting.name in FROM_ONE and (table, setting.name) != ("fault", "slow_ratio"):
            assert setting.holds(1.0) == (setting.name != "slow_ratio"), f"{table}: {setting.name}"


def test_what_is_taken_where_nobody_says_may_be_written():
    """But for 0, where a number above 0 asks for something at all."""
    for table, setting in numeric():
        for number in stated_defaults(setting):
            assert setting.holds(number) or number == 0.0, f"{table}: {setting.name} = {number:g}"


def test_bounds_are_round_numbers():
    """Powers of ten where they stop slips of the keyboard, of two where sizes are; a change by a factor of 2 or a step
    of 1 is no longer one of ten."""
    for table, setting in numeric():
        for bound in {abs(setting.least), abs(setting.most)} - {0.0}:
            is_of_two = float(bound).hex().startswith("0x1.0000000000000p")
            if not (is_of_two or re.fullmatch(r"0\.10*|10*|1e[+-]?\d+", f"{bound:g}")):
                assert setting.name in REASONED, f"{table}: {setting.name} up to {bound:g}"


def test_examples_lie_within_their_bounds():
    for table, setting in numeric():
        assert setting.holds(float(setting.example)), f"{table}: {setting.name}"


SHARES = [
    "acceptance",
    "attainment",
    "busy_frac",
    "cache_hit",
    "cached_frac",
    "expert_cached",
    "expert_prefetch",
    "gpu_memory_utilization",
    "kept_groups",
    "kv_kept_bytes",
    "kv_kept_tokens",
    "participation_frac",
    "patch_read_frac",
    "success",
    "verifier_accuracy",
    "weight_offload_frac",
    "wide_frac",
]


@pytest.mark.parametrize("name", SHARES)
def test_shares_end_at_one(name):
    assert (BY_NAME[name].least, BY_NAME[name].most) == (0.0, 1.0)


OF_NOTHING = [
    "acceptance",
    "cached_frac",
    "expert_cached",
    "expert_prefetch",
    "patch_read_frac",
    "verifier_accuracy",
    "wide_frac",
]
"""Shares of 0 that are an answer of their own; none of the others would leave anything to ask about."""


@pytest.mark.parametrize("name", SHARES)
def test_shares_of_nothing(name):
    assert BY_NAME[name].holds(0.0) == (name in OF_NOTHING)


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("prefill_tp", "tp"),
        ("prefill_pp", "pp"),
        ("prefill_dp", "prefill_tp"),
        ("prefill_ep", "prefill_tp"),
        ("generation_tp", "tp"),
        ("generation_pp", "pp"),
        ("generation_ep", "ep"),
        ("etp", "tp"),
        ("sharding_group", "dp"),
        ("secondary_group", "dp"),
        ("expert_replicas", "ep"),
        ("num_redundant_experts", "ep"),
        ("generation_devices", "devices"),
        ("max_devices", "devices"),
        ("prefill_replicas", "replicas"),
        ("max_output_tokens", "output_tokens"),
        ("loss_tokens", "seq_len"),
        ("max_model_len", "input_tokens"),
        ("kv_budget_tokens", "input_tokens"),
        ("ring_degree", "ulysses_degree"),
        ("patch_parallel", "ulysses_degree"),
        ("width", "height"),
        ("nvme_write_bytes_per_s", "nvme_read_bytes_per_s"),
        ("spines", "leaves"),
        ("hosts_per_leaf", "leaves"),
        ("output_tokens_std", "input_tokens_std"),
        ("wire_gradient_bits", "wire_weight_bits"),
        ("last_stage_layers", "first_stage_layers"),
    ],
)
def test_settings_of_one_kind_have_the_same_bounds(name, like):
    one, other = BY_NAME[name], BY_NAME[like]
    assert (one.least, one.most, one.excludes_least) == (other.least, other.most, other.excludes_least)


def test_degrees_of_the_examples_fill_the_devices():
    degrees = {name: int(BY_NAME[name].example) for name in ("tp", "pp", "devices", "devices_per_node")}
    assert degrees["tp"] * degrees["pp"] == degrees["devices"] == degrees["devices_per_node"]
    assert int(KERNEL_BY_NAME["rows_per_load"].example) == fused.ROWS_PER_LOAD


def test_objectives_by_hand():
    """A share of the requests is a limit of its own; of two on one metric the stricter holds."""
    first, second, third = read_objectives(["p99_ttft:1000,tpot:50", "ttft:200ms tpot:80"])
    assert [one.name for one in (first, second, third)] == ["ttft", "tpot", "p99_ttft"]
    assert (first.limit_s, second.limit_s, third.limit_s) == (0.2, 0.05, 1.0)
    assert (third.share_frac, third.percent, first.percent) == (0.99, 99.0, 0.0)
    assert [one.written for one in (first, third)] == ["ttft:200", "p99_ttft:1000"]
    texts = ["p99_ttft:1000 tpot:80 tpot:50 p99_ttft:2000"]
    assert request_limits_s(texts) == {"tpot": 0.05}
    (limit,) = percentile_limits(texts)
    assert (limit.metric, limit.share_frac, limit.limit_s) == ("ttft", 0.99, 1.0)


def test_the_longest_objective_is_a_billion_milliseconds():
    (longest,) = read_objectives(["e2el:1000000000"])
    assert longest.limit_s == 1e6
    for text in ("e2el:1000000001", "e2el:0", "e2el:-1", "e2el:soon"):
        with pytest.raises(ValueError, match="above 0 and up to 1e\\+09 ms"):
            read_objectives([text])


@pytest.mark.parametrize("text", ["p0_ttft:5", "p100_ttft:5", "x99_ttft:5", "p_ttft:5"])
def test_percentiles_lie_between_0_and_100(text):
    with pytest.raises(ValueError, match="percentile between 0 and 100"):
        read_objectives([text])
