#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ringbolt::collective {

/// What happened after what by what a schedule says, not by when it came (Lamport 1978, "Time, clocks, and the ordering
/// of events in a distributed system"). Events are numbered from 0, each after all those that it waits for; who is
/// asked goes back along what is waited for. Not thread-safe.
class Happenings {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t size() const { return static_cast<uint32_t>(first_after_.size()); }
  /// A new event; its number. It waits for nothing yet.
  uint32_t add() {
    first_after_.push_back(static_cast<uint32_t>(after_.size()));
    visited_.push_back(0);
    return size() - 1;
  }
  /// The newest event waits for an earlier one, too; kNone is nothing.
  void wait_for(uint32_t earlier) {
    if (earlier != kNone) {
      after_.push_back(earlier);
    }
  }

  /// Whether `second` waits for `first`, be it over others.
  bool is_before(uint32_t first, uint32_t second) {
    return visit({second}, first, [&](uint32_t event) { return event == first; });
  }
  /// Calls on_event for each of `last` and all that they wait for, none before event `from`, until it returns true;
  /// whether it did.
  template <class OnEvent>
  bool visit(std::vector<uint32_t> last, uint32_t from, const OnEvent& on_event) {
    ++round_;
    for (std::vector<uint32_t> waiting = std::move(last); !waiting.empty();) {
      const uint32_t event = waiting.back();
      waiting.pop_back();
      if (visited_[event] == round_) {
        continue;
      }
      visited_[event] = round_;
      if (on_event(event)) {
        return true;
      }
      const size_t end = event + 1 < size() ? first_after_[event + 1] : after_.size();
      for (size_t index = first_after_[event]; index < end; ++index) {
        if (after_[index] >= from && visited_[after_[index]] != round_) {
          waiting.push_back(after_[index]);
        }
      }
    }
    return false;
  }

 private:
  std::vector<uint32_t> first_after_;  // of every event, in after_
  std::vector<uint32_t> after_;
  std::vector<uint32_t> visited_;  // in which round
  uint32_t round_ = 0;
};

}  // namespace ringbolt::collective
