"""The suite of pyverbs 59, as tests/interop/pyverbs_suite.py runs Debian's: the newest that PyPI has, built from its archive
with its own rdma-core, and run over our device."""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

from referee import add_arguments, check_parts, prepared
from pyverbs_suite import read_expected, run_suite

_SUITE_SIZE = 327
# It has another name there.
_GONE = "test_qpex.QpExTestCase.test_qp_ex_rc_rdma_write_zero_length"
# The suite asks iproute2's `rdma` which network interface a port has, and that asks the kernel: on a host whose kernel knows
# RDMA and has no device, the answer is an empty list.
_RDMA = "#!/bin/sh\necho '[]'\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    check_parts(arguments)
    folder = prepared("setup-pyverbs")
    here = pathlib.Path(__file__).parent
    expected = read_expected(here.parent / "interop" / "pyverbs_expected.txt")
    further = read_expected(here / "pyverbs59_expected.txt")
    expected.must_pass |= further.must_pass
    expected.must_pass.discard(_GONE)
    expected.may_skip[:0] = further.may_skip
    with tempfile.TemporaryDirectory() as programs:
        rdma = pathlib.Path(programs, "rdma")
        rdma.write_text(_RDMA)
        rdma.chmod(0o755)
        return run_suite(arguments, folder / "tests", expected, _SUITE_SIZE, "pyverbs 59, default device", folder / "python",
                         pathlib.Path(programs))


if __name__ == "__main__":
    sys.exit(main())
