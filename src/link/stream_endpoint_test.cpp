#include "link/stream_endpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <termios.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "link/stream_test_support.h"

namespace ringbolt::link::stream_test {
namespace {

using Sources = std::vector<std::unique_ptr<StreamSource>>;

StreamLink::Options link_options(uint64_t incarnation) {
  StreamLink::Options options;
  options.incarnation = options.seed = incarnation;
  options.window_packets = 256;
  return options;
}

/// Streams that a test has made; the first is there at once, the others when the one before has ended.
class MadeStreams final : public StreamSource {
 public:
  base::Result<OpenStream> open() override {
    if (streams.empty()) {
      return base::fail(EHOSTDOWN);
    }
    auto stream = adopt_stream(std::move(streams.front().first), std::move(streams.front().second));
    streams.pop_front();
    return stream;
  }
  std::deque<std::pair<base::UniqueFd, base::UniqueFd>> streams;
};

/// Two ends, and packets both ways of all lengths.
class Traffic {
 public:
  Traffic(Sources a, Sources b) {
    ends_[0] = std::make_unique<StreamEndpoint>(std::move(a), link_options(1), base::now_ns());
    ends_[1] = std::make_unique<StreamEndpoint>(std::move(b), link_options(2), base::now_ns());
  }

  void turn(uint64_t packets) {
    for (unsigned side = 0; side < 2; ++side) {
      StreamEndpoint& self = *ends_[side];
      for (int i = 0; i < 40 && sent_[side] < packets && !self.reserve().empty(); ++i) {
        const Bytes packet = packet_of(sent_[side], side, length_of(sent_[side]));
        std::copy(packet.begin(), packet.end(), self.reserve().begin());
        self.commit(packet.size());
        ++sent_[side];
      }
      self.flush(base::now_ns());
      self.receive(base::now_ns(), [&](std::span<const std::byte> packet) {
        const uint64_t number = arrived_[side]++;
        const Bytes wanted = packet_of(number, 1 - side, length_of(number));
        ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), packet.begin(), packet.end())) << number;
      });
    }
  }

  /// Until that many have arrived at both ends; sleeps on the descriptors when there is nothing to do.
  bool run(uint64_t packets) {
    const uint64_t give_up = base::now_ns() + 20'000'000'000U;
    while (arrived_[0] < packets || arrived_[1] < packets) {
      turn(packets);
      std::array<pollfd, 2> waits{{{ends_[0]->descriptor(), POLLIN, 0}, {ends_[1]->descriptor(), POLLIN, 0}}};
      if (sent_[0] == packets && sent_[1] == packets) {
        poll(waits.data(), waits.size(), 1000);
      }
      if (base::now_ns() > give_up || ::testing::Test::HasFatalFailure()) {
        return false;
      }
    }
    return true;
  }
  bool is_ready(size_t rail) const {
    return std::ranges::all_of(ends_,
                               [&](const auto& end) { return end->link().state(rail) == StreamSession::State::ready; });
  }
  StreamEndpoint& end(unsigned side) { return *ends_[side]; }

 private:
  static size_t length_of(uint64_t number) { return number % 3 == 0 ? kMaxStreamPacketBytes : number * 37 % 4200; }
  std::array<std::unique_ptr<StreamEndpoint>, 2> ends_;
  std::array<uint64_t, 2> sent_{};
  std::array<uint64_t, 2> arrived_{};
};

std::pair<base::UniqueFd, base::UniqueFd> socket_pair() {
  std::array<int, 2> pair{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  return {base::UniqueFd(pair[0]), base::UniqueFd(pair[1])};
}

template <class... Made>
Sources sources(Made... made) {
  Sources list;
  (list.push_back(std::move(made)), ...);
  return list;
}

std::unique_ptr<StreamSource> made(base::UniqueFd in, base::UniqueFd out = {}) {
  auto source = std::make_unique<MadeStreams>();
  source->streams.emplace_back(std::move(in), std::move(out));
  return source;
}

TEST(StreamEndpoint, carries_packets_over_a_socket_pair) {
  auto [a, b] = socket_pair();
  Traffic traffic(sources(made(std::move(a))), sources(made(std::move(b))));
  EXPECT_TRUE(traffic.run(2000));
}

TEST(StreamEndpoint, carries_packets_over_two_pipes) {
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  ASSERT_EQ(pipe2(there.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(back.data(), O_CLOEXEC), 0);
  Traffic traffic(sources(made(base::UniqueFd(back[0]), base::UniqueFd(there[1]))),
                  sources(made(base::UniqueFd(there[0]), base::UniqueFd(back[1]))));
  EXPECT_TRUE(traffic.run(1000));
}

TEST(StreamEndpoint, a_pipe_without_a_reader_raises_no_signal) {
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  ASSERT_EQ(pipe2(there.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(back.data(), O_CLOEXEC), 0);
  close(there[0]);
  const base::UniqueFd other_end(back[1]);
  StreamEndpoint endpoint(sources(made(base::UniqueFd(back[0]), base::UniqueFd(there[1]))), link_options(1),
                          base::now_ns());
  EXPECT_EQ(endpoint.link().last_end(0), StreamSession::End::stream_ended);
}

TEST(StreamEndpoint, carries_packets_over_a_terminal) {
  base::UniqueFd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 100> name{};
  if (!master.is_open() || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0 ||
      ptsname_r(master.get(), name.data(), name.size()) != 0) {
    GTEST_SKIP() << "no pseudo terminals here";
  }
  Traffic traffic(sources(make_stream_source(name.data())), sources(made(std::move(master))));
  EXPECT_TRUE(traffic.run(300));
}

TEST(StreamEndpoint, carries_packets_over_tcp) {
  auto listening = make_stream_source("tcp-listen:127.0.0.1:0");
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ASSERT_EQ(getsockname(listening->listener(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  auto connecting = make_stream_source("tcp:127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  Traffic traffic(sources(std::move(listening)), sources(std::move(connecting)));
  EXPECT_TRUE(traffic.run(2000));
}

TEST(StreamEndpoint, a_listener_serves_one_peer_after_another) {
  std::string folder = ::testing::TempDir() + "/rb-stream-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/s";
  StreamEndpoint listening(sources(make_stream_source("unix-listen:" + path)), link_options(1), base::now_ns());
  for (uint64_t peer = 2; peer < 5; ++peer) {
    StreamEndpoint connecting(sources(make_stream_source("unix:" + path)), link_options(peer), base::now_ns());
    uint64_t heard = 0;
    connecting.reserve()[0] = static_cast<std::byte>(peer);
    connecting.commit(1);
    for (int i = 0; i < 1'000'000 && heard == 0; ++i) {
      connecting.receive(base::now_ns(), [](auto) {});
      listening.receive(base::now_ns(),
                        [&](std::span<const std::byte> packet) { heard = std::to_integer<uint64_t>(packet[0]); });
    }
    EXPECT_EQ(heard, peer);
    EXPECT_EQ(listening.link().peer_incarnation(), peer);
    connecting.leave(base::now_ns());
  }
  std::filesystem::remove_all(folder);
}

TEST(StreamEndpoint, loses_and_doubles_nothing_when_rails_die_and_come_back) {
  auto one = std::make_unique<MadeStreams>();
  auto other = std::make_unique<MadeStreams>();
  std::vector<base::UniqueFd> handles;  // to break streams from outside
  for (int i = 0; i < 6; ++i) {
    auto [a, b] = socket_pair();
    handles.emplace_back(fcntl(a.get(), F_DUPFD_CLOEXEC, 0));
    one->streams.emplace_back(std::move(a), base::UniqueFd());
    other->streams.emplace_back(std::move(b), base::UniqueFd());
  }
  auto [a, b] = socket_pair();
  Traffic traffic(sources(std::move(one), made(std::move(a))), sources(std::move(other), made(std::move(b))));
  uint64_t packets = 0;
  for (const base::UniqueFd& handle : handles) {
    ASSERT_TRUE(traffic.run(packets += 300));
    const uint64_t give_up = base::now_ns() + 20'000'000'000U;
    while (!traffic.is_ready(0) && base::now_ns() < give_up) {
      traffic.turn(packets);  // until the rail is back
    }
    traffic.turn(packets + 200);  // so that something is under way
    ASSERT_EQ(shutdown(handle.get(), SHUT_RDWR), 0);
    ASSERT_TRUE(traffic.run(packets += 300));
  }
  EXPECT_GE(traffic.end(0).link().counters().ended_epochs, 5U);
}

TEST(StreamEndpoint, inherited_sockets_end_for_good_and_devices_do_not) {
  auto [a, b] = socket_pair();
  auto source = make_stream_source("fd:" + std::to_string(a.get()));
  EXPECT_TRUE(source->open());
  EXPECT_FALSE(source->can_reopen());
  EXPECT_EQ(source->open().error().value, ENODEV);
  const base::UniqueFd device(open("/dev/null", O_RDWR | O_CLOEXEC));
  auto reusable = make_stream_source("fd:" + std::to_string(device.get()));
  EXPECT_TRUE(reusable->can_reopen());
  EXPECT_TRUE(reusable->open());
  EXPECT_TRUE(reusable->open());
}

TEST(StreamEndpoint, says_what_it_does_not_understand) {
  for (const char* text :
       {"", "fd:", "fd:x", "fd:1000000", "fd:0,", "unix:", "tcp:", "tcp:localhost", "tcp::", "udp:1", "tcp-listen:1"}) {
    EXPECT_THROW(make_stream_source(text), base::Error) << text;
  }
  EXPECT_THROW(make_stream_source("unix-listen:/nowhere/at/all"), base::Error);
  EXPECT_EQ(make_stream_source("/nowhere/at/all")->open().error().value, ENOENT);
}

}  // namespace
}  // namespace ringbolt::link::stream_test
