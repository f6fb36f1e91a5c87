#include "link/udp_selector.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/assert.h"

namespace ringbolt::link {
namespace {

// Offsets into the UDP payload: the BTH.
constexpr uint32_t kFirstWord = 0;
constexpr uint32_t kDestQpWord = 4;

sock_filter load_word(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter compute(uint16_t operation, uint32_t with) {
  return BPF_STMT(static_cast<uint16_t>(BPF_ALU | BPF_K | operation), with);
}
/// Skips `skipped` instructions unless the accumulator is `value`.
sock_filter unless_equal(uint32_t value, uint8_t skipped) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
}
sock_filter answer(uint32_t place) { return BPF_STMT(BPF_RET | BPF_K, place); }
sock_filter answer_accumulator() { return BPF_STMT(BPF_RET | BPF_A, 0); }

}  // namespace

std::vector<sock_filter> udp_selector(std::span<const UdpChoice> choices, uint32_t socket_count, uint32_t slot_shift) {
  RINGBOLT_ASSERT(socket_count > 0);
  const sock_filter load_random = load_word(static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM));
  const sock_filter into_range = compute(BPF_MOD, socket_count);
  std::vector<sock_filter> program{load_word(kFirstWord), unless_equal(kUdpProbeMagic, 2), load_word(kDestQpWord),
                                   answer_accumulator()};
  program.insert(program.end(), {load_word(kDestQpWord), compute(BPF_AND, 0xffffffU), unless_equal(1, 3), load_random,
                                 into_range, answer_accumulator(), compute(BPF_RSH, slot_shift)});
  std::set<uint32_t> seen;
  for (size_t i = choices.size(); i-- > 0;) {
    if (seen.insert(choices[i].slot).second) {
      program.insert(program.end(), {unless_equal(choices[i].slot, 1), answer(choices[i].place)});
    }
  }
  program.insert(program.end(), {load_random, into_range, answer_accumulator()});
  return program;
}

int attach_udp_selector(int socket, std::span<const sock_filter> program) {
  sock_fprog description{};
  description.len = static_cast<unsigned short>(program.size());
  description.filter = const_cast<sock_filter*>(program.data());
  return setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &description, sizeof description) == 0 ? 0 : errno;
}

}  // namespace ringbolt::link
