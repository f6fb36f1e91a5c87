#pragma once

// Counters of ports: what programs read below /sys/class/infiniband/D/ports/1/{counters,hw_counters}/ is made at the
// moment they open it, out of the file that the port counts in. Thread-safe.

/// A descriptor that reads the counter at `path`, which begins with /sys/class/infiniband/, for the tree at `root`;
/// -1 when it is none, or `flags` ask for more than reading, and then the file of the tree is for the caller. A counter
/// that can't be read (ENOMEM, ENFILE, a damaged file) is -1 too. Keeps errno.
int open_counter(const char* root, const char* path, int flags);

/// The same for `name` in the folder that is open as `folder`.
int open_counter_at(const char* root, int folder, const char* name, int flags);
