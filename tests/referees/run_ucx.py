"""UCX's ucx_perftest 1.20 over our device: the programs of one wheel with the UCX of another, for the first has no verbs.

libucx's wheels come configured `--without-verbs --without-rdmacm`; MPICH's has the same release with both.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys

from referee import Report, SKIP_EXIT_CODE, World, check_parts, add_arguments, prepared
import ucx


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    check_parts(arguments)
    folder = prepared("setup-python", "referee-ucx")
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    programs = packages / "libucx" / "bin"
    if not programs.is_dir():
        print(f"skip: {programs} is not in the wheel")
        return SKIP_EXIT_CODE
    for program in ("ucx_info", "ucx_perftest"):
        (programs / program).chmod(0o755)
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    report = Report(f"UCX 1.20, {arguments.place}", arguments.only)
    world = World(arguments.lib, arguments.ringbolt, arguments.place, with_sysfs=True)
    # After a strong fence UCX 1.20 asks a peer without mlx5's keys for 8 bytes under the key 0xff, its word for none.
    world.base_env.update(PATH=os.environ["PATH"], LD_LIBRARY_PATH=str(folder / "lib" / "mpich"), UCX_FENCE_MODE="weak")
    with world:
        report.case("ucx_info -d", functools.partial(ucx.show_transports, world))
        for case in [*ucx.uct_cases(), *ucx.ucp_cases()]:
            report.case(case.name, functools.partial(ucx.run_case, world, case))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
