#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/parsed.h"
#include "bringup/gid.h"

namespace ringbolt::bringup {

/// What a port can do, found out by trying. All zeros: it can't be used.
struct Capabilities {
  bool has_rc = false;
  bool has_uc = false;
  /// Whether there is any type of queue pair that is connected.
  bool can_connect() const { return has_rc || has_uc; }
  /// Depth is counted in frames of 4 KiB, and a SEND and its RECV must cover equally many: devices with UC alone.
  bool counts_frames = false;
  bool has_channels = false;
  uint32_t most_queue_pairs = 0;    ///< of the device, all programs together
  uint32_t most_regions = 0;        ///< likewise
  uint32_t most_work_requests = 0;  ///< of a queue; frames where they are counted
  uint32_t most_sge = 0;
  uint32_t most_message_bytes = 0;
  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

struct CardGid {
  uint8_t index = 0;
  Gid gid = {};
  GidType type = GidType::kUnknown;
  friend bool operator==(const CardGid&, const CardGid&) = default;
};

/// What a rank tells all others of one of its ports. `mtu_bytes` is 256, 512, 1024, 2048 or 4096; `rate_mbps` in 10^6
/// bits a second.
struct PortCard {
  std::string device;
  uint8_t port = 1;
  uint16_t lid = 0;
  uint32_t mtu_bytes = 4096;
  uint32_t rate_mbps = 0;          ///< 0: unknown
  uint8_t gid_index = 0;           ///< which of `gids` to use where nothing speaks for another
  std::vector<CardGid> gids = {};  ///< all that can be used, by index
  Capabilities capabilities = {};

  /// The one at gid_index. Asserts that it is there.
  const CardGid& chosen() const;
  const Gid& gid() const { return chosen().gid; }
  friend bool operator==(const PortCard&, const PortCard&) = default;
};

// Bounds on what another rank may make this one hold. 63: IBV_SYSFS_NAME_MAX less its end.
inline constexpr size_t kMostCards = 64;
inline constexpr size_t kMostCardGids = 64;
inline constexpr size_t kMostDeviceName = 63;

/// Cards as bytes: docs/formats/port-card.md. Asserts what parse_cards() refuses. Pure.
std::vector<std::byte> emit_cards(std::span<const PortCard> cards);

/// Refuses what is cut short, too long, of another version, changed anywhere, or means no possible port. Pure.
base::Parsed<std::vector<PortCard>> parse_cards(std::span<const std::byte> bytes);

}  // namespace ringbolt::bringup
