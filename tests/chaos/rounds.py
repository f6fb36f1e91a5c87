"""The plan of a chaos run: what happens to whom and when, from one seed. Pure: nothing here starts or waits."""

from __future__ import annotations

import dataclasses
import random
from typing import Iterator

# The device never gives up on a peer earlier than this, however small the timeout asked for.
_LEAST_TIMEOUT_MS = 500.0
# min_rnr_timer 30 of chaos_peer: long enough that a busy receiver is not taken for one that went away.
_RNR_PAUSE_MS = 327.68
# Freezing for less than this must not be noticed by a connection that waits at least 2 s.
_LONGEST_SHORT_FREEZE_MS = 150.0


@dataclasses.dataclass(frozen=True)
class Round:
    """One round: both sides connect and exchange traffic, then `action` happens to one of them.

    action: kill (SIGKILL), exit (at once, nothing destroyed), quit (in good order), freeze (SIGSTOP, SIGCONT after
    `freeze_ms`), freeze_long (frozen until the other side gives up).
    moment: unconnected (both are ready to connect), early (the first operations are posted), flowing (data is verified).
    """

    number: int
    type: str
    waits: tuple[str, str]
    action: str
    moment: str
    delay_ms: float
    freeze_ms: float
    victim_is_hub: bool
    timeout: int
    retry: int
    rnr_retry: int
    seed: int

    @property
    def ends_victim(self) -> bool:
        return self.action in ("kill", "exit", "quit")

    @property
    def give_up_ms(self) -> float:
        """When a reliable connection reports a peer that does not answer: (retry + 1) * 4.096 us * 2^timeout; or, once the
        peer has no receive posted, rnr_retry pauses of the length that the peer asked for (7 stands for no limit)."""
        silence_ms = max(_LEAST_TIMEOUT_MS, (self.retry + 1) * 4.096e-3 * float(1 << self.timeout))
        return silence_ms if self.rnr_retry == 7 else silence_ms + self.rnr_retry * _RNR_PAUSE_MS

    def describe(self) -> str:
        who = "hub" if self.victim_is_hub else "spoke"
        text = f"round {self.number}: {self.type}, {'/'.join(self.waits)}, {self.action} the {who} when {self.moment}"
        text += f" + {self.delay_ms:.1f} ms"
        if self.action == "freeze":
            text += f" for {self.freeze_ms:.0f} ms"
        return text + f", timeout {self.timeout}, retry {self.retry}"

    def open_command(self, side: int) -> str:
        """The line that makes one side's objects."""
        return (f"open round={self.number} type={self.type} wait={self.waits[side]} seed={self.seed} side={side} "
                f"timeout={self.timeout} retry={self.retry} rnr={self.rnr_retry}")


def plan(seed: int, count: int) -> Iterator[Round]:
    """`count` rounds; the same seed gives the same plan."""
    dice = random.Random(seed)
    for number in range(1, count + 1):
        kind = dice.choices(("rc", "uc", "ud"), (70, 15, 15))[0]
        action = dice.choices(("kill", "exit", "quit", "freeze", "freeze_long"), (40, 15, 15, 20, 10))[0]
        if action == "freeze_long" and kind != "rc":
            action = "freeze"  # an unreliable sender has nothing that could run out of patience
        moment = dice.choices(("unconnected", "early", "flowing"), (10, 20, 70))[0]
        if action.startswith("freeze") and moment == "unconnected":
            moment = "flowing"
        # A short freeze must be survived, so the connection has to be patient; otherwise give up quickly.
        timeout, retry = (16, 7) if action == "freeze" else dice.choice(((14, 7), (10, 1), (12, 7), (14, 1)))
        yield Round(
            number=number, type=kind, waits=(dice.choice(("poll", "event")), dice.choice(("poll", "event"))), action=action,
            moment=moment, delay_ms=dice.choice((0.0, dice.uniform(0, 2), dice.uniform(0, 30))),
            freeze_ms=dice.uniform(1, _LONGEST_SHORT_FREEZE_MS),
            # Few deaths of the long-lived side: it has to get old for leaks to show.
            victim_is_hub=dice.random() < (0.04 if action in ("kill", "exit", "quit") else 0.5),
            timeout=timeout, retry=retry,
            # A frozen process with no receive left is "not ready", not silent: only a limit on that ends the wait.
            rnr_retry=2 if action == "freeze_long" else 7, seed=dice.randrange(1 << 32))
