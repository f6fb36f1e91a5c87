#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "engine/loop_fabric_test_support.h"

namespace ringbolt::engine {
namespace {

using test::LoopFabric;

std::vector<FabricCable> line(uint32_t n) {
  std::vector<FabricCable> cables;
  for (uint32_t i = 0; i + 1 < n; ++i) {
    cables.push_back({i, i + 1});
  }
  return cables;
}

std::vector<FabricCable> ring(uint32_t n) {
  std::vector<FabricCable> cables = line(n);
  cables.push_back({0, n - 1});
  return cables;
}

TEST(Engine, carries_chunks_of_all_lengths) {
  LoopFabric fabric(2, line(2));
  const std::vector<uint32_t> lengths = {0, 1, 40, kSmallPayloadBytes, kSmallPayloadBytes + 1, 65535, 65536};
  for (uint32_t i = 0; i < lengths.size(); ++i) {
    ASSERT_TRUE(fabric.send(0, 1, i, lengths[i], {}));
  }
  auto& got = fabric.collector(1).chunks;
  ASSERT_TRUE(fabric.run_until([&] { return got.size() == lengths.size(); }));
  std::set<uint32_t> seen;
  for (const auto& chunk : got) {
    seen.insert(chunk.header.chunk);
    EXPECT_EQ(chunk.bytes.size(), lengths[chunk.header.chunk]);
    EXPECT_TRUE(LoopFabric::is_sound(chunk));
    EXPECT_EQ(chunk.header.group, 1);
    EXPECT_EQ(chunk.header.transfer, 2);
    EXPECT_EQ(chunk.header.call, 3U);
    EXPECT_EQ(chunk.header.signature, 5U);
  }
  EXPECT_EQ(seen.size(), lengths.size());
  ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(0).n_unacknowledged() == 0; }));
}

TEST(Engine, cables_of_a_device_whose_completion_queue_fails_fail) {
  LoopFabric fabric(2, line(2));
  ASSERT_TRUE(fabric.send(0, 1, 0, 1000));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 1; }));
  ibv_context& context = *fabric.engine(1).devices()[0]->cq().get()->context;
  context.ops.poll_cq = [](ibv_cq*, int, ibv_wc*) {
    errno = EIO;
    return -1;
  };
  ASSERT_TRUE(fabric.run_until([&] { return !fabric.collector(1).failed.empty(); }));
  EXPECT_EQ(fabric.collector(1).failed, std::vector<uint32_t>{0});
  EXPECT_FALSE(fabric.stations[1]->cable(0).is_alive());
  EXPECT_EQ(fabric.stations[1]->cable(0).failure(), "cable 0-1: ibv_poll_cq: Input/output error");
  EXPECT_EQ(fabric.collector(1).chunks.size(), 1U);
}

/// Every rank sends every other one `count` chunks of up to 64 KiB; all arrive once and whole.
void all_to_all(LoopFabric& fabric, uint32_t n_ranks, uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  struct Stream {
    uint32_t from, to, next;
  };
  std::vector<Stream> streams;
  for (uint32_t from = 0; from < n_ranks; ++from) {
    for (uint32_t to = 0; to < n_ranks; ++to) {
      if (from != to) {
        streams.push_back({from, to, 0});
      }
    }
  }
  const auto is_done = [&] {
    size_t n_left = 0;
    for (Stream& stream : streams) {
      const auto length = static_cast<uint32_t>(random() % 2 == 0 ? 65536 - random() % 1000 : random() % 5000);
      if (stream.next < count && fabric.send(stream.from, stream.to, stream.next, length)) {
        ++stream.next;
      }
      n_left += count - stream.next;
    }
    for (uint32_t rank = 0; rank < n_ranks; ++rank) {
      n_left += (n_ranks - 1) * count - fabric.collector(rank).chunks.size();
    }
    return n_left == 0;
  };
  ASSERT_TRUE(fabric.run_until(is_done));
  for (uint32_t rank = 0; rank < n_ranks; ++rank) {
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (const auto& chunk : fabric.collector(rank).chunks) {
      EXPECT_TRUE(LoopFabric::is_sound(chunk));
      EXPECT_TRUE(seen.insert({chunk.header.source, chunk.header.chunk}).second);
    }
    EXPECT_EQ(fabric.engine(rank).counts().bad_payloads, 0U);
    EXPECT_EQ(fabric.engine(rank).counts().strangers, 0U);
  }
}

TEST(Engine, all_to_all_on_a_line) {
  LoopFabric fabric(5, line(5));
  all_to_all(fabric, 5, 40, 1);
  EXPECT_GT(fabric.engine(2).counts().relayed, 0U);
}

TEST(Engine, all_to_all_on_a_ring_of_eight) {
  LoopFabric fabric(8, ring(8));
  all_to_all(fabric, 8, 20, 2);
}

TEST(Engine, all_to_all_with_rails) {
  LoopFabric fabric(2, {{0, 1}, {0, 1}, {0, 1}});
  all_to_all(fabric, 2, 300, 3);
  for (uint32_t cable = 0; cable < 3; ++cable) {
    EXPECT_GT(fabric.stations[0]->cable(cable).sent_bytes, 100U * 4096) << cable;
  }
}

// A peer that stands still leaves messages with the device for longer than they are waited for. When they were sent
// again from the same memory, or that was used again, the peer got other messages than were sent.
TEST(Engine, leaves_alone_what_a_device_still_reads) {
  constexpr uint32_t kCount = 300;
  LoopFabric fabric(2, {{0, 1}, {0, 1}});
  uint64_t now_ns = base::now_ns();
  uint32_t sent = 0;
  const auto go_on = [&](uint32_t rank, uint64_t step_ns) {
    while (sent < kCount && fabric.send(0, 1, sent, sent % 2 == 0 ? 60'000 : 3000)) {
      ++sent;
    }
    fabric.engine(rank).progress(now_ns += step_ns);
  };
  for (int turn = 0; turn < 100'000 && fabric.collector(1).chunks.size() < kCount; ++turn) {
    go_on(0, 30'000'000);
    if (turn % 40 > 20) {
      go_on(1, 1000);
    }
  }
  ASSERT_EQ(fabric.collector(1).chunks.size(), kCount);
  for (const auto& chunk : fabric.collector(1).chunks) {
    EXPECT_TRUE(LoopFabric::is_sound(chunk));
  }
  const EngineCounts& counts = fabric.engine(1).counts();
  EXPECT_EQ(counts.bad_headers + counts.bad_payloads + counts.strangers, 0U);
  EXPECT_TRUE(fabric.stations[0]->cable(0).is_alive() && fabric.stations[0]->cable(1).is_alive());
}

TEST(Paths, know_which_cables_can_be_spared) {
  Paths paths(0, 4, {{0, 1}, {1, 2}, {2, 0}, {2, 3}});
  EXPECT_TRUE(paths.can_spare(0));
  EXPECT_FALSE(paths.can_spare(3));
  paths.set_up(1, false);
  EXPECT_TRUE(paths.can_spare(1));  // it is out already
  EXPECT_FALSE(paths.can_spare(0));
  Paths rails(0, 2, {{0, 1}, {0, 1}});
  EXPECT_TRUE(rails.can_spare(0));
  rails.set_up(1, false);
  EXPECT_FALSE(rails.can_spare(0));
}

TEST(Engine, all_to_all_like_a_mac) {
  LoopFabric fabric(3, line(3), 3, "tn3205");
  all_to_all(fabric, 3, 20, 4);
}

TEST(Engine, keeps_what_the_receiver_keeps) {
  LoopFabric fabric(2, line(2));
  fabric.collector(1).keeps = true;
  uint32_t sent = 0;
  const uint32_t count = 200;
  ASSERT_TRUE(fabric.run_until([&] {
    sent += sent < count && fabric.send(0, 1, sent, 60000) ? 1U : 0U;
    return fabric.collector(1).chunks.size() == count;
  }));
  for (const Receipt& receipt : fabric.collector(1).kept) {
    fabric.engine(1).release(receipt.id);
  }
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(fabric.collector(1).kept[i].bytes.size(), 60000U);
  }
  fabric.collector(1).keeps = false;
  all_to_all(fabric, 1, 0, 1);
  ASSERT_TRUE(fabric.send(0, 1, count, 60000));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == count + 1; }));
}

TEST(Engine, words_arrive_although_slots_are_full) {
  LoopFabric fabric(2, line(2));
  uint32_t n_chunks = 0;
  while (fabric.send(0, 1, n_chunks, 100)) {
    ++n_chunks;
  }
  EXPECT_EQ(n_chunks, ChunkSlots::kSmall - Engine::kSlotsForWords);
  const std::byte word[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  for (uint32_t i = 0; i < 200; ++i) {
    fabric.engine(0).send_word(word, {1, {}, 9, 8, 7, i, 5});
  }
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).words.size() == 200; }));
  EXPECT_EQ(fabric.collector(1).words[0].bytes.size(), 3U);
  EXPECT_EQ(fabric.collector(1).chunks.size(), n_chunks);
}

TEST(Engine, beats_reach_the_other_end) {
  LoopFabric fabric(2, {{0, 1}, {0, 1}});
  const std::byte beat[1] = {std::byte{42}};
  ASSERT_TRUE(fabric.engine(0).send_beat(1, beat));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).beats[1] == 1; }));
  EXPECT_EQ(fabric.collector(1).beats[0], 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(0).send_beat(1, beat); }));
  }
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).beats[1] == 1001; }));
}

TEST(Engine, goes_another_way_when_a_cable_is_down) {
  LoopFabric fabric(4, ring(4));
  // 0-1 is cable 0; nothing goes over it, but its ends do not know yet that what they send is lost.
  uint32_t sent = 0;
  const uint32_t count = 50;
  bool is_down = false;
  ASSERT_TRUE(fabric.run_until([&] {
    sent += sent < count && fabric.send(0, 1, sent, 60000) ? 1U : 0U;
    if (sent == 10 && !is_down) {
      is_down = true;
      for (uint32_t rank = 0; rank < 4; ++rank) {
        fabric.engine(rank).set_cable_up(0, false);
      }
    }
    return fabric.collector(1).chunks.size() == count && fabric.engine(0).n_unacknowledged() == 0;
  }));
  EXPECT_GT(fabric.engine(3).counts().relayed, 0U);
  EXPECT_GT(fabric.engine(2).counts().relayed, 0U);
  for (const auto& chunk : fabric.collector(1).chunks) {
    EXPECT_TRUE(LoopFabric::is_sound(chunk));
  }
}

TEST(Engine, goes_on_while_queue_pairs_of_a_cable_are_away) {
  LoopFabric fabric(3, {{0, 1}, {1, 2}, {0, 2}});
  constexpr uint16_t kAnew = 2;
  for (const uint32_t rank : {0U, 1U}) {  // cable 0 is the first of both
    fabric.engine(rank).fail_cable(0, "the test says so");
    fabric.engine(rank).set_cable_up(0, false);
    fabric.engine(rank).reset_cable(0, kAnew);
  }
  const CableAddress address = fabric.stations[0]->address(0);
  Connecting connecting = fabric.stations[0]->begin_connecting(0, fabric.stations[1]->address(0));
  EXPECT_EQ(fabric.stations[0]->address(0).qp_number, address.qp_number);
  fabric.engine(0).fail_cable(0, "again");
  ASSERT_TRUE(fabric.send(0, 1, 0, 5000));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 1; }));  // through rank 2
  std::thread([&] { connecting.run(); }).join();
  // It has failed meanwhile: the queue pairs are back, and it can begin anew.
  EXPECT_THROW(fabric.stations[0]->end_connecting(0, std::move(connecting)), base::Error);
  EXPECT_FALSE(fabric.stations[0]->cable(0).is_alive());
  fabric.engine(0).reset_cable(0, kAnew);
  connecting = fabric.stations[0]->begin_connecting(0, fabric.stations[1]->address(0));
  connecting.run();
  fabric.stations[0]->end_connecting(0, std::move(connecting));
  fabric.stations[1]->connect(0, address);
  for (const uint32_t rank : {0U, 1U}) {
    fabric.engine(rank).start_cable(0);
    fabric.engine(rank).set_cable_up(0, true);
  }
  const uint64_t sent_before = fabric.stations[0]->cable(0).sent_bytes;
  ASSERT_TRUE(fabric.send(0, 1, 1, 5000));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 2; }));
  EXPECT_GT(fabric.stations[0]->cable(0).sent_bytes, sent_before + 5000);
  EXPECT_TRUE(LoopFabric::is_sound(fabric.collector(1).chunks[1]));
}

// What a call that has not begun keeps held up the cable that it came by, perhaps for ever.
TEST(Engine, connects_a_cable_anew_while_the_receiver_keeps_what_came_by_it) {
  constexpr uint16_t kAnew = 2;
  LoopFabric fabric(2, line(2), kHopClasses, "", Checksums::carried, false);
  auto& collector = fabric.collector(1);
  collector.keeps = true;
  for (const uint32_t chunk : {0U, 1U, 2U}) {
    ASSERT_TRUE(fabric.send(0, 1, chunk, chunk == 2 ? 60000 : 3000));
  }
  ASSERT_TRUE(
      fabric.run_until([&] { return collector.chunks.size() == 3 && fabric.engine(0).n_unacknowledged() == 0; }));
  for (const uint32_t rank : {0U, 1U}) {
    fabric.engine(rank).fail_cable(0, "the test says so");
    fabric.engine(rank).set_cable_up(0, false);
    fabric.engine(rank).reset_cable(0, kAnew);
  }
  for (const uint32_t rank : {0U, 1U}) {
    fabric.stations[rank]->connect(0, fabric.stations[1 - rank]->address(0));
  }
  for (const uint32_t rank : {0U, 1U}) {
    fabric.engine(rank).start_cable(0);
    fabric.engine(rank).set_cable_up(0, true);
  }
  collector.keeps = false;
  uint32_t sent = 3;
  ASSERT_TRUE(fabric.run_until([&] {
    sent += sent < 300 && fabric.send(0, 1, sent, sent % 2 == 0 ? 60000 : 3000) ? 1U : 0U;
    return collector.chunks.size() == 300;
  }));
  for (uint32_t chunk = 0; chunk < 3; ++chunk) {
    const Receipt& kept = collector.kept[chunk];
    EXPECT_TRUE(LoopFabric::is_sound({collector.chunks[chunk].header, {kept.bytes.begin(), kept.bytes.end()}}));
    fabric.engine(1).release(kept.id);
  }
  for (const auto& chunk : collector.chunks) {
    EXPECT_TRUE(LoopFabric::is_sound(chunk));
  }
  ASSERT_TRUE(fabric.run_until([&] {
    sent += sent < 600 && fabric.send(0, 1, sent, sent % 2 == 0 ? 60000 : 3000) ? 1U : 0U;
    return collector.chunks.size() == 600;
  }));
  EXPECT_TRUE(fabric.stations[0]->cable(0).is_alive() && fabric.stations[1]->cable(0).is_alive());
}

// What was freed between two connections was posted twice: a second message was written over the first one.
TEST(Engine, posts_once_what_is_freed_while_a_cable_is_being_connected_anew) {
  constexpr uint16_t kAnew = 2;
  constexpr uint32_t kKept = 8;
  LoopFabric fabric(2, line(2), kHopClasses, "", Checksums::carried, false);
  auto& collector = fabric.collector(1);
  collector.keeps = true;
  for (uint32_t chunk = 0; chunk < kKept; ++chunk) {
    ASSERT_TRUE(fabric.send(0, 1, chunk, 60000));
  }
  ASSERT_TRUE(
      fabric.run_until([&] { return collector.chunks.size() == kKept && fabric.engine(0).n_unacknowledged() == 0; }));
  for (const uint32_t rank : {0U, 1U}) {
    fabric.engine(rank).fail_cable(0, "the test says so");
    fabric.engine(rank).set_cable_up(0, false);
    fabric.engine(rank).reset_cable(0, kAnew);
  }
  for (uint32_t i = 0; i < kKept / 2; ++i) {
    fabric.engine(1).release(collector.kept[i].id);
  }
  for (const uint32_t rank : {0U, 1U}) {
    fabric.stations[rank]->connect(0, fabric.stations[1 - rank]->address(0));
  }
  for (const uint32_t rank : {0U, 1U}) {
    fabric.engine(rank).start_cable(0);
    fabric.engine(rank).set_cable_up(0, true);
  }
  uint32_t sent = kKept;
  constexpr uint32_t kCount = 100;  // each receive comes up twice
  ASSERT_TRUE(fabric.run_until([&] {
    sent += sent < kCount && fabric.send(0, 1, sent, 60000) ? 1U : 0U;
    return collector.chunks.size() == kCount;
  }));
  for (uint32_t i = kKept / 2; i < kCount; ++i) {
    const Receipt& kept = collector.kept[i];
    EXPECT_TRUE(LoopFabric::is_sound({collector.chunks[i].header, {kept.bytes.begin(), kept.bytes.end()}})) << i;
    fabric.engine(1).release(kept.id);
  }
  EXPECT_EQ(fabric.stations[1]->cable(0).n_held(Size::large), 0U);
  EXPECT_TRUE(fabric.stations[1]->cable(0).failure().empty()) << fabric.stations[1]->cable(0).failure();
}

TEST(Engine, follows_the_path_that_is_asked_for) {
  LoopFabric fabric(4, ring(4));
  ASSERT_TRUE(fabric.send(0, 1, 0, 100, {3, 2}));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 1; }));
  EXPECT_EQ(fabric.engine(3).counts().relayed, 1U);
  EXPECT_EQ(fabric.engine(2).counts().relayed, 1U);
  EXPECT_EQ(fabric.collector(1).chunks[0].header.hops_done, 2);
}

TEST(Engine, what_came_through_a_relay_stays_as_it_is_while_it_is_used) {
  LoopFabric fabric(3, line(3));
  const uint32_t count = 4;
  fabric.collector(2).keeps = true;
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_TRUE(fabric.send(0, 2, i, 60000));
  }
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(2).kept.size() == count; }));
  // The relay's receives are used for others.
  fabric.collector(2).keeps = false;
  uint32_t sent = count;
  ASSERT_TRUE(fabric.run_until([&] {
    sent += sent < 80 && fabric.send(0, 2, sent, 60000) ? 1U : 0U;
    return fabric.collector(2).chunks.size() == 80;
  }));
  for (uint32_t i = 0; i < count; ++i) {
    const auto& kept = fabric.collector(2).kept[i].bytes;
    ASSERT_EQ(kept.size(), 60000U);
    const uint32_t chunk = fabric.collector(2).chunks[i].header.chunk;
    for (uint32_t k = 0; k < kept.size(); ++k) {
      ASSERT_EQ(kept[k], LoopFabric::expected_byte(0, chunk, k)) << "chunk " << chunk << ", byte " << k;
    }
  }
}

TEST(Engine, forgets_what_it_gives_up) {
  LoopFabric fabric(2, line(2));
  for (uint32_t i = 0; i < 60; ++i) {
    ASSERT_TRUE(fabric.send(0, 1, i, 60000));
  }
  fabric.engine(0).give_up(1, false);
  EXPECT_EQ(fabric.engine(0).n_unacknowledged(), 0U);
  ASSERT_TRUE(fabric.send(0, 1, 60, 60000));  // goes nowhere
  EXPECT_EQ(fabric.engine(0).n_unacknowledged(), 0U);
}

// Short messages of the large queue pair complete together with later ones. Where nothing followed, the one that had
// been lost counted as waiting for its cable, and was never sent again.
TEST(Engine, sends_again_what_is_lost_though_nothing_follows) {
  LoopFabric fabric(2, line(2), kHopClasses, "", Checksums::carried, false);
  for (uint32_t chunk = 0; chunk < 5; ++chunk) {
    const auto slot = fabric.engine(0).take_slot(5000);
    ASSERT_TRUE(slot);
    for (uint32_t i = 0; i < 5000; ++i) {
      slot->bytes[i] = LoopFabric::expected_byte(0, chunk, i);
    }
    fabric.engine(0).send(slot->id, 5000, {1, {}, 1, 2, 3, chunk, 5});
    slot->bytes[100] ^= std::byte{1};
    ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(1).counts().bad_payloads == chunk + 1; }));
    slot->bytes[100] ^= std::byte{1};
    fabric.go_on_at(200);
    auto& got = fabric.collector(1).chunks;
    ASSERT_TRUE(fabric.run_until([&] { return got.size() == chunk + 1; })) << "chunk " << chunk;
    EXPECT_TRUE(LoopFabric::is_sound(got.back()));
    ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(0).n_unacknowledged() == 0; }));
  }
}

// Threads come with the time at which each has looked at the clock. A round trip that ended before it began counted as
// endless, and what was lost then was sent again after seconds.
TEST(Engine, times_of_several_threads_do_not_go_back) {
  constexpr uint64_t kMs = 1'000'000;
  LoopFabric fabric(2, line(2));
  Engine& sender = fabric.engine(0);
  const uint64_t begin_ns = base::now_ns() + 1000 * kMs;
  uint64_t now_ns = begin_ns;
  const auto goes_on_until = [](auto is_done) {
    for (int i = 0; i < 1'000'000; ++i) {
      if (is_done()) {
        return true;
      }
    }
    return false;
  };
  for (uint32_t chunk = 0; chunk < 20; ++chunk) {
    sender.progress(now_ns += 20 * kMs);
    ASSERT_TRUE(fabric.send(0, 1, chunk, 3000));
    ASSERT_TRUE(goes_on_until([&] {
      fabric.engine(1).progress(now_ns);
      return fabric.collector(1).chunks.size() > chunk;
    }));
    ASSERT_TRUE(goes_on_until([&] {
      fabric.engine(1).progress(now_ns + 2 * kMs);  // it acknowledges
      sender.progress(begin_ns);
      return sender.n_unacknowledged() == 0;
    }));
  }
  const auto slot = sender.take_slot(5000);
  ASSERT_TRUE(slot);
  sender.send(slot->id, 5000, {1, {}, 1, 2, 3, 20, 5});
  sender.progress(now_ns += 20 * kMs);
  sender.progress(now_ns + 150 * kMs);
  EXPECT_EQ(sender.counts().resent, 1U);
}

}  // namespace
}  // namespace ringbolt::engine
