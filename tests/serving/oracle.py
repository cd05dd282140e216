"""The simulator once more, as plainly as it can be said: objects, lists and dictionaries, one request at a time.

Covers replicas of one device: continuous batching (prompts beside answers or before them, any grant rule, whole answers
reserved or not), queues in any order, routers, blocks of cache, preemption by recomputation, and prefix caching with
eviction in the order of use. It asks the same tables for the price of a step, so that answers must agree bit for bit.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from math import inf, isnan, nan


@dataclass(eq=False)
class OracleRequest:
    """One request, and what became of it."""

    number: int
    enter_s: float
    prompt: int
    answer: int
    ids: list
    client: int
    session: int
    priority: float
    key: float = 0.0
    computed: int = 0
    made: int = 0
    blocks: int = 0
    shared: list = field(default_factory=list)
    turn: int = 0
    grant: int = 0
    preempted: int = 0
    cached: int = 0
    machine: int = -1
    admitted_s: float = nan
    first_s: float = nan
    last_s: float = nan
    finish_s: float = nan


@dataclass(frozen=True)
class Ways:
    """The rules of a run: limits, switches, and functions that decide or price."""

    capacity: int
    block_bytes: int
    block_tokens: int
    unit_tokens: int  # of a block that requests may share; 0 = none
    budget: int
    seats: int
    mixes: bool
    reserves: bool
    evicts_by_key: bool
    grant: object  # left, budget, taken, all -> tokens
    order: object  # request, now, client's tag -> key
    route: object  # loads in requests, in tokens, prefix blocks, home, turn -> replica
    price_s: object  # prompts, new tokens, pairs, decodes, context -> seconds
    energy_j: object  # prompts, new tokens, pairs, decodes, context, seconds -> joules above idle
    recv_interval: int = 1  # decode steps from one look for new requests to the next


@dataclass
class Books:
    """What happened, event by event: steps with their work, levels between events, and gaps between tokens."""

    steps: list = field(default_factory=list)  # replica, start, end, new, decodes, prompts, waiting, bytes, joules
    levels: list = field(default_factory=list)  # start, end, running, waiting, bytes
    gaps: list = field(default_factory=list)
    arrivals: list = field(default_factory=list)
    preemptions: list = field(default_factory=list)


class Cache:
    """Free bytes, shared blocks with their users, and what nobody uses any more, oldest first."""

    def __init__(self, ways):
        self.free, self.unit = ways.capacity, ways.unit_tokens // ways.block_tokens * ways.block_bytes
        self.users = {}
        self.unused = OrderedDict()  # a shared block's id, or (number,) of a request that is gone -> bytes

    def room(self):
        return self.free + sum(self.unused.values())

    def take(self, amount):
        if self.room() < amount:
            return False
        while self.free < amount:
            key, size = next(iter(self.unused.items()))
            part = min(size, amount - self.free) if isinstance(key, tuple) else size
            self.unused[key] -= part
            if self.unused[key] == 0:
                del self.unused[key]
            if not isinstance(key, tuple):
                del self.users[key]
            self.free += part
        self.free -= amount
        return True

    def use(self, key):
        self.unused.pop(key, None)
        self.users[key] = self.users.get(key, 0) + 1

    def leave(self, key):
        self.users[key] -= 1
        if self.users[key] == 0:
            self.unused[key] = self.unit


class Replica:
    """A queue, the prompts under way in order of admission, the seats of answers, and a cache."""

    def __init__(self, number, ways, fleet):
        self.number, self.ways, self.fleet = number, ways, fleet
        self.waiting, self.prompts, self.seats = [], [], []
        self.unseen, self.decoded = [], 0  # what came since the last look, and decode steps since then
        self.cache = Cache(ways)
        self.end_s, self.step = inf, None

    def everybody(self):
        return self.unseen + self.waiting + self.prompts + self.seats

    def tokens_to_come(self):
        return sum((0 if r.made else r.prompt) + r.answer - r.made for r in self.everybody())

    def blocks_for(self, tokens):
        return -(-tokens // self.ways.block_tokens)

    def grow(self, r, tokens):
        want = max(r.blocks, self.blocks_for(tokens))
        if not self.cache.take((want - r.blocks) * self.ways.block_bytes):
            return False
        r.blocks = want
        return True

    def found(self, r):
        """Leading shared blocks that are here; one token at least is always computed."""
        hit = []
        if self.ways.unit_tokens:
            for key in r.ids[: (r.prompt + r.made - 1) // self.ways.unit_tokens]:
                if key not in self.cache.users:
                    break
                hit.append(key)
        return hit

    def publish(self, r):
        """What a request has computed can be found; a copy of what is there already is free again."""
        if self.ways.unit_tokens:
            for key in r.ids[len(r.shared) : r.computed // self.ways.unit_tokens]:
                if key in self.cache.users:
                    self.cache.free += self.cache.unit
                self.cache.use(key)
                r.shared.append(key)

    def release(self, r):
        private = r.blocks * self.ways.block_bytes - len(r.shared) * self.cache.unit
        key = (r.number,)
        if private and self.fleet.remembers and not any(key in x.cache.unused for x in self.fleet.replicas):
            self.cache.unused[key] = private
        else:
            self.cache.free += private
        for key in reversed(r.shared):
            self.cache.leave(key)
        r.blocks, r.shared = 0, []

    def unseat(self, r):
        """The last one moves to the seat that gets free."""
        at = self.seats.index(r)
        self.seats[at] = self.seats[-1]
        self.seats.pop()

    def preempt_one(self):
        running = self.prompts + self.seats
        r = max(running, key=lambda x: (x.key, x.turn) if self.ways.evicts_by_key else x.turn)
        if r in self.seats:
            self.unseat(r)
            self.publish(r)
        else:
            self.prompts.remove(r)
        self.release(r)
        r.computed = r.grant = 0
        r.preempted += 1
        self.fleet.books.preemptions.append(self.fleet.now_s)
        self.waiting.append(r)

    def grow_answers(self):
        """Room for a token more in every seat; True if somebody had to go for it."""
        somebody = False
        while any(not self.grow(r, r.computed + 1) for r in list(self.seats)):
            self.preempt_one()
            somebody = True
        return somebody

    def continue_prompts(self, budget):
        """Tokens granted to prompts under way, and whether somebody had to go."""
        somebody = False
        while True:
            taken = 0
            for r in self.prompts:
                r.grant = max(0, self.ways.grant(r.prompt + r.made - r.computed, budget - taken, taken))
                if r.grant and not self.grow(r, r.computed + r.grant):
                    break
                taken += r.grant
            else:
                return taken, somebody
            self.preempt_one()
            somebody = True

    def look(self):
        """After a step: new requests are seen after some decode steps, after any prompt, and when all is done."""
        prompts, _ = self.step
        self.decoded += 1
        if prompts or self.decoded >= self.ways.recv_interval or not (self.waiting or self.prompts or self.seats):
            self.waiting += self.unseen
            self.unseen, self.decoded = [], 0

    def schedule(self):
        w, full, budget = self.ways, False, self.ways.budget
        if w.mixes:
            full = self.grow_answers()
            budget -= len(self.seats)
        taken, somebody = self.continue_prompts(budget)
        if not (full or somebody):
            self.admit(budget, taken)
        prompts = [r for r in self.prompts if r.grant]
        if not w.mixes and not prompts:
            self.grow_answers()
        answers = list(self.seats) if w.mixes or not prompts else []
        self.step = (prompts, answers)
        return bool(prompts or answers)

    def admit(self, budget, taken):
        w = self.ways
        while self.waiting and len(self.prompts) + len(self.seats) < w.seats:
            r = min(self.waiting, key=lambda x: (x.key, x.number))
            hit = self.found(r)
            cached = len(hit) * w.unit_tokens
            grant = w.grant(r.prompt + r.made - cached, budget - taken, taken)
            if grant <= 0:
                break
            blocks = self.blocks_for(r.prompt + (r.answer if w.reserves else r.made))
            need = blocks * w.block_bytes - len(hit) * self.cache.unit
            if self.cache.room() - sum(self.cache.unit for key in hit if key in self.cache.unused) < need:
                break
            for key in hit:
                self.cache.use(key)
            self.cache.take(need)
            self.waiting.remove(r)
            self.prompts.append(r)
            r.blocks, r.shared, r.computed, r.grant = blocks, hit, cached, grant
            if isnan(r.admitted_s):
                r.admitted_s, r.cached = self.fleet.now_s, cached
            r.turn = self.fleet.next_turn()
            self.fleet.virtual = max(self.fleet.virtual, r.key)
            taken += grant

    def book(self):
        prompts, answers = self.step
        for r in answers:
            r.computed += 1
            r.made += 1
            self.token(r)
        at = 0
        while answers and at < len(self.seats):
            r = self.seats[at]
            if r.made >= r.answer:
                self.unseat(r)
                self.finish(r)
            else:
                at += 1
        for r in prompts:
            r.computed += r.grant
            self.publish(r)
            if r.computed >= r.prompt + r.made:
                self.prompts.remove(r)
                r.made += 1
                r.first_s = self.fleet.now_s if isnan(r.first_s) else r.first_s
                self.token(r)
                if r.made >= r.answer:
                    self.finish(r)
                else:
                    self.seats.append(r)

    def token(self, r):
        """A token is out."""
        if not isnan(r.last_s):
            self.fleet.books.gaps.append(self.fleet.now_s - r.last_s)
        r.last_s = self.fleet.now_s

    def note(self, new):
        """The step that ended: what it did, and what waits and is held now."""
        prompts, answers = self.step
        self.fleet.books.steps.append(
            (
                self.number,
                self.start_s,
                self.fleet.now_s,
                new,
                len(answers),
                len(prompts),
                len(self.unseen) + len(self.waiting),
                self.held(),
                self.joules,
            )
        )

    def held(self):
        return self.ways.capacity - self.cache.room()

    def finish(self, r):
        self.publish(r)
        self.release(r)
        r.finish_s, r.machine = self.fleet.now_s, self.number

    def start(self):
        prompts, answers = self.step
        pairs = sum(r.grant * (r.computed + 0.5 * r.grant) for r in prompts)
        context = sum(r.computed + 1 for r in answers)
        new = sum(r.grant for r in prompts)
        work = (len(prompts), new, pairs, len(answers), context)
        step_s = self.ways.price_s(*work)
        self.start_s, self.end_s = self.fleet.now_s, self.fleet.now_s + step_s
        self.joules = self.ways.energy_j(*work, step_s)


class Fleet:
    """The clock, the router and the replicas."""

    def __init__(self, ways, replicas, *, remembers):
        self.ways, self.now_s, self.virtual, self.turn, self.remembers = ways, 0.0, 0.0, 0, remembers
        self.replicas = [Replica(number, ways, self) for number in range(replicas)]
        self.homes, self.tags, self.books = {}, {}, Books()

    def next_turn(self):
        self.turn += 1
        return self.turn

    def arrive(self, r, turn):
        target = self.replicas[0]
        if len(self.replicas) > 1:
            target = self.replicas[
                self.ways.route(
                    [len(x.everybody()) for x in self.replicas],
                    [x.tokens_to_come() for x in self.replicas],
                    [len(x.found(r)) for x in self.replicas],
                    self.homes.get(r.session, -1),
                    turn,
                )
            ]
            if r.session >= 0:
                self.homes[r.session] = target.number
        if target.blocks_for(r.prompt + r.answer) * self.ways.block_bytes > self.ways.capacity:
            return
        tag = max(self.tags.get(r.client, 0.0), self.virtual)
        self.tags[r.client] = tag + r.prompt + r.answer
        r.key = self.ways.order(r, self.now_s, tag)
        (target.waiting if target.step is None else target.unseen).append(r)
        if target.step is None:
            target.end_s = self.now_s

    def pass_time(self, until_s):
        """Note what runs, waits and is held from now until then."""
        for x in self.replicas:
            running, waiting = len(x.prompts) + len(x.seats), len(x.unseen) + len(x.waiting)
            self.books.levels.append((self.now_s, until_s, running, waiting, x.held()))
        self.now_s = until_s

    def run(self, requests):
        """Serve all; arrivals go before steps of the same moment, and among replicas the lower number."""
        coming, turn = list(requests), 0
        while True:
            replica = min(self.replicas, key=lambda x: (x.end_s, x.number))
            if coming and coming[0].enter_s <= replica.end_s:
                self.pass_time(coming[0].enter_s)
                self.books.arrivals.append(self.now_s)
                self.arrive(coming.pop(0), turn)
                turn += 1
            elif replica.end_s < inf:
                self.pass_time(replica.end_s)
                if replica.step:
                    new = sum(r.grant for r in replica.step[0])
                    replica.book()
                    replica.note(new)
                    replica.look()
                if replica.schedule() or replica.schedule():
                    replica.start()
                else:
                    replica.end_s, replica.step = inf, None
            else:
                return requests
