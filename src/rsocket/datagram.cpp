#include "rsocket/datagram.h"

#include <rdma/rsocket.h>

#include <algorithm>
#include <array>

namespace ringbolt::rsocket {
namespace {

/// Peers that a socket remembers. A new one beyond this is not answered: whoever makes up addresses gains nothing.
/// Bounds memory and address handles; it is for the life of the socket.
constexpr size_t kMostPeers = 4096;

}  // namespace

base::Result<std::shared_ptr<Socket>> Datagram::create(int family) {
  base::UniqueFd udp(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!udp.is_open()) {
    return base::fail(errno);
  }
  return std::shared_ptr<Socket>(new Datagram(std::move(udp), family));
}

Status Datagram::bind(const Address& address) {
  return ::bind(udp_.get(), address.get(), address.length()) == 0 ? Status{} : base::fail(errno);
}

Status Datagram::connect(const Address& address) {
  const base::LockGuard lock(lock_);
  const auto own = own_name();
  if (own && own->port() == 0) {
    // The peer knows us by the address on its fabric, which need not be the one that the kernel would choose.
    if (const auto source = resolve_source(address)) {
      (void)::bind(udp_.get(), source->get(), source->length());
    }
  }
  if (::connect(udp_.get(), address.get(), address.length()) != 0) {
    return base::fail(errno);
  }
  const auto peer = peer_at(address);
  if (!peer) {
    return base::fail(peer.error().value);
  }
  connected_ = std::make_unique<Address>(address);
  return {};
}

Status Datagram::shut_down(int) {
  const base::LockGuard lock(lock_);
  return connected_ ? Status{} : base::fail(ENOTCONN);
}

void Datagram::close() {
  const base::LockGuard lock(lock_);
  is_closed_ = true;
  wake_all();
}

base::Result<Address> Datagram::own_name() {
  Address address;
  socklen_t length = sizeof address.storage;
  return ::getsockname(udp_.get(), address.get(), &length) == 0 ? base::Result<Address>(address) : base::fail(errno);
}

base::Result<Address> Datagram::peer_name() {
  Address address;
  socklen_t length = sizeof address.storage;
  return ::getpeername(udp_.get(), address.get(), &length) == 0 ? base::Result<Address>(address) : base::fail(errno);
}

Status Datagram::set_option(int level, int name, const void* value, socklen_t length) {
  const base::LockGuard lock(lock_);
  const auto noted = options_.set(level, name, value, length, !links_.empty());
  // The kernel's socket knows none of these.
  if (level >= SOL_RDMA) {
    return noted;
  }
  return ::setsockopt(udp_.get(), level, name, value, length) == 0 ? Status{} : base::fail(errno);
}

Status Datagram::get_option(int level, int name, void* value, socklen_t* length) {
  const base::LockGuard lock(lock_);
  if (level == SOL_RDMA || (level == SOL_SOCKET && (name == SO_RCVBUF || name == SO_SNDBUF))) {
    return options_.get(level, name, value, length);
  }
  return ::getsockopt(udp_.get(), level, name, value, length) == 0 ? Status{} : base::fail(errno);
}

/// The address of ours that is the way to `remote`, with our port.
base::Result<Address> Datagram::local_towards(const Address& remote) const {
  Address own;
  socklen_t length = sizeof own.storage;
  if (::getsockname(udp_.get(), own.get(), &length) != 0) {
    return base::fail(errno);
  }
  if (own.port() == 0) {
    // Nobody could answer: let the kernel choose a port.
    own = {};
    own.storage.ss_family = static_cast<sa_family_t>(family_);
    length = own.length();
    if (::bind(udp_.get(), own.get(), length) != 0 || ::getsockname(udp_.get(), own.get(), &length) != 0) {
      return base::fail(errno);
    }
  }
  if (!own.is_any_or_loopback()) {
    return own;
  }
  auto source = resolve_source(remote);
  if (source) {
    source->set_port(own.port());
  }
  return source;
}

base::Result<DatagramLink*> Datagram::link_at(const Address& local) {
  for (const auto& link : links_) {
    if (std::memcmp(&link->local().storage, &local.storage, sizeof local.storage) == 0) {
      return link.get();
    }
  }
  try {
    links_.push_back(std::make_unique<DatagramLink>(local, options_.settings));
  } catch (const base::Error& error) {
    return base::fail(error.errno_value());
  }
  return links_.back().get();
}

base::Result<Datagram::Peer*> Datagram::peer_at(const Address& address) {
  const auto known = peers_.find(address);
  if (known != peers_.end()) {
    return &known->second;
  }
  if (peers_.size() >= kMostPeers) {
    return base::fail(ENOBUFS);
  }
  const auto local = local_towards(address);
  if (!local) {
    return base::fail(local.error().value);
  }
  const auto link = link_at(*local);
  if (!link) {
    return base::fail(link.error().value);
  }
  Peer& peer = peers_[address];
  peer.link = *link;
  return &peer;
}

void Datagram::take_greeting(const Address& from, std::span<const std::byte> datagram) {
  const auto header = GreetingHeader::parse(datagram);
  if (!header) {
    return;
  }
  // Who sends says which address it has on the fabric; UDP may show another one of its host.
  const bool is_said = header->address.family() == from.family() && header->address.is_routable();
  // Nobody has proved it: as with UDP, a sender may say that he is somebody else.
  Address who = is_said ? header->address : from;
  who.set_port(from.port());
  const auto found = peer_at(who);
  if (!found) {
    return;
  }
  Peer& peer = **found;
  if (header->op == GreetingHeader::Op::data) {
    // Lost, it is sent again with the next datagram that comes this way.
    (void)greet(who, peer, GreetingHeader::Op::control, nullptr);
    deliver(who, datagram.subspan(header->bytes()));
  }
  // A peer that was started anew has another queue pair.
  if (peer.handle == nullptr || peer.qpn != header->qpn) {
    auto handle = resolve_path(peer.link->pd(), peer.link->local(), who);
    if (handle) {
      peer.handle = std::move(*handle);
      peer.qpn = header->qpn;
    }
  }
}

void Datagram::deliver(const Address& from, std::span<const std::byte> bytes) {
  const bool is_strange = connected_ && (*connected_ < from || from < *connected_);
  if (!is_strange) {
    received_.add(from, bytes);
  }
}

void Datagram::progress() {
  bool any = false;
  std::array<std::byte, DatagramLink::kSlotBytes + GreetingHeader::kMaxBytes> datagram;
  Address from;
  socklen_t length = sizeof from.storage;
  ssize_t bytes = 0;
  while ((bytes = ::recvfrom(udp_.get(), datagram.data(), datagram.size(), 0, from.get(), &length)) >= 0) {
    take_greeting(from, std::span(datagram).first(static_cast<size_t>(bytes)));
    any = true;
    from = {};
    length = sizeof from.storage;
  }
  for (const auto& link : links_) {
    any = link->progress([this](const Address& source, std::span<const std::byte> data) RINGBOLT_REQUIRES(lock_) {
      deliver(source, data);
    }) || any;
  }
  if (any) {
    wake_all();
  }
}

bool Datagram::has_slots() const {
  return std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->has_slot(); });
}

short Datagram::events_now(short events) const {
  int now = received_.is_empty() ? 0 : POLLIN | POLLRDNORM;
  now |= has_slots() ? POLLOUT | POLLWRNORM : 0;
  return static_cast<short>(is_closed_ ? POLLHUP : now & events);
}

bool Datagram::arm() {
  bool is_new = false;
  for (const auto& link : links_) {
    is_new = link->arm() || is_new;
  }
  return is_new;
}

void Datagram::add_waits(std::vector<pollfd>& waits) const {
  waits.push_back({udp_.get(), POLLIN, 0});
  for (const auto& link : links_) {
    waits.push_back({link->channel_fd(), POLLIN, 0});
  }
}

void Datagram::take_events() {
  for (const auto& link : links_) {
    link->take_events();
  }
}

}  // namespace ringbolt::rsocket
