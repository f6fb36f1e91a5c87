#pragma once

#include <cstdint>
#include <memory>

#include "device/queue_pair_core.h"
#include "device/send_request.h"
#include "shuffle/shuffle.h"

namespace ringbolt::device {

/// The places of a queue pair's decisions: its sends, and its receives.
inline uint64_t place_of_sends(uint32_t number) { return 2 * uint64_t{number}; }
inline uint64_t place_of_receives(uint32_t number) { return 2 * uint64_t{number} + 1; }

/// What RINGBOLT_SHUFFLE does to the requests of one send queue: pure decisions, which SendQuirks carries out. Under
/// the lock for sending.
class SendShuffle {
 public:
  /// What happens to a request.
  struct Course {
    shuffle::Parts parts;           ///< in which it is executed, one after the other
    uint64_t hold_ns = 0;           ///< before the first part is
    uint64_t between_ns = 0;        ///< between the first and the second one
    uint64_t late_ns = 0;           ///< between its end and its completion
    bool is_copied = false;         ///< its bytes are those of when it was posted
    bool meets_receives = false;    ///< it meets the peer's receives at once
    bool is_whole_at_last = false;  ///< its last part is all of it: the receiver is told of that many bytes
  };

  /// Null where none is wanted. Throws std::bad_alloc.
  static std::unique_ptr<SendShuffle> create(const QueuePairCore& core);
  explicit SendShuffle(const QueuePairCore& core) : core_(core), shuffle_(*core.faults.shuffle()) {}

  /// Of the next request, which is about to be appended.
  Course course_of(const SendRequest& request, bool may_part);

 private:
  const QueuePairCore& core_;
  const shuffle::Shuffle& shuffle_;
  uint64_t posted_ = 0;         ///< ever
  bool has_open_read_ = false;  ///< or an atomic, with the number below
  uint32_t last_read_ = 0;
};

}  // namespace ringbolt::device
