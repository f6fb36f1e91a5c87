#!/bin/sh
# Runs a program in a network namespace of its own on a device of the loopback interface that speaks RoCEv2 to itself:
#
#   over_network.sh PROGRAM [ARGUMENT...]
#
# Exit status: the program's, or 77 and a reason when no namespace can be had.
set -u

map_root=
[ "$(id -u)" = 0 ] || map_root=--map-root-user
# shellcheck disable=SC2086  # nothing or one word
if ! reason=$(unshare --net $map_root true 2>&1); then
  echo "skip: no network namespace here: $reason"
  exit 77
fi
# Where the table of GIDs begins as on an Ethernet interface, the suite finds what it expects.
# shellcheck disable=SC2086
exec unshare --net $map_root sh -c '
  ip link set lo up && ip addr add fe80::1/64 dev lo nodad || exit 77
  # The kernel makes the address its own a moment later, on a thread of its own; until then packets to it get lost.
  tries=0
  until ip -6 route show table local | grep -q "^local fe80::1 "; do
    tries=$((tries + 1))
    [ "$tries" -lt 500 ] || { echo "skip: fe80::1 did not become local in 5 s"; exit 77; }
    sleep 0.01
  done
  export RINGBOLT_NETDEVS=lo RINGBOLT_LOOPBACK=network
  exec "$@"' sh "$@"
