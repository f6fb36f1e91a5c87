#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_writer.h"
#include "base/parsed.h"

namespace ringbolt::membership {

/// A process that takes part: random, never 0. One that ends and begins anew is another member.
using MemberId = uint64_t;
/// A machine, or an emulated node of one: its members have the same ports.
using NodeId = uint64_t;
/// An IPv6 address, or an IPv4 address mapped into one.
using Ip = std::array<uint8_t, 16>;

inline constexpr size_t kMostAddresses = 32;
inline constexpr size_t kMostNameBytes = 128;
inline constexpr size_t kMostMembers = 1024;
// An announcement stays below what a frame may carry (bootstrap/frame.h).
inline constexpr size_t kMostDetailBytes = 40'000;

/// Where a member can be called.
struct Contact {
  MemberId member = 0;
  uint64_t machine = 0;  ///< equal ones share their loopback addresses: one kernel, one network namespace
  uint16_t port = 0;     ///< TCP
  std::vector<Ip> addresses = {};
  friend bool operator==(const Contact&, const Contact&) = default;
};

/// What a member says of itself to all others. Layout: docs/formats/membership.md. `version` wraps around: newer is
/// what is less than 2^31 ahead.
struct Announcement {
  Contact contact;
  uint32_t version = 0;  ///< the greater is newer
  NodeId node = 0;
  std::string name;                     ///< "spark-2 (pid 4711)", for messages
  std::vector<MemberId> adjacent = {};  ///< whom it hears itself
  std::vector<std::byte> details = {};  ///< of the layer above
  friend bool operator==(const Announcement&, const Announcement&) = default;
};

void emit(const Contact& contact, base::ByteWriter& writer);
/// What is missing reads as 0: ask the reader whether it is sound.
Contact parse_contact(base::ByteReader& reader);

/// Too long a name, and too many of a list, are cut. Details of more than kMostDetailBytes are written, and refused
/// by all that read them.
std::vector<std::byte> emit(const Announcement& announcement);
/// Any bytes are safe. Pure.
base::Parsed<Announcement> parse_announcement(std::span<const std::byte> bytes);

}  // namespace ringbolt::membership
