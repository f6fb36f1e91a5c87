#include "link/udp_segmentation.h"

namespace ringbolt::link {

uint64_t UdpSegmentationMemory::key_of(const UdpPath& path) {
  // FNV-1a over what decides the interface: the way there and the way out.
  uint64_t key = 0xcbf29ce484222325U;
  const auto mix = [&key](uint8_t byte) { key = (key ^ byte) * 0x100000001b3U; };
  for (const uint8_t byte : path.destination) {
    mix(byte);
  }
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    mix(static_cast<uint8_t>(path.interface_index >> shift));
  }
  return key | 1U << 31U;
}

}  // namespace ringbolt::link
