#pragma once

#include <memory>

#include "base/result.h"
#include "link/messages.h"
#include "link/remote_process.h"
#include "link/shared_segment.h"

namespace ringbolt::device {

/// A lane that a peer has offered before this end was ready for it, or the reason why it can't be had. Move-only.
struct StoredOffer {
  std::shared_ptr<link::RemoteProcess> remote;
  link::Offer offer;
  base::Result<link::SharedSegment> lane;
};

}  // namespace ringbolt::device
