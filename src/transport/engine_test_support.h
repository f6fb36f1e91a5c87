#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/host.h"
#include "transport/operation.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/selective_ack.h"
#include "wire/syndrome.h"

/// What the unit tests of the engines share: packets made by hand, and a host that writes down what is asked of it.
namespace ringbolt::transport::test {

inline constexpr uint32_t kMtu = 256;
inline constexpr uint32_t kKey = 0x77;
inline constexpr uint64_t kAddress = 0x1000;
inline constexpr uint32_t kRegionBytes = 64 * kMtu;

/// `length` bytes, each telling its place and `salt`.
inline std::vector<std::byte> bytes(size_t length, uint8_t salt = 1) {
  std::vector<std::byte> made(length);
  for (size_t i = 0; i < length; ++i) {
    made[i] = static_cast<std::byte>(i * 7 + i / 256 + salt);
  }
  return made;
}

struct Packet {
  wire::Headers headers;
  std::vector<std::byte> payload;
  wire::PacketView view() const { return {headers, payload}; }
};

inline Packet request(uint8_t opcode, uint32_t psn, size_t length = 0, uint8_t salt = 1) {
  Packet packet;
  packet.headers.bth.opcode = opcode;
  packet.headers.bth.psn = psn;
  packet.headers.bth.wants_ack = wire::ends_message(opcode);
  packet.headers.reth = {kAddress, kKey, static_cast<uint32_t>(length)};
  packet.headers.atomic = {kAddress, kKey, 1, 0};
  packet.payload = bytes(length, salt);
  return packet;
}

inline Packet acknowledge(uint32_t psn, uint8_t syndrome = wire::kAckUnlimited) {
  Packet packet;
  packet.headers.bth.opcode = wire::kRcAcknowledge;
  packet.headers.bth.psn = psn;
  packet.headers.aeth.syndrome = syndrome;
  return packet;
}

/// `missing` is the first one that is missing; `held` are the ones that came after it.
inline Packet selective(uint32_t missing, const std::vector<uint32_t>& held) {
  wire::SelectiveAck ack;
  for (const uint32_t psn : held) {
    ack.set((psn - missing - 1) & wire::kPsnMask);
  }
  Packet packet;
  packet.headers.bth.opcode = wire::kSelectiveAck;
  packet.headers.bth.psn = missing;
  packet.headers.aeth.syndrome = wire::kNakSequence;
  packet.payload.resize(wire::kSelectiveAckBytes);
  wire::emit(ack, std::span<std::byte, wire::kSelectiveAckBytes>(packet.payload));
  return packet;
}

inline Packet answer(uint8_t opcode, uint32_t psn, size_t length, uint8_t salt = 1) {
  Packet packet = request(opcode, psn, length, salt);
  packet.headers.aeth.syndrome = wire::kAckUnlimited;
  return packet;
}

/// Writes down what the engines ask for. The region allows everything unless told otherwise.
struct Host {
  uint32_t receives = 8;
  uint32_t receive_bytes = 64 * kMtu;
  bool allows = true;
  bool allows_invalidation = true;
  bool places = true;
  std::vector<std::byte> region = std::vector<std::byte>(kRegionBytes);
  std::vector<std::byte> message;
  std::vector<Received> received;
  std::vector<std::byte> read = std::vector<std::byte>(kRegionBytes);
  std::vector<uint64_t> found;
  uint64_t counter = 0;
  uint32_t writes = 0;
  std::optional<ResponderFailure> failure;

  bool take_receive() {
    message.clear();
    const bool is_posted = receives != 0;
    receives -= is_posted ? 1U : 0U;
    return is_posted;
  }
  Placed place_receive(uint32_t offset, std::span<const std::byte> data) {
    if (offset + data.size() > receive_bytes) {
      return Placed::too_long;
    }
    message.resize(offset);
    message.insert(message.end(), data.begin(), data.end());
    return Placed::ok;
  }
  void complete_receive(const Received& what) { received.push_back(what); }
  bool invalidate(uint32_t) const { return allows_invalidation; }
  bool may_access(uint64_t address, uint32_t length, uint32_t key, Access) const {
    return allows && key == kKey && address >= kAddress && address - kAddress + length <= region.size();
  }
  bool write(uint64_t address, uint32_t key, std::span<const std::byte> data) {
    if (!may_access(address, static_cast<uint32_t>(data.size()), key, Access::write)) {
      return false;
    }
    ++writes;
    std::copy(data.begin(), data.end(), region.begin() + static_cast<ptrdiff_t>(address - kAddress));
    return true;
  }
  std::optional<uint64_t> compare_swap(uint64_t, uint32_t, uint64_t compare, uint64_t swap) {
    const uint64_t before = counter;
    counter = before == compare ? swap : before;
    return before;
  }
  std::optional<uint64_t> fetch_add(uint64_t, uint32_t, uint64_t add) {
    counter += add;
    return counter - add;
  }
  void fail(ResponderFailure why) { failure = why; }
  bool place_read(uint32_t, uint32_t offset, std::span<const std::byte> data) {
    std::copy(data.begin(), data.end(), read.begin() + static_cast<ptrdiff_t>(offset));
    return places;
  }
  bool place_atomic(uint32_t, uint64_t value) {
    found.push_back(value);
    return places;
  }
};

}  // namespace ringbolt::transport::test
