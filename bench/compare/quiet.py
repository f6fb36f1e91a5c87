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


def undisturbed(measure):
    """What `measure()` returns, from a run that had the machine for itself; after MOST_TRIES the last one. `measure` has to
    have waited for the processes that it starts. Returns (figure, whether it was undisturbed)."""
    figure = None
    for _ in range(MOST_TRIES):
        busy, own, began = _busy_s(), _own_s(), time.monotonic()
        figure = measure()
        stolen = (_busy_s() - busy) - (_own_s() - own)
        if stolen <= MOST_STOLEN * (time.monotonic() - began) * os.cpu_count() + 0.02:  # the clock's ticks
            return figure, True
    return figure, False
