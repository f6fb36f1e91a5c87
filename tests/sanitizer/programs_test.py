#!/usr/bin/env python3
"""Other people's programs under RINGBOLT_SANITIZE=on: what is found in them is what docs/sanitizer.md tells of, each a
mistake that was looked at, and nothing else.

    programs_test.py --lib FOLDER --ringbolt FILE [--only TEXT]"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import sys
from typing import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))

from harness.pair import PairResult, run_pair  # noqa: E402
from harness.report import Report  # noqa: E402
from harness.world import World, add_arguments  # noqa: E402
import rdmacm  # noqa: E402

LIMIT_S = 60.0
# The rules that are found in a program, and what it does there.
OVERLAP = {"receive-buffers-overlap"}
BOTH_WAYS = OVERLAP | {"sent-and-received"}
KNOWN: dict[str, set[str]] = {
    **{f"ibv_{kind}_pingpong": BOTH_WAYS for kind in ("rc", "uc", "ud", "srq")}, "ucmatose": BOTH_WAYS, "udaddy": BOTH_WAYS,
    "ib_send_bw": BOTH_WAYS | {"object-left"}, "ib_send_lat": BOTH_WAYS, "ib_read_bw": OVERLAP, "ib_atomic_bw": OVERLAP,
    "ib_atomic_lat": {"object-left"}, "cmtime": {"destroy-failed"}, "rping": {"send-buffer-changed"}}
PINGPONGS = [f"ibv_{kind}_pingpong -n 200 -s {size}{mode}" for kind in ("rc", "uc", "ud", "srq") for size in (64, 2048)
             for mode in ("", " -e")]
PERFTEST = [f"{program} -F -n 200 -s {size}{options}" for program, options in
            (("ib_send_bw", ""), ("ib_send_bw", " -c UD"), ("ib_send_bw", " -r 16 -t 16"), ("ib_send_lat", ""),
             ("ib_send_lat", " -e"),
             ("ib_write_bw", ""), ("ib_write_bw", " -q 2"), ("ib_write_lat", ""), ("ib_read_bw", ""), ("ib_read_lat", ""))
            for size in (8, 2048)] + ["ib_atomic_bw -F -n 200", "ib_atomic_lat -F -n 200"]
CONNECTED = ("rping -v -V -S 1000", "ucmatose", "udaddy", "rdma_server", "ib_send_lat -R", "cmtime", "rdma_xserver -c r")


def check(world: World, name: str, program: str, run: Callable[[], PairResult], stays: bool = False) -> str:
    """`stays`: the server serves on until it is killed."""
    file = world.runtime / "findings"
    file.unlink(missing_ok=True)
    for place in (world.server, world.client):
        place.env.update(RINGBOLT_SANITIZE="on", RINGBOLT_SANITIZE_JSON=str(file), RINGBOLT_SANITIZE_LOG=os.devnull)
    result = run()
    lines = file.read_text() if file.exists() else ""
    rules = {json.loads(line)["rule"] for line in lines.splitlines()}
    assert rules <= KNOWN.get(program, set()), f"{name}: found {sorted(rules)}:\n{lines}"
    for one in (result.client,) if stays else (result.server, result.client):
        assert not one.timed_out and one.returncode in ({0, 66} if rules else {0}), one.describe()
    return " ".join(sorted(rules))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    options = parser.parse_args()
    report = Report("programs that are sanitized", options.only)
    with World(options.lib, options.ringbolt, options.place) as world:
        for text in PINGPONGS + PERFTEST:
            words = [*text.split(), "-d", world.server.device, *(("-g", "1") if "pingpong" in text else ("-x", "1"))]
            pair = functools.partial(run_pair, world, words, words, LIMIT_S)
            report.case(text, functools.partial(check, world, text, words[0], pair))
        for case in rdmacm.CASES:
            if case.name in CONNECTED:
                pair = functools.partial(rdmacm.run_pair, world, case, world.server.address)
                program = case.server.split()[0]
                report.case(case.name, functools.partial(check, world, case.name, program, pair, case.stays))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
