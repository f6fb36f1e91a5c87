#!/bin/sh
# Runs a conformance program on a device whose packets travel through a byte stream:
#
#   over_stream.sh pair PROGRAM [ARGUMENT...]   a device that reaches itself through both ends of a socket pair
#   over_stream.sh unix PROGRAM [ARGUMENT...]   the program and its peer process, over a UNIX socket
#   over_stream.sh cut PROGRAM [ARGUMENT...]    the same, and the stream is cut again and again
#   over_stream.sh tcp PROGRAM [ARGUMENT...]    between two processes over TCP, in a network namespace of its own
#
# Outages are excused for a second only: the peers that die in these tests are not to be waited for.
# Exit status: the program's, or 77 and a reason when no namespace can be had.
set -u
kind=$1
shift

if [ "$kind" = pair ]; then
  export RINGBOLT_STREAMS="lo=pair:" RINGBOLT_LOOPBACK=network
  exec "$@"
fi
if [ "$kind" = unix ]; then
  folder=$(mktemp -d) || exit 1
  trap 'rm -rf "$folder"' EXIT
  RINGBOLT_STREAMS="near,outage:1=unix:$folder/s" RINGBOLT_TEST_PEER_STREAMS="far,outage:1=unix-listen:$folder/s" "$@"
  exit $?
fi
if [ "$kind" = cut ]; then
  folder=$(mktemp -d) || exit 1
  trap 'rm -rf "$folder"' EXIT
  mkfifo "$folder/stop"
  "$(dirname "$0")/cutting_proxy.py" "$folder/near" "$folder/far" 1 <"$folder/stop" &
  exec 9>"$folder/stop"
  RINGBOLT_STREAMS="near,outage:1=unix:$folder/near" RINGBOLT_TEST_PEER_STREAMS="far,outage:1=unix-listen:$folder/far" "$@" 9>&-
  result=$?
  exec 9>&-
  wait
  exit $result
fi
map_root=
[ "$(id -u)" = 0 ] || map_root=--map-root-user
# shellcheck disable=SC2086  # nothing or one word
if ! reason=$(unshare --net $map_root true 2>&1); then
  echo "skip: no network namespace here: $reason"
  exit 77
fi
# shellcheck disable=SC2086
RINGBOLT_STREAMS="near,outage:1=tcp:127.0.0.1:7777" RINGBOLT_TEST_PEER_STREAMS="far,outage:1=tcp-listen:127.0.0.1:7777" \
  exec unshare --net $map_root sh -c 'ip link set lo up || exit 77; exec "$@"' sh "$@"
