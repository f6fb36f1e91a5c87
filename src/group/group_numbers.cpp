#include "group/group_numbers.h"

#include <algorithm>

namespace ringbolt::group {

bool GroupNumbers::is_free(uint16_t number, const std::vector<bool>& is_under_way) const {
  return number < kFirstShrunkGroup && (states_[number] == State::fresh || states_[number] == State::over) &&
         !is_retired_[number] && !is_under_way[number] && !is_under_way[number | kMessageGroup];
}

std::vector<bool> GroupNumbers::free_for_split(const std::vector<bool>& is_under_way) const {
  std::vector<bool> free(kFirstShrunkGroup);
  for (uint16_t number = 0; number < kFirstShrunkGroup; ++number) {
    free[number] = is_free(number, is_under_way);
  }
  return free;
}

bool GroupNumbers::reserve(std::span<const uint16_t> numbers, const std::vector<bool>& is_under_way) {
  if (!std::ranges::all_of(numbers, [&](uint16_t number) { return is_free(number, is_under_way); })) {
    return false;
  }
  for (const uint16_t number : numbers) {
    states_[number] = State::kept;
    next_split_ = std::max<uint16_t>(next_split_, static_cast<uint16_t>(number + 1));
  }
  return true;
}

void GroupNumbers::unreserve(uint16_t number) {
  if (states_[number] == State::kept) {
    states_[number] = State::over;
  }
}

bool GroupNumbers::may_make(uint16_t number) const { return may_come(number); }

void GroupNumbers::make(uint16_t number) {
  states_[number] = State::made;
  uint16_t& next = number < kFirstShrunkGroup ? next_split_ : next_shrunk_;
  next = std::max<uint16_t>(next, static_cast<uint16_t>(number + 1));
}

void GroupNumbers::end(uint16_t number) { states_[number] = State::over; }

}  // namespace ringbolt::group
