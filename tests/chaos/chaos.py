"""Two processes with verified traffic; one is killed, frozen or leaves at a random moment, round after round.

The survivor must report an error in the time its retry settings imply, or carry on after a short freeze; it must not
hold more descriptors, threads or shared mappings from round to round; and the next round must work.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))

from peer import Peer, fields_of  # noqa: E402
from rounds import Round, plan  # noqa: E402

from harness.world import World, add_arguments, check_parts  # noqa: E402

_REPLY_S = 20.0  # for what needs no peer: generous, because the machine may be busy
_SLACK_MS = 4000.0
_RETRY_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR
_RNR_RETRY_EXCEEDED = 13  # IBV_WC_RNR_RETRY_EXC_ERR
_BASELINE_ROUNDS = 6
_RSS_SLACK_KIB = (256 if "SANITIZED" in os.environ else 32) * 1024  # a sanitizer keeps what was freed
_MOST_FAILURES = 5


class Chaos:
    """Plays rounds. Holds the long-lived hub and the spoke, which is replaced whenever it dies. Not thread-safe."""

    def __init__(self, world: World, program: pathlib.Path) -> None:
        self._world = world
        self._program = str(program.resolve())
        self._hub: Peer | None = None
        self._spoke: Peer | None = None
        self.longest_life = 0
        self._life = 0
        self.slowest_report_ms = 0.0

    def play(self, entry: Round) -> None:
        """One round; raises AssertionError with the findings."""
        hub, spoke = self._pair()
        victim, survivor = (hub, spoke) if entry.victim_is_hub else (spoke, hub)
        infos = [self._open(peer, entry, side) for side, peer in enumerate((hub, spoke))]
        if entry.moment == "unconnected":
            self._end(victim, entry)
            survivor.tell(f"connect {infos[0] if survivor is spoke else infos[1]}")
            reply = survivor.expect("ready|refused", _REPLY_S)
            if reply.startswith("ready"):
                survivor.tell("go")
            is_connected = reply.startswith("ready")
        else:
            self._connect(hub, spoke, infos)
            self._reach(entry, hub, spoke)
            is_connected = True
        if entry.ends_victim:
            self._after_death(entry, victim, survivor, is_connected)
        else:
            self._after_freeze(entry, victim, survivor)

    def finish(self) -> None:
        """Both leave in good order."""
        for peer in (self._hub, self._spoke):
            if peer is not None:
                peer.tell("quit")
                assert peer.reap() == 0, f"{peer.name} left with an error\n{peer.story()}"
        self._hub = self._spoke = None

    def give_up_pair(self) -> None:
        """After a failed round: the next one begins with new processes."""
        for peer in (self._hub, self._spoke):
            if peer is not None:
                peer.put_down()
        self._hub = self._spoke = None
        self._life = 0

    def _pair(self) -> tuple[Peer, Peer]:
        if self._hub is None:
            self._hub = Peer(self._world.server, self._program, "hub")
        if self._spoke is None:
            place = self._world.client if self._hub.place is self._world.server else self._world.server
            self._spoke = Peer(place, self._program, "spoke")
        return self._hub, self._spoke

    def _open(self, peer: Peer, entry: Round, side: int) -> str:
        peer.tell(entry.open_command(side))
        return peer.expect("info", _REPLY_S).partition(" ")[2]

    def _connect(self, hub: Peer, spoke: Peer, infos: list[str]) -> None:
        hub.tell(f"connect {infos[1]}")
        spoke.tell(f"connect {infos[0]}")
        for peer in (hub, spoke):
            peer.expect("ready", _REPLY_S)
        for peer in (hub, spoke):
            peer.tell("go")

    def _reach(self, entry: Round, hub: Peer, spoke: Peer) -> None:
        """Waits for the moment of the round; nobody may be lost before anything was done to him."""
        if entry.moment == "flowing":
            for peer in (hub, spoke):
                peer.expect("flowing", _REPLY_S)
        early = hub.listen("lost", entry.delay_ms / 1000)
        if early is not None:
            raise AssertionError(f"the connection failed before anything was done to it: {early}\n{hub.story()}\n{spoke.story()}")

    def _end(self, victim: Peer, entry: Round) -> None:
        if entry.action == "kill":
            victim.hit(signal.SIGKILL)
        else:
            victim.tell(entry.action)

    def _after_death(self, entry: Round, victim: Peer, survivor: Peer, is_connected: bool) -> None:
        started = time.monotonic()
        if entry.moment != "unconnected":
            self._end(victim, entry)
        if is_connected and entry.type == "rc":
            self._expect_lost(entry, survivor, started)
        elif is_connected:
            # Nobody acknowledges on an unreliable connection: its sends must end all the same, well or with an error.
            survivor.tell("drain")
            ended = survivor.listen("drained|lost", (entry.give_up_ms + _SLACK_MS) / 1000)
            assert ended is not None, f"the sends of {survivor.name} (pid {survivor.pid}) do not end\n{survivor.story()}"
        code = victim.reap()
        assert code == 0 or entry.action == "kill", f"the victim left with {code}\n{victim.story()}"
        self._bury(victim, survivor)
        self._check_holdings(survivor)

    def _expect_lost(self, entry: Round, survivor: Peer, started: float) -> None:
        line = survivor.expect("lost", (entry.give_up_ms + _SLACK_MS) / 1000)
        self.slowest_report_ms = max(self.slowest_report_ms, (time.monotonic() - started) * 1000)
        status = int(line.split()[1])
        fitting = (_RETRY_EXCEEDED,) if entry.ends_victim else (_RETRY_EXCEEDED, _RNR_RETRY_EXCEEDED)
        # 0: the peer was gone at a moment when no send was under way, so only receives were flushed.
        assert status in (*fitting, 0), f"the first failed send has status {status}, expected one of {fitting}\n{survivor.story()}"

    def _after_freeze(self, entry: Round, victim: Peer, survivor: Peer) -> None:
        started = time.monotonic()
        victim.hit(signal.SIGSTOP)
        try:
            if entry.action == "freeze_long":
                self._expect_lost(entry, survivor, started)
            else:
                early = survivor.listen("lost", entry.freeze_ms / 1000)
                assert early is None, f"gave up on a peer frozen for {entry.freeze_ms:.0f} ms: {early}\n{survivor.story()}"
        finally:
            victim.hit(signal.SIGCONT)
        if entry.action == "freeze_long":
            victim.expect("lost", (entry.give_up_ms + _SLACK_MS) / 1000)
        else:
            # Both first: a side that drains still has to serve the other.
            for peer in (victim, survivor):
                peer.tell("drain")
            for peer in (victim, survivor):
                peer.expect("drained", _REPLY_S)
        for peer in (victim, survivor):
            peer.tell("close")
            peer.expect("closed", _REPLY_S)

    def _bury(self, victim: Peer, survivor: Peer) -> None:
        """The survivor is the hub of the next round; a new spoke is born then."""
        self._life = self._life + 1 if survivor is self._hub else 1
        self.longest_life = max(self.longest_life, self._life)
        survivor.name = "hub"
        self._hub, self._spoke = survivor, None

    def _check_holdings(self, survivor: Peer) -> None:
        """With everything destroyed and the peer dead, a process holds what it held after its first rounds."""
        survivor.tell("close")
        now = fields_of(survivor.expect("closed", _REPLY_S))
        if len(survivor.baseline) < _BASELINE_ROUNDS:
            survivor.baseline.append(now)
            return
        for what, slack in (("fds", 0), ("threads", 0), ("shared_maps", 0), ("rss_kib", _RSS_SLACK_KIB)):
            most = max(before[what] for before in survivor.baseline)
            assert now[what] <= most + slack, (f"the survivor holds {now[what]} {what}, at most {most} in its first "
                                               f"{_BASELINE_ROUNDS} rounds\n{survivor.story()}")


def run(chaos: Chaos, seed: int, count: int, first: int) -> int:
    """Plays the plan; returns the number of failed rounds."""
    failures = 0
    for entry in plan(seed, count):
        if entry.number < first:
            continue
        started = time.monotonic()
        try:
            chaos.play(entry)
        except AssertionError as finding:
            failures += 1
            print(f"FAIL  {entry.describe()}\n{finding}", flush=True)
            chaos.give_up_pair()
            if failures == _MOST_FAILURES:
                print("too many failures: the rest is not played", flush=True)
                break
            continue
        print(f"ok    {entry.describe()}  ({time.monotonic() - started:.2f} s)", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--peer", required=True, type=pathlib.Path, help="the built chaos_peer")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--first", type=int, default=1, help="begin with this round of the plan")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    check_parts(arguments)
    print(f"== chaos, {arguments.place}, seed {arguments.seed}, {arguments.rounds} rounds", flush=True)
    with World(arguments.lib, arguments.ringbolt, arguments.place) as world:
        chaos = Chaos(world, arguments.peer)
        failures = run(chaos, arguments.seed, arguments.rounds, arguments.first)
        left: list[str] = []
        try:
            chaos.finish()
        except AssertionError as finding:
            left.append(str(finding))
        # Slots of the dead are taken over, so they do not pile up: no more than were ever alive at a time.
        left += world.leftovers(slots_may_stay=True)
        stale = world.stale_slots()
        if stale > 3:
            left.append(f"{stale} slots of dead processes have piled up in {world.runtime}")
        for line in left:
            print(f"FAIL  {line}", flush=True)
    print(f"== {arguments.rounds} rounds, {failures} failed; a hub lived through {chaos.longest_life} deaths; "
          f"slowest report of a lost peer {chaos.slowest_report_ms:.0f} ms", flush=True)
    return 1 if failures or left else 0


if __name__ == "__main__":
    sys.exit(main())
