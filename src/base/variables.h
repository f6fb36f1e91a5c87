#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::base {

/// A variable of ours in the environment (docs/environment.md).
struct OwnVariable {
  std::string_view name;           ///< ends in _ where a number follows: RINGBOLT_ADDR_K
  std::string_view accepted = "";  ///< the words that it takes, separated by spaces; empty: not a choice of words
  uint64_t least = 0;              ///< of a number
  uint64_t most = 0;               ///< likewise; 0: it is none
};
/// Constants, in the order of their names.
std::span<const OwnVariable> own_variables();

/// Whether the variable of that name takes `value`; an empty one is as good as unset. Thread-safe. False as well
/// where there is no variable of that name.
bool takes(std::string_view name, std::string_view value);

/// What is odd about our variables in `environment` ("NAME=value", the last one null): values that they don't take, and
/// names that look like a slip. A line of each, without its end. Thread-safe while nobody changes the environment.
std::vector<std::string> odd_variables(const char* const* environment);

/// Says that on standard error, the first time in this process.
void say_odd_variables();

}  // namespace ringbolt::base
