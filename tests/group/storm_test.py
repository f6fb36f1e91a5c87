"""Cables fail in all ways, one soon after the other, under calls of all kinds. A way is always left, so that every call
has to end in time with the right result. RINGBOLT_STORM_SEEDS: which storms ("7" or "1-20"), as far as a seed chooses:
the faults and calls, not what meets at the same moment. RINGBOLT_STORM_S: how long each."""

import os
import random
import time

import ranks

SEEDS = os.environ.get("RINGBOLT_STORM_SEEDS", "1")
STORM_S = float(os.environ.get("RINGBOLT_STORM_S", "15"))
CALL_MS = 20_000 * ranks.SLOWNESS
# It is connected anew, and used when it has been heard for 3 s.
HEALED_S = 6 * ranks.SLOWNESS
FAULTS = ("unplug mode hang", "unplug mode hang", "unplug mode port-event", "unplug mode flush", "message-loss 100%",
          "message-loss 3%", "bitflip 3%", "completion-error status 5 count 0-0", "completion-late 5% by 3ms",
          "receive-error status 4 count 1-1")
ROOTED = ("broadcast", "gather", "scatter", "reduce")
OPERATIONS = ("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "barrier", *ROOTED)
COUNTS = (0, 1, 1021, 1250, 16_411, 100_003, 500_009)
# Nodes, cables, and how many of these may be out at a time.
PLACES = {
    "ring:4": (4, [(0, 1), (1, 2), (2, 3), (0, 3)], 1),
    "ring:5": (5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)], 1),
    "mesh:4": (4, [(a, b) for a in range(4) for b in range(a + 1, 4)], 2),
}


def seeds():
    first, _, last = SEEDS.partition("-")
    return range(int(first), int(last or first) + 1)


class Storm(ranks.GroupCase):
    def up(self, spec, *options):  # one cluster after the other
        self.call("up", "--emulate", spec, *options)

    def weather(self, group, spec, seed):
        _, cables, n_out = PLACES[spec]
        dice = random.Random(f"{spec} {seed}")
        healed = {}  # cable: when
        end = time.monotonic() + STORM_S
        while time.monotonic() < end:
            out = [cable for cable, when in healed.items() if when > time.monotonic()]
            while len(out) < n_out:
                out.append(dice.choice([cable for cable in cables if cable not in out]))
            for cable in out:
                node = dice.choice(["", f" node n{cable[0]}", f" node n{cable[1]}"])
                self.tell("fault", "add", *f"{dice.choice(FAULTS)} cable {cable[0]}-{cable[1]}{node}".split())
            self.calls(group, dice, dice.choice([0, 0.05, 0.5, 2, 3]))
            self.tell("fault", "clear")
            healed = {cable: time.monotonic() + HEALED_S for cable in out}
            self.calls(group, dice, dice.choice([0, 0.3, 2, HEALED_S + 1]))

    def tell(self, *words):
        self.said.append(" ".join(words))
        self.call(*words)

    def calls(self, group, dice, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if dice.random() < 0.4:
                self.messages(group, dice)
                continue
            operation = dice.choice(OPERATIONS)
            count = dice.choice(COUNTS) // (len(group) if operation in ("all_to_all", "all_gather") else 1)
            root = f" root={dice.randrange(len(group))}" if operation in ROOTED else ""
            self.said.append(f"{operation} count={count}{root}")
            self.all_run(group, f"call {self.said[-1]} times={dice.randint(1, 5)} timeout={CALL_MS}")

    def messages(self, group, dice):
        """Between pairs of ranks: some through others, which call nothing meanwhile."""
        count = dice.choice((1, 1250, 100_003, 2_000_003))
        pairs = dice.sample(group, dice.choice((2, len(group) // 2, len(group))))
        pairs = pairs[:len(pairs) // 2 * 2]
        self.said.append(f"messages count={count} " + "-".join(str(rank.node) for rank in pairs))
        for sender, receiver in zip(pairs[::2], pairs[1::2]):
            receiver.say(f"call recv peer={sender.node} count={count} timeout={CALL_MS}")
            sender.say(f"call send peer={receiver.node} count={count} timeout={CALL_MS}")
        for rank in pairs:
            done = rank.expect("done", "failed")
            self.assertEqual((done["event"], done["wrong"]), ("done", 0), (rank.node, done))

    def storm(self, spec):
        for seed in seeds():
            self.said = []
            with self.subTest(seed=seed):
                try:
                    self.weather(self.join(spec, PLACES[spec][0]), spec, seed)
                except AssertionError as problem:
                    after = "; ".join(self.said[-40:])
                    raise AssertionError(f"{spec}, seed {seed}: {problem}\nafter: {after}") from None
                finally:
                    self.call("down", "--force")

    def test_on_a_ring(self):
        self.storm("ring:4")

    def test_on_an_odd_ring(self):
        self.storm("ring:5")

    def test_on_a_mesh(self):
        self.storm("mesh:4")


if __name__ == "__main__":
    ranks.main()
