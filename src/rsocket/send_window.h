#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rsocket/connection_data.h"
#include "rsocket/credits.h"
#include "rsocket/immediate.h"
#include "rsocket/settings.h"
#include "rsocket/staging_ring.h"
#include "rsocket/target_table.h"
#include "rsocket/work_id.h"

// Hot path.

namespace ringbolt::rsocket {

/// What may go out now: it takes an entry of the send queue, a place in the buffer for what is not sent inline, and for
/// a message a credit and a target in the peer's memory. Counts only; it owns no memory. Not thread-safe: under the
/// socket's lock.
/// Source: rdma-core's librdmacm/docs/rsocket, "Message Format".
/// What take_*() has taken comes back by give_back(), in the order of the posts: of a request that was not posted,
/// too.
class SendWindow {
 public:
  /// A place in the buffer.
  struct Place {
    uint32_t offset;
    uint32_t cost_bytes;  ///< to be given back, by the WorkId: with what was passed over before it
  };

  /// Nothing may be sent before open().
  SendWindow(const Settings& settings, const TargetTable& targets)
      : most_bytes_(std::min(settings.send_bytes / 4, Immediate::kMaxValue)),
        inline_bytes_(settings.inline_bytes),
        slots_(settings.send_depth),
        staging_(settings.send_bytes),
        targets_(targets) {}

  /// What the peer has told of itself.
  void open(const ConnectionData& peer) {
    credits_ = SendCredits(peer.credits);
    targets_.begin(peer.ring);
  }

  bool is_inline(uint32_t length) const { return length <= inline_bytes_; }

  /// Whether a WRITE of `wanted` bytes can go, or of as many as go at a time. Waiting for room for all of them keeps a
  /// full buffer from being passed on in crumbs.
  bool has_room_for(size_t wanted) const { return slots_.has_data() && staging_.fits_whole(piece_bytes(wanted)); }
  /// Likewise a message, which the peer must be ready for.
  bool has_room_for_message(size_t wanted) const {
    const RemoteBlock* target = targets_.current();
    return target != nullptr && credits_.has_credit() && has_room_for(std::min<size_t>(wanted, target->length));
  }
  bool has_room_for_mapping() const {
    return slots_.has_data() && credits_.has_credit() && (is_inline(kIomapBytes) || staging_.fits_whole(kIomapBytes));
  }

  /// Speaks for the next message, of at most `wanted` bytes: where it goes, and how long it is. Precondition:
  /// has_room_for_message(wanted).
  RemoteBlock take_message(size_t wanted) {
    credits_.spend();
    slots_.take_data();
    RemoteBlock target = *targets_.current();
    target.length = piece_bytes(std::min<size_t>(wanted, target.length));
    targets_.advance(target.length);
    return target;
  }
  /// Likewise for a WRITE into the peer's mapping at `offset`; nothing: it has no such mapping. Precondition:
  /// has_room_for(wanted).
  std::optional<RemoteBlock> take_direct(uint64_t offset, size_t wanted) {
    auto target = targets_.find(offset);
    if (target) {
      slots_.take_data();
      target->length = piece_bytes(std::min<size_t>(wanted, target->length));
    }
    return target;
  }
  /// Precondition: has_room_for_mapping().
  void take_mapping() {
    credits_.spend();
    slots_.take_data();
  }
  /// A place for what has been spoken for, and is not sent inline.
  Place take_place(uint32_t length) {
    const uint32_t padding = staging_.padding(length);
    staging_.take(padding);
    return {staging_.take(length), padding + length};
  }

  bool has_control() const { return slots_.has_control(); }
  void take_control() { slots_.take_control(); }

  /// A work request is done, in their order.
  /// Each once.
  void give_back(const WorkId& done) {
    if (done.kind == WorkKind::control) {
      slots_.return_control();
    } else {
      slots_.return_data();
      staging_.give_back(done.staged_bytes);
    }
  }
  /// A credit message of the peer; `has_target`: it has written one with it.
  void take_grant(uint32_t limit, bool has_target) {
    credits_.grant(limit);
    if (has_target) {
      targets_.take_written();
    }
  }
  /// Everything that was sent has reached the peer's memory.
  bool is_idle() const { return slots_.is_idle(); }

 private:
  /// How much of `wanted` goes at a time: a quarter of the buffer, so that others are on their way meanwhile.
  uint32_t piece_bytes(size_t wanted) const { return static_cast<uint32_t>(std::min<size_t>(wanted, most_bytes_)); }

  uint32_t most_bytes_;
  uint32_t inline_bytes_;
  SendSlots slots_;
  StagingRing staging_;
  SendCredits credits_;
  TargetTable targets_;
};

}  // namespace ringbolt::rsocket
