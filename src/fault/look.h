#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fault/rule.h"

/// Faults of what devices look like: names and GID tables. They take effect when a program looks the first time. All
/// pure and thread-safe.
namespace ringbolt::fault {

/// The order that `size` entries of the port's GID table have: which entry is at each index. Empty: the table is.
std::vector<size_t> gid_order(const Plan& plan, const Place& place, size_t size);

/// The names that the ports of a machine have, of those that `places` have by themselves. The ports that a rule is for
/// exchange theirs; an only one gets another number.
std::vector<std::string> device_names(const Plan& plan, const std::vector<Place>& places);

}  // namespace ringbolt::fault
