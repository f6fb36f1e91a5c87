// Streams of sockets: who takes whose place, and what is said of what can never work.

#include "link/stream_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using testing::TempFolder;

std::string words_about(const std::string& text) {
  try {
    make_stream_source(text);
    return "";
  } catch (const base::Error& error) {
    return error.what();
  }
}

/// The stream of the peer that has called; none if it does not come.
base::Result<OpenStream> accepted(StreamSource& source) {
  pollfd waiting{source.listener(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, static_cast<int>(testing::kPatienceNs / 1'000'000)), 1);
  return source.open();
}

/// What is written into one end comes out of the other, and nothing blocks.
void expect_joined(const OpenStream& one, const OpenStream& other) {
  std::byte got{};
  EXPECT_EQ(recv(other.in.get(), &got, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  const std::byte sent{0x5a};
  pollfd waiting{other.in.get(), POLLIN, 0};
  EXPECT_EQ(send(one.write_descriptor(), &sent, 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(poll(&waiting, 1, static_cast<int>(testing::kPatienceNs / 1'000'000)), 1);
  EXPECT_EQ(recv(other.in.get(), &got, 1, 0), 1);
  EXPECT_EQ(got, sent);
}

TEST(StreamSource, unix_peers_find_each_other_again_and_again) {
  const TempFolder folder;
  const std::string path = folder.path() + "/stream";
  auto caller = make_stream_source("unix:" + path);
  EXPECT_EQ(caller->open().error().value, ENOENT) << "nobody is there yet: try again";
  {
    auto listener = make_stream_source("unix-listen:" + path);
    EXPECT_GE(listener->listener(), 0);
    EXPECT_EQ(caller->listener(), -1);
    EXPECT_EQ(listener->open().error().value, EAGAIN);
    for (int round = 0; round < 3; ++round) {
      const auto called = caller->open();
      ASSERT_TRUE(called);
      const auto taken = accepted(*listener);
      ASSERT_TRUE(taken);
      EXPECT_TRUE(taken->is_socket && !taken->is_pipe && !taken->is_in_packets);
      expect_joined(*called, *taken);
      expect_joined(*taken, *called);
    }
    EXPECT_TRUE(listener->can_reopen() && caller->can_reopen());
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "who listens removes its name";
}

TEST(StreamSource, takes_a_dead_listeners_place_and_no_living_ones) {
  const TempFolder folder;
  const std::string path = folder.path() + "/stream";
  {
    const base::UniqueFd dead(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  auto listener = make_stream_source("unix-listen:" + path);
  const std::string words = words_about("unix-listen:" + path);
  EXPECT_NE(words.find(path), std::string::npos) << words;
  EXPECT_NE(words.find("another program may use it"), std::string::npos) << words;
  EXPECT_TRUE(std::filesystem::exists(path)) << "the living one keeps it";
  EXPECT_TRUE(make_stream_source("unix:" + path)->open());
}

TEST(StreamSource, unix_paths_have_room_for_107_bytes) {
  const TempFolder folder;
  const std::string stem = folder.path() + "/";
  const std::string longest = stem + std::string(107 - stem.size(), 'p');
  auto listener = make_stream_source("unix-listen:" + longest);
  EXPECT_TRUE(make_stream_source("unix:" + longest)->open());
  EXPECT_NE(words_about("unix:" + longest + "p").find("1 to 107 bytes"), std::string::npos);
}

TEST(StreamSource, tcp_peers_find_each_other_at_names_and_both_kinds_of_addresses) {
  for (const std::string host : {"127.0.0.1", "[::1]", "localhost"}) {
    std::unique_ptr<StreamSource> listener;
    try {
      listener = make_stream_source("tcp-listen:" + host + ":0");
    } catch (const base::Error& error) {
      ASSERT_EQ(host, "[::1]") << error.what();  // a machine without IPv6
      continue;
    }
    sockaddr_storage place{};
    socklen_t length = sizeof place;
    ASSERT_EQ(getsockname(listener->listener(), reinterpret_cast<sockaddr*>(&place), &length), 0);
    const in_port_t port = place.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(place).sin6_port
                                                       : reinterpret_cast<sockaddr_in&>(place).sin_port;
    auto caller = make_stream_source("tcp:" + host + ":" + std::to_string(ntohs(port)));
    const auto called = caller->open();
    ASSERT_TRUE(called) << host;
    const auto taken = accepted(*listener);
    ASSERT_TRUE(taken) << host;
    expect_joined(*called, *taken);
    for (const OpenStream* one : {&*called, &*taken}) {
      int is_immediate = 0;
      socklen_t size = sizeof is_immediate;
      EXPECT_EQ(getsockopt(one->in.get(), IPPROTO_TCP, TCP_NODELAY, &is_immediate, &size), 0);
      EXPECT_NE(is_immediate, 0) << "a small frame would wait for the acknowledgement of the one before";
    }
  }
}

TEST(StreamSource, says_what_is_wrong_with_an_address) {
  EXPECT_NE(words_about("tcp:nowhere").find("say HOST:PORT"), std::string::npos);
  EXPECT_NE(words_about("tcp:127.0.0.1:").find("say HOST:PORT"), std::string::npos);
  EXPECT_NE(words_about("tcp:127.0.0.1:no-such-service").find("127.0.0.1:no-such-service"), std::string::npos);
  EXPECT_NE(words_about("carrier-pigeon:3").find("say fd:N, unix:PATH"), std::string::npos);
  EXPECT_NE(words_about("fd:-1").find("use an open descriptor"), std::string::npos);
  EXPECT_NE(words_about("fd:1x"), "");
  EXPECT_NE(words_about("fd:99999999999"), "") << "more than an int holds";
}

TEST(StreamSource, inherited_pipes_go_both_ways_and_stay_the_programs) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  ASSERT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
  const base::UniqueFd to_us(in[1]);
  const base::UniqueFd ours_in(in[0]);
  const base::UniqueFd from_us(out[0]);
  const base::UniqueFd ours_out(out[1]);
  {
    auto source = make_stream_source("fd:" + std::to_string(ours_in.get()) + "," + std::to_string(ours_out.get()));
    const auto stream = source->open();
    ASSERT_TRUE(stream);
    EXPECT_TRUE(stream->is_pipe && !stream->is_socket && stream->out.is_open());
    char got = 0;
    EXPECT_EQ(read(stream->in.get(), &got, 1), -1);
    EXPECT_EQ(errno, EAGAIN) << "a pipe that blocks would stop everything";
    ASSERT_EQ(write(to_us.get(), "x", 1), 1);
    EXPECT_EQ(read(stream->in.get(), &got, 1), 1);
    ASSERT_EQ(write(stream->write_descriptor(), "y", 1), 1);
    EXPECT_EQ(read(from_us.get(), &got, 1), 1);
    EXPECT_EQ(got, 'y');
    EXPECT_EQ(source->open().error().value, ENODEV);
    EXPECT_FALSE(source->can_reopen());
  }
  EXPECT_GE(fcntl(ours_in.get(), F_GETFD), 0);
  EXPECT_GE(fcntl(ours_out.get(), F_GETFD), 0);
}

}  // namespace
}  // namespace ringbolt::link
