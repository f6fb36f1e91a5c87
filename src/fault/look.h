#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fault/rule.h"

/// Faults of what devices look like: names and GID tables. They take effect when a program looks the first time. All
/// pure and thread-safe.
namespace ringbolt::fault {

/// The order that `size` entries of the port's GID table have: which entry is at each index. Empty: the table is. A
/// permutation of 0 to `size` - 1. Of several rules each works on what those before it left.
std::vector<size_t> gid_order(const Plan& plan, const Place& place, size_t size);

/// The names that the ports of a machine have, of those that `places` have by themselves. The ports that a rule is for
/// exchange theirs; an only one gets another number. As many names as places, in their order. The new number of an
/// only port is not compared with the other ports' names.
std::vector<std::string> device_names(const Plan& plan, const std::vector<Place>& places);

}  // namespace ringbolt::fault
