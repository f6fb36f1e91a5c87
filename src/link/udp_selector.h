#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ringbolt::link {

/// A datagram that asks which socket is at a place of the kernel's order: its first four bytes, as a big-endian number.
/// 0x52 is an opcode that neither RC, UC, UD nor our own packets have. The second four bytes are the place.
inline constexpr uint32_t kUdpProbeMagic = 0x5242'7072;

/// A place and the slot that it serves.
struct UdpChoice {
  uint32_t slot = 0;
  uint32_t place = 0;
};

/// The classic BPF program that a group of sockets selects by: the place of DestQP's slot; for queue pair 1 and slots
/// that nobody has, any of `socket_count`, another one each time. Where a slot is there twice, the later choice holds.
std::vector<sock_filter> udp_selector(std::span<const UdpChoice> choices, uint32_t socket_count, uint32_t slot_shift);

/// Makes `program` the one by which the group of `socket` selects, for all its members. 0 or an errno.
int attach_udp_selector(int socket, std::span<const sock_filter> program);

}  // namespace ringbolt::link
