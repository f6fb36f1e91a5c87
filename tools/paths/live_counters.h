#pragma once

// Counters of ports: what programs read below /sys/class/infiniband/D/ports/1/{counters,hw_counters}/ is made at the
// moment they open it, out of the file that the port counts in. Thread-safe.

/// What is no counter: a descriptor is never that.
#define RINGBOLT_NO_COUNTER (-2)

/// A descriptor that reads the counter at `path`, which begins with /sys/class/infiniband/, for the tree at `root`; -1
/// and errno when `flags` ask to write (EACCES), or it can't be read (ENFILE, ENOMEM, EIO for a damaged file).
/// RINGBOLT_NO_COUNTER: it is none, and errno is as it was.
int open_counter(const char* root, const char* path, int flags);

/// The same for `name` in the folder that is open as `folder`.
int open_counter_at(const char* root, int folder, const char* name, int flags);
