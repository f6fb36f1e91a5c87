// Time limits of the tests: every wait has one, and slow builds (sanitizers) stretch them all.
#pragma once

#include <chrono>
#include <thread>

namespace ringbolt::conformance {

/// The factor on every time limit: RINGBOLT_TEST_TIME_SCALE, else 1. Thread-safe.
double time_scale();

/// A moment by which something must have happened. Thread-safe once built.
class Deadline {
 public:
  /// Now plus `limit`, stretched by time_scale().
  explicit Deadline(std::chrono::milliseconds limit = std::chrono::seconds(20));

  bool has_passed() const;
  /// What is left, at least 0.
  int remaining_ms() const;

 private:
  std::chrono::steady_clock::time_point at_;
};

/// Asks `holds` again and again until it is true or the deadline passes; returns its last answer. What takes long waits
/// for other processes, which may need this processor.
template <typename Predicate>
bool wait_until(Predicate holds, const Deadline& deadline = Deadline{}) {
  constexpr int kBusyTurns = 1000;
  for (int turn = 0; !holds(); ++turn) {
    if (deadline.has_passed()) {
      return holds();
    }
    if (turn < kBusyTurns) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

}  // namespace ringbolt::conformance
