"""What a step costs, on tables of round seconds: layers, attention, the host's part, stages, splits, fills."""

import numpy as np
import pytest
from small_state import copied_s, lane_of, rules, state

from orrery.execution.surface._kernel import CHANNELS, MATRIX_WORK, MEMORY, MEMORY_WORK, NETWORK, TIME, Surface
from orrery.serving.simulation.price._kernel import _above_idle_j, _fill, _together_s, _variant, price_step
from orrery.serving.simulation.tables import _kernel as k


def surface(**channels):
    """Two deployments: a token takes 1 s, in a graph 0.5 s; shared by ranks 0.25 s more; a row 8 s; a token of context
    of an answer 0.01 s, a pair of a prompt's token with a cached one 0.001 s; all twice as much in the second."""

    def table(time_s, *axes):
        found = np.zeros((2, *axes, CHANNELS))
        found[..., TIME] = time_s
        for channel, part in channels.items():
            found[..., {"network": NETWORK, "memory": MEMORY, "matrix": MATRIX_WORK, "read": MEMORY_WORK}[channel]] = (
                part * np.asarray(time_s)
            )
        found[1] *= 2.0
        return found

    sizes, nodes = np.arange(401.0), np.array([[0.0, 1.0]] * 2)
    corner, far = np.zeros((2, 2)), np.zeros((2, 2, 2))
    corner[1, 1], far[1, 1, 1] = 0.01, 0.001
    return Surface(
        tokens=table(sizes, 401),
        graph_tokens=table(0.5 * sizes, 401),
        shared=table(0.25 * sizes, 401),
        rows=table(8.0 * sizes, 401),
        decode_nodes=nodes,
        decode_context_nodes=nodes,
        decode=table(corner, 2, 2),
        prompt_nodes=nodes,
        prompt_token_nodes=nodes,
        prompt_context_nodes=nodes,
        prompt=table(far, 2, 2, 2),
    )


def sequential(time_s, network_s, memory_s, more_s, more_network_s, layers, knobs):
    """Nothing at once."""
    return time_s


def priced(w, unit=0, overlap=sequential):
    return price_step(w, overlap, copied_s, unit, 100.0) - 100.0


def stepping(lanes=1, *, channels=None, **given):
    """Answers of 2 requests with 100 tokens of context beside a prompt of 10 new and 40 cached ones."""
    w = state(lanes=lanes, surfaces=surface(**(channels or {})), **given)
    w.step[0, [k.N_PROMPTS, k.N_NEW, k.N_PAIRS, k.N_DECODES, k.N_CONTEXT]] = [1.0, 10.0, 450.0, 2.0, 100.0]
    return w


MIXED_S = 12.0 + 3 * 8.0 + 0.01 * 100 + 0.001 * 10 * 40


def answers(lanes=1, **given):
    """Two answers with 100 tokens of context, from a graph: 1 + 16 + 1 s."""
    w = stepping(lanes, **given)
    w.step[0, [k.N_PROMPTS, k.N_NEW, k.N_PAIRS]] = 0.0
    return w


def test_a_step_is_its_tables():
    w = stepping()
    assert priced(w) == pytest.approx(MIXED_S)
    assert w.units[0, k.BEGAN] == 100.0
    assert priced(answers()) == pytest.approx(18.0)
    slow = answers(slowness=np.array([1.5]))
    assert priced(slow) == pytest.approx(27.0)


def test_arithmetic_takes_longer_at_a_lower_clock():
    """Of 18 s a sixth are collectives, a third are bound by memory and 3 s are gaps: 6 s are arithmetic's, and as long
    again at half the clock; a slow machine takes all of it longer."""
    parts = {"network": 1 / 6, "memory": 1 / 3}
    half = answers(channels=parts, clocks=np.array([0.5]))
    half.retained[0, k.GAP_S] = 3.0
    assert priced(half) == pytest.approx(18.0 + 6.0)
    slow = answers(channels=parts, clocks=np.array([0.5]), slowness=np.array([1.5]))
    slow.retained[0, k.GAP_S] = 3.0
    assert priced(slow) == pytest.approx(1.5 * 24.0)
    bound = answers(channels={"network": 0.5, "memory": 0.5}, clocks=np.array([0.5]))
    assert priced(bound) == pytest.approx(18.0)


def test_joules_at_a_lower_clock():
    """At half the clock 2 s of arithmetic are 4 s of a busy unit, which draws a third."""
    w = answers(spans=np.array([1 / 3]), clocks=np.array([0.5]))
    w.retained[0, [k.SPAN_W, k.CONCAVE_POWER]] = 300.0, 1.0
    w.rates[0, k.DEVICE_WAYS] = 1.0
    w.units[0, [k.MATRIX_WORK_S, k.MEMORY_WORK_S]] = 2.0, 1.0
    full = answers()
    full.retained[0, [k.SPAN_W, k.CONCAVE_POWER]] = 300.0, 1.0
    full.rates[0, k.DEVICE_WAYS] = 1.0
    full.units[0, [k.MATRIX_WORK_S, k.MEMORY_WORK_S]] = 4.0, 1.0
    assert _above_idle_j(w, 0, 1.0, 20.0) == pytest.approx(_above_idle_j(full, 0, 1.0, 20.0) / 3)


def test_guesses_are_checked_and_drafted():
    """Two guesses for each of two answers: 6 tokens in no graph, 6 rows, 3 s and 0.5 s a sequence to guess."""
    w = answers(rules=rules(draft_levels=2, checked_tokens=2, draft_s=3.0, draft_sequence_s=0.5))
    w.step[0, k.N_EXTRA] = 4.0
    assert priced(w) == pytest.approx(6.0 + 48.0 + 1.0 + 4.0)


def test_a_part_of_the_layers():
    """The prompt passes a quarter of them: a quarter of the mixed step, three of the answers alone (2 s, in no graph
    where guesses are checked)."""
    w = stepping()
    w.rates[0, k.LAYERS_FRAC] = 0.25
    assert priced(w) == pytest.approx(0.25 * MIXED_S + 0.75 * 18.0)


def test_compression_takes_its_time_a_prompt_token():
    w = stepping()
    w.retained[0, k.COMPRESS_S], w.rates[0, k.LAYERS_FRAC] = 2.0, 0.5
    assert priced(w) == pytest.approx(0.5 * MIXED_S + 0.5 * 18.0 + 2.0 * 10 * 0.5)


def test_attention_elsewhere_adds_its_way():
    w = answers(lending_s=0.75)
    assert priced(w) == pytest.approx(18.0)
    lane_of(w, 0, far=1)
    assert priced(w) == pytest.approx(18.75)


def test_each_adapter_but_one_is_read():
    w = answers(places=4)
    w.retained[0, [k.ADAPTER_S, k.ADAPTER_WORK_S]] = 0.25, 0.125
    assert priced(w) == pytest.approx(18.0)
    w.slots[0, k.SLOT_REQUESTS] = [1, 0, 2, 1]
    assert priced(w) == pytest.approx(18.5)
    assert w.units[0, k.MEMORY_WORK_S] == 0.25


def test_the_hosts_part():
    """2 s a step and 1 s for each of two sequences, 0.3 of it beside the device; a launch of 30 s without a graph."""
    w = answers()
    w.rates[0, [k.HOST_STEP_S, k.HOST_PER_SEQUENCE_S, k.HOST_OVERLAP_FRAC]] = [2.0, 1.0, 0.3]
    w.rates[0, [k.HOST_LAUNCH_S, k.HOST_PIECES_S, k.GRAPH_SEQS, k.SAMPLING_S]] = [30.0, 20.0, 2.0, 0.5]
    assert priced(w) == pytest.approx(18.0 + 1.0 + 0.7 * 4.0)
    assert w.totals[k.HOST_BOUND] == 0.0
    w.rates[0, k.GRAPH_SEQS] = 1.0
    assert priced(w) == pytest.approx(max(30.0 + 1.0 + 2.8, 34.0))
    assert w.totals[k.HOST_BOUND] == pytest.approx(34.0)
    w.rates[0, k.GRAPH_TOKENS] = 2.0
    assert priced(w) == pytest.approx(max(20.0 + 1.0 + 2.8, 24.0))
    w.rates[0, k.GRAPH_TOKENS] = 1.0
    assert priced(w) == pytest.approx(34.0)
    w.rates[0, [k.HOST_STEP_S, k.SAMPLING_S]] = [0.0, 5.0]
    assert priced(w) == pytest.approx(30.0 + 10.0 + 0.7 * 2.0)


@pytest.mark.parametrize(("tokens", "pieces"), [(12.0, True), (11.0, False)])
def test_a_step_with_prompts_is_launched_in_pieces_or_at_once(tokens, pieces):
    w = stepping()
    w.rates[0, [k.HOST_LAUNCH_S, k.HOST_PIECES_S, k.GRAPH_SEQS, k.GRAPH_TOKENS]] = [90.0, 50.0, 8.0, tokens]
    assert priced(w) == pytest.approx(50.0 if pieces else 90.0)


def test_a_device_is_slower_than_the_host_or_not():
    """18 s of the device; the host's 18 s are no longer than those."""
    w = answers()
    w.rates[0, [k.HOST_STEP_S, k.HOST_OVERLAP_FRAC]] = [18.0, 1.0]
    assert priced(w) == pytest.approx(18.0)
    assert w.totals[k.HOST_BOUND] == 0.0


def test_weights_from_elsewhere_are_the_least_time():
    w = answers()
    w.retained[0, k.FETCH_S] = 25.0
    assert priced(w) == pytest.approx(25.0)
    w.step[:] = 0.0
    w.step[0, k.N_DELAY_S] = 3.0  # nothing is computed, so nothing is fetched
    assert priced(w) == pytest.approx(3.0)


@pytest.mark.parametrize(("hides", "load", "step_s"), [(True, 40.0, 41.0), (True, 4.0, 18.0), (False, 4.0, 23.0)])
def test_blocks_from_the_host(hides, load, step_s):
    """A byte a second after 1 s, beside the step or after it."""
    w = answers(rules=rules(load_hides=hides))
    w.step[0, k.N_LOAD], w.rates[0, k.HOST_LATENCY_S] = load, 1.0
    assert priced(w) == pytest.approx(step_s)
    assert w.totals[k.LOADED] == load


def test_what_a_step_waits_for_comes_on_top():
    w = answers(rules=rules(load_hides=True), slowness=np.array([2.0]))
    w.step[0, [k.N_LOAD, k.N_DELAY_S]] = [40.0, 5.0]
    assert priced(w) == pytest.approx(90.0)


def test_a_unit_waits_for_its_slowest_lane_and_for_what_all_do_together():
    """One lane of 18 s and one of a single answer without context, 8.5 s; three tokens together are 0.75 s."""
    w = answers(2, unit_lane=np.array([0, 2]), unit_machine=np.array([0]))
    w.step[1, k.N_DECODES] = 1.0
    assert priced(w) == pytest.approx(18.75)
    w.rates[:, k.SAMPLING_S] = 0.5
    w.rates[:, k.HOST_PER_SEQUENCE_S] = [1.0, 3.0]
    assert priced(w) == pytest.approx(18.75 + 1.0 + 3.0)


def test_what_lanes_do_together():
    """14 tokens of the first lane, 6 of the second; prompts that pass half of the layers are there for half of it."""
    w = stepping(2)
    w.step[1, [k.N_NEW, k.N_DECODES, k.N_EXTRA, k.N_FILL]] = [2.0, 1.0, 2.0, 1.0]
    w.step[0, k.N_EXTRA] = 2.0
    assert _together_s(w, 0, 2) == pytest.approx(0.25 * 20)
    w.rates[0, k.LAYERS_FRAC] = 0.5
    assert _together_s(w, 0, 2) == pytest.approx(0.25 * (0.5 * 20 + 0.5 * 10))
    w.rates[1, k.LAYERS_FRAC] = 0.25
    assert _together_s(w, 0, 2) == pytest.approx(0.25 * (0.5 * 20 + 0.5 * 8))


def test_two_halves_beside_each_other():
    """An overlap is told the time, its network, its memory, and what two halves add of both."""
    told = []

    def overlap(*given):
        told.append(given[:-1])
        return 40.0

    w = stepping(rules=rules(has_overlap=True), channels={"network": 0.5, "memory": 0.25, "matrix": 0.2, "read": 0.4})
    assert priced(w, overlap=overlap) == pytest.approx(40.0)
    # the prompt is cut in two: 5 tokens after 40, and 5 after 45
    halves_s = 2 * (6.0 + (1.0 + 1.0) * 8.0 + 0.5 + 0.001 * 5 * 42.5)
    more_network_s = 0.5 * (halves_s - MIXED_S)
    expected = (MIXED_S, 0.5 * MIXED_S, 0.25 * MIXED_S, halves_s - MIXED_S - more_network_s, more_network_s, 4.0)
    assert told[0] == pytest.approx(expected)
    assert w.units[0, [k.MATRIX_WORK_S, k.MEMORY_WORK_S]].tolist() == pytest.approx([0.2 * MIXED_S, 0.4 * MIXED_S])


def test_fine_tuning_fills_a_step():
    """20 tokens a step at most, 12 of them taken: all 8 fit below 46 s; of 41 s 3 do (a token takes a second)."""
    for until_s, fill in ((46.0, 8.0), (MIXED_S + 3.5, 3.0), (1.0, 0.0)):
        w = stepping(rules=rules(fill_tokens=20, fill_until_s=until_s))
        assert _fill(w, 0, 0, 0.0) == fill
        assert (w.step[0, k.N_FILL], w.totals[k.FINETUNED]) == (fill, fill)
        w.step[0, k.N_FILL] = 0.0
        assert priced(w) == pytest.approx(MIXED_S + fill)
    w = stepping(rules=rules(fill_tokens=20, fill_until_s=1e9))
    assert _fill(w, 0, 0, 0.0) == 8.0
    w = stepping(rules=rules(fill_tokens=20, fill_until_s=float(w.cost[0, TIME])))
    assert _fill(w, 0, 0, 0.0) == 8.0  # which take just as long as they may
    w = stepping(rules=rules(fill_tokens=100_000, fill_until_s=MIXED_S + 777.5))
    assert _fill(w, 0, 0, 0.0) == 777.0  # to the token, however wide the room
    w = stepping(rules=rules(fill_tokens=20, fill_until_s=1e9))
    assert _fill(w, 0, 0, 3.0) == 8.0  # with three that are checked already
    assert _fill(stepping(rules=rules(fill_tokens=5, fill_until_s=1e9)), 0, 0, 0.0) == 0.0


def test_a_sequence_goes_forward_within_the_budget_and_back_a_few_layers_a_step():
    """Ten tokens, eight of which find room in the first step; then four layers of 3 s, two beside a step."""
    ways = {"fill_tokens": 20, "fill_sequence": 10, "fill_layers": 2, "fill_layer_s": 3.0}
    w = stepping(rules=rules(fill_until_s=1e9, **ways))
    for forward, back_s in ((8.0, 0.0), (2.0, 0.0), (0.0, 6.0), (0.0, 6.0), (8.0, 0.0)):
        w.step[0, k.N_FILL] = 0.0
        assert priced(w) == pytest.approx(MIXED_S + forward + back_s)
        assert w.step[0, k.N_FILL] == forward
    assert w.totals[k.FINETUNED] == 18.0
    w = stepping(rules=rules(fill_until_s=MIXED_S + 4.0, **ways))
    w.rates[0, k.LAYERS_BACK] = 4.0
    for _ in range(4):  # one finds time, and none of the next sequence goes before
        assert priced(w) == pytest.approx(MIXED_S + 3.0)
    assert w.rates[0, k.LAYERS_BACK] == 0.0
    w = stepping(rules=rules(fill_until_s=1.0, **ways))
    w.rates[0, k.LAYERS_BACK] = 4.0
    assert priced(w) == pytest.approx(MIXED_S)
    assert w.rates[0, k.LAYERS_BACK] == 4.0


def test_filled_steps_are_no_graph():
    w = answers(rules=rules(fill_tokens=20, fill_until_s=20.5))
    w.rates[0, [k.HOST_LAUNCH_S, k.GRAPH_SEQS]] = [90.0, 8.0]
    assert priced(w) == pytest.approx(90.0)


def test_tables_of_a_split():
    """Deployment 1 of four tables each; the second split, and one more where the other part is at work."""
    w = state(num_variants=4, unit_machine=np.array([0, 0]))
    lane_of(w, 0, deployment=1)
    assert _variant(w, 0, 0) == 4
    lane_of(w, 0, twin=1)
    w.machines[0, k.SPLIT] = 1
    assert _variant(w, 0, 0) == 6
    w.units[1, k.BEGAN] = 3.0
    assert _variant(w, 0, 0) == 7
    w = answers(num_variants=1)
    lane_of(w, 0, deployment=1)
    w.retained, w.held = np.repeat(w.retained, 2, axis=0), np.repeat(w.held, 2, axis=0)
    assert priced(w) == pytest.approx(36.0)


def test_joules_above_idle():
    """Half of the roofs' work in the step, at a law without a bend: half of 200 W, for 10 s of two ranks on 4 ways."""
    w = state()
    w.retained[0, [k.SPAN_W, k.CONCAVE_POWER]] = [200.0, 1.0]
    w.rates[0, k.DEVICE_WAYS] = 4.0
    w.units[0, [k.MATRIX_WORK_S, k.MEMORY_WORK_S]] = [6.0, 4.0]
    assert _above_idle_j(w, 0, 2.0, 10.0) == pytest.approx(0.5 * 200.0 * 10.0 * 4.0 * 2.0)
    one = answers(channels={"matrix": 0.25, "read": 0.25})
    one.retained[0, k.SPAN_W] = 200.0
    priced(one)
    assert one.units[0, k.SPENT] == pytest.approx(0.5 * 200.0 * 18.0)
    two = answers(2, unit_lane=np.array([0, 2]), unit_machine=np.array([0]), channels={"matrix": 0.5})
    two.retained[0, k.SPAN_W] = 200.0
    priced(two)  # half of 18 s by the first lane, and half of 0.5 s by each of both
    assert two.units[0, k.MATRIX_WORK_S] == pytest.approx(9.0 + 2 * 0.25)
    assert two.units[0, k.SPENT] == pytest.approx(9.5 / 2 / 18.5 * 200.0 * 18.5 * 2)


def pipeline(stages, free, *, overlaps=False, send_share=0.0, network=0.0):
    """18 s of answers through stages, the first of which has a third; each is free from then."""
    w = answers(rules=rules(overlaps_sends=overlaps), channels={"network": network})
    w.machines[0, k.STAGES], w.stage_share[0], w.send_share[0] = stages, 1 / 3, send_share
    w.stage_s = np.array([[float(x) for x in free]])
    return w


def test_a_batch_passes_the_stages():
    """6 s, then twice 6 s: at 106, 112, 118; the second is busy until 110, and holds it up by blocking."""
    w = pipeline(3, (0, 0, 0))
    assert priced(w) == pytest.approx(18.0)
    assert w.stage_s[0].tolist() == pytest.approx([106.0, 112.0, 118.0])
    w = pipeline(3, (103, 110, 0))
    assert priced(w) == pytest.approx(22.0)
    assert w.stage_s[0].tolist() == pytest.approx([110.0, 116.0, 122.0])
    two = pipeline(2, (0, 0))
    assert priced(two) == pytest.approx(18.0)
    assert two.stage_s[0].tolist() == pytest.approx([106.0, 118.0])


def test_stages_that_send_beside_their_work():
    """Half of 9 s of network are sends, 2.25 s each; a stage is free that much before it has sent."""
    w = pipeline(3, (0, 110, 0), overlaps=True, send_share=0.5, network=0.5)
    assert priced(w) == pytest.approx(22.0)
    assert w.stage_s[0].tolist() == pytest.approx([103.75, 113.75, 122.0])
    w = pipeline(3, (0, 0, 0), overlaps=True, send_share=4.0, network=0.5)  # at most as long as the work
    priced(w)
    assert w.stage_s[0].tolist() == pytest.approx([100.0, 106.0, 118.0])
