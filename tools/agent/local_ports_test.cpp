#include "agent/local_ports.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "link/stream_source.h"

namespace ringbolt::tools::agent {
namespace {

constexpr size_t kDestQpAt = link::PortPrefix::kBytes + 5;
constexpr uint32_t kSlotShift = 16;
constexpr uint32_t kSlot = 7;

using Packets = std::vector<std::vector<std::byte>>;

class Folder {
 public:
  Folder() { path_ = mkdtemp(name_.data()); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string name_ = "/tmp/rbports-XXXXXX";
  std::string path_;
};

/// From node 1 to a queue pair of the program's.
std::vector<std::byte> packet_of(size_t length) {
  std::vector<std::byte> packet(length);
  for (size_t i = 0; i < length; ++i) {
    packet[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  link::PortPrefix{0, 0, 2}.emit(packet);
  packet[kDestQpAt] = std::byte{kSlot};
  return packet;
}

/// A program that has the node's device open.
class Program {
 public:
  explicit Program(const std::string& path) {
    link::StreamLink::Options options;
    options.incarnation = 5;
    options.window_packets = link::kPortWindowPackets;
    options.window_frames = link::kPortWindowFrames;
    options.greeting.resize(link::OverlayClaim::kGidBytes);
    link::OverlayClaim{kSlot, kSlotShift}.append_to(options.greeting);
    std::vector<std::unique_ptr<link::StreamSource>> sources;
    sources.push_back(link::make_stream_source("unix:" + path));
    endpoint_.emplace(std::move(sources), std::move(options), base::now_ns());
  }

  /// Until the program has so many packets, which it returns.
  Packets receive(LocalPorts& ports, size_t n) {
    Packets packets;
    const uint64_t give_up_ns = base::now_ns() + 20'000'000'000;
    while (packets.size() < n && base::now_ns() < give_up_ns) {
      std::array<pollfd, 2> waits{{{ports.descriptor(), POLLIN, 0}, {endpoint_->descriptor(), POLLIN, 0}}};
      (void)::poll(waits.data(), waits.size(), 100);
      ports.serve(base::now_ns());
      endpoint_->flush(base::now_ns());
      endpoint_->receive(base::now_ns(),
                         [&](std::span<const std::byte> one) { packets.emplace_back(one.begin(), one.end()); });
    }
    return packets;
  }

 private:
  std::optional<link::StreamEndpoint> endpoint_;
};

/// One that says nothing.
base::UniqueFd connected_to(const std::string& path) {
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

TEST(LocalPorts, drops_packets_that_no_stream_carries) {
  const Folder folder;
  LocalPorts ports(folder.file("0.sock"), 0, 2);
  Program program(folder.file("0.sock"));
  ports.set_courier(nullptr, {0, 1});
  const std::vector<std::byte> longest = packet_of(link::kMaxStreamPacketBytes);
  ports.on_packet(1, longest);  // kept until the program has said which queue pairs are its own
  EXPECT_EQ(program.receive(ports, 1), Packets{longest});
  for (const size_t length : {size_t{0}, link::PortPrefix::kBytes + 11, link::kMaxStreamPacketBytes + 1,
                              size_t{mesh::Courier::kMostPacketBytes}}) {
    ports.on_packet(1, length == 0 ? std::vector<std::byte>() : packet_of(length));
  }
  EXPECT_EQ(ports.counts().dropped_strange, 4U);
  ports.on_packet(1, longest);
  ports.on_end_of_packets();
  EXPECT_EQ(program.receive(ports, 1), Packets{longest});
}

TEST(LocalPorts, know_ranks_by_the_nodes_that_meet) {
  const Folder folder;
  LocalPorts ports(folder.file("0.sock"), 0, 4);
  Program program(folder.file("0.sock"));
  const std::vector<std::byte> from_1 = packet_of(100);
  ports.on_packet(1, from_1);
  EXPECT_EQ(ports.counts().dropped_strange, 1U);  // no meeting
  ports.set_courier(nullptr, {0, 3});
  ports.on_packet(1, from_1);
  ports.on_packet(2, from_1);
  EXPECT_EQ(ports.counts().dropped_strange, 3U);
  std::vector<std::byte> from_3 = from_1;
  link::PortPrefix{0, 0, 4}.emit(from_3);
  ports.on_packet(1, from_3);
  EXPECT_EQ(program.receive(ports, 1), Packets{from_3});
  EXPECT_EQ(ports.counts().dropped_strange, 3U);
}

TEST(LocalPorts, gives_up_a_connection_that_never_says_anything) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const Folder folder;
  LocalPorts ports(folder.file("0.sock"), 0, 2);
  const base::UniqueFd silent = connected_to(folder.file("0.sock"));
  for (const auto& [now_ns, n_programs] :
       {std::pair(kSecond, 1U), std::pair(5 * kSecond, 1U), std::pair(7 * kSecond, 0U)}) {
    ports.serve(now_ns);
    EXPECT_EQ(ports.n_programs(), n_programs) << now_ns;
  }
}

/// No descriptor can be opened while it lives.
class NoneLeft {
 public:
  NoneLeft() {
    (void)::getrlimit(RLIMIT_NOFILE, &before_);
    const base::UniqueFd next(::dup(STDERR_FILENO));  // the lowest that is free
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    (void)::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoneLeft() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }
  NoneLeft(const NoneLeft&) = delete;
  NoneLeft& operator=(const NoneLeft&) = delete;

 private:
  rlimit before_{};
};

bool keeps_awake(const LocalPorts& ports) {
  pollfd one{ports.descriptor(), POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

TEST(LocalPorts, sleeps_while_no_descriptor_is_left_and_then_takes_who_waits) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const Folder folder;
  LocalPorts ports(folder.file("0.sock"), 0, 2);
  const base::UniqueFd silent = connected_to(folder.file("0.sock"));
  EXPECT_TRUE(keeps_awake(ports));
  {
    const NoneLeft none;
    ports.serve(kSecond);
  }
  EXPECT_FALSE(keeps_awake(ports)) << "who can't be accepted must not make a busy loop";
  EXPECT_EQ(ports.n_programs(), 0U);
  ports.serve(2 * kSecond);
  EXPECT_EQ(ports.n_programs(), 1U);
}

TEST(LocalPorts, one_descriptor_too_few_turns_away_a_program_and_nobody_else) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const Folder folder;
  LocalPorts ports(folder.file("0.sock"), 0, 2);
  const base::UniqueFd silent = connected_to(folder.file("0.sock"));
  base::UniqueFd spare(::dup(STDERR_FILENO));
  const NoneLeft none;
  spare.reset();  // enough for the connection, not for its stream
  EXPECT_NO_THROW(ports.serve(kSecond));
  EXPECT_EQ(ports.n_programs(), 0U);
}

}  // namespace
}  // namespace ringbolt::tools::agent
