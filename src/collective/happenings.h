#pragma once

#include <cstdint>
#include <vector>

namespace ringbolt::collective {

/// What happened after what by what a schedule says, not by when it came (Lamport 1978, "Time, clocks, and the ordering
/// of events in a distributed system"). Events are numbered from 0, each after all those that it waits for; who is
/// asked goes back along what is waited for. Not thread-safe.
/// In memory about as many words as events and what they wait for.
class Happenings {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t size() const { return static_cast<uint32_t>(first_after_.size()); }
  /// A new event; its number. It waits for nothing yet.
  uint32_t add();
  /// The newest event waits for an earlier one, too; kNone is nothing.
  void wait_for(uint32_t earlier);

  /// Whether `second` waits for `first`, be it over others.
  /// Events that are known: below size().
  bool is_before(uint32_t first, uint32_t second);
  /// `last`, and all that they wait for, each once.
  std::vector<uint32_t> up_to(const std::vector<uint32_t>& last);

 private:
  template <class OnEvent>
  void visit(const std::vector<uint32_t>& last, uint32_t from, const OnEvent& on_event);

  std::vector<uint32_t> first_after_;  // of every event, in after_
  std::vector<uint32_t> after_;
  std::vector<uint32_t> visited_;  // in which round
  uint32_t round_ = 0;
  std::vector<uint32_t> waiting_;  // of the visit
};

}  // namespace ringbolt::collective
