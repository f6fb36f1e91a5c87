// What one side sees when the other is killed or stopped.

#include <algorithm>
#include <cerrno>

#include "processes.h"

namespace ringbolt::stream_test {
namespace {

using std::chrono::steady_clock;

bool idle(ByteStream&, int control) {
  hear(control);
  return false;
}

uint64_t ms_since(steady_clock::time_point begin) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin).count());
}

TEST(StreamDeath, killed_server_is_noticed_by_who_reads) {
  const RuntimeFolder folder;
  Server server(with_buffers(65536), idle);
  StreamService service("soft");
  ByteStream stream = service.connect("127.0.0.1", server.port(), kSoonMs);
  stream.write("half a request", 14, kSoonMs);
  server.child().kill(SIGKILL);
  const auto begin = steady_clock::now();
  char room[8];
  try {
    EXPECT_EQ(stream.read(room, sizeof room, kSoonMs), 0U);
    EXPECT_EQ(stream.ended(), RINGBOLT_STREAM_PEER_CLOSED);
  } catch (const StreamError&) {  // its device had not acknowledged all
    EXPECT_EQ(stream.ended(), RINGBOLT_STREAM_PEER_LOST);
  }
  EXPECT_LT(ms_since(begin), scaled_ms(3000));
  EXPECT_THROW(stream.write("x", 1, kSoonMs), StreamError);
}

TEST(StreamDeath, killed_server_is_noticed_by_who_writes_into_a_full_buffer) {
  const RuntimeFolder folder;
  Server server(with_buffers(65536), idle);
  StreamService service("soft");
  ByteStream stream = service.connect("127.0.0.1", server.port(), kSoonMs);
  const std::vector<char> much(1'000'000);
  ASSERT_EQ(stream.write(much.data(), 65536, kSoonMs), 65536U);
  server.child().kill(SIGKILL);
  const auto begin = steady_clock::now();
  EXPECT_THROW(stream.write(much.data(), much.size(), kSoonMs), StreamError);
  EXPECT_LT(ms_since(begin), scaled_ms(3000));
}

TEST(StreamDeath, killed_client_is_noticed_by_its_server_and_others_go_on) {
  const RuntimeFolder folder;
  const auto connect = [&](int control) {
    StreamService service("soft");
    ByteStream stream = service.connect("127.0.0.1", static_cast<uint16_t>(hear(control)), kSoonMs);
    write_all(stream, "begun", 5);
    hear(control);
    write_all(stream, "other", 5);
    hear(control);
  };
  Child victim(connect);
  Child survivor(connect);
  StreamService service("soft");
  StreamListener listener = service.listen("127.0.0.1", 0);
  tell(victim.control(), listener.port());
  auto first = listener.accept(kSoonMs);
  ASSERT_TRUE(first);
  char word[5];
  ASSERT_TRUE(read_all(*first, word, sizeof word));
  tell(survivor.control(), listener.port());
  auto second = listener.accept(kSoonMs);
  ASSERT_TRUE(second);
  ASSERT_TRUE(read_all(*second, word, sizeof word));
  victim.kill(SIGKILL);
  const auto begin = steady_clock::now();
  EXPECT_EQ(first->read(word, sizeof word, kSoonMs), 0U);
  EXPECT_LT(ms_since(begin), scaled_ms(3000));
  tell(survivor.control(), 1);
  ASSERT_TRUE(read_all(*second, word, sizeof word));
  EXPECT_EQ(std::memcmp(word, "other", 5), 0);
  tell(survivor.control(), 1);
  EXPECT_EQ(survivor.join(), 0);
}

/// What close() answers, once its peer does not take anything any more.
void close_and_say_how_much(ByteStream& stream, uint64_t timeout_ms, const std::vector<int>& codes, uint64_t written) {
  try {
    stream.close(timeout_ms);
    ADD_FAILURE() << "nobody has taken it";
  } catch (const StreamError& error) {
    EXPECT_TRUE(std::find(codes.begin(), codes.end(), error.code()) != codes.end()) << error.code();
    const std::string count = std::to_string(written);
    EXPECT_NE(std::string(error.what()).find("of " + count + " bytes that were written " + count + " are not known"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(stream.statistics().bytes_sent, written);
  EXPECT_EQ(stream.statistics().bytes_arrived, 0U);
}

TEST(StreamDeath, close_says_what_a_killed_peer_has_not_acknowledged) {
  const RuntimeFolder folder;
  Server server(with_buffers(65536), idle);
  StreamService service("soft");
  ByteStream stream = service.connect("127.0.0.1", server.port(), kSoonMs);
  ASSERT_NE(stream.wait(RINGBOLT_STREAM_WRITABLE, kSoonMs) & RINGBOLT_STREAM_WRITABLE, 0U);
  server.child().stop();
  write_all(stream, patterned(1000, 0, 0).data(), 1000);
  server.child().kill(SIGKILL);
  close_and_say_how_much(stream, kSoonMs, {EPIPE, ECONNRESET}, 1000);
}

TEST(StreamDeath, close_says_what_a_stopped_peer_has_not_acknowledged_by_the_time_limit) {
  const RuntimeFolder folder;
  Server server(with_buffers(65536), idle);
  StreamService service("soft");
  ByteStream stream = service.connect("127.0.0.1", server.port(), kSoonMs);
  ASSERT_NE(stream.wait(RINGBOLT_STREAM_WRITABLE, kSoonMs) & RINGBOLT_STREAM_WRITABLE, 0U);
  server.child().stop();
  write_all(stream, patterned(1000, 0, 0).data(), 1000);
  close_and_say_how_much(stream, 50, {ETIMEDOUT}, 1000);
}

/// Every call ends by its time limit, and all goes on when the peer does.
TEST(StreamDeath, stopped_server_costs_time_limits_and_nothing_else) {
  const RuntimeFolder folder;
  Server server(with_buffers(65536), answer_requests);
  StreamService service("soft");
  ByteStream stream = service.connect("127.0.0.1", server.port(), kSoonMs);
  uint64_t length = 300'000;
  write_all(stream, reinterpret_cast<const char*>(&length), sizeof length);
  server.child().stop();
  char room[8];
  EXPECT_FALSE(stream.read(room, sizeof room, 50));
  const auto request = patterned(length, 0, 0);
  size_t written = 0;
  for (int i = 0; i < 5; ++i) {
    written += stream.write(&request[written], request.size() - written, 50);
  }
  EXPECT_LT(written, request.size());
  EXPECT_EQ(stream.ended(), RINGBOLT_STREAM_OPEN);
  server.child().kill(SIGCONT);
  write_all(stream, &request[written], request.size() - written);
  std::vector<char> reply(length);
  ASSERT_TRUE(read_all(stream, reply.data(), reply.size()));
  EXPECT_TRUE(reply == patterned(length, 0, 1));
}

TEST(StreamDeath, stopped_client_costs_its_server_no_more_than_keepalives) {
  const RuntimeFolder folder;
  Child client([](int control) {
    StreamService service("soft");
    ByteStream stream = service.connect("127.0.0.1", static_cast<uint16_t>(hear(control)), kSoonMs);
    tell(control, 1);
    answer_requests(stream, control);
  });
  StreamService service("soft");
  ringbolt_stream_options often = with_buffers(65536);
  often.keepalive_ms = 1;
  ringbolt_stream_listener_options listening = StreamService::listener_options();
  listening.stream = &often;
  StreamListener listener = service.listen("127.0.0.1", 0, listening);
  tell(client.control(), listener.port());
  auto stream = listener.accept(kSoonMs);
  ASSERT_TRUE(stream);
  ASSERT_NE(stream->wait(RINGBOLT_STREAM_WRITABLE, kSoonMs) & RINGBOLT_STREAM_WRITABLE, 0U);
  EXPECT_EQ(hear(client.control()), 1U);
  client.stop();
  char room[8];
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(stream->read(room, sizeof room, 10));
  }
  EXPECT_EQ(stream->ended(), RINGBOLT_STREAM_OPEN) << stream->words();
  client.kill(SIGCONT);
  uint64_t length = 1000;
  write_all(*stream, reinterpret_cast<const char*>(&length), sizeof length);
  write_all(*stream, patterned(length, 0, 0).data(), length);
  std::vector<char> reply(length);
  ASSERT_TRUE(read_all(*stream, reply.data(), reply.size()));
  EXPECT_TRUE(reply == patterned(length, 0, 1));
}

TEST(StreamDeath, connecting_to_a_stopped_listener_ends_by_its_time_limit) {
  const RuntimeFolder folder;
  Server server(with_buffers(65536), idle);
  StreamService service("soft");
  server.child().stop();
  const auto begin = steady_clock::now();
  EXPECT_THROW(service.connect("127.0.0.1", server.port(), 200), StreamError);
  EXPECT_LT(ms_since(begin), scaled_ms(3000));
}

}  // namespace
}  // namespace ringbolt::stream_test
