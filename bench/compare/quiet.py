"""Whether somebody else used the processors while a figure was taken."""

import os
import time

MOST_STOLEN = 0.03  # of the time of all processors
MOST_TRIES = 40


def _busy_s():
    """All processors together since the start; time that a host took away counts."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = (int(word) for word in file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_s():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Watch:
    """Sees what others take of the processors' time from now on."""

    def __init__(self):
        self._busy, self._own, self._began = _busy_s(), _own_s(), time.monotonic()

    def stolen_s(self):
        """Seconds of all processors. Processes that we started count as ours once they have been waited for."""
        return (_busy_s() - self._busy) - (_own_s() - self._own)

    def most_s(self, share):
        """So many seconds are a share of the time of all processors."""
        return share * (time.monotonic() - self._began) * os.cpu_count()

    def stolen_share(self):
        """Of the time of all processors; not below 0, which the clock's ticks could make it."""
        return max(0.0, self.stolen_s() / self.most_s(1))


def undisturbed(measure):
    """What `measure()` returns, from a run that had the machine for itself; after MOST_TRIES the last one. `measure` has to
    have waited for the processes that it starts. Returns (figure, whether it was undisturbed)."""
    figure = None
    for _ in range(MOST_TRIES):
        watch = Watch()
        figure = measure()
        if watch.stolen_s() <= watch.most_s(MOST_STOLEN) + 0.02:  # the clock's ticks
            return figure, True
    return figure, False
