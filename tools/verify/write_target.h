#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/blocks.h"
#include "verify/context.h"
#include "verify/rig.h"

namespace ringbolt::tools::verify {

/// The end that is written to: knows what its whole memory should hold after each round, and compares every byte.
/// Not thread-safe.
class WriteTarget {
 public:
  WriteTarget(const Context& context, const Rig& rig);

  /// Takes what was written with an immediate, and what should not have come at all. True if there was something.
  bool poll();
  /// After the initiator's completions of a round: `firsts`, `counts` of blocks, how many with immediate, of each queue
  /// pair. Waits a moment where a completion proves nothing. Returns false if nothing of it has arrived.
  bool check_round(const std::vector<uint64_t>& firsts, const std::vector<uint64_t>& counts,
                   const std::vector<uint64_t>& immediates);
  void judge_loss();

  uint64_t blocks() const { return blocks_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t lost() const { return lost_; }
  std::string where() const;

 private:
  void await_immediates(const std::vector<uint64_t>& immediates);
  bool is_as_planned(uint32_t queue_pair) const;
  bool judge_nowhere(uint64_t blocks);
  void explain(uint32_t queue_pair, const std::vector<Block>& blocks);

  const Context& context_;
  const Rig& rig_;
  uint64_t area_bytes_;
  uint64_t seed_;
  std::vector<std::vector<std::byte>> shadows_;  // what the areas should hold
  std::vector<std::vector<std::byte>> before_;   // what they held
  std::vector<uint64_t> immediates_;             // come, of each queue pair
  uint64_t blocks_ = 0;
  uint64_t bytes_ = 0;
  uint64_t lost_ = 0;
  uint64_t nowhere_ = 0;  // of the round
  std::vector<std::string> nowhere_texts_;
  uint64_t as_messages_ = 0;
  uint64_t all_ = 0;
};

/// Every fourth block, and the last of a round, is written with an immediate, if the device has such.
bool has_immediate(const Block& block, bool is_last);

}  // namespace ringbolt::tools::verify
