#include "membership/discovery.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>

#include <fmt/format.h>

#include "base/byte_writer.h"
#include "base/crc.h"
#include "base/folder.h"
#include "base/process_start.h"

namespace ringbolt::membership {
namespace {

// Scope 2, of one link, and not assigned permanently (RFC 4291, 2.7); "RBM" in its last words.
constexpr const char* kGroupAddress = "ff12::5242:4d";
constexpr uint32_t kMagic = 0x444d4252;  // "RBMD"
constexpr uint16_t kVersion = 1;
constexpr std::string_view kFilePrefix = "member-";

// Only a filter: the handshake decides whether a group is the same.
uint32_t number_of(const std::string& group) { return base::crc32c(0, std::as_bytes(std::span(group))); }

sockaddr_in6 group_at(unsigned link) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(Discovery::kPort);
  address.sin6_scope_id = link;
  ::inet_pton(AF_INET6, kGroupAddress, &address.sin6_addr);
  return address;
}

bootstrap::Address loopback_at(uint16_t port) {
  bootstrap::Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.bytes);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.length = sizeof(sockaddr_in);
  return address;
}

}  // namespace

Discovery::Discovery(Plan plan) : plan_(std::move(plan)) {
  (void)watch(plan_.interfaces);
  if (!plan_.folder.empty()) {
    write_file();
  }
}

Discovery::~Discovery() {
  if (!plan_.folder.empty()) {
    ::unlink(file_of(plan_.self).c_str());
  }
}

bool Discovery::watch(const std::vector<std::string>& interfaces) {
  const size_t n_before = links_.size();
  for (const std::string& name : interfaces) {
    const unsigned link = ::if_nametoindex(name.c_str());
    // An interface that is not there (yet) is tried again with the next watch().
    const bool is_new = link != 0 && std::ranges::find(links_, link) == links_.end();
    if (is_new && (socket_.is_open() || open_socket()) && join(link)) {
      links_.push_back(link);
    }
  }
  return links_.size() != n_before;
}

bool Discovery::open_socket() {
  base::UniqueFd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(kPort);
  // So that all members of a machine hear: of multicast each socket gets a copy (socket(7)).
  if (!fd.is_open() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) {
    return false;
  }
  // Cables are links of their own; nobody behind a router is meant.
  const int hops = 1;
  (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops);
  socket_ = std::move(fd);
  return true;
}

bool Discovery::join(unsigned link) const {
  const ipv6_mreq joined{group_at(link).sin6_addr, link};
  // EADDRINUSE: it has joined before, and hears.
  return ::setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_JOIN_GROUP, &joined, sizeof joined) == 0 || errno == EADDRINUSE;
}

void Discovery::call_out() {
  base::ByteWriter writer;
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(plan_.port);
  writer.put(plan_.self);
  writer.put(number_of(plan_.group));
  for (const unsigned link : links_) {
    const sockaddr_in6 group = group_at(link);
    // What is lost is sent again: see kCallOutTicks.
    (void)::sendto(socket_.get(), writer.bytes().data(), writer.bytes().size(), MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&group), sizeof group);
  }
}

std::vector<Discovery::Found> Discovery::receive() {
  std::vector<Found> found;
  // A bound on what strangers can make this thread read in one round.
  constexpr int kMost = 64;
  for (int i = 0; i < kMost && socket_.is_open(); ++i) {
    std::array<std::byte, 64> bytes;
    Found one;
    const ssize_t got = ::recvfrom(socket_.get(), bytes.data(), bytes.size(), 0, one.at.get(), &one.at.length);
    if (got < 0) {
      break;
    }
    base::ByteReader reader(std::span<const std::byte>(bytes).first(static_cast<size_t>(got)));
    const bool is_ours = reader.take<uint32_t>() == kMagic && reader.take<uint16_t>() == kVersion;
    const auto port = reader.take<uint16_t>();
    one.member = reader.take<uint64_t>();
    const bool is_of_group = reader.take<uint32_t>() == number_of(plan_.group);
    if (is_ours && is_of_group && reader.is_sound() && one.member != plan_.self && one.member != 0) {
      // Its source address with the link's index (sin6_scope_id), and the TCP port that it has named.
      reinterpret_cast<sockaddr_in6*>(&one.at.bytes)->sin6_port = htons(port);
      found.push_back(one);
    }
  }
  return found;
}

std::string Discovery::file_of(MemberId member) const {
  return fmt::format("{}/{}{:016x}", plan_.folder, kFilePrefix, member);
}

/// Written beside and renamed, so that nobody reads half of it.
void Discovery::write_file() {
  // The folder above it is the cluster's own (cluster/runtime_dir.h).
  (void)::mkdir(plan_.folder.c_str(), 0700);
  const std::string beside = file_of(plan_.self) + ".new";
  {
    std::ofstream file(beside, std::ios::trunc);
    file << plan_.machine << ' ' << plan_.port << ' ' << ::getpid() << ' ' << base::process_start(::getpid()) << '\n';
  }
  (void)::rename(beside.c_str(), file_of(plan_.self).c_str());
}

std::vector<Discovery::Found> Discovery::look() const {
  std::vector<Found> found;
  if (plan_.folder.empty()) {
    return found;
  }
  const int error = base::each_name_in(plan_.folder.c_str(), [&](std::string_view name) {
    unsigned long long member = 0;
    if (!name.starts_with(kFilePrefix) || std::sscanf(name.data() + kFilePrefix.size(), "%16llx", &member) != 1 ||
        member == plan_.self) {
      return;
    }
    const std::string path = fmt::format("{}/{}", plan_.folder, name);
    uint64_t machine = 0;
    uint32_t port = 0;
    pid_t pid = 0;
    uint64_t start = 0;
    if (!(std::ifstream(path) >> machine >> port >> pid >> start) || machine != plan_.machine || port > UINT16_MAX) {
      return;
    }
    // Killed, so that its destructor has not run. Machine and namespace are ours, or the number of the process would
    // mean nothing.
    if (!base::is_same_process(pid, start)) {
      ::unlink(path.c_str());
      return;
    }
    found.push_back({member, loopback_at(static_cast<uint16_t>(port))});
  });
  (void)error;  // no folder: nobody has come yet
  return found;
}

}  // namespace ringbolt::membership
