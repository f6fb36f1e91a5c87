#include "link/udp_group.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "link/udp_socket.h"

namespace ringbolt::link {
namespace {

// Others hold the order file for microseconds, unless one was stopped just then.
constexpr uint64_t kJoinPatienceMs = 5000;
constexpr uint64_t kLeavePatienceMs = 500;
constexpr uint64_t kRetryMs = 5;
// Strays come in floods, and one report puts them right.
constexpr uint64_t kReportIntervalNs = 10'000'000;
// At the list of sockets, before one that is missing in it counts as closed.
constexpr int kLooks = 3;
constexpr std::array<UdpFamily, 2> kFamilies{UdpFamily::ipv4, UdpFamily::ipv6};

/// What a member sends to its own port to learn its place. The first two words are read by the selecting program.
struct Probe {
  uint32_t magic_be = 0;
  uint32_t place_be = 0;
  uint64_t generation = 0;
  uint64_t nonce = 0;
};
static_assert(sizeof(Probe) == 24);

}  // namespace

UdpGroup::UdpGroup(const Options& options, Sockets& sockets, UdpForwarder& forwarder)
    : options_(options), sockets_(sockets), forwarder_(forwarder), namespace_(network_namespace()) {
  if (getrandom(&nonce_, sizeof nonce_, 0) != sizeof nonce_) {
    throw base::Error(errno, "getrandom", "UDP link");
  }
  join();
}

void UdpGroup::join() {
  UdpOrderLock lock(forwarder_.directory_fd(), namespace_, kJoinPatienceMs);
  if (!lock.is_held()) {
    throw base::Error(lock.error(), "lock", lock.name(),
                      "a process that shares the port was stopped while it held the file: continue or end it");
  }
  auto file = lock.read();
  if (!file) {
    throw base::Error(EBADMSG, "read", lock.name(), "end the programs that use this node and remove the file");
  }
  remove_dead(*file);
  refuse_strangers(*file, lock);
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    sockets_[family] = open_udp_socket(kFamilies[family], options_.port);
    if (sockets_[family].is_open()) {
      inodes_[family] = inode_of(sockets_[family].get());
      file->families[family].append({options_.slot, getpid(), inodes_[family], true});
    }
  }
  if (!sockets_[0].is_open() && !sockets_[1].is_open()) {
    throw base::Error(EAFNOSUPPORT, "socket", fmt::format("UDP port {}", options_.port),
                      "there is no IPv4 and no IPv6");
  }
  if (const int error = attach(*file, false); error != 0) {
    throw base::Error(error, "setsockopt(SO_ATTACH_REUSEPORT_CBPF)", fmt::format("UDP port {}", options_.port));
  }
  ++file->generation;
  if (const int error = lock.write(*file); error != 0) {
    throw base::Error(error, "write", lock.name());
  }
  learn(*file);
  announce();
}

void UdpGroup::refuse_strangers(const UdpOrderFile& file, const UdpOrderLock& lock) const {
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    for (const uint64_t inode : bound_udp_sockets(kFamilies[family], options_.port)) {
      if (!file.families[family].place_of(inode)) {
        throw base::Error(EADDRINUSE, "share",
                          fmt::format("UDP port {} (socket {} is not in {})", options_.port, inode, lock.name()),
                          "another program, or one with another RINGBOLT_RUNTIME_DIR, has the port (ss -lunpe shows "
                          "which); end it, or use another network namespace");
      }
    }
  }
}

bool UdpGroup::remove_dead(UdpOrderFile& file) const {
  bool is_changed = false;
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    if (file.families[family].members().empty()) {
      continue;
    }
    std::vector<uint64_t> living = bound_udp_sockets(kFamilies[family], options_.port);
    // The list is read in pages. A socket that goes away meanwhile makes the kernel skip another one: who seems dead is
    // looked for again.
    for (int i = 1; i < kLooks && file.families[family].has_others_than(living); ++i) {
      const std::vector<uint64_t> again = bound_udp_sockets(kFamilies[family], options_.port);
      living.insert(living.end(), again.begin(), again.end());
    }
    is_changed |= file.families[family].keep(living);
  }
  return is_changed;
}

int UdpGroup::attach(const UdpOrderFile& file, bool is_leaving) const {
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    const std::vector<UdpMember>& members = file.families[family].members();
    if (!sockets_[family].is_open() || members.empty()) {
      continue;
    }
    std::vector<UdpChoice> choices;
    for (size_t place = 0; place < members.size(); ++place) {
      if (!is_leaving || members[place].inode != inodes_[family]) {
        choices.push_back({members[place].slot, static_cast<uint32_t>(place)});
      }
    }
    // Attached to one socket it holds for all of the group (SO_ATTACH_REUSEPORT_CBPF in socket(7)).
    const auto program = udp_selector(choices, static_cast<uint32_t>(members.size()), options_.slot_shift);
    const int error = attach_udp_selector(sockets_[family].get(), program);
    // Where there are no selectors (QEMU 7.2 has none) the kernel spreads packets over the sockets, and each member
    // passes on what is not its own.
    if (error != 0 && error != ENOPROTOOPT) {
      return error;
    }
  }
  return 0;
}

bool UdpGroup::settle_if_needed() {
  is_suspicious_ |= watch_.take_news();
  if (!is_suspicious_) {
    return false;
  }
  is_suspicious_ = false;
  UdpOrderLock lock(forwarder_.directory_fd(), namespace_, 0);
  if (!lock.is_held()) {
    watch_.alarm_in(kRetryMs);
    return false;
  }
  auto file = lock.read();
  if (!file) {
    return false;
  }
  bool is_changed = false;
  try {
    is_changed = remove_dead(*file);
  } catch (const base::Error&) {
    return false;  // no descriptors left, say: packets go on being passed on
  }
  is_changed |= apply_proofs(*file);
  const bool is_news = is_changed || file->generation != seen_.generation;
  if (is_news && attach(*file, false) != 0) {
    return false;
  }
  if (is_changed) {
    ++file->generation;
    (void)lock.write(*file);
  }
  learn(*file);
  if (is_changed) {
    announce();
  }
  return is_news;
}

bool UdpGroup::apply_proofs(UdpOrderFile& file) {
  bool is_changed = false;
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    // Taken only from before nothing has changed: after a death the socket may be elsewhere.
    if (const auto proof = std::exchange(proofs_[family], {}); proof && proof->generation == file.generation) {
      is_changed |= file.families[family].prove(inodes_[family], proof->place);
    }
  }
  return is_changed;
}

/// Whoever is in it is watched from here on; if our own place is a guess we ask the kernel.
void UdpGroup::learn(const UdpOrderFile& file) {
  seen_ = file;
  std::vector<pid_t> others;
  for (const UdpOrder& order : seen_.families) {
    for (const UdpMember& member : order.members()) {
      if (member.pid != getpid()) {
        others.push_back(member.pid);
      }
    }
  }
  watch_.watch(others);
  send_probes();
}

void UdpGroup::send_probes() {
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    const std::vector<UdpMember>& members = seen_.families[family].members();
    const auto mine = seen_.families[family].place_of(inodes_[family]);
    if (!mine || members[*mine].is_sure) {
      continue;
    }
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(options_.port);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(options_.port);
    v6.sin6_addr = in6addr_loopback;
    for (size_t place = 0; place < members.size(); ++place) {
      const Probe probe{htonl(kUdpProbeMagic), htonl(static_cast<uint32_t>(place)), seen_.generation, nonce_};
      const auto* address =
          family == 0 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
      // One that gets lost leaves the guess: strays show it again.
      (void)!sendto(sockets_[family].get(), &probe, sizeof probe, MSG_DONTWAIT | MSG_NOSIGNAL, address,
                    family == 0 ? sizeof v4 : sizeof v6);
    }
  }
}

bool UdpGroup::take_probe(size_t family, std::span<const std::byte> packet) {
  Probe probe;
  if (packet.size() != sizeof probe) {
    return false;
  }
  std::memcpy(&probe, packet.data(), sizeof probe);
  if (ntohl(probe.magic_be) != kUdpProbeMagic || probe.nonce != nonce_) {
    return false;
  }
  proofs_[family] = Proof{probe.generation, ntohl(probe.place_be)};
  suspect();
  return true;
}

void UdpGroup::report_stray(uint32_t slot) {
  const uint64_t now = base::now_ns();
  if (now < next_report_ns_) {
    return;
  }
  next_report_ns_ = now + kReportIntervalNs;
  suspect();
  if (!seen_.families[0].is_sure() || !seen_.families[1].is_sure()) {
    forwarder_.announce_change(slot);
  }
}

std::optional<uint32_t> UdpGroup::another() const {
  for (const UdpOrder& order : seen_.families) {
    for (const UdpMember& member : order.members()) {
      if (member.slot != options_.slot) {
        return member.slot;
      }
    }
  }
  return std::nullopt;
}

void UdpGroup::announce() const {
  std::set<uint32_t> slots;
  for (const UdpOrder& order : seen_.families) {
    for (const UdpMember& member : order.members()) {
      slots.insert(member.slot);
    }
  }
  slots.erase(options_.slot);
  for (const uint32_t slot : slots) {
    forwarder_.announce_change(slot);
  }
}

void UdpGroup::leave(const std::function<void()>& drain) {
  const bool is_out = take_us_out(drain);
  if (is_out && another()) {
    // Whoever was choosing a socket when ours went may still give it a packet.
    wait_for_kernel_readers();
    drain();
  }
  for (base::UniqueFd& socket : sockets_) {
    socket.reset();
  }
}

bool UdpGroup::take_us_out(const std::function<void()>& drain) {
  UdpOrderLock lock(forwarder_.directory_fd(), namespace_, kLeavePatienceMs);
  auto file = lock.is_held() ? lock.read() : std::nullopt;
  if (!file) {  // the others notice that we are gone as they do when we are killed
    drain();
    return false;
  }
  try {
    remove_dead(*file);
    learn(*file);
    (void)attach(*file, true);
    drain();
    for (size_t family = 0; family < kFamilies.size(); ++family) {
      if (sockets_[family].is_open() && !withdraw_udp_socket(sockets_[family].get(), kFamilies[family])) {
        sockets_[family].reset();
      }
    }
    remove_dead(*file);
  } catch (const base::Error&) {
    return false;
  }
  ++file->generation;
  (void)lock.write(*file);
  seen_ = *file;
  announce();
  return true;
}

void UdpGroup::abandon_after_fork() { watch_.abandon_after_fork(); }

}  // namespace ringbolt::link
