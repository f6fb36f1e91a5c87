"""How the ranks of a new process group tell each other something before they have met: by the store that c10d hands over."""

from __future__ import annotations

import errno
import os
import re
import socket
import time
from datetime import timedelta

from .._group_library import GroupError

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.2  # between two questions whether a rank has told
_LEAST_ANSWER_S = 1.0  # that a store has for an answer
_MOST_NAMED = 8  # ranks in one message
_NETWORK = ("connect", "socket", "pipe", "peer", "network", "recv", "send")  # words of a store that is another process


class StoreExchange:
    """Gives some bytes to all ranks and takes those of each, within a limit of time for all of it. Raises GroupError, which names
    those who are missing, as far as the store knows them. One thread at a time.

    Keys: lives/R, how many process groups rank R has begun here: a store outlives them, and their names come again. who/R,
    its process and host in words. L/N/R, its bytes in hexadecimal and those words, of its exchange N in life L. L/N/R+, 1 behind
    that: add() tells at once whether it is there, where get() would wait."""

    def __init__(self, store, rank: int, size: int, limit_s: float):
        self._store, self._rank, self._size = store, rank, size
        self._until = time.monotonic() + limit_s
        self._limit_s, self._n_calls = limit_s, 0
        self._who = f"process {os.getpid()} on {socket.gethostname()}"
        self._people: dict[int, str] = {}
        self._ask(lambda: store.set(f"who/{rank}", self._who))
        self._life = self._ask(lambda: store.add(f"lives/{rank}", 1))

    def __call__(self, mine: bytes) -> list[bytes]:
        self._n_calls += 1
        prefix = f"{self._life}/{self._n_calls}/"
        self._ask(lambda: self._store.set(f"{prefix}{self._rank}", f"{mine.hex()} {self._who}"))
        self._ask(lambda: self._store.add(f"{prefix}{self._rank}+", 1))
        return [self._of(rank, prefix) for rank in range(self._size)]

    def whereabouts(self, text: str) -> str:
        """Process and host of the other ranks that `text` names, as words to add to it."""
        named = [int(number) for list_ in re.findall(r"\brank (\d+(?:, \d+)*)", text) for number in list_.split(", ")]
        known = [rank for rank in dict.fromkeys(named) if rank != self._rank and rank in self._people]
        return "".join(f"; rank {rank} is {self._people[rank]}" for rank in known[:_MOST_NAMED])

    def _of(self, rank: int, prefix: str) -> bytes:
        """What that rank has told, once it has. Asked for again and again: a store's wait() that ends without the key says so in
        other words in each version of PyTorch, and some stores are of no use after it."""
        pause_s = _FIRST_PAUSE_S
        while not self._ask(lambda: self._store.add(f"{prefix}{rank}+", 0)):
            left_s = self._until - time.monotonic()
            if left_s <= 0:
                raise self._absence(rank, prefix)
            time.sleep(min(pause_s, left_s))
            self._bound_answers(left_s)
            pause_s = min(1.5 * pause_s, _LONGEST_PAUSE_S)
        share, _, who = self._ask(lambda: self._store.get(f"{prefix}{rank}")).decode().partition(" ")
        self._people[rank] = who
        return bytes.fromhex(share)

    def _bound_answers(self, limit_s: float):
        """So that a store whose process is stopped fails, and add() behind this does not hang: only wait() takes a limit, which
        in some versions of PyTorch holds for all answers after it, too. It waits for what is there."""
        self._ask(lambda: self._store.wait([f"who/{self._rank}"], timedelta(seconds=max(_LEAST_ANSWER_S, limit_s))))

    def _ask(self, question):
        """What the store answers."""
        try:
            return question()
        except RuntimeError as problem:
            raise self._broken(problem) from None

    def _broken(self, problem: RuntimeError) -> GroupError:
        text = str(problem).strip()
        # The store itself: nothing waits here for a key that is not there.
        is_late = any(word in text.lower() for word in ("timeout", "timed out"))
        if not is_late and not any(word in text.lower() for word in _NETWORK):
            return GroupError(errno.EIO, f"the store where the ranks meet has failed: {text}")
        by_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        keeper = "torchrun's agent" if by_agent else "rank 0"
        host = os.environ.get("MASTER_ADDR")
        at = f" at {host}:{os.environ.get('MASTER_PORT', '')}" if by_agent and host else ""
        if is_late:
            return GroupError(errno.ETIMEDOUT, f"the store where the ranks meet does not answer: {text}; {keeper} keeps it{at}: "
                              "is that process stopped, or its machine gone?")
        return GroupError(errno.ECONNRESET, f"the store where the ranks meet is gone: {text}; {keeper} keeps it{at}: its output "
                          "says why it ended")

    def _absence(self, first: int, prefix: str) -> GroupError:
        """Of `first` and those behind it, for nobody has looked at these yet."""
        here = self._ask
        missing = [rank for rank in range(first, self._size)
                   if rank == first or not here(lambda key=f"{prefix}{rank}+": self._store.add(key, 0))]
        numbers = ", ".join(map(str, missing[:_MOST_NAMED])) + ("..." if len(missing) > _MOST_NAMED else "")
        who = f"rank{'s' * (len(missing) > 1)} {numbers} of {self._size} {'have' if len(missing) > 1 else 'has'}"
        return GroupError(errno.ETIMEDOUT, f"{who} not come within {self._limit_s:g} s" +
                          "".join(f"; rank {rank} {self._fate(rank)}" for rank in missing[:_MOST_NAMED]))

    def _fate(self, rank: int) -> str:
        """What the store knows of a rank that has not told."""
        life = self._ask(lambda: self._store.add(f"lives/{rank}", 0))
        if life == 0:
            return "has never reached the store: not started, ended before, or given another address? Look at its output"
        who = self._ask(lambda: self._store.get(f"who/{rank}")).decode()
        if life == self._life:
            return f"is {who}, has begun to join and told nothing since: has it ended, or is it stopped?"
        if life < self._life:
            return (f"was {who} in process group {life} of this store; this rank is at {self._life}, and waits for it: has it "
                    "ended?")
        return (f"is {who}, and at process group {life} of this store, this rank at {self._life}: start all ranks anew, not some "
                "of them")
