// Receives into regions that cross a 4 GiB boundary, on a device that was seen to add addresses without the carry: what
// belongs beyond the boundary lands 4 GiB too low. Nothing of the program is harmed that it has not registered: where
// no region of the same domain that may be written lies there, the bytes are gone. docs/profiles.md, wrap4g.

#include <algorithm>

#include "base/copy.h"
#include "device/four_gib.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

constexpr uint64_t kPageBytes = 4096;

}  // namespace

void QueuePair::scatter_wrapped(uint32_t offset, const std::byte* data, uint32_t length) {
  for (uint32_t i = 0; i < receive_.current.wanted_count && length > 0; ++i) {
    const ibv_sge& piece = receive_.current.wanted[i];
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    link::Region region;
    if (!process_.regions().find(piece.lkey, region)) {
      return;  // it was deregistered meanwhile
    }
    uint64_t target = region.host_first + (piece.addr - region.first) + offset;
    uint64_t left = std::min(piece.length - offset, length);
    length -= static_cast<uint32_t>(left);
    offset = 0;
    while (left > 0) {  // page by page, so that what is lost does not depend on how the message was cut on its way
      const uint64_t size = std::min(left, kPageBytes - target % kPageBytes);
      const uint64_t landing = without_carry(region.host_first, target);
      if (landing == target || process_.regions().is_held(pd_.key, landing, size, IBV_ACCESS_LOCAL_WRITE)) {
        base::copy(reinterpret_cast<std::byte*>(landing), data, size);
      }
      data += size;
      target += size;
      left -= size;
    }
  }
}

}  // namespace ringbolt::device
