#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "collective/schedule.h"
#include "group/call.h"
#include "ringbolt/status.h"

namespace ringbolt::group {

/// The steps of a message: of the sender from its memory into transfers, of the receiver back. `element_bytes`: not 0.
/// Both ends make the same transfers of the same length. Pure.
collective::Program message_program(bool is_send, uint64_t bytes, uint32_t element_bytes, uint32_t peer);

/// Messages of a rank to itself: whichever end comes second copies; no chunk and no schedule is needed. Under the
/// mesh's lock. Not thread-safe.
class SelfMessages {
 public:
  explicit SelfMessages(uint32_t rank) : rank_(rank) {}

  /// One end has come: if the other one is there both calls have ended when this returns. Sends and receives are
  /// numbered alike, so two of one number are a message. `data`: `bytes` bytes of the program's, until the call ends.
  void meet(bool is_send, const std::shared_ptr<Call>& call, std::byte* data, uint64_t bytes);
  /// What a call says whose deadline has passed.
  Status timed_out(const Call& call) const;
  bool is_empty() const { return ends_.empty(); }

 private:
  /// An end that waits for the other.
  struct End {
    bool is_send = false;
    std::shared_ptr<Call> call;
    std::byte* data = nullptr;
    uint64_t bytes = 0;
  };
  uint32_t rank_;
  std::map<uint32_t, End> ends_;  // by number
};

}  // namespace ringbolt::group
