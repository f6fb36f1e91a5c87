#pragma once

#include <cstdint>
#include <string>

namespace ringbolt::sim {

struct Outcome {
  std::string complaint;    ///< empty: all promises were kept
  std::string description;  ///< what the seed stands for
  bool is_unlucky = false;  ///< the network destroyed every retry: RETRY_EXC is right, and must be rare
  uint64_t packets = 0;
  uint64_t virtual_ns = 0;
};

/// Two RC ends with random work and settings on a network with random faults, all chosen by the seed. Checks that every
/// operation has its effect exactly once, in order, with the right data and nothing else; that all ends, if the
/// network lets one packet in a while pass; and otherwise that it ends in the right error at the right time.
Outcome run_rc(uint64_t seed, bool is_tracing);

/// UC on such a network: messages arrive whole or not at all, in order, at most once.
Outcome run_uc(uint64_t seed, bool is_tracing);

/// RC with an attacker who forges packets between the true ones. Without knowing the packet numbers he changes nothing;
/// with them he cannot make the engines leave their bounds (they assert) or touch memory that the keys do not allow;
/// and where both ends seal what they send he changes nothing with them either, nor do the greetings that he makes up.
Outcome run_hostile(uint64_t seed, bool is_tracing);

}  // namespace ringbolt::sim
