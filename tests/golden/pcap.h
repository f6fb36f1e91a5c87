#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace ringbolt::golden {

/// Writes IP datagrams into a capture file of the classic format, which tshark and tcpdump read. All at time 0.
/// Not thread-safe.
class PcapWriter {
 public:
  explicit PcapWriter(const std::string& path) : file_(path, std::ios::binary) {
    put(0xa1b2c3d4);  // microseconds, in this byte order
    put(2 | 4U << 16);
    put(0);
    put(0);
    put(kMaxBytes);
    put(kLinkTypeRawIp);
  }

  void add(std::span<const std::byte> datagram) {
    put(0);
    put(0);
    put(static_cast<uint32_t>(datagram.size()));
    put(static_cast<uint32_t>(datagram.size()));
    file_.write(reinterpret_cast<const char*>(datagram.data()), static_cast<std::streamsize>(datagram.size()));
  }

  bool close() {
    file_.close();
    return !file_.fail();
  }

 private:
  static constexpr uint32_t kMaxBytes = 65535;
  static constexpr uint32_t kLinkTypeRawIp = 101;

  void put(uint32_t word) {
    const auto bytes = std::as_bytes(std::span(&word, 1));
    file_.write(reinterpret_cast<const char*>(bytes.data()), sizeof word);
  }

  std::ofstream file_;
};

}  // namespace ringbolt::golden
