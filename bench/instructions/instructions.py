#!/usr/bin/env python3
"""Counts instructions in user space per operation: ours, and those of UCX, Open MPI and MPICH in the same harness.

Ours are compared with budget.json, which holds for the preset release and counts by callgrind. Exit status 0: all within
the budget; 1: an operation takes more than 5 % above it; 2: something could not be counted, or wrong usage; 77: there is
nothing to compare with, since the build or the counter is another one, or valgrind is missing."""

import argparse
import json
import os
import shutil
import signal
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
# pylint: disable=wrong-import-position
import budget  # noqa: E402
from counting import CountError  # noqa: E402
from programs import DISTURBED, KINDS, NETWORK_KINDS, Programs, SIDES  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
MOST_POLLS = 1.02
RECOUNTS = 2
ROWS = {
    "send.sender": "8 B SEND: post, poll",
    "send.receiver": "its receive: post, poll",
    "send_inline.sender": "8 B SEND inline: post, poll",
    "send_inline.receiver": "its receive: post, poll",
    "send_list.sender": "SEND, of a list of 32",
    "send_list.receiver": "its receive, of a list of 32",
    "write": "8 B WRITE: post, poll",
    "write_inline": "8 B WRITE inline: post, poll",
    "write_list": "WRITE, of a list of 32",
    "write_private": "8 B WRITE to private memory",
    "read": "8 B READ: post, poll",
    "read_private": "8 B READ of private memory",
    "fetch_add": "fetch-and-add: post, poll",
    "empty_poll_1": "empty poll, 1 queue pair",
    "empty_poll_128": "empty poll, 128 queue pairs",
    "empty_poll_1000": "empty poll, 1,000 queue pairs",
    "arm_1": "arm, 1 queue pair",
    "arm_128": "arm, 128 queue pairs",
    "arm_1000": "arm, 1,000 queue pairs",
    "nccl_isend": "8 B isend, test",
    "nccl_irecv": "its irecv, test",
    "all_reduce_64": "64 B all_reduce, 2 ranks",
    "all_reduce_4096": "4 KiB all_reduce, 2 ranks",
    "barrier": "barrier, 2 ranks",
    "ping_pong": "8 B SEND over UDP, both ends",
}


def table(figures, calls):
    """Lines of cells: the operation, ours, peers that were counted, system calls of ours."""
    sides = [side for side in SIDES if side in figures]
    lines = [["operation", *sides] + (["system calls"] if calls else [])]
    for name, title in ROWS.items():
        cells = [f"{figures[side][name].instructions:,.0f}" if name in figures[side] else "" for side in sides]
        if any(cells):
            call = calls.get(name)
            lines.append([title, *cells] + ([f"{call:.2f}" if call is not None else ""] if calls else []))
    return lines


def remarks(figures):
    """Of series that polled more often than they had to: a part of what they took is waiting."""
    return [f"{side}: {name} took {one.polls:.2f} polls per operation: it has waited for something"
            for side, found in figures.items() for name, one in found.items() if one.polls > MOST_POLLS]


def print_table(lines, is_markdown):
    if is_markdown:
        for line in [lines[0], ["---"] * len(lines[0])] + lines[1:]:
            print("| " + " | ".join(line) + " |")
        return
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        cells = [line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("  ".join(cells).rstrip())


def count(options, programs):
    """({side: {series: Figure}}, {series: system calls of ours}), with a word for each side that can't be counted."""
    figures, calls = {}, {}
    for side in options.only:
        try:
            figures[side] = programs.figures(side, options.kinds)
            if side == "ours" and options.counter == "callgrind" and not (options.set_budget or options.variables):
                recount(programs, figures[side], budget.load()["instructions"])
        except CountError as problem:
            if side == "ours":
                raise
            print(f"instructions: without {side}: {problem}", file=sys.stderr)
    if options.system_calls and "ours" in figures:
        calls = programs.system_calls(options.kinds)
    return figures, calls


def recount(programs, figures, limits):
    """Counts anew what other processes can disturb, if it is over the budget, and keeps the least of each: growth stays."""
    for _ in range(RECOUNTS):
        over = {name for name, verdict, _ in budget.verdicts({name: one.instructions for name, one in figures.items()}, limits)
                if verdict == "over"} & set(DISTURBED)
        if not over:
            return
        for name, one in programs.figures("ours", sorted(over)).items():
            figures[name] = min(figures[name], one, key=lambda figure: figure.instructions)


def judge(options, figures):
    """What the budget says of ours; the exit status."""
    built = budget.made_with(options.build)
    if options.set_budget:
        budget.save({name: one.instructions for name, one in figures.items() if name not in NETWORK_KINDS}, built)
        print(f"budget set, for {built}")
        return 0
    limits = budget.load()
    if options.counter != "callgrind" or built != limits["made_with"]:
        print(f"skip: the budget is for callgrind and {limits['made_with']}, this was {options.counter} and {built}")
        return 77
    # Over a network it is the kernel that decides when a datagram comes, and so who sends the acknowledgement, and when.
    judged = {name: one.instructions for name, one in figures.items() if name not in NETWORK_KINDS}
    found = budget.verdicts(judged, limits["instructions"])
    for name, verdict, words in found:
        print({"over": "OVER BUDGET", "stale": "the budget is stale", "new": "new"}[verdict] + f": {name}: {words}")
    if any(verdict == "stale" for _, verdict, _ in found):
        print("lower it with --set-budget")
    return 1 if any(verdict == "over" for _, verdict, _ in found) else 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder")
    parser.add_argument("--only", default=",".join(SIDES), help=f"sides, of {','.join(SIDES)}")
    parser.add_argument("--kinds", default="", help=f"operations, of {','.join(KINDS)} (default: all)")
    parser.add_argument("--counter", choices=("callgrind", "processor"), default="callgrind",
                        help="processor: its own counter of instructions, where the kernel gives it; no budget is for it")
    parser.add_argument("--system-calls", action="store_true", help="count those of ours, too: as root")
    parser.add_argument("--record", dest="variables", action="append_const", const=("RINGBOLT_RECORD", "on"), default=[],
                        help="of programs that record (RINGBOLT_RECORD); no budget is for it")
    parser.add_argument("--explain", dest="variables", action="append_const", const=("RINGBOLT_EXPLAIN", "on"),
                        help="of programs whose failures are explained, which records as well; likewise")
    parser.add_argument("--json", metavar="FILE", help="all figures")
    parser.add_argument("--markdown", action="store_true", help="the table for a document")
    parser.add_argument("--keep", metavar="FOLDER", help="keep callgrind's dumps there: callgrind_annotate shows where instructions go")
    parser.add_argument("--set-budget", action="store_true", help="what ours take now is what they may take")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    options.kinds = [kind for kind in options.kinds.split(",") if kind]
    if not os.path.exists(os.path.join(options.build, "CMakeCache.txt")):
        parser.error(f"{options.build} is no build folder: cmake --preset release && cmake --build --preset release")
    if unknown := set(options.only) - set(SIDES):
        parser.error(f"no side {', '.join(sorted(unknown))}; there are {', '.join(SIDES)}")
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return options


def main(arguments):
    options = parse(arguments)
    if options.counter == "callgrind" and shutil.which("valgrind") is None:
        print("skip: valgrind is not installed")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by way of what cleans up
    programs = Programs(options.build, options.counter, options.keep, dict(options.variables))
    try:
        figures, calls = count(options, programs)
    except CountError as problem:
        print(f"instructions: {problem}", file=sys.stderr)
        return 2
    finally:
        programs.close()
    print_table(table(figures, calls), options.markdown)
    print("".join(f"{remark}\n" for remark in remarks(figures)), end="")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"made_with": budget.made_with(options.build), "counter": options.counter,
                       "instructions": {side: {name: vars(one) for name, one in found.items()}
                                        for side, found in figures.items()}, "system_calls": calls}, file, indent=2)
    return judge(options, figures["ours"]) if "ours" in figures and not options.variables else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
