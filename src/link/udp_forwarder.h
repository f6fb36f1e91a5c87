#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>

#include "base/unique_fd.h"
#include "link/udp_datagram.h"

namespace ringbolt::link {

/// Between processes that share a UDP port: hands on packets that reached the wrong one, and says that the group has
/// changed. A UNIX datagram socket `<slot>.udp` in the slots' folder. Such a socket takes few datagrams at a time
/// (net.unix.max_dgram_qlen, 10), so what it refuses waits here for a while. Never blocks, raises no signal. Not
/// thread-safe.
/// Owned by the endpoint, and used under its lock for receiving. Only processes of the same user can get at the socket:
/// the folder is theirs alone.
class UdpForwarder {
 public:
  /// Takes over what an earlier owner of the slot left. Throws base::Error.
  UdpForwarder(std::string directory, uint32_t slot);
  ~UdpForwarder();
  UdpForwarder(const UdpForwarder&) = delete;
  UdpForwarder& operator=(const UdpForwarder&) = delete;

  int descriptor() const { return socket_.get(); }
  /// Readable when it is time for retry().
  int retry_descriptor() const { return timer_.get(); }
  int directory_fd() const { return directory_fd_.get(); }

  enum class PassedOn {
    yes,           ///< or it waits for retry()
    nobody_there,  ///< nobody has the slot
    lost,          ///< its owner has died, or too much waits already
  };
  /// Packets `offset` to `offset + bytes` of a datagram.
  /// What waits keeps the datagram's buffer.
  PassedOn pass_on(uint32_t slot, const UdpDatagram& datagram, size_t offset, size_t bytes);
  bool has_waiting() const { return !waiting_.empty(); }
  /// Sends what waits. Returns how many calls of pass_on() were given up: their receiver is gone or has been stopped
  /// for too long.
  size_t retry();
  /// "Look at the order file again."
  bool announce_change(uint32_t slot);

  enum class Read { nothing, packets, change, malformed };
  /// Reads the next one; packets go into `datagram`, whose buffer must be a large one.
  Read read(UdpDatagram& datagram);

  /// In a forked child: closes the descriptors and removes nothing.
  void abandon_after_fork();

 private:
  struct Waiting {
    uint32_t slot;
    uint64_t since_ns;
    size_t offset;
    size_t bytes;
    UdpDatagram datagram;
  };
  /// 0 or an errno.
  int send(uint32_t slot, const void* header, const std::byte* bytes, size_t length);
  int send_packets(uint32_t slot, const UdpDatagram& datagram, size_t offset, size_t bytes);
  void set_timer(bool is_armed);

  std::string directory_;
  uint32_t slot_;
  pid_t owner_;
  base::UniqueFd directory_fd_;
  base::UniqueFd socket_;
  base::UniqueFd timer_;
  std::deque<Waiting> waiting_;
};

}  // namespace ringbolt::link
