"""The simulator once more, as plainly as it can be said: objects, lists and dictionaries, one request at a time.

Covers one deployment on one or more single-lane replicas: continuous batching (mixed or prompts first, any grant rule),
blocks of cache, preemption by recomputation, and prefix caching in the order of use. Asks the same tables for the price
of a step, so that answers must agree bit for bit.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np


@dataclass(eq=False)
class Asked:
    number: int
    enter_s: float
    prompt: int
    answer: int
    ids: list
    computed: int = 0
    made: int = 0
    blocks: int = 0
    pinned: list = field(default_factory=list)
    order: int = 0
    preempted: int = 0
    cached: int = 0
    admitted_s: float = np.nan
    first_s: float = np.nan
    finish_s: float = np.nan
    grant: int = 0


class Cache:
    """Free bytes, blocks in use by how many, and what nobody uses any more, oldest first."""

    def __init__(self, capacity, block_bytes, unit_blocks):
        self.free, self.block, self.unit = capacity, block_bytes, unit_blocks * block_bytes
        self.users, self.unused = {}, OrderedDict()  # key -> bytes

    def room(self):
        return self.free + sum(self.unused.values())

    def take(self, amount):
        if self.room() < amount:
            return False
        while self.free < amount:
            key, size = next(iter(self.unused.items()))
            if isinstance(key, tuple):  # what one request alone had
                size = min(size, amount - self.free)
                self.unused[key] -= size
                if self.unused[key] == 0:
                    del self.unused[key]
            else:
                del self.unused[key]
                del self.users[key]
            self.free += size
        self.free -= amount
        return True


class Replica:
    def __init__(self, number, world):
        self.number, self.world = number, world
        self.waiting, self.running = [], []
        self.cache = Cache(world.capacity, world.block_bytes, world.unit_blocks)
        self.end_s, self.step = None, None

    def blocks_for(self, tokens):
        return -(-tokens // self.world.block_tokens)

    def grow(self, r, tokens):
        more = self.blocks_for(tokens) - r.blocks
        if more <= 0:
            return True
        if not self.cache.take(more * self.world.block_bytes):
            return False
        r.blocks += more
        return True

    def release(self, r):
        private = r.blocks * self.world.block_bytes - len(r.pinned) * self.cache.unit
        if private:
            if not self.world.unit_blocks or (r.number,) in self.cache.unused:
                self.cache.free += private
            else:
                self.cache.unused[(r.number,)] = private
        for key in reversed(r.pinned):
            self.cache.users[key] -= 1
            if self.cache.users[key] == 0:
                self.cache.unused[key] = self.cache.unit
        r.blocks, r.pinned = 0, []

    def preempt_last(self):
        r = max(self.running, key=lambda x: x.order)
        self.running.remove(r)
        self.release(r)
        r.computed, r.grant = 0, 0
        r.preempted += 1
        self.waiting.append(r)
        return r

    def decoding(self):
        return [r for r in self.running if r.made and r.computed >= r.prompt + r.made - 1]

    def grow_decodes(self):
        full = False
        while True:
            short = [r for r in self.decoding() if self.blocks_for(min(r.computed + 1, r.prompt + r.answer)) > r.blocks]
            if not short:
                return full
            if not self.grow(short[0], short[0].computed + 1):
                full = True
                self.preempt_last()

    def schedule(self):
        w = self.world
        for r in self.running:
            r.grant = 0
        full, budget = False, w.budget
        if w.mixes:
            full = self.grow_decodes()
            budget -= len(self.decoding())
        taken = 0
        while True:  # again from the start whenever somebody was preempted
            taken = 0
            for r in sorted((x for x in self.running if x not in self.decoding()), key=lambda x: x.order):
                r.grant = max(0, w.grant(r.prompt + r.made - r.computed, budget - taken, taken, w.budget))
                if r.grant and not self.grow(r, r.computed + r.grant):
                    full = True
                    self.preempt_last()
                    break
                taken += r.grant
            else:
                break
        if not full:
            taken = self.admit(budget, taken)
        prompts = [r for r in self.running if r.grant]
        if not w.mixes and not prompts:
            self.grow_decodes()
        decodes = self.decoding() if w.mixes or not prompts else []
        self.step = (prompts, decodes)
        return bool(prompts or decodes)

    def admit(self, budget, taken):
        w = self.world
        while self.waiting and len(self.running) < w.max_seqs:
            r = min(self.waiting, key=lambda x: (x.enter_s, x.number))
            hit = self.cached_ids(r)
            tokens = len(hit) * w.unit_blocks * w.block_tokens
            grant = w.grant(r.prompt + r.made - tokens, budget - taken, taken, w.budget)
            if grant <= 0:
                break
            whole = r.prompt + r.answer if w.reserves else tokens + grant
            need = self.blocks_for(whole) * w.block_bytes - len(hit) * self.cache.unit
            kept = sum(self.cache.unit for k in hit if k in self.cache.unused)
            if self.cache.room() - kept < need:
                break
            self.waiting.remove(r)
            for key in hit:
                self.cache.unused.pop(key, None)
                self.cache.users[key] += 1
            assert self.cache.take(need)
            r.blocks, r.pinned, r.computed, r.grant = self.blocks_for(whole), hit, tokens, grant
            if r.made == 0:
                r.cached = tokens
            w.admitted += 1
            r.order = w.admitted
            if np.isnan(r.admitted_s):
                r.admitted_s = w.now_s
            self.running.append(r)
            taken += grant
        return taken

    def cached_ids(self, r):
        w = self.world
        if not w.unit_blocks:
            return []
        most = (r.prompt + r.made - 1) // (w.unit_blocks * w.block_tokens)
        hit = []
        for key in r.ids[:most]:
            if key not in self.cache.users:
                break
            hit.append(key)
        return hit

    def book(self):
        w, (prompts, decodes) = self.world, self.step
        for r in decodes:
            r.computed += 1
            r.made += 1
        # seats are left in the order in which the last one moves into a free seat; only releases depend on it
        for r in w.leaving_order(self, [r for r in decodes if r.made >= r.answer]):
            self.finish(r)
        for r in sorted(prompts, key=lambda x: x.order):
            r.computed += r.grant
            self.publish(r)
            if r.computed >= r.prompt + r.made:
                r.made += 1
                if np.isnan(r.first_s):
                    r.first_s = w.now_s
                if r.made >= r.answer:
                    self.finish(r)
                else:
                    w.seats[self.number].append(r)

    def publish(self, r):
        w = self.world
        if not w.unit_blocks:
            return
        whole = min(r.computed // (w.unit_blocks * w.block_tokens), len(r.ids))
        for key in r.ids[len(r.pinned) : whole]:
            if key in self.cache.users:
                self.cache.unused.pop(key, None)
                self.cache.users[key] += 1
                self.cache.free += self.cache.unit
            else:
                self.cache.users[key] = 1
            r.pinned.append(key)

    def finish(self, r):
        self.release(r)
        self.running.remove(r)
        r.finish_s = self.world.now_s


class World:
    """The clock, the router and the replicas."""

    def __init__(self, requests, *, replicas, capacity, block_bytes, block_tokens, unit_blocks, budget, max_seqs,
                 mixes, reserves, grant, price_s, route):  # fmt: skip
        self.capacity, self.block_bytes, self.block_tokens = capacity, block_bytes, block_tokens
        self.unit_blocks, self.budget, self.max_seqs = unit_blocks, budget, max_seqs
        self.mixes, self.reserves, self.grant, self.price_s, self.route = mixes, reserves, grant, price_s, route
        self.now_s, self.admitted = 0.0, 0
        self.requests = requests
        self.replicas = [Replica(k, self) for k in range(replicas)]
        self.seats = [[] for _ in range(replicas)]

    def leaving_order(self, replica, leaving):
        """Who leaves first when seats are scanned from the front and the last one moves into a freed seat."""
        seats = [r for r in self.seats[replica.number] if r in replica.running]
        order, k = [], 0
        while k < len(seats):
            if seats[k] in leaving:
                order.append(seats[k])
                seats[k] = seats[-1]
                seats.pop()
            else:
                k += 1
        self.seats[replica.number] = seats
        return order

    def run(self):
        coming = sorted(self.requests, key=lambda r: (r.enter_s, r.number))
        arrived = 0
        while True:
            busy = [x for x in self.replicas if x.end_s is not None]
            next_end = min((x.end_s for x in busy), default=np.inf)
            if coming and coming[0].enter_s <= next_end:
                r = coming.pop(0)
                self.now_s = r.enter_s
                target = self.replicas[self.route([len(x.waiting) + len(x.running) for x in self.replicas], arrived)]
                arrived += 1
                if self.capacity < -(-(r.prompt + r.answer) // self.block_tokens) * self.block_bytes:
                    continue
                target.waiting.append(r)
                if target.end_s is None:
                    target.end_s, target.step = self.now_s, None
            elif busy:
                replica = min(busy, key=lambda x: (x.end_s, x.number))
                self.now_s = replica.end_s
                if replica.step is not None:
                    replica.book()
                if not replica.schedule() and not replica.schedule():
                    replica.end_s, replica.step = None, None
                    continue
                prompts, decodes = replica.step
                pairs = 0.0
                for r in sorted(prompts, key=lambda x: x.order):
                    pairs += r.grant * (r.computed + 0.5 * r.grant)
                replica.end_s = self.now_s + self.price_s(
                    len(prompts), sum(r.grant for r in prompts), pairs, len(decodes),
                    sum(r.computed + 1 for r in decodes),
                )  # fmt: skip
            else:
                return self.requests
