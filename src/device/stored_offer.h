#pragma once

#include <memory>

#include "base/result.h"
#include "link/messages.h"
#include "link/peer_queue.h"
#include "link/remote_process.h"
#include "link/shared_segment.h"

namespace ringbolt::device {

/// What a peer gives with an offer. Move-only.
/// Mapped by the service thread when the offer comes; from then on the queue pair's.
struct Offered {
  base::Result<link::SharedSegment> lane;  ///< or the reason why it, or what else it takes, can't be had
  link::PeerQueue receive_queue;
  link::PeerQueue send_queue;
};

/// An offer that came before this end was ready for it. Move-only.
struct StoredOffer {
  std::shared_ptr<link::RemoteProcess> remote;
  link::Offer offer;
  Offered offered;
};

}  // namespace ringbolt::device
