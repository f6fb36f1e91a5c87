#pragma once

#include <cstdint>
#include <string>

#include "collective/element.h"
#include "group/asked.h"

// What can be wrong with a call's arguments by themselves, before other ranks come into it.
namespace ringbolt::group {

/// The most that all shares of a call may have together: what a program can address.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 47;

/// Bytes of so many elements; more than kMostBytes if they are more than can be told.
/// Never wraps: `count` is cut first, and an element has a few bytes. Pure, as the others.
uint64_t bytes_of(uint64_t count, uint32_t element_bytes);

/// What is wrong, in words that name the argument; empty if nothing.
/// `asked` may hold any numbers: nothing of it is looked up before it is known to be in range. `rank`: of the group.
/// Buffers are not touched; a null one is right where it has no bytes.
std::string objection(const Asked& asked, uint32_t rank);
/// Likewise, of a message between two ranks.
std::string objection(const void* data, uint64_t bytes, collective::Type type);

}  // namespace ringbolt::group
