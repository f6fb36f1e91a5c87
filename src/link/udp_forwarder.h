#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "link/udp_datagram.h"

namespace ringbolt::link {

/// Between processes that share a UDP port: hands on packets that reached the wrong one, and says that the group has
/// changed. A UNIX datagram socket `<slot>.udp` in the slots' folder. Never blocks, raises no signal. Sending is
/// thread-safe.
class UdpForwarder {
 public:
  /// Takes over what an earlier owner of the slot left. Throws base::Error.
  UdpForwarder(std::string directory, uint32_t slot);
  ~UdpForwarder();
  UdpForwarder(const UdpForwarder&) = delete;
  UdpForwarder& operator=(const UdpForwarder&) = delete;

  int descriptor() const { return socket_.get(); }
  int directory_fd() const { return directory_fd_.get(); }

  /// Packets `offset` to `offset + bytes` of a datagram. False if the other one does not take them now: it is gone, or
  /// stopped with its queue full.
  bool pass_on(uint32_t slot, const UdpDatagram& datagram, size_t offset, size_t bytes);
  /// "Look at the order file again."
  bool announce_change(uint32_t slot);

  enum class Read { nothing, packets, change, malformed };
  /// Reads the next one; packets go into `datagram`, whose buffer must be a large one.
  Read read(UdpDatagram& datagram);

  /// In a forked child: closes the descriptors and removes nothing.
  void abandon_after_fork();

 private:
  bool send(uint32_t slot, const void* header, const std::byte* bytes, size_t length);

  std::string directory_;
  uint32_t slot_;
  pid_t owner_;
  base::UniqueFd directory_fd_;
  base::UniqueFd socket_;
};

}  // namespace ringbolt::link
