#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pair/device.h"
#include "pair/peer.h"
#include "verify/finding.h"
#include "verify/step.h"
#include "verify/watch.h"

namespace ringbolt::tools::verify {

/// What every mode works with. All of it outlives the step.
struct Context {
  const pair::Device& device;
  const Step& step;
  const pair::PortChoice& choice;
  pair::Peer& peer;
  Watch& watch;
  Tally& tally;
  std::vector<std::string>& notes;  ///< what could not be checked, and why
  bool is_client;

  /// Whether this end posts, where one end does.
  bool initiates() const { return is_client != step.is_reversed; }
};

/// What one end knows of a step.
struct Outcome {
  uint64_t duration_ns = 0;  ///< by who posts: first post to the acknowledgement of the last checked byte
  uint64_t messages = 0;     ///< verified here
  uint64_t bytes = 0;        ///< likewise
  uint64_t lost = 0;         ///< as many as may be
  uint64_t rounds = 0;       ///< of churn
  uint64_t slowest_ns = 0;   ///< of a round
  std::string refusal = {};  ///< the device does not do that at all: why
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome run_stream(const Context& context);
Outcome run_write(const Context& context);
Outcome run_read(const Context& context);
Outcome run_atomic(const Context& context);
Outcome run_churn(const Context& context);

}  // namespace ringbolt::tools::verify
