#pragma once

#include <cstdint>

namespace ringbolt::base {

/// A lock of a file that processes and threads get in the order in which they ask for it. Who dies gives it back, and
/// his place among those that wait. The file is open for writing; what is in it is not touched. How it looks to others:
/// docs/formats/rendezvous.md.
///
/// Waits up to `patience_ms`: 0; EWOULDBLOCK, it is still not our turn; or what else the kernel says. Not to be taken
/// twice on one open file. Thread-safe.
int take_file_turn(int fd, uint64_t patience_ms);

/// Gives it back, wherever else the descriptor was copied to by a fork. Thread-safe.
void end_file_turn(int fd);

}  // namespace ringbolt::base
