#include "fabric/deadlock.h"

#include <algorithm>
#include <map>
#include <set>

namespace ringbolt::fabric {
namespace {

/// Channels by number, and which follow which.
struct Dependencies {
  std::vector<Channel> channels;
  std::vector<std::vector<uint32_t>> next;
  size_t n_arcs = 0;
};

Dependencies dependencies(const Routes& routes) {
  // In order, so that the same routes give the same proof.
  std::map<Channel, uint32_t> numbers;
  for (const Route& route : routes) {
    for (const Channel& channel : route) {
      numbers.emplace(channel, 0);
    }
  }
  Dependencies found;
  for (auto& [channel, number] : numbers) {
    number = static_cast<uint32_t>(found.channels.size());
    found.channels.push_back(channel);
  }
  found.next.resize(found.channels.size());
  for (const Route& route : routes) {
    for (size_t hop = 1; hop < route.size(); ++hop) {
      std::vector<uint32_t>& list = found.next[numbers.at(route[hop - 1])];
      const uint32_t number = numbers.at(route[hop]);
      if (std::ranges::find(list, number) == list.end()) {  // as short as a node has ports, times classes
        list.push_back(number);
        ++found.n_arcs;
      }
    }
  }
  return found;
}

/// Some cycle among channels that all have one of them before them.
std::vector<Channel> cycle_among(const Dependencies& all, const std::vector<bool>& is_ordered) {
  // Of each channel that is not ordered some other such channel that waits for it: there is one, or it would be
  // ordered.
  std::vector<uint32_t> before(all.channels.size());
  uint32_t at = 0;
  for (uint32_t number = 0; number < all.channels.size(); ++number) {
    if (!is_ordered[number]) {
      at = number;
      for (const uint32_t next : all.next[number]) {
        before[next] = number;
      }
    }
  }
  // Going backwards stays among them; after as many steps as there are it goes round.
  for (size_t step = 0; step < all.channels.size(); ++step) {
    at = before[at];
  }
  std::vector<Channel> cycle;
  uint32_t number = at;
  do {
    cycle.push_back(all.channels[number]);
    number = before[number];
  } while (number != at);
  std::ranges::reverse(cycle);
  return cycle;
}

}  // namespace

DeadlockReport check_deadlock(const Routes& routes) {
  const Dependencies all = dependencies(routes);
  std::vector<uint32_t> n_before(all.channels.size());
  for (const std::vector<uint32_t>& list : all.next) {
    for (const uint32_t number : list) {
      ++n_before[number];
    }
  }
  std::vector<uint32_t> ready;
  for (uint32_t number = 0; number < all.channels.size(); ++number) {
    if (n_before[number] == 0) {
      ready.push_back(number);
    }
  }
  std::vector<bool> is_ordered(all.channels.size());
  for (size_t index = 0; index < ready.size(); ++index) {
    is_ordered[ready[index]] = true;
    for (const uint32_t number : all.next[ready[index]]) {
      if (--n_before[number] == 0) {
        ready.push_back(number);
      }
    }
  }
  DeadlockReport report{all.n_arcs, {}, {}};
  if (ready.size() < all.channels.size()) {
    report.cycle = cycle_among(all, is_ordered);
    return report;
  }
  for (const uint32_t number : ready) {
    report.order.push_back(all.channels[number]);
  }
  return report;
}

bool proves_freedom(const std::vector<Channel>& order, const Routes& routes) {
  std::map<Channel, size_t> places;
  for (size_t place = 0; place < order.size(); ++place) {
    // A proof names each channel once.
    if (!places.emplace(order[place], place).second) {
      return false;
    }
  }
  for (const Route& route : routes) {
    for (size_t hop = 0; hop < route.size(); ++hop) {
      const auto here = places.find(route[hop]);
      if (here == places.end() || (hop > 0 && here->second <= places.at(route[hop - 1]))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace ringbolt::fabric
