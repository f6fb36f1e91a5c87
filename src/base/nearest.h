#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ringbolt::base {

/// How many letters must be changed, added, left out or swapped with their neighbour to make one word of the other.
size_t edit_distance(std::string_view a, std::string_view b);

/// The word of `known` that `word` was probably meant to be: it begins with `word`, or a letter or two differ; empty if
/// there is none. `word` itself counts as any other. Thread-safe.
std::string nearest(std::string_view word, std::span<const std::string> known);

}  // namespace ringbolt::base
