#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pair/device.h"
#include "pair/queue_pair.h"
#include "verify/context.h"
#include "verify/stamp.h"
#include "verify/step.h"

namespace ringbolt::tools::verify {

/// What a step needs of each of its queue pairs.
struct RigShape {
  uint32_t sends = 1;       ///< under way
  uint32_t receives = 0;    ///< posted
  uint64_t area_bytes = 0;  ///< of memory that the other end reaches
  unsigned access = 0;      ///< IBV_ACCESS_REMOTE_...
};

/// Bytes of a buffer that were written and should not have been.
struct OutsideDamage {
  int64_t first = 0;  ///< offset from the buffer's begin; negative: before it
  size_t bytes = 0;
};

/// One end of a step's queue pairs, with their memory in one region. Every receive buffer lies between guards, and all
/// of it is filled with a pattern before it is posted. Made at both ends at once; then all is connected, and receives
/// are posted. Calls throw ProbeFailure. Not thread-safe.
/// Owns queue pairs, completion queues and memory; the context outlives it, and so the device.
class Rig {
 public:
  /// One cache line, as devices write: an overrun of a byte or of a line is seen.
  static constexpr size_t kGuardBytes = 64;

  /// `epoch`: of these queue pairs. `area_bytes` and the sizes are the same at both ends.
  /// Blocks for the other end as long as the peer may be awaited.
  Rig(const Context& context, const RigShape& shape, uint16_t epoch);
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig();

  const Context& context() const { return context_; }
  const Step& step() const { return context_.step; }
  uint16_t epoch() const { return epoch_; }
  /// Of a message on one of these queue pairs.
  Stamp stamp(uint32_t queue_pair, uint64_t sequence, uint32_t length) const {
    return {epoch_, static_cast<uint8_t>(queue_pair), sequence, length};
  }
  /// Of what this end sends, and of what the other does.
  uint64_t seed() const { return seed_of(step(), context_.is_client); }
  uint64_t their_seed() const { return seed_of(step(), !context_.is_client); }
  uint32_t queue_pairs() const { return static_cast<uint32_t>(queue_pairs_.size()); }
  const pair::QueuePair& queue_pair(uint32_t index) const { return queue_pairs_[index]; }
  uint32_t sends() const { return shape_.sends; }
  /// Receives that could be posted, of the queue pair with the fewest; and of the other end.
  uint32_t receives() const { return receives_; }
  uint32_t their_receives() const { return their_receives_; }
  uint32_t local_key() const { return memory_.local_key(); }
  uint32_t remote_key() const { return theirs_.remote_key; }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* receive_cq() const { return receive_cq_.get(); }
  /// "queue pair 2 (number 0x911)".
  std::string name(uint32_t queue_pair) const;

  // Spans are good until take_down(). Indices are below the shape's numbers: who calls has checked a device's.
  std::span<std::byte> send_slot(uint32_t queue_pair, uint64_t index) const;
  /// As much as a message may fill; of UD behind the route header.
  std::span<std::byte> receive_slot(uint32_t queue_pair, uint64_t index) const;
  /// Memory of this end that the other reaches; the address of the other's.
  std::span<std::byte> area(uint32_t queue_pair) const;
  uint64_t remote_area(uint32_t queue_pair) const;

  /// Fills buffer and guards with their pattern; only the first `bytes` of the message, if the rest is known to be
  /// well.
  void prepare(uint32_t queue_pair, uint64_t index, uint64_t bytes = UINT64_MAX) const;
  /// What is written of buffer and guards beyond the first `explained` bytes of the message.
  std::optional<OutsideDamage> find_outside(uint32_t queue_pair, uint64_t index, uint64_t explained) const;
  bool is_untouched(uint32_t queue_pair, uint64_t index) const { return !find_outside(queue_pair, index, 0); }

  /// Posts the receive of that slot. Throws.
  void post_receive(uint32_t queue_pair, uint64_t index) const;
  /// Fills in scatter entry and address. Returns 0, or what ibv_post_send returned, without its sign.
  [[nodiscard]] int post_send(uint32_t queue_pair, ibv_send_wr& request, std::span<std::byte> local) const;
  /// Takes completions, also failed ones.
  /// Never blocks. Throws ProbeFailure if the device refuses.
  size_t poll(ibv_cq* cq, std::span<ibv_wc> completions) const;
  /// Of an end that awaits nothing: some devices make progress only while somebody polls.
  void prod() const {
    ibv_wc completion;
    (void)poll(receive_cq(), {&completion, 1});
  }
  const char* status_text(ibv_wc_status status) const { return context_.device.verbs().wc_status_str(status); }

  /// Destroys everything: queue pairs first, from the last on if reversed. Returns what was refused, in words.
  /// A second call finds nothing to do.
  std::vector<std::string> take_down(bool is_reversed);

 private:
  void lay_out();
  void make_queues();
  bool post_first_receives();
  void connect();
  uint64_t pattern(uint32_t queue_pair, uint64_t index) const;
  std::span<std::byte> whole(uint32_t queue_pair, uint64_t index) const;
  std::span<std::byte> buffer(uint32_t queue_pair, uint64_t index) const;
  size_t header_bytes() const { return step().transport == pair::Transport::kUd ? 40 : 0; }

  const Context& context_;
  RigShape shape_;
  uint16_t epoch_;
  uint32_t receives_ = 0;
  uint32_t their_receives_ = 0;
  pair::Offer theirs_;
  /// Where the slots of a queue pair lie in the memory: as large as its own messages, which differ where frames count.
  struct Place {
    uint64_t most_bytes = 0;  // of a message
    size_t send_offset = 0;
    size_t send_stride = 0;  // from the begin of a slot to that of the next
    size_t receive_offset = 0;
    size_t receive_stride = 0;
  };
  std::vector<Place> places_;  // of each queue pair
  // Behind all slots.
  size_t area_offset_ = 0;
  size_t area_stride_ = 0;
  pair::Region memory_;
  pair::OwnedVerbs<ibv_cq> send_cq_;
  pair::OwnedVerbs<ibv_cq> receive_cq_;
  std::vector<pair::QueuePair> queue_pairs_;
};

}  // namespace ringbolt::tools::verify
