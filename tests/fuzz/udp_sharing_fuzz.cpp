// Any bytes as the order file of the processes that share the UDP port, and as a datagram that another of them passes
// on. Orders keep their members whatever dies and is proven; packets that are taken lie within what came.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/assert.h"
#include "input.h"
#include "link/udp_forwarder.h"
#include "link/udp_order.h"
#include "link/udp_selector.h"

namespace {

using namespace ringbolt;

/// Takes members out and proves places as the last bytes of the input say.
void check_changes(link::UdpOrder order, const uint8_t* data, size_t size) {
  for (size_t i = size; i-- > 0 && size - i <= 8 && !order.members().empty();) {
    const size_t count = order.members().size();
    const uint64_t chosen = order.members()[data[i] % count].inode;
    if (data[i] % 2 == 0) {
      order.prove(chosen, data[i] / 2U % (count + 1));
      RINGBOLT_ASSERT(order.members().size() == count && order.place_of(chosen));
    } else {
      std::vector<uint64_t> living;
      for (const link::UdpMember& member : order.members()) {
        if (member.inode != chosen) {
          living.push_back(member.inode);
        }
      }
      RINGBOLT_ASSERT(order.keep(living) && order.members().size() == count - 1 && !order.has_others_than(living));
    }
  }
}

void check_order(const uint8_t* data, size_t size) {
  const auto file = link::UdpOrderFile::parse(fuzz::as_text(data, size));
  if (!file) {
    return;
  }
  RINGBOLT_ASSERT(link::UdpOrderFile::parse(file->emit()) == file);
  for (const link::UdpOrder& order : file->families) {
    check_changes(order, data, size);
  }
}

/// A forwarder in a folder of its own, and a socket that sends to it.
class Forwarded {
 public:
  Forwarded()
      : folder_(make_folder()),
        forwarder_(folder_, 0),
        pool_(link::UdpBufferPool::make()),
        sender_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    address_.sun_family = AF_UNIX;
    std::snprintf(address_.sun_path, sizeof address_.sun_path, "%s/0.udp", folder_.c_str());
  }
  ~Forwarded() {
    unlink(address_.sun_path);
    rmdir(folder_.c_str());
  }

  void check(const uint8_t* data, size_t size) {
    constexpr size_t kHeaderBytes = 56;
    std::vector<uint8_t> bytes(data, data + size);
    if (size >= kHeaderBytes && size % 2 == 0) {  // or nothing behind the magic number would be reached
      const uint32_t magic = 0x75644252;
      std::memcpy(bytes.data(), &magic, sizeof magic);
    }
    (void)!sendto(sender_, bytes.data(), bytes.size(), MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address_),
                  sizeof address_);
    link::UdpDatagram datagram;
    datagram.buffer = pool_->take_large();
    if (forwarder_.read(datagram) != link::UdpForwarder::Read::packets) {
      return;
    }
    RINGBOLT_ASSERT(datagram.bytes == size - kHeaderBytes && datagram.bytes > 0 && datagram.is_forwarded);
    size_t offset = 0;
    while (offset < datagram.bytes) {
      const auto packet = datagram.packet_at(offset);
      RINGBOLT_ASSERT(!packet.empty() && packet.size() <= datagram.bytes - offset);
      offset += packet.size();
    }
  }

 private:
  static std::string make_folder() {
    std::string name = "/tmp/ringbolt-fuzz-XXXXXX";
    RINGBOLT_ASSERT(mkdtemp(name.data()) != nullptr);
    return name;
  }
  std::string folder_;
  link::UdpForwarder forwarder_;
  std::shared_ptr<link::UdpBufferPool> pool_;
  int sender_;
  sockaddr_un address_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_order(data, size);
  static Forwarded forwarded;
  forwarded.check(data, size);
  return 0;
}
