#include "agent/local_ports.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
#include "link/stream_source.h"

namespace ringbolt::tools::agent {
namespace {

using link::PortPrefix;

constexpr int kBacklog = 64;
constexpr int kEventsAtOnce = 64;
constexpr uint64_t kGreetingNs = 5'000'000'000;   // for a program to say whose queue pairs are its own
constexpr uint64_t kAcceptPauseNs = 100'000'000;  // where no descriptor is left: one may come back
constexpr uint64_t kSayAgainNs = 60'000'000'000;  // programs come again and again: said once in so long, not each time
constexpr size_t kDestQpAt = 5;                   // in a packet's BTH, 24 bits, big-endian
constexpr size_t kBthBytes = 12;
constexpr uint32_t kManagementQp = 1;

uint32_t dest_qp(std::span<const std::byte> packet) {
  const auto byte = [&](size_t at) { return std::to_integer<uint32_t>(packet[PortPrefix::kBytes + at]); };
  return byte(kDestQpAt) << 16U | byte(kDestQpAt + 1) << 8U | byte(kDestQpAt + 2);
}

bool is_for(std::span<const std::byte> packet, const link::OverlayClaim& claim) {
  const uint32_t qpn = dest_qp(packet);
  // Management datagrams are for whoever knows of them.
  return qpn == kManagementQp || qpn >> claim.slot_shift == claim.slot;
}

base::UniqueFd listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw base::Error(ENAMETOOLONG, "wait for programs", path, "set RINGBOLT_RUNTIME_DIR to a shorter path");
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  base::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // A dead agent's: the roster sees to it that no other of this node is alive.
  (void)::unlink(path.c_str());
  if (!listener.is_open() || ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), kBacklog) != 0) {
    throw base::Error(errno, "wait for programs", path);
  }
  return listener;
}

}  // namespace

LocalPorts::LocalPorts(std::string path, uint32_t node, uint32_t n_nodes)
    : path_(std::move(path)),
      node_(node),
      n_nodes_(n_nodes),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      listener_(listen_at(path_)) {
  if (!epoll_.is_open() || !watch_listener(EPOLL_CTL_ADD, EPOLLIN)) {
    throw base::Error(errno, "epoll_ctl", path_, "look at the limits of this process (ulimit -n)");
  }
}

LocalPorts::~LocalPorts() { (void)::unlink(path_.c_str()); }

/// As a port's: GIDs come first, here the place of the node alone, in the last byte of the first.
std::vector<std::byte> LocalPorts::greeting() const {
  std::vector<std::byte> greeting(link::OverlayClaim::kGidBytes);
  greeting[15] = greeting[31] = static_cast<std::byte>(node_ + 1);
  return greeting;
}

bool LocalPorts::watch_listener(int operation, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = listener_.get();
  return ::epoll_ctl(epoll_.get(), operation, listener_.get(), &event) == 0;
}

void LocalPorts::accept(uint64_t now_ns) {
  for (;;) {
    const base::UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      // EMFILE and its like: the listener stays readable, and would keep the agent awake until a descriptor comes back.
      const int error = errno;
      if (error != EAGAIN && error != EINTR && error != ECONNABORTED && watch_listener(EPOLL_CTL_MOD, 0)) {
        paused_until_ns_ = now_ns + kAcceptPauseNs;
        say_refused(base::reason_of(error), now_ns);
      }
      return;
    }
    try {
      add_program(socket.get(), now_ns);
    } catch (const base::Error& error) {
      // No descriptor is left for its stream: it is turned away, the others go on.
      say_refused(error.what(), now_ns);
    }
  }
}

void LocalPorts::say_refused(const std::string& why, uint64_t now_ns) {
  if (say_again_ns_ <= now_ns) {
    say_again_ns_ = now_ns + kSayAgainNs;
    base::say(fmt::format("ringbolt agent: a program can't have ringbolt0 just now: {}\n", why));
  }
}

void LocalPorts::add_program(int socket, uint64_t now_ns) {
  std::random_device random;
  link::StreamLink::Options options;
  options.incarnation = (uint64_t{random()} << 32U | random()) | 1U;
  options.seed = uint64_t{random()} << 32U | random();
  options.window_packets = link::kPortWindowPackets;
  options.window_frames = link::kPortWindowFrames;
  options.greeting = greeting();
  std::vector<std::unique_ptr<link::StreamSource>> sources;
  sources.push_back(link::make_stream_source("fd:" + std::to_string(socket)));
  Program program;
  program.endpoint = std::make_unique<link::StreamEndpoint>(std::move(sources), std::move(options), now_ns);
  program.since_ns = now_ns;
  const int descriptor = program.endpoint->descriptor();
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) {
    programs_.emplace(descriptor, std::move(program));
  } else {
    say_refused(base::reason_of(errno), now_ns);
  }
}

void LocalPorts::serve(uint64_t now_ns) {
  if (paused_until_ns_ != 0 && now_ns >= paused_until_ns_ && watch_listener(EPOLL_CTL_MOD, EPOLLIN)) {
    paused_until_ns_ = 0;
  }
  std::array<epoll_event, kEventsAtOnce> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const int descriptor = events[static_cast<size_t>(i)].data.fd;
    if (descriptor == listener_.get()) {
      accept(now_ns);
    } else if (const auto program = programs_.find(descriptor); program != programs_.end()) {
      serve(program->second, now_ns);
    }
  }
  // All of them: who never says anything makes no event.
  std::erase_if(programs_, [&](const auto& program) { return is_over(program.second, now_ns); });
  on_end_of_packets();  // of packets from one program here to another
}

void LocalPorts::serve(Program& program, uint64_t now_ns) {
  program.endpoint->receive(now_ns, [&](std::span<const std::byte> packet) { forward(packet); });
  if (!program.claim) {
    learn_claim(program);
  }
  write_waiting(program);
}

void LocalPorts::learn_claim(Program& program) {
  if (program.endpoint->link().peer_incarnation() == 0) {
    return;
  }
  program.claim = link::OverlayClaim::parse(program.endpoint->link().peer_greeting());
  if (!program.claim) {
    return;
  }
  std::erase_if(early_, [&](const Early& early) {
    const bool is_its = is_for(early.packet, *program.claim);
    if (is_its) {
      hand_over(program, early.packet);
      early_bytes_ -= early.packet.size();
    }
    return is_its;
  });
}

void LocalPorts::keep_early(std::span<const std::byte> packet) {
  const uint64_t now_ns = base::now_ns();
  while (!early_.empty() &&
         (now_ns - early_.front().since_ns > kEarlyNs || early_bytes_ + packet.size() > kMostEarlyBytes)) {
    early_bytes_ -= early_.front().packet.size();
    early_.pop_front();
    ++counts_.dropped_nobody;
  }
  early_.push_back({now_ns, {packet.begin(), packet.end()}});
  early_bytes_ += packet.size();
}

bool LocalPorts::is_over(const Program& program, uint64_t now_ns) const {
  return program.endpoint->is_over() || program.endpoint->link().has_left() ||
         (!program.claim && now_ns - program.since_ns > kGreetingNs);
}

void LocalPorts::forward(std::span<const std::byte> packet) {
  const uint32_t place = packet.size() < PortPrefix::kBytes + kBthBytes ? 0 : PortPrefix::parse(packet).node;
  if (place == 0 || place > n_nodes_) {
    ++counts_.dropped_strange;
    return;
  }
  // The program's bytes lie in its stream; the prefix says whom the packet is from from here on.
  copy_.assign(packet.begin(), packet.end());
  PortPrefix prefix = PortPrefix::parse(packet);
  prefix.node = static_cast<uint8_t>(node_ + 1);
  prefix.emit(copy_);
  if (place == node_ + 1) {
    return deliver(copy_);
  }
  const auto found = std::ranges::lower_bound(nodes_, place - 1);
  if (courier_ == nullptr || found == nodes_.end() || *found != place - 1) {
    ++counts_.dropped_away;
    return;
  }
  courier_->send(static_cast<uint32_t>(found - nodes_.begin()), copy_);
}

void LocalPorts::on_packet(uint32_t source, std::span<const std::byte> packet) {
  if (packet.size() < PortPrefix::kBytes + kBthBytes || packet.size() > link::kMaxStreamPacketBytes ||
      source >= nodes_.size() || PortPrefix::parse(packet).node != nodes_[source] + 1) {
    ++counts_.dropped_strange;
    return;
  }
  deliver(packet);
}

void LocalPorts::deliver(std::span<const std::byte> packet) {
  bool is_taken = false;
  for (auto& [descriptor, program] : programs_) {
    if (!program.claim) {
      learn_claim(program);
    }
    if (program.claim && is_for(packet, *program.claim)) {
      hand_over(program, packet);
      is_taken = true;
    }
  }
  if (!is_taken) {
    keep_early(packet);
  }
}

void LocalPorts::hand_over(Program& program, std::span<const std::byte> packet) {
  program.is_written = true;
  if (program.waiting.empty()) {
    if (const std::span<std::byte> place = program.endpoint->reserve(); !place.empty()) {
      std::memcpy(place.data(), packet.data(), packet.size());
      program.endpoint->commit(packet.size());
      return;
    }
  }
  if (program.waiting_bytes + packet.size() > kMostWaitingBytes) {
    ++counts_.dropped_full;
    return;
  }
  program.waiting.emplace_back(packet.begin(), packet.end());
  program.waiting_bytes += packet.size();
}

void LocalPorts::write_waiting(Program& program) {
  while (!program.waiting.empty()) {
    const std::span<std::byte> place = program.endpoint->reserve();
    if (place.empty()) {
      return;
    }
    const std::vector<std::byte>& packet = program.waiting.front();
    std::memcpy(place.data(), packet.data(), packet.size());
    program.endpoint->commit(packet.size());
    program.waiting_bytes -= packet.size();
    program.waiting.pop_front();
    program.is_written = true;
  }
}

void LocalPorts::on_end_of_packets() {
  for (auto& [descriptor, program] : programs_) {
    if (std::exchange(program.is_written, false)) {
      program.endpoint->flush(base::now_ns());
    }
  }
}

void LocalPorts::leave(uint64_t now_ns) {
  for (auto& [descriptor, program] : programs_) {
    program.endpoint->leave(now_ns);
  }
  programs_.clear();
}

}  // namespace ringbolt::tools::agent
