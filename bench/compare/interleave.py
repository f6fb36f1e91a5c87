"""The method: peers take turns in short blocks, a cache-line probe before and after each tells where the two cores
were, and only blocks of one class are compared."""

import statistics

from resident import PeerError

PROBE_ITERATIONS = 2000
MOST_ITERATIONS = 1 << 20  # Samples::kMax of the workers
STREAM_UNIT = 64  # streams are multiples of this

# Round trip of one cache line between core 0 and core 1, in nanoseconds: below `limit` it is called so.
CLASSES = ((85, "sibling"), (420, "near"), (float("inf"), "far"))
# Two probes around a block that differ by more than this are called mixed even within one class.
MOST_DRIFT = 1.5


def class_of(round_trip_ns):
    return next(name for limit, name in CLASSES if round_trip_ns < limit)


class Interleaver:
    """Runs cases. `peers` gives the workers, `block_s` is the length of a block. Not thread-safe."""

    def __init__(self, peers, block_s, rounds, say):
        self._peers = peers
        self._block_s = block_s
        self._rounds = rounds
        self._say = say
        self._probe = peers.get("probe")
        self._iterations = {}
        self._said = set()
        self.probes_ns = []

    def run(self, case):
        """Returns {peer: {class: [block figures]}} and the reasons why peers are missing."""
        blocks = {}
        missing = {}
        names = [case.ours] + [rival.peer for rival in case.rivals]
        for turn in range(-1, self._rounds):  # turn -1 calibrates and warms up
            for name in names:
                if name in missing:
                    continue
                try:
                    if turn < 0:
                        self._calibrate(case, name)
                    else:
                        self._block(case, name, blocks.setdefault(name, {}))
                except PeerError as problem:
                    missing[name] = str(problem)
                    if str(problem) not in self._said:
                        self._said.add(str(problem))
                        self._say(f"{case.id}: {problem}")
                    if name in self._peers.descriptions():
                        self._peers.drop(name, problem)
        return blocks, missing

    def _calibrate(self, case, name):
        """Finds how many iterations fill a block; the growing trial blocks are the warm-up too."""
        peer = self._peers.get(name)
        iterations = STREAM_UNIT if case.is_rate else 10
        block_s = self._block_s * case.block_factor
        for _ in range(5):
            figures = peer.run(_operation_of(case, name), case.size, iterations, case.is_touched)[0]
            wanted = iterations * block_s / max(figures["seconds"], 1e-7)
            if wanted < 1.5 * iterations:
                break
            iterations = _whole(case, int(min(wanted, 30 * iterations)))
        most = 100 * MOST_ITERATIONS if case.is_rate else MOST_ITERATIONS
        self._iterations[case.id, name] = _whole(case, max(4, min(iterations, most)))

    def _block(self, case, name, by_class):
        before = self._probe_ns()
        answers = self._peers.get(name).run(_operation_of(case, name), case.size, self._iterations[case.id, name],
                                            case.is_touched)
        after = self._probe_ns()
        kind = class_of(before)
        if kind != class_of(after) or max(before, after) > MOST_DRIFT * min(before, after):
            kind = "mixed"
        figures = dict(answers[0], probe_ns=(before + after) / 2)
        if case.operation == "ring":  # every rank times its own steps: the slowest counts
            for key in ("p50_ns", "p99_ns", "max_ns"):
                figures[key] = max(answer[key] for answer in answers)
        by_class.setdefault(kind, []).append(figures)

    def _probe_ns(self):
        probe_ns = self._probe.run("probe", 8, PROBE_ITERATIONS, True)[0]["p50_ns"]
        self.probes_ns.append(probe_ns)
        return probe_ns


def _whole(case, iterations):
    """Streams are posted in lists: their length is rounded up to whole ones."""
    return -(-iterations // STREAM_UNIT) * STREAM_UNIT if case.is_rate else iterations


def _operation_of(case, name):
    """TCP has no one-sided write: its ping-pong stands in, as what a program would do instead."""
    return "send" if name == "tcp" and case.operation == "write" else case.operation


def summarize(case, blocks, missing):
    """One case as plain data: medians per class and peer, ratios to ours, goals met or not."""
    key = "rate" if case.is_rate else "p50_ns"
    classes = {}
    for kind in ("sibling", "near", "far"):
        ours = [block for block in blocks.get(case.ours, {}).get(kind, [])]
        entry = {"ours": _figures(ours, key), "peers": {}}
        for rival in case.rivals:
            theirs = blocks.get(rival.peer, {}).get(kind, [])
            if theirs:
                entry["peers"][rival.peer] = _rival_figures(rival, _figures(theirs, key), entry["ours"], case.is_rate)
        if ours or entry["peers"]:
            classes[kind] = entry
    mixed = {name: len(kinds["mixed"]) for name, kinds in blocks.items() if "mixed" in kinds}
    return {"id": case.id, "title": case.title, "operation": case.operation, "size": case.size,
            "unit": "messages/s" if case.is_rate else "ns", "touched": case.is_touched, "ours": case.ours,
            "least_rate": case.least_rate, "worst_p99_ms": case.worst_p99_ms, "classes": classes,
            "mixed_blocks": mixed, "missing": missing}


def _figures(blocks, key):
    if not blocks:
        return None
    figures = {"median": statistics.median(block[key] for block in blocks), "blocks": len(blocks),
               "best": (max if key == "rate" else min)(block[key] for block in blocks),
               "probe_ns": statistics.median(block["probe_ns"] for block in blocks)}
    for name in ("p99_ns", "max_ns"):
        if name in blocks[0]:
            figures[name] = statistics.median(block[name] for block in blocks)
    return figures


def _rival_figures(rival, theirs, ours, is_rate):
    figures = dict(theirs, ratio=None, goal=rival.goal, floor=rival.floor)
    if ours is not None:
        figures["ratio"] = ours["median"] / theirs["median"] if is_rate else theirs["median"] / ours["median"]
    return figures
