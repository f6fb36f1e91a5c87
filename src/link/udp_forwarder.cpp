#include "link/udp_forwarder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "link/socket.h"
#include "link/udp_message.h"

namespace ringbolt::link {
namespace {

constexpr uint32_t kMagic = 0x7564'4252;  // "RBdu"
constexpr int kSendBufferBytes = 1 << 20;
// A receiver that is off the processor gets what waits when it is back; for one that was stopped the packets are lost,
// as if on the way.
constexpr size_t kMaxWaiting = 1024;
constexpr ptrdiff_t kMaxWaitingForOne = 256;
constexpr uint64_t kMaxWaitNs = 5'000'000'000;
constexpr long kRetryNs = 1'000'000;

enum Kind : uint32_t { kPackets = 1, kChange = 2 };

// In the machine's own byte order: both ends are on it.
struct Header {
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint32_t interface_index = 0;
  uint32_t segment_bytes = 0;
  wire::Address source{};
  wire::Address destination{};
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(Header) == 56);

std::string socket_name(uint32_t slot) { return fmt::format("{}.udp", slot); }

}  // namespace

UdpForwarder::UdpForwarder(std::string directory, uint32_t slot)
    : directory_(std::move(directory)),
      slot_(slot),
      owner_(getpid()),
      directory_fd_(open(directory_.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC)),
      socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!directory_fd_.is_open()) {
    throw base::Error(errno, "open", directory_, "it is the folder of the processes' slots");
  }
  const std::string name = socket_name(slot);
  const std::string object = directory_ + "/" + name;
  const auto address = socket_address(directory_, directory_fd_.get(), name);
  if (!socket_.is_open() || !timer_.is_open() || !address) {
    throw base::Error(socket_.is_open() && timer_.is_open() ? ENAMETOOLONG : errno, "socket or timer", object);
  }
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
  unlinkat(directory_fd_.get(), name.c_str(), 0);
  if (bind(socket_.get(), address->get(), address->length) != 0) {
    throw base::Error(errno, "bind", object, "a path beyond 107 bytes needs /proc: use a shorter RINGBOLT_RUNTIME_DIR");
  }
  if (fchmodat(directory_fd_.get(), name.c_str(), 0600, 0) != 0) {  // the umask may have taken our own rights
    throw base::Error(errno, "chmod 0600", object);
  }
}

UdpForwarder::~UdpForwarder() {
  if (directory_fd_.is_open() && owner_ == getpid()) {
    unlinkat(directory_fd_.get(), socket_name(slot_).c_str(), 0);
  }
}

void UdpForwarder::abandon_after_fork() {
  directory_fd_.reset();
  socket_.reset();
  timer_.reset();
}

int UdpForwarder::send(uint32_t slot, const void* header, const std::byte* bytes, size_t length) {
  auto address = socket_address(directory_, directory_fd_.get(), socket_name(slot));
  if (!address) {
    return ENAMETOOLONG;
  }
  std::array<iovec, 2> parts{iovec{const_cast<void*>(header), sizeof(Header)},
                             iovec{const_cast<std::byte*>(bytes), length}};
  msghdr message{};
  message.msg_name = &address->address;
  message.msg_namelen = address->length;
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? 0 : errno;
}

int UdpForwarder::send_packets(uint32_t slot, const UdpDatagram& datagram, size_t offset, size_t bytes) {
  Header header;
  header.kind = kPackets;
  header.interface_index = datagram.interface_index;
  header.segment_bytes = static_cast<uint32_t>(datagram.segment_bytes);
  header.source = datagram.flow.source;
  header.destination = datagram.flow.destination;
  header.source_port = datagram.flow.source_port;
  header.destination_port = datagram.flow.destination_port;
  return send(slot, &header, datagram.buffer.get()->data() + offset, bytes);
}

// ENOENT: no socket file, so no such slot; ECONNREFUSED: its owner has died.
UdpForwarder::PassedOn UdpForwarder::pass_on(uint32_t slot, const UdpDatagram& datagram, size_t offset, size_t bytes) {
  // Behind what waits already: packets keep their order.
  const auto ahead =
      std::count_if(waiting_.begin(), waiting_.end(), [slot](const Waiting& each) { return each.slot == slot; });
  const int error = ahead > 0 ? EAGAIN : send_packets(slot, datagram, offset, bytes);
  if (error == 0) {
    return PassedOn::yes;
  }
  if (error != EAGAIN || waiting_.size() == kMaxWaiting || ahead == kMaxWaitingForOne) {
    return error == ENOENT ? PassedOn::nobody_there : PassedOn::lost;
  }
  waiting_.push_back({slot, base::now_ns(), offset, bytes, datagram});
  set_timer(true);
  return PassedOn::yes;
}

size_t UdpForwarder::retry() {
  const uint64_t now = base::now_ns();
  size_t lost = 0;
  std::deque<Waiting> still;
  for (Waiting& each : waiting_) {
    const bool is_behind =
        std::any_of(still.begin(), still.end(), [&each](const Waiting& other) { return other.slot == each.slot; });
    const int error = is_behind ? EAGAIN : send_packets(each.slot, each.datagram, each.offset, each.bytes);
    if (error == EAGAIN && now - each.since_ns < kMaxWaitNs) {
      still.push_back(std::move(each));
    } else {
      lost += error != 0 ? 1 : 0;
    }
  }
  waiting_ = std::move(still);
  set_timer(has_waiting());
  return lost;
}

void UdpForwarder::set_timer(bool is_armed) {
  itimerspec when{};
  when.it_value.tv_nsec = is_armed ? kRetryNs : 0;
  // A timer that is armed runs once; it is armed again as long as something waits.
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

bool UdpForwarder::announce_change(uint32_t slot) {
  Header header;
  header.kind = kChange;
  return send(slot, &header, nullptr, 0) == 0;
}

UdpForwarder::Read UdpForwarder::read(UdpDatagram& datagram) {
  Header header;
  std::array<iovec, 2> parts{iovec{&header, sizeof header},
                             iovec{datagram.buffer.get()->data(), datagram.buffer.get()->capacity()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t length = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0) {
    return Read::nothing;
  }
  if (length < static_cast<ssize_t>(sizeof header) || (message.msg_flags & MSG_TRUNC) != 0 || header.magic != kMagic) {
    return Read::malformed;
  }
  if (header.kind == kChange) {
    return Read::change;
  }
  const size_t bytes = static_cast<size_t>(length) - sizeof header;
  if (header.kind != kPackets || bytes == 0 || header.segment_bytes < kMinUdpPacketBytes) {
    return Read::malformed;
  }
  datagram.flow = {header.source, header.destination, header.source_port, header.destination_port};
  datagram.interface_index = header.interface_index;
  datagram.bytes = bytes;
  datagram.segment_bytes = header.segment_bytes;
  datagram.is_forwarded = true;
  return Read::packets;
}

}  // namespace ringbolt::link
