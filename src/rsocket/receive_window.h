#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rsocket/connection_data.h"
#include "rsocket/credits.h"
#include "rsocket/receive_ring.h"

// Hot path.

namespace ringbolt::rsocket {

/// What the peer may send us: how many messages, and into which halves of the ring. Counts only; the ring's memory is
/// its owner's. Not thread-safe: under the socket's lock.
/// Source: rdma-core's librdmacm/docs/rsocket, "Message Format".
/// `readable()` may be looked at while another thread copies: what is copied is not consumed yet.
class ReceiveWindow {
 public:
  /// A credit message: messages up to number `limit` may come, and with it perhaps a half to write into.
  struct Grant {
    uint16_t limit;
    std::optional<RemoteBlock> half;
  };
  struct Piece {
    uint32_t offset;  ///< in the ring
    uint32_t length;
  };

  /// `ring`: two halves, an even number of bytes. `depth`: messages that receives are posted for. The first half and so
  /// many messages count as granted.
  ReceiveWindow(const RemoteBlock& ring, uint16_t depth) : memory_(ring), ring_(ring.length / 2), credits_(depth) {}

  /// What the connection data offers.
  RemoteBlock first_half() const { return {memory_.address, memory_.key, ring_.half_bytes()}; }

  /// A message says that `length` bytes were written. False: that is more than was granted.
  bool take_data(uint32_t length) {
    credits_.arrived();
    return ring_.arrived(length);
  }
  /// A message that counts has brought no data.
  void take_other() { credits_.arrived(); }

  bool is_grant_due() const { return ring_.has_free_half() || credits_.is_due(); }
  /// What to tell the peer. From here on it counts as told.
  Grant take_grant() {
    Grant grant{credits_.take_grant(), std::nullopt};
    if (ring_.has_free_half()) {
      grant.half = RemoteBlock{memory_.address + ring_.offer(), memory_.key, ring_.half_bytes()};
    }
    return grant;
  }

  uint32_t readable() const { return ring_.readable(); }
  /// The first of the unread bytes behind the first `skip`, at most `wanted` and as many as lie in one piece.
  Piece next(uint32_t skip, size_t wanted) const {
    return {ring_.offset(skip), static_cast<uint32_t>(std::min<size_t>(wanted, ring_.contiguous(skip)))};
  }
  /// The first `length` unread bytes have been copied out.
  void consume(uint32_t length) { ring_.consume(length); }

 private:
  RemoteBlock memory_;
  ReceiveRing ring_;
  ReceiveCredits credits_;
};

}  // namespace ringbolt::rsocket
