#!/bin/sh
# abidiff_test.sh OUR_LIBRARY SYSTEM_LIBRARY: nothing that the system's verbs library exports is missing from ours.
# abidiff's exit status is a set of bits: 1 and 2 say that it failed itself, 4 that something differs, 8 that a program
# linked to the first library would not run on the second.
set -u
command -v abidiff >/dev/null || { echo "skip: abidiff is not installed (Debian: abigail-tools)"; exit 77; }
[ -e "$2" ] || { echo "skip: no system library at $2"; exit 77; }
# Names that newer releases added are no difference; types can't be compared: Debian's library has no debug information.
abidiff --no-added-syms --no-linkage-name "$2" "$1"
status=$?
[ $((status & 3)) -eq 0 ] || { echo "abidiff failed with status $status"; exit 1; }
[ $((status & 8)) -eq 0 ] || { echo "incompatible with $2"; exit 1; }
echo "abidiff: no incompatible change from $2 (status $status)"
