#!/bin/sh
# Runs a program as in a container without privileges: in a user namespace of its own, as an ordinary user without any
# capability, without process_vm_*, namespaces, mounts and what else such containers forbid:
#
#   in_container.sh FORBID_PROCESS_VM PROGRAM [ARGUMENT...]
#
# Exit status: the program's, or 77 and a reason when no user namespace can be had; 70 when it is no such container.
set -u

if ! reason=$(unshare --user --map-user=1000 --map-group=1000 true 2>&1); then
  echo "skip: no user namespace here: $reason"
  exit 77
fi
forbid=$1
shift
# What runs in it looks first whether it is what it should be.
# shellcheck disable=SC2016  # expanded there
exec unshare --user --map-user=1000 --map-group=1000 "$forbid" --container sh -c '
  [ "$(id -u)" = 1000 ] || { echo "not an ordinary user"; exit 70; }
  grep -q "^CapEff:[[:space:]]*0*$" /proc/self/status || { echo "has capabilities"; exit 70; }
  ! unshare --user true 2> /dev/null || { echo "may make namespaces"; exit 70; }
  exec "$@"' sh "$@"
