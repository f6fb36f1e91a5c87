#pragma once

#include <cstddef>
#include <cstdint>

namespace ringbolt::base {

// A receive that is completed without a copy: what ringbolt_receive_in_place() of our verbs library and its callers
// agree upon.

/// Set in ibv_send_wr::send_flags: the sender leaves the bytes as they are until the receiver has said, in its own
/// way, that it is done with them; no completion means that. Without it a message is copied. Not a flag of the verbs:
/// only for our library.
inline constexpr unsigned kStaysInPlace = 1U << 30U;

/// Set in ibv_wc::wc_flags: the receive's memory holds an InPlace instead of the message. Not a flag of the verbs.
inline constexpr unsigned kReceivedInPlace = 1U << 30U;

/// Where the message lies: in the sender's registered memory, as this process sees it. It is only read, and stays as
/// it is until the receiver has told the sender that it is done. Behind this in the receive's memory are the message's
/// first kHeadBytes, or all of a shorter one, as they were when it came: a sender that does not hear of its having come
/// may write another header there to send it again, and write there what it likes once a repetition has come.
struct InPlace {
  static constexpr uint32_t kHeadBytes = 120;

  const std::byte* data = nullptr;
};

}  // namespace ringbolt::base
