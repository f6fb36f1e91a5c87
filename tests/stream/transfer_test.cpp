// Bytes between two processes: every size around a buffer's end, and more than a buffer in both directions at once.

#include <fstream>

#include "processes.h"

namespace ringbolt::stream_test {
namespace {

constexpr uint32_t kMib = 1U << 20U;

void ask(ByteStream& stream, uint64_t length) {
  write_all(stream, reinterpret_cast<const char*>(&length), sizeof length);
  const auto request = patterned(length, 0, 0);
  write_all(stream, request.data(), request.size());
  std::vector<char> reply(length);
  ASSERT_TRUE(read_all(stream, reply.data(), reply.size()));
  ASSERT_TRUE(reply == patterned(length, 0, 1)) << length;
}

void ask_all(const ringbolt_stream_options& client, const ringbolt_stream_options& server,
             const std::vector<uint64_t>& lengths) {
  const RuntimeFolder folder;
  Server other(server, answer_requests);
  StreamService service("soft");
  {
    ByteStream stream = service.connect("127.0.0.1", other.port(), kSoonMs, client);
    for (const uint64_t length : lengths) {
      ask(stream, length);
    }
    EXPECT_EQ(stream.device(), "rdma_lo");
    stream.close(kSoonMs);
  }
  EXPECT_EQ(other.child().join(), 0);
}

/// Lengths that fill a buffer to its last byte, or miss that by one; the 8 bytes of the request's head count, too.
std::vector<uint64_t> around(uint64_t buffer) {
  return {1, buffer - 9, buffer - 8, buffer - 7, buffer - 1, buffer, buffer + 1, 2 * buffer - 8, 3 * buffer};
}

// One conversation a test: a process that had threads is not forked again, which thread sanitizer can't follow.
TEST(StreamTransfer, fills_small_buffers_exactly) { ask_all(with_buffers(4096), with_buffers(4096), around(4096)); }
TEST(StreamTransfer, fills_several_buffers_exactly) {
  ask_all(with_buffers(4096, 3), with_buffers(65536, 2), around(4096));
}
TEST(StreamTransfer, fills_buffers_of_odd_lengths_exactly) {
  ask_all(with_buffers(5000), with_buffers(12345), around(5000));
}

TEST(StreamTransfer, carries_a_mebibyte_and_one) { ask_all(with_buffers(kMib), with_buffers(kMib), {kMib + 1}); }

TEST(StreamTransfer, carries_sixteen_mebibytes_through_a_small_buffer) {
  ask_all(with_buffers(16 * kMib), with_buffers(kMib), {16 * kMib});
}
TEST(StreamTransfer, carries_sixteen_mebibytes_through_a_large_one) {
  ask_all(with_buffers(65536), with_buffers(16 * kMib), {16 * kMib});
}

TEST(StreamTransferHeavy, carries_512_mebibytes) {
  ask_all(with_buffers(kMib), with_buffers(kMib, 2), {512 * uint64_t{kMib}});
}

/// Sends and receives `total` at once, as an event loop does, in one thread.
void exchange(ByteStream& stream, uint64_t total, int side) {
  constexpr size_t kPiece = 100'000;
  const auto out = patterned(kPiece, 0, side);
  uint64_t written = 0;
  uint64_t received = 0;
  std::vector<char> room(kPiece);
  while (written < total || received < total) {
    stream.want(RINGBOLT_STREAM_READABLE | (written < total ? uint32_t{RINGBOLT_STREAM_WRITABLE} : 0U));
    pollfd readable{stream.fd(), POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(kSoonMs)) != 1) {
      throw std::runtime_error("the descriptor says nothing: " + std::to_string(written) + " written, " +
                               std::to_string(received) + " read");
    }
    const size_t at = written % kPiece;
    written += stream.write(&out[at], std::min<uint64_t>(kPiece - at, total - written), 0);
    if (const auto some = stream.read(room.data(), room.size(), 0)) {
      for (size_t i = 0; i < *some; i += 1 + i % 7) {
        if (room[i] != pattern((received + i) % kPiece, 1 - side)) {
          throw std::runtime_error("byte " + std::to_string(received + i) + " is wrong");
        }
      }
      received += *some;
    }
  }
}

TEST(StreamTransfer, both_directions_are_full_at_once) {
  constexpr uint64_t kTotal = 20'000'000;
  const RuntimeFolder folder;
  const auto serve = [&](ByteStream& stream, int control) {
    exchange(stream, kTotal, 1);
    tell(control, 1);
    hear(control);  // the other one has all of it
    return false;
  };
  Server other(with_buffers(65536), serve);
  StreamService service("soft");
  ByteStream stream = service.connect("127.0.0.1", other.port(), kSoonMs, with_buffers(65536));
  exchange(stream, kTotal, 0);
  EXPECT_EQ(hear(other.child().control()), 1U);
  tell(other.child().control(), 1);
  const auto seen = stream.statistics();
  EXPECT_EQ(seen.bytes_sent, kTotal);
  EXPECT_EQ(seen.bytes_received, kTotal);
  EXPECT_GE(seen.announcements_sent, kTotal / 65536);
  EXPECT_EQ(other.child().join(), 0);
}

TEST(StreamTransfer, idle_client_of_another_process_lives_on) {
  const RuntimeFolder folder;
  ringbolt_stream_options often = with_buffers(4096);
  often.keepalive_ms = 1;
  const auto serve = [](ByteStream& stream, int control) {
    hear(control);
    char word[8] = {};
    return read_all(stream, word, sizeof word) && stream.write(word, sizeof word, kSoonMs) == 0;
  };
  const Child server([&](int control) {
    ringbolt_stream_service_options options{};
    options.struct_size = sizeof options;
    options.service_interval_ms = 1;
    StreamService service(options);
    ringbolt_stream_listener_options listening = StreamService::listener_options();
    listening.stream = &often;
    StreamListener listener = service.listen("127.0.0.1", 0, listening);
    tell(control, listener.port());
    auto stream = listener.accept(kSoonMs);
    serve(*stream, control);
    hear(control);
  });
  ringbolt_stream_service_options options{};
  options.struct_size = sizeof options;
  options.verbs = "soft";
  options.service_interval_ms = 20;
  StreamService service(options);
  ByteStream stream =
      service.connect("127.0.0.1", static_cast<uint16_t>(hear(server.control())), kSoonMs, with_buffers(4096));
  for (uint64_t waited = 0; waited < kSoonMs && stream.statistics().keepalives_received < 1100; waited += 20) {
    poll(nullptr, 0, 20);  // nobody calls the stream but to look at its figures
  }
  EXPECT_GE(stream.statistics().keepalives_received, 1100U) << "more than there are receives";
  EXPECT_EQ(stream.ended(), RINGBOLT_STREAM_OPEN);
  tell(server.control(), 1);
  write_all(stream, "12345678", 8);
  char word[8] = {};
  EXPECT_TRUE(read_all(stream, word, sizeof word));
  EXPECT_EQ(std::memcmp(word, "12345678", 8), 0);
  tell(server.control(), 1);
}

}  // namespace
}  // namespace ringbolt::stream_test
