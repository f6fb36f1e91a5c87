// Packets that pass through faults on their way into a batch. Not the hot path: a fault is in effect.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "link/udp_batch.h"
#include "link/udp_endpoint.h"
#include "link/udp_faults.h"
#include "wire/icrc.h"

namespace ringbolt::link {

void UdpBatch::append_through(UdpFaults& faults, const UdpPath& path, size_t bytes) {
  std::vector<UdpDeparture> departures;
  if (faults.send(path, {arena_.get() + used_bytes_, bytes}, base::now_ns(), departures)) {
    append(path, bytes);
  }
  reserved_bytes_ = 0;
  for (UdpDeparture& departure : departures) {
    if (!append(departure)) {
      faults.give_back(std::move(departure));
    }
  }
  append_late(faults);
}

bool UdpBatch::append_late(UdpFaults& faults) {
  const uint64_t now = base::now_ns();
  bool has_appended = false;
  while (auto departure = faults.take_departure(now)) {
    if (!append(*departure)) {
      faults.give_back(std::move(*departure));
      break;
    }
    has_appended = true;
  }
  return has_appended;
}

bool UdpBatch::append(const UdpDeparture& departure) {
  const auto place = reserve(departure.bytes.size());
  if (place.empty()) {
    return false;
  }
  std::memcpy(place.data(), departure.bytes.data(), departure.bytes.size());
  if (departure.harm.is_harmed()) {
    append_harmed(departure);
  } else {
    append(departure.path, departure.bytes.size());
  }
  reserved_bytes_ = 0;
  return true;
}

void UdpBatch::append_harmed(const UdpDeparture& departure) {
  const std::span<std::byte> packet(arena_.get() + used_bytes_, departure.bytes.size() + kIcrcBytes);
  wire::put_icrc({departure.path.source, departure.path.destination, endpoint_.options_.port, endpoint_.options_.port},
                 0, packet);
  fault::turn_bits(departure.harm, packet);
  // A message of its own: nobody may join it, and its ICRC is not made anew when the kernel refuses segments.
  UdpMessage& message = messages_[message_count_++];
  message = {};
  message.path = departure.path;
  message.offset = used_bytes_;
  message.bytes = message.segment_bytes = std::min(packet.size(), departure.harm.kept_bytes);
  message.packet_count = 1;
  message.is_closed = true;
  used_bytes_ += packet.size();
  ++packet_count_;
}

}  // namespace ringbolt::link
