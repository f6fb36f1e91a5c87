#pragma once

namespace ringbolt::tools::verify {

/// From now on SIGINT and SIGTERM ask the run to end with the summary so far; a second one ends the process.
void catch_stop();
/// Whether it was asked to. Thread-safe.
bool is_stopped();
/// Asks for it from within: the other end was interrupted.
void stop();

}  // namespace ringbolt::tools::verify
