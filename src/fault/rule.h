#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Faults of a cable, chosen by seed: pure decisions, without clock or I/O. docs/faults.md is the page for users.
namespace ringbolt::fault {

enum class Kind : uint8_t {
  loss,       ///< the frame is gone
  duplicate,  ///< it comes twice
  reorder,    ///< frames behind it overtake it
  corrupt,    ///< bits of it are turned, and its checksum no longer fits
  truncate,   ///< its end is missing
  delay,      ///< it comes later
  // Of verbs calls and completions, whatever carries the port.
  rtr_errno,           ///< the step to RTR is refused
  rtr_block,           ///< it takes its time
  pd_null,             ///< there is no protection domain
  completion_error,    ///< a send ends with a status
  completion_late,     ///< its completion comes later, and those behind it
  completion_missing,  ///< it never comes
};

/// What a kind befalls.
enum class Subject : uint8_t { frame, rtr, pd, completion };
constexpr Subject subject_of(Kind kind) {
  return kind <= Kind::delay       ? Subject::frame
         : kind <= Kind::rtr_block ? Subject::rtr
         : kind == Kind::pd_null   ? Subject::pd
                                   : Subject::completion;
}

/// As the port sees it.
enum class Direction : uint8_t { send, receive };

/// A port that frames pass through.
struct Place {
  std::optional<uint32_t> node;   ///< none outside clusters
  std::optional<uint32_t> cable;  ///< its number in the cluster
  std::string port;               ///< name of the device
  friend bool operator==(const Place&, const Place&) = default;
};

/// One line of a plan. Frames (or calls, completions) and time count from when the rule took effect at a port, from 0.
struct Rule {
  static constexpr uint32_t kCertain = 1'000'000'000;
  static constexpr uint32_t kMaxOvertakers = 1024;
  static constexpr uint32_t kMaxBits = 16;
  static constexpr uint64_t kMaxDelayNs = 10'000'000'000;
  static constexpr uint64_t kMaxBlockNs = 3'600'000'000'000;
  static constexpr uint32_t kMaxStatus = 23;

  Kind kind = Kind::loss;
  uint32_t chance = 0;  ///< of kCertain, for each frame
  uint64_t seed = 1;

  uint32_t overtakers = 3;         ///< reorder: so many frames go first
  uint64_t within_ns = 1'000'000;  ///< reorder: but it waits no longer than this
  uint32_t bits = 1;               ///< corrupt: how many are turned
  uint64_t delay_ns = 0;           ///< delay, rtr_block, completion_late
  uint64_t jitter_ns = 0;          ///< delay: up to this more or less, evenly
  int error = 0;                   ///< rtr_errno: of this system
  uint32_t status = 0;             ///< completion_error: as enum ibv_wc_status has it

  std::optional<uint32_t> node;
  std::optional<uint32_t> cable;
  std::string port;  ///< empty: any
  std::optional<Direction> direction;
  uint64_t first_frame = 0;
  uint64_t last_frame = UINT64_MAX;
  uint64_t from_ns = 0;
  uint64_t until_ns = UINT64_MAX;

  /// Whether frames of that port and direction may suffer it.
  bool applies_to(const Place& place, Direction way) const {
    return (!node || node == place.node) && (!cable || cable == place.cable) && (port.empty() || port == place.port) &&
           (!direction || *direction == way);
  }
  friend bool operator==(const Rule&, const Rule&) = default;
};

/// All faults that are in effect. A value.
struct Plan {
  static constexpr size_t kMaxRules = 256;
  std::vector<Rule> rules;
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace ringbolt::fault
