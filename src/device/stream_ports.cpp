#include "device/stream_ports.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/copy.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "device/gids.h"
#include "device/limits.h"
#include "device/overlay.h"
#include "device/packet_sizes.h"
#include "device/port.h"
#include "wire/icrc.h"
#include "wire/stream_hello.h"

namespace ringbolt::device {
namespace {

using link::PortPrefix;

constexpr size_t kMaxWaiting = 8192;  // packets that came while a sender waited for room
// How long a sender waits for room in a stream, under its lock, before the packet counts as lost; the next one does not
// wait again before there is some.
constexpr uint64_t kRoomPatienceNs = 4'000'000;
constexpr const char* kPair = "pair:";
constexpr uint64_t kLeavePatienceNs = 200'000'000;
static_assert(PortPrefix::kBytes + link::kMaxUdpPacketBytes <= link::kMaxStreamPacketBytes);

/// The port's GIDs, by whose places packets name their source (PortPrefix).
std::vector<std::byte> greeting_of(const Port& port) {
  std::vector<std::byte> greeting(port.known_gids.size() * sizeof(ibv_gid));
  for (size_t i = 0; i < port.known_gids.size(); ++i) {
    std::memcpy(greeting.data() + i * sizeof(ibv_gid), port.known_gids[i].raw, sizeof(ibv_gid));
  }
  return greeting;
}

std::optional<wire::Address> gid_in(std::span<const std::byte> greeting, size_t index) {
  wire::Address address{};
  if (greeting.size() / address.size() <= index) {
    return std::nullopt;
  }
  std::memcpy(address.data(), greeting.data() + index * address.size(), address.size());
  return address;
}

bool has_gid(std::span<const std::byte> greeting, const wire::Address& wanted) {
  for (size_t i = 0; const auto address = gid_in(greeting, i); ++i) {
    if (*address == wanted) {
      return true;
    }
  }
  return false;
}

using Sources = std::vector<std::unique_ptr<link::StreamSource>>;

/// Both ends of a socket pair. `pairs` keeps the descriptors until the sources have made their own of them.
void make_pair_of_sources(Sources& near, Sources& far, std::vector<base::UniqueFd>& pairs) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw base::Error(errno, "socketpair", kPair, "look at the limits of this process (ulimit -n)");
  }
  for (const int end : ends) {
    pairs.emplace_back(end);
  }
  near.push_back(link::make_stream_source("fd:" + std::to_string(ends[0])));
  far.push_back(link::make_stream_source("fd:" + std::to_string(ends[1])));
}

}  // namespace

StreamPorts::StreamPorts(uint32_t slot)
    : slot_(slot), epoll_(epoll_create1(EPOLL_CLOEXEC)), pool_(link::UdpBufferPool::make()) {
  if (!epoll_.is_open()) {
    throw base::Error(errno, "epoll_create1", "streams", "look at the limits of this process (ulimit -n)");
  }
}

StreamPorts::~StreamPorts() = default;

link::StreamLink::Options StreamPorts::link_options(const Port& port) const {
  std::random_device random;
  link::StreamLink::Options options;
  options.incarnation = (uint64_t{random()} << 32U | random()) | 1U;
  options.seed = uint64_t{random()} << 32U | random();
  options.window_packets = link::kPortWindowPackets;
  options.window_frames = link::kPortWindowFrames;
  options.greeting = greeting_of(port);
  if (port.is_overlay) {
    link::OverlayClaim{slot_, kQpnIndexBits}.append_to(options.greeting);
  }
  return options;
}

void StreamPorts::add(const Port& port) {
  const base::LockGuard guard(adding_);
  auto& entry = streams_[port.index];
  if (entry.load(std::memory_order_relaxed) != nullptr) {
    return;
  }
  auto stream = std::make_unique<Stream>(link::StreamHealth::Limits{.outage_ns = port.stream_outage_ns});
  stream->interface_index = port.netdev_index;
  stream->live = port.live;
  stream->is_overlay = port.is_overlay;
  for (const ibv_gid& gid : port.known_gids) {
    stream->gids.push_back(address_of(gid));
  }
  open(*stream, port);
  owned_.push_back(std::move(stream));  // may throw: then nobody has found it
  entry.store(owned_.back().get(), std::memory_order_release);
}

void StreamPorts::open(Stream& stream, const Port& port) {
  Sources near;
  Sources far;
  std::vector<base::UniqueFd> pairs;
  for (const std::string& rail : port.streams) {
    if (rail == kPair) {
      make_pair_of_sources(near, far, pairs);
    } else {
      near.push_back(link::make_stream_source(rail));
    }
  }
  if (!far.empty() && far.size() != near.size()) {
    throw base::Error(EINVAL, "choose streams", port.name, "pair: stands with its like alone");
  }
  const base::LockGuard guard(stream.lock);
  stream.endpoint.emplace(std::move(near), link_options(port), base::now_ns());
  watch(*stream.endpoint, port);
  if (!far.empty()) {
    stream.far_end.emplace(std::move(far), link_options(port), base::now_ns());
    watch(*stream.far_end, port);
  }
}

void StreamPorts::watch(const link::StreamEndpoint& endpoint, const Port& port) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, endpoint.descriptor(), &event) != 0) {
    throw base::Error(errno, "epoll_ctl", port.name, "look at /proc/sys/fs/epoll/max_user_watches");
  }
}

StreamPorts::Stream* StreamPorts::find(uint32_t interface_index) const {
  const uint32_t index = interface_index - kFirstStreamInterface;
  return index < streams_.size() ? streams_[index].load(std::memory_order_acquire) : nullptr;
}

void StreamPorts::take_in(Stream& stream, uint64_t now_ns) {
  // The link that calls it knows nothing of our lock.
  const auto sink = [&](std::span<const std::byte> message) RINGBOLT_NOT_ANALYSED { keep(stream, message); };
  stream.endpoint->receive(now_ns, sink);
  if (stream.far_end) {
    stream.far_end->receive(now_ns, sink);
  }
  stream.has_unflushed = false;
  look_at(stream, now_ns);
}

void StreamPorts::look_at(Stream& stream, uint64_t now_ns) {
  const bool was_gone = stream.health.is_gone();
  const uint64_t next_ns = stream.health.next_deadline_ns();
  stream.health.update(stream.endpoint->link(), now_ns);
  if (stream.health.next_deadline_ns() != next_ns) [[unlikely]] {
    stream.endpoint->set_alarm(stream.health.next_deadline_ns());
    stream.endpoint->flush(now_ns);
  }
  if (stream.health.is_gone() != was_gone) [[unlikely]] {
    stream.live->stream_is_deserted.store(!was_gone, std::memory_order_relaxed);
    has_news_.store(true);
  }
}

uint64_t StreamPorts::excused_until_ns(uint32_t interface_index, uint64_t now_ns) const {
  const Stream* stream = find(interface_index);
  return stream == nullptr ? 0 : stream->health.excused_until_ns(now_ns);
}

std::optional<wire::Address> StreamPorts::source_of(const Stream& stream, const PortPrefix& prefix) {
  if (!stream.is_overlay) {
    return gid_in(stream.endpoint->link().peer_greeting(), prefix.place);
  }
  if (prefix.place >= stream.gids.size() || prefix.node == 0) {
    return std::nullopt;
  }
  return overlay_address(stream.gids[prefix.place], prefix.node);
}

/// What to write into the prefix of a packet to `destination`: 0 where there is but one other end; nothing if it is not
/// there.
std::optional<uint8_t> StreamPorts::node_for(const Stream& stream, const wire::Address& destination) {
  if (stream.is_overlay) {
    return overlay_place(destination);
  }
  const link::StreamLink& link = stream.endpoint->link();
  // Until the peer has come it may be anybody.
  return link.peer_incarnation() == 0 || has_gid(link.peer_greeting(), destination) ? std::optional<uint8_t>(0)
                                                                                    : std::nullopt;
}

/// Copies a packet to where queue pairs may hold on to it: small ones each by itself, others one behind the other.
void StreamPorts::keep(Stream& stream, std::span<const std::byte> message) try {
  const size_t bytes = message.size() - std::min(message.size(), PortPrefix::kBytes);
  if (bytes < link::kMinUdpPacketBytes || bytes > link::kMaxUdpPacketBytes || bytes % 4 != 0 ||
      stream.arrived.size() >= kMaxWaiting) {
    return;
  }
  const auto source = source_of(stream, PortPrefix::parse(message));
  if (!source) {
    return;
  }
  Pending one;
  const auto of_family = [&](const wire::Address& own) { return wire::is_ipv4(own) == wire::is_ipv4(*source); };
  const auto destination = std::ranges::find_if(stream.gids, of_family);
  if (destination == stream.gids.end()) {
    return;
  }
  one.flow = {*source, *destination};
  one.bytes = bytes;
  if (bytes <= link::UdpBufferPool::kSmallBytes) {
    one.buffer = pool_->take_small();
  } else {
    if (!stream.filling.is_held() || stream.filled_bytes + bytes > link::UdpBufferPool::kLargeBytes) {
      stream.filling = pool_->take_large();
      stream.filled_bytes = 0;
    }
    one.buffer = stream.filling;
    one.offset = stream.filled_bytes;
    stream.filled_bytes += bytes;
  }
  if (!one.buffer.is_held()) {
    return;  // the program takes nothing in; what it misses is sent again, as on a network
  }
  base::copy(one.buffer.get()->data() + one.offset, message.data() + PortPrefix::kBytes, bytes);
  stream.arrived.push_back(std::move(one));
} catch (const std::bad_alloc&) {  // likewise
}

// What comes meanwhile is taken in, or two ends that both wait for room would wait for each other.
bool StreamPorts::wait_for_room(Stream& stream) {
  const uint64_t deadline = base::now_ns() + kRoomPatienceNs;
  while (stream.endpoint->reserve().empty()) {
    const uint64_t now = base::now_ns();
    if (now > deadline || !stream.endpoint->link().is_up()) {
      return false;
    }
    take_in(stream, now);
    if (stream.endpoint->reserve().empty()) {
      pollfd readable{stream.endpoint->descriptor(), POLLIN, 0};
      poll(&readable, 1, 1);
    }
  }
  return true;
}

int StreamPorts::send(const link::UdpPath& path, std::span<const std::byte> packet) {
  Stream* stream = find(path.interface_index);
  if (stream == nullptr) {
    return ENETUNREACH;
  }
  const auto own = std::ranges::find(stream->gids, path.source);
  const base::LockGuard guard(stream->lock);
  const auto node = node_for(*stream, path.destination);
  if (own == stream->gids.end() || !node) {
    return ENETUNREACH;
  }
  if (stream->endpoint->reserve().empty() && (stream->is_stalled || !wait_for_room(*stream))) {
    stream->is_stalled = true;
    return EAGAIN;
  }
  stream->is_stalled = false;
  const auto place = stream->endpoint->reserve();
  PortPrefix{static_cast<uint8_t>(own - stream->gids.begin()), path.traffic_class, *node}.emit(place);
  base::copy(place.data() + PortPrefix::kBytes, packet.data(), packet.size());
  std::memset(place.data() + PortPrefix::kBytes + packet.size(), 0, wire::kIcrcBytes);
  stream->endpoint->commit(PortPrefix::kBytes + packet.size() + wire::kIcrcBytes);
  stream->has_unflushed = true;
  return 0;
}

void StreamPorts::flush() {
  for (const auto& entry : streams_) {
    if (Stream* stream = entry.load(std::memory_order_acquire)) {
      const base::LockGuard guard(stream->lock);
      if (std::exchange(stream->has_unflushed, false)) {
        const uint64_t now = base::now_ns();
        stream->endpoint->flush(now);
        look_at(*stream, now);
      }
    }
  }
}

void StreamPorts::leave() {
  const base::LockGuard guard(adding_);
  const uint64_t deadline = base::now_ns() + kLeavePatienceNs;
  for (const auto& stream : owned_) {
    const base::LockGuard only_one(stream->lock);
    while (stream->endpoint->link().has_unacknowledged() && stream->endpoint->link().is_up() &&
           base::now_ns() < deadline) {
      pollfd readable{stream->endpoint->descriptor(), POLLIN, 0};
      poll(&readable, 1, 1);
      take_in(*stream, base::now_ns());
    }
    stream->endpoint->leave(base::now_ns());
  }
}

void StreamPorts::abandon_after_fork() {
  for (const auto& stream : owned_) {
    stream->endpoint->abandon_after_fork();
    if (stream->far_end) {
      stream->far_end->abandon_after_fork();
    }
  }
  epoll_.reset();
}

}  // namespace ringbolt::device
