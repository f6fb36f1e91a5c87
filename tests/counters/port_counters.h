// The counters of all ports of the test's runtime folder together, and what an action has moved.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace ringbolt::counters {

/// By name; "link_downed" is in both folders and the same.
using Counts = std::map<std::string, uint64_t>;

/// Sums over every file of counters there is. Throws std::runtime_error when one can't be read.
Counts read_ports();

/// What has grown since `before`, without what has not moved; what has fallen fails the test.
Counts grown_since(const Counts& before);

/// Names and numbers, for messages and comparison.
std::string text_of(const Counts& counts);

}  // namespace ringbolt::counters
