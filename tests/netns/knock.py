"""knock.py ADDRESS: succeeds if packets get to the address and back. The kernel there refuses a TCP connection to a port
that nobody listens at: no server is needed, no rights, and none of the limits on ICMP, which all namespaces share."""

import socket
import sys

_DISCARD = 9

try:
    socket.create_connection((sys.argv[1], _DISCARD), timeout=1).close()
except ConnectionRefusedError:
    sys.exit(0)
except OSError as error:
    sys.exit(f"{sys.argv[1]}: {error}")
