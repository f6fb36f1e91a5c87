#pragma once

namespace ringbolt::tools {

/// From now on SIGINT and SIGTERM ask long work to end with what it has so far; a second one ends the process.
void catch_stop();
/// Whether it was asked to, by a signal or stop(). Thread-safe.
bool is_stopped();
/// Asks for it from within: the other end was interrupted.
void stop();
/// What the command answers: 128 and the signal that asked; `answer` if none has.
int answer_unless_stopped(int answer);

}  // namespace ringbolt::tools
