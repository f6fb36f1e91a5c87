#include "collective/happenings.h"

#include <cstddef>

namespace ringbolt::collective {

uint32_t Happenings::add() {
  first_after_.push_back(static_cast<uint32_t>(after_.size()));
  visited_.push_back(0);
  return size() - 1;
}

void Happenings::wait_for(uint32_t earlier) {
  if (earlier != kNone) {
    after_.push_back(earlier);
  }
}

/// Calls on_event for each of `last` and all that they wait for, none before event `from`, until it returns true.
template <class OnEvent>
void Happenings::visit(const std::vector<uint32_t>& last, uint32_t from, const OnEvent& on_event) {
  ++round_;
  waiting_ = last;
  while (!waiting_.empty()) {
    const uint32_t event = waiting_.back();
    waiting_.pop_back();
    if (visited_[event] == round_) {
      continue;
    }
    visited_[event] = round_;
    if (on_event(event)) {
      return;
    }
    const size_t end = event + 1 < size() ? first_after_[event + 1] : after_.size();
    for (size_t index = first_after_[event]; index < end; ++index) {
      if (after_[index] >= from && visited_[after_[index]] != round_) {
        waiting_.push_back(after_[index]);
      }
    }
  }
}

bool Happenings::is_before(uint32_t first, uint32_t second) {
  bool is_found = false;
  visit({second}, first, [&](uint32_t event) { return is_found = event == first; });
  return is_found;
}

std::vector<uint32_t> Happenings::up_to(const std::vector<uint32_t>& last) {
  std::vector<uint32_t> events;
  visit(last, 0, [&](uint32_t event) {
    events.push_back(event);
    return false;
  });
  return events;
}

}  // namespace ringbolt::collective
