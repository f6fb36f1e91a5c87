#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <numeric>

#include "stream/stream_test_support.h"

namespace ringbolt::stream {
namespace {

using test::Pair;
using test::patterned;
using test::read_all;
using test::soon;
using test::World;
using testing::HasSubstr;

constexpr uint32_t kOneMib = 1U << 20U;

TEST(StreamPair, carries_bytes_both_ways) {
  const World world;
  const Pair pair(world);
  const auto ping = patterned(14);
  ASSERT_EQ(test::write(*pair.client, ping), ping.size());
  EXPECT_EQ(read_all(*pair.server, ping.size()), ping);
  const auto pong = patterned(7, 0, 1);
  ASSERT_EQ(test::write(*pair.server, pong), pong.size());
  EXPECT_EQ(read_all(*pair.client, pong.size()), pong);
  EXPECT_EQ(pair.client->device(), "rdma_lo");
  EXPECT_EQ(pair.client->statistics().messages_sent, 1U);
  EXPECT_EQ(pair.client->statistics().bytes_received, 7U);
}

TEST(StreamPair, does_not_block_when_it_is_not_to) {
  const World world;
  const Pair pair(world);
  std::array<std::byte, 8> room{};
  EXPECT_EQ(pair.client->read(room, Deadline::now()).error().value, EAGAIN);
  EXPECT_EQ(pair.client->read(room, Deadline::in_ms(20)).error().value, ETIMEDOUT);
  EXPECT_EQ(pair.client->peek(Deadline::now()).error().value, EAGAIN);
  EXPECT_EQ(pair.client->consume(1), EINVAL);
  EXPECT_EQ(world.listener->accept(Deadline::now()).error().value, EAGAIN);
  EXPECT_EQ(world.listener->accept(Deadline::in_ms(5)).error().value, ETIMEDOUT);
}

struct Sizes {
  uint32_t receive_bytes;
  uint32_t buffers;
  uint32_t total;
};
void PrintTo(const Sizes& sizes, std::ostream* out) {
  *out << sizes.receive_bytes << 'x' << sizes.buffers << '_' << sizes.total;
}
class StreamSizes : public testing::TestWithParam<Sizes> {};

/// Both directions at once, each more than fits, from one thread a side.
TEST_P(StreamSizes, both_directions_are_full_and_all_arrives) {
  const Sizes sizes = GetParam();
  const StreamSettings settings{.receive_bytes = sizes.receive_bytes, .receive_buffers = sizes.buffers};
  const World world({.stream = settings});
  const Pair pair(world, settings);
  const auto run = [&](Stream& stream, int side) {
    const auto sent = patterned(sizes.total, 0, side);
    std::vector<std::byte> received;
    size_t written = 0;
    std::array<std::byte, 10000> room;
    while (written < sent.size() || received.size() < sent.size()) {
      const auto events = stream.await(kReadable | (written < sent.size() ? uint32_t{kWritable} : 0U), soon());
      ASSERT_TRUE(events) << "side " << side << ", " << written << " written, " << received.size() << " read";
      if (const auto some = test::write(stream, std::span(sent).subspan(written), Deadline::now())) {
        written += *some;
      }
      if (const auto some = stream.read(room, Deadline::now())) {
        received.insert(received.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(*some));
      }
    }
    EXPECT_TRUE(received == patterned(sizes.total, 0, 1 - side)) << "side " << side;
  };
  std::thread server([&] { run(*pair.server, 1); });
  run(*pair.client, 0);
  server.join();
  const Statistics seen = pair.client->statistics();
  EXPECT_EQ(seen.bytes_received, sizes.total);
  EXPECT_EQ(seen.early_announcements, 0U);
  EXPECT_GE(seen.announcements_sent, sizes.total / sizes.receive_bytes);
}

INSTANTIATE_TEST_SUITE_P(Streams, StreamSizes,
                         testing::Values(Sizes{4096, 1, 4096}, Sizes{4096, 1, 4097}, Sizes{4096, 1, 300'000},
                                         Sizes{4096, 3, 300'000}, Sizes{kOneMib, 1, kOneMib},
                                         Sizes{kOneMib, 1, kOneMib + 1}, Sizes{kOneMib, 2, 5 * kOneMib + 1},
                                         Sizes{16 * kOneMib, 1, 17 * kOneMib}),
                         testing::PrintToStringParamName());

TEST(StreamPair, gathers_pieces_into_one_message) {
  const World world;
  const Pair pair(world);
  auto first = patterned(100);
  auto second = patterned(50, 100);
  const std::array<iovec, 4> pieces{{{first.data(), 100}, {nullptr, 0}, {second.data(), 20}, {&second[20], 30}}};
  ASSERT_EQ(pair.client->write(pieces, soon()), 150U);
  EXPECT_EQ(read_all(*pair.server, 150), patterned(150));
  EXPECT_EQ(pair.client->statistics().messages_sent, 1U);
}

TEST(StreamPair, peeks_where_the_bytes_lie_in_memory_of_the_program) {
  const World world;
  alignas(4096) static std::array<std::byte, 8192> memory{};
  const Pair pair(world, {.receive_bytes = 4096, .receive_buffers = 2, .receive_memory = memory});
  ASSERT_EQ(test::write(*pair.server, patterned(8192)), 8192U);
  const auto whole = [&] {
    size_t seen = 0;
    while (seen < 8192) {
      const auto pieces = pair.client->peek(soon());
      ASSERT_TRUE(pieces);
      seen = (*pieces)[0].size() + (*pieces)[1].size();
      EXPECT_EQ((*pieces)[0].data(), memory.data());
    }
  };
  whole();
  EXPECT_TRUE(std::ranges::equal(memory, patterned(8192)));
  EXPECT_EQ(pair.client->consume(5000), 0);
  ASSERT_EQ(test::write(*pair.server, patterned(100, 8192)), 100U);
  const auto rest = read_all(*pair.client, 3292);
  EXPECT_TRUE(rest == patterned(3292, 5000));
}

TEST(StreamPair, sends_registered_memory_without_a_copy) {
  const World world({.stream = {.receive_bytes = 65536}});
  const Pair pair(world);
  auto data = patterned(200'000);
  EXPECT_EQ(pair.client->write_registered(data, Deadline::now()).error().value, EINVAL) << "not registered";
  ASSERT_EQ(pair.client->register_memory(data), 0);
  std::thread reader([&] { EXPECT_TRUE(read_all(*pair.server, 190'000) == patterned(190'000, 10'000)); });
  EXPECT_EQ(pair.client->write_registered(std::span(data).subspan(10'000), soon()), 190'000U);
  EXPECT_EQ(pair.client->await_sent(soon()), 0);
  reader.join();
  EXPECT_EQ(pair.client->unregister_memory(data.data() + 1), EINVAL);
  EXPECT_EQ(pair.client->unregister_memory(data.data()), 0);
  EXPECT_EQ(pair.client->write_registered(data, Deadline::now()).error().value, EINVAL);
}

TEST(StreamPair, end_is_read_after_all_that_came_before_it) {
  const World world;
  Pair pair(world);
  ASSERT_EQ(test::write(*pair.server, patterned(5)), 5U);
  EXPECT_EQ(pair.server->close(soon()), 0);
  EXPECT_EQ(pair.server->statistics().bytes_arrived, 5U);
  EXPECT_EQ(pair.server->close(soon()), 0) << "again";
  pair.server.reset();
  EXPECT_EQ(read_all(*pair.client, 100), patterned(5));
  std::array<std::byte, 8> room{};
  EXPECT_EQ(pair.client->read(room, soon()), 0U);
  EXPECT_EQ(pair.client->reason(), CloseReason::peer_closed);
  EXPECT_EQ(test::write(*pair.client, patterned(1)).error().value, EPIPE);
  EXPECT_THAT(pair.client->words(), HasSubstr("the server through rdma_lo: peer-closed"));
  EXPECT_EQ(pair.client->close(soon()), 0) << "it has written nothing";
}

/// Even where the peer has read it: its device said nothing, as nobody had asked before it went.
TEST(StreamPair, close_says_what_nobody_knows_of_when_the_peer_closed_first) {
  const World world;
  Pair pair(world);
  ASSERT_EQ(test::write(*pair.client, patterned(5)), 5U);
  EXPECT_EQ(read_all(*pair.server, 5), patterned(5));
  EXPECT_EQ(pair.server->close(soon()), 0);
  std::array<std::byte, 8> room{};
  EXPECT_EQ(pair.client->read(room, soon()), 0U);
  EXPECT_EQ(pair.client->close(soon()), EPIPE);
  EXPECT_EQ(pair.client->close(soon()), EPIPE) << "again";
  EXPECT_EQ(pair.client->statistics().bytes_sent, 5U);
  EXPECT_EQ(pair.client->statistics().bytes_arrived, 0U);
}

/// What asked for a completion is known to have arrived, and so is all before it.
TEST(StreamPair, close_counts_only_what_is_not_known) {
  const World world;
  Pair pair(world);
  constexpr uint64_t kWrites = SendSpace::kSignalEvery + 3;
  for (uint64_t i = 0; i < kWrites; ++i) {
    ASSERT_EQ(test::write(*pair.client, patterned(10, i * 10)), 10U);
  }
  EXPECT_EQ(read_all(*pair.server, kWrites * 10), patterned(kWrites * 10));
  EXPECT_EQ(test::write(*pair.server, patterned(1)), 1U);
  EXPECT_EQ(read_all(*pair.client, 1), patterned(1));
  pair.server.reset();
  std::array<std::byte, 8> room{};
  EXPECT_EQ(pair.client->read(room, soon()), 0U);
  EXPECT_EQ(pair.client->statistics().bytes_arrived, uint64_t{SendSpace::kSignalEvery} * 10);
  EXPECT_EQ(pair.client->close(soon()), EPIPE);
}

TEST(StreamPair, waits_for_a_server_that_closes_while_a_thread_reads) {
  const World world;
  Pair pair(world);
  std::thread reader([&] {
    std::array<std::byte, 8> room{};
    EXPECT_EQ(pair.client->read(room, soon()), 0U);
  });
  pair.server.reset();
  reader.join();
}

TEST(StreamPair, close_by_another_thread_ends_a_wait) {
  const World world;
  const Pair pair(world);
  std::thread reader([&] {
    std::array<std::byte, 8> room{};
    EXPECT_EQ(pair.client->read(room, soon()).error().value, ECANCELED);
  });
  EXPECT_EQ(pair.client->close(soon()), 0);
  reader.join();
}

TEST(StreamPair, one_thread_reads_while_another_writes) {
  const World world({.stream = {.receive_bytes = 4096}});
  const Pair pair(world, {.receive_bytes = 4096});
  constexpr size_t kBytes = 400'000;
  const auto write = [&](Stream& stream, int side) {
    EXPECT_EQ(test::write(stream, patterned(kBytes, 0, side)), kBytes) << side;
  };
  std::thread server_writes([&] { write(*pair.server, 1); });
  std::thread client_writes([&] { write(*pair.client, 0); });
  std::thread server_reads([&] { EXPECT_TRUE(read_all(*pair.server, kBytes) == patterned(kBytes, 0, 0)); });
  EXPECT_TRUE(read_all(*pair.client, kBytes) == patterned(kBytes, 0, 1));
  server_writes.join();
  client_writes.join();
  server_reads.join();
}

/// As a bridge sends: what a system call has read lies in the sending buffer already.
TEST(StreamPair, bytes_that_are_filled_in_where_they_are_sent_from_arrive) {
  const StreamSettings settings{.receive_bytes = 65536};
  const World world({.stream = settings});
  const Pair pair(world);
  const auto all = patterned(5 * 65536 + 17);
  std::vector<std::byte> arrived;
  std::thread reading([&] { arrived = read_all(*pair.server, all.size()); });
  for (size_t done = 0; done < all.size();) {
    const auto room = pair.client->room();
    if (room.empty()) {
      ASSERT_TRUE(pair.client->await(kWritable, soon()));
      continue;
    }
    const size_t count = std::min({room.size(), all.size() - done, size_t{20000}});
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(done), count, room.begin());
    ASSERT_EQ(pair.client->send(room.first(count)), 0);
    done += count;
  }
  reading.join();
  EXPECT_EQ(arrived, all);
  EXPECT_GE(pair.client->statistics().stalls, 1U);
}

TEST(StreamPair, memory_of_others_and_an_ended_stream_are_not_sent) {
  const World world;
  const Pair pair(world);
  const auto foreign = patterned(8);
  EXPECT_EQ(pair.client->send(foreign), EINVAL);
  const auto wrong = pair.client->room();
  EXPECT_EQ(pair.client->send(std::span<const std::byte>(wrong.data() + wrong.size() - 1, 8)), EINVAL);
  EXPECT_EQ(pair.client->send({}), 0);
  EXPECT_EQ(pair.server->close(soon()), 0);
  while (pair.client->reason() == CloseReason::none) {
    static_cast<void>(pair.client->await(kReadable, soon()));
  }
  EXPECT_TRUE(pair.client->room().empty());
  EXPECT_EQ(pair.client->send(wrong.first(1)), EPIPE);
  EXPECT_TRUE(pair.client->is_drained());
}

TEST(StreamPair, descriptor_tells_when_all_has_arrived) {
  const World world;
  const Pair pair(world);
  pollfd one{pair.client->fd(), POLLIN, 0};
  pair.client->want(kDrained);
  ASSERT_EQ(test::write(*pair.client, patterned(100000)), 100000U);
  while (!pair.client->is_drained()) {
    ASSERT_EQ(::poll(&one, 1, static_cast<int>(test::limit_ms())), 1);
  }
  EXPECT_EQ(*pair.client->await(kDrained, Deadline::now()) & kDrained, kDrained);
  EXPECT_EQ(pair.server->peek(Deadline::now())->at(0).size(), 100000U);
}

}  // namespace
}  // namespace ringbolt::stream
