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

/// Set in ibv_wc::wc_flags: the completion says where the message lies (place_in()), and the receive's memory holds
/// only its first kHeadBytes, or all of a shorter one, as they were when it came: a sender that does not hear of its
/// having come may write another header there to send it again, and write there what it likes once a repetition has
/// come. Not a flag of the verbs: it means this only on a queue pair for which ringbolt_receive_in_place() has returned
/// 0.
inline constexpr unsigned kReceivedInPlace = 1U << 30U;
inline constexpr uint32_t kHeadBytes = 120;

/// Where the message of such a completion lies: in the sender's registered memory, as this process sees it. It is only
/// read, and stays as it is until the receiver has told the sender that it is done. The address stands in two fields of
/// the completion that such a message does not need, where no peer writes: bytes that were received are never one.
template <class Completion>
const std::byte* place_in(const Completion& completion) {
  return reinterpret_cast<const std::byte*>(uint64_t{completion.vendor_err} << 32U | uint64_t{completion.imm_data});
}
template <class Completion>
void put_place(Completion& completion, const std::byte* data) {
  const auto address = reinterpret_cast<uint64_t>(data);
  completion.vendor_err = static_cast<uint32_t>(address >> 32U);
  completion.imm_data = static_cast<uint32_t>(address);
}

}  // namespace ringbolt::base
