#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json_text.h"
#include "pair/device.h"
#include "pair/peer.h"
#include "verify/step.h"

namespace ringbolt::tools::verify {

/// What a device can do, as far as it says so. For the other end a text.
struct Abilities {
  bool has_rc = false;  ///< it has READ contexts, and so a type of queue pair that uses them
  bool has_ud = false;  ///< it has address handles
  bool has_atomics = false;
  bool counts_frames = false;  ///< it has the shape of a Mac's: one scatter entry, and neither RC nor UD
  uint32_t most_queue_pairs = 0;
  uint32_t most_completions = 0;  ///< of a completion queue
  uint32_t most_requests = 0;     ///< of a queue
  uint32_t mtu_bytes = 0;
  uint64_t most_message_bytes = 0;
  friend bool operator==(const Abilities&, const Abilities&) = default;

  /// Of another end's: zeros would be divided by.
  bool makes_sense() const {
    return most_queue_pairs != 0 && most_completions != 0 && most_requests != 0 && mtu_bytes >= 64 &&
           most_message_bytes != 0;
  }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Abilities, has_rc, has_ud, has_atomics, counts_frames, most_queue_pairs,
                                   most_completions, most_requests, mtu_bytes, most_message_bytes)

Abilities abilities_of(const pair::Device& device);

/// What both have. Thread-safe.
Abilities common(const Abilities& one, const Abilities& other);

/// What the user wants. Unset: as fits the devices.
struct Wish {
  std::optional<Mode> mode;  ///< none: all in turns, soak
  std::optional<pair::Transport> transport;
  std::optional<Order> order;
  std::optional<uint64_t> least_bytes;
  std::optional<uint64_t> most_bytes;
  std::optional<uint64_t> count;
  std::optional<double> duration_s;
  std::optional<uint64_t> seed;
  uint32_t queue_pairs = 0;  ///< 0: 4
  uint32_t send_depth = 0;
  uint32_t receive_depth = 0;
  bool is_bidirectional = false;
  double loss_percent = 0;
};

/// "stream" or "soak": thread-safe.
const char* mode_text(const Wish& wish);

/// What of the wish can't be had on any device, in words; empty: all can. Thread-safe.
std::string objection_to(const Wish& wish);

/// What both ends must have been asked for alike.
std::vector<pair::HelloEntry> entries_of(const Wish& wish);

/// A step, or why there is none.
struct Planned {
  Step step;
  std::string refusal;  ///< empty: the step is good
};

/// One mode by the wish on two devices; by one transport, if that is given. Its epoch, seed and length are the
/// caller's. Thread-safe.
Planned plan_step(const Wish& wish, Mode mode, std::optional<pair::Transport> transport, const Abilities& both);

/// What a soak does in turns, and what it leaves out and why. `turn`: how often all of it was done; sizes differ from
/// turn to turn. Thread-safe.
/// `left_out` comes back sorted, each text once.
std::vector<Step> plan_turn(const Wish& wish, const Abilities& both, uint32_t turn, std::vector<std::string>& left_out);

}  // namespace ringbolt::tools::verify
