#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fault/kind.h"

/// Faults of a cable, chosen by seed: pure decisions, without clock or I/O. docs/faults.md is the page for users.
namespace ringbolt::fault {

/// As the port sees it.
enum class Direction : uint8_t { send, receive };

/// A port that frames pass through.
struct Place {
  std::optional<uint32_t> node;            ///< none outside clusters
  std::optional<uint32_t> cable;           ///< its number in the cluster
  std::string port;                        ///< name of the device
  std::optional<uint32_t> peer_node = {};  ///< at the other end of the cable
  friend bool operator==(const Place&, const Place&) = default;
};

/// One line of a plan. Frames (or calls, messages, completions) and time count from when the rule took effect at a
/// port, from 0.
struct Rule {
  // Nine digits of a chance, as read_chance() takes them; in 32 bits. The delays below are in nanoseconds: 10 s for
  // frames and messages, an hour for calls.
  static constexpr uint32_t kCertain = 1'000'000'000;
  static constexpr uint64_t kMaxDelayNs = 10'000'000'000;
  static constexpr uint64_t kMaxBlockNs = 3'600'000'000'000;
  static constexpr uint32_t kMaxBits = 16;

  Kind kind = Kind::loss;
  uint32_t chance = kCertain;  ///< of kCertain, for each frame
  uint64_t seed = 1;

  // How strong it is; which kind has which: plan_words.cpp.
  uint64_t overtakers = 3;         ///< so many frames go first
  uint64_t within_ns = 1'000'000;  ///< but it waits no longer than this
  uint64_t bits = 1;               ///< how many are turned
  uint64_t delay_ns = 0;           ///< how much later, or how long; of a pulled cable 0: for good
  uint64_t jitter_ns = 0;          ///< up to this more or less, evenly
  uint64_t rate_mbps = 0;          ///< 0: as fast as it goes
  uint64_t window_frames = 0;      ///< frames of 4 KiB under way at most; 0: any number
  uint64_t status = 0;             ///< as enum ibv_wc_status has it
  uint64_t left = 0;               ///< so many objects (or bytes) are to be had
  uint64_t after_ns = 0;           ///< idle time before it begins
  uint64_t every_ns = 0;           ///< between two ticks, or from one beginning to the next
  uint64_t index = 1;              ///< of an entry of the GID table
  std::optional<uint64_t> other_cable;
  std::optional<Object> object;
  std::optional<Unplug> unplug;
  std::optional<Call> call;
  std::optional<uint32_t> queue_pair;  ///< the so many'th that the process made at the port, from 0
  int error = 0;                       ///< of this system; 0: what the device usually says

  std::optional<uint32_t> node;
  std::optional<uint32_t> cable;
  std::string port;  ///< empty: any
  std::optional<Direction> direction;
  uint64_t first_frame = 0;
  uint64_t last_frame = UINT64_MAX;
  uint64_t from_ns = 0;
  uint64_t until_ns = UINT64_MAX;

  /// Whether frames of that port and direction may suffer it. Of a frozen machine, and of crossed or pulled cables,
  /// both ends do. A rule for a node or cable never applies to a place outside clusters, which has none.
  bool applies_to(const Place& place, Direction way) const {
    const bool is_of_both_ends = kind == Kind::frozen || kind == Kind::cross_cables || kind == Kind::unplug;
    const bool is_node = !node || node == place.node || (is_of_both_ends && node == place.peer_node);
    const bool is_cable = !cable || cable == place.cable || (other_cable && other_cable == place.cable);
    return is_node && is_cable && (port.empty() || port == place.port) && (!direction || *direction == way);
  }
  friend bool operator==(const Rule&, const Rule&) = default;
};

/// All faults that are in effect. A value. 256 rules: each is looked at for each frame of each port that it applies
/// to.
struct Plan {
  static constexpr size_t kMaxRules = 256;
  std::vector<Rule> rules;
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace ringbolt::fault
