#pragma once

#include <cstddef>

namespace ringbolt::base {

// A receive that is completed without a copy: what ringbolt_receive_in_place() of our verbs library and its callers
// agree upon.

/// Set in ibv_wc::wc_flags: the receive's memory holds an InPlace instead of the message. Not a flag of the verbs.
inline constexpr unsigned kReceivedInPlace = 1U << 30U;

/// Where the message lies: in the sender's registered memory, as this process sees it. It is only read, and stays as
/// it is for as long as the sender leaves it so, which the two programs must settle between themselves: the sender's
/// completion does not tell.
struct InPlace {
  const std::byte* data = nullptr;
};

}  // namespace ringbolt::base
