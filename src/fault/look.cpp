#include "fault/look.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fault/dice.h"
#include "fault/quantities.h"

namespace ringbolt::fault {
namespace {

/// "rdma_en2" with another number at its end, one that none of `names` has; a name without one gets one.
std::string with_other_number(const std::string& name, uint64_t seed, const std::vector<std::string>& names) {
  constexpr uint64_t kFurther = 10;
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  uint64_t number = read_count(name.substr(digits)).value_or(0) + 1 + seed % kFurther;
  std::string other;
  do {
    other = name.substr(0, digits) + std::to_string(number++);
  } while (std::ranges::find(names, other) != names.end());
  return other;
}

// `which` are indices into `names`, one at least.
void exchange(std::vector<std::string>& names, const std::vector<size_t>& which, uint64_t seed) {
  if (which.size() == 1) {
    names[which[0]] = with_other_number(names[which[0]], seed, names);
    return;
  }
  std::vector<std::string> turned;
  turned.reserve(which.size());
  for (const size_t one : which) {
    turned.push_back(names[one]);
  }
  // By at least one place, and never all the way around.
  std::rotate(turned.begin(), turned.begin() + 1 + static_cast<std::ptrdiff_t>(seed % (which.size() - 1)),
              turned.end());
  for (size_t i = 0; i < which.size(); ++i) {
    names[which[i]] = std::move(turned[i]);
  }
}

}  // namespace

std::vector<size_t> gid_order(const Plan& plan, const Place& place, size_t size) {
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  for (const Rule& rule : plan.rules) {
    // A look has no direction: rules for one can't name it, so that either would do.
    if (!rule.applies_to(place, Direction::send)) {
      continue;
    }
    if (rule.kind == Kind::gid_empty) {
      return {};
    }
    if (rule.kind == Kind::gid_shuffle && size > 1) {
      const std::vector<size_t> before = order;
      Dice dice(rule.seed, size);
      // Fisher and Yates' shuffle. The dice depend on seed and size alone: the table is the same at each start.
      for (size_t i = size - 1; i > 0; --i) {
        std::swap(order[i], order[dice.below(i + 1)]);
      }
      // Or the fault would be none, at this seed.
      if (order == before) {
        std::rotate(order.begin(), order.begin() + 1, order.end());
      }
    }
  }
  return order;
}

std::vector<std::string> device_names(const Plan& plan, const std::vector<Place>& places) {
  std::vector<std::string> names;
  for (const Place& place : places) {
    names.push_back(place.port);
  }
  for (const Rule& rule : plan.rules) {
    std::vector<size_t> which;
    for (size_t i = 0; i < places.size(); ++i) {
      if (rule.kind == Kind::rename_devices && rule.applies_to(places[i], Direction::send)) {
        which.push_back(i);
      }
    }
    if (!which.empty()) {
      exchange(names, which, rule.seed);
    }
  }
  return names;
}

}  // namespace ringbolt::fault
