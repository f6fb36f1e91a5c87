#include "wire/selective_ack.h"

#include <cerrno>

#include "wire/bytes.h"

// Hot path: no allocation, lock, system call or exception.
namespace ringbolt::wire {

// Bit i of the bitmap is bit i % 8 of byte i / 8: little-endian words, so the bytes of a word are turned around.

base::Result<SelectiveAck> parse_selective_ack(std::span<const std::byte> payload) {
  if (payload.size() != kSelectiveAckBytes) {
    return base::fail(EBADMSG);
  }
  SelectiveAck ack;
  for (size_t i = 0; i < ack.words.size(); ++i) {
    ack.words[i] = __builtin_bswap64(get_be<uint64_t>(payload, 8 * i));
  }
  return ack;
}

void emit(const SelectiveAck& ack, std::span<std::byte, kSelectiveAckBytes> out) {
  for (size_t i = 0; i < ack.words.size(); ++i) {
    put_be(out, 8 * i, __builtin_bswap64(ack.words[i]));
  }
}

}  // namespace ringbolt::wire
