// Chunks that are read where their sender wrote them: as long as they are used, it keeps them.
#include <gtest/gtest.h>

#include "base/in_place.h"
#include "engine/loop_fabric_test_support.h"

namespace ringbolt::engine {
namespace {

using test::LoopFabric;

const std::vector<FabricCable> kOneCable = {{0, 1}};
constexpr uint32_t kLength = 60000;

/// Both ends have heard of each other.
void say_hello(LoopFabric& fabric) {
  ASSERT_TRUE(fabric.send(0, 1, 1000, 10) && fabric.send(1, 0, 1000, 10));
  ASSERT_TRUE(fabric.run_until(
      [&] { return fabric.collector(0).chunks.size() == 1 && fabric.collector(1).chunks.size() == 1; }));
}

TEST(InPlace, chunks_arrive_whole_and_without_a_checksum) {
  LoopFabric fabric(2, kOneCable);
  say_hello(fabric);
  ASSERT_TRUE(fabric.send(0, 1, 1, kLength));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 2; }));
  EXPECT_TRUE(LoopFabric::is_sound(fabric.collector(1).chunks[1]));
  EXPECT_FALSE(fabric.collector(1).chunks[1].header.has_payload_crc);
  EXPECT_TRUE(fabric.collector(1).chunks[0].header.has_payload_crc);  // a short one is copied
  EXPECT_EQ(fabric.engine(1).counts().read_in_place, 1U);
  ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(0).n_unacknowledged() == 0; }));
}

TEST(InPlace, is_off_where_it_is_not_wanted_or_not_to_be_had) {
  for (const std::string like : {"", "tn3205"}) {
    LoopFabric fabric(2, kOneCable, 1, like, Checksums::carried, false);
    say_hello(fabric);
    ASSERT_TRUE(fabric.send(0, 1, 1, kLength));
    ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 2; }));
    EXPECT_TRUE(LoopFabric::is_sound(fabric.collector(1).chunks[1]));
    EXPECT_TRUE(fabric.collector(1).chunks[1].header.has_payload_crc);
    EXPECT_EQ(fabric.engine(1).counts().read_in_place, 0U);
  }
  LoopFabric mac(2, kOneCable, 1, "tn3205");
  say_hello(mac);
  ASSERT_TRUE(mac.send(0, 1, 1, kLength));
  ASSERT_TRUE(mac.run_until([&] { return mac.collector(1).chunks.size() == 2; }));
  EXPECT_TRUE(mac.collector(1).chunks[1].header.has_payload_crc);
  EXPECT_EQ(mac.engine(1).counts().read_in_place, 0U);
}

int (*true_poll)(ibv_cq*, int, ibv_wc*) = nullptr;

/// As a library might whose drivers use that bit, and those fields, for something of their own.
int poll_with_odd_bits(ibv_cq* cq, int most, ibv_wc* completions) {
  const int n = true_poll(cq, most, completions);
  for (int i = 0; i < n; ++i) {
    completions[i].wc_flags |= base::kReceivedInPlace;
    completions[i].vendor_err = 0x4141;
    completions[i].imm_data = 0x42424242;
  }
  return n;
}

/// One that loses its mind.
int poll_of_strangers(ibv_cq* cq, int most, ibv_wc* completions) {
  const int n = true_poll(cq, most, completions);
  for (int i = 0; i < n; ++i) {
    completions[i].wr_id |= uint64_t{0xffff} << 32U;  // the cable
  }
  return n;
}

void replace_poll(Engine& engine, int (*poll)(ibv_cq*, int, ibv_wc*)) {
  for (const auto& device : engine.devices()) {
    true_poll = device->context().get()->ops.poll_cq;
    device->context().get()->ops.poll_cq = poll;
  }
}

TEST(InPlace, is_nothing_that_a_library_can_say_unasked) {
  LoopFabric fabric(2, kOneCable, 1, "", Checksums::carried, false);
  replace_poll(fabric.engine(1), poll_with_odd_bits);
  say_hello(fabric);
  ASSERT_TRUE(fabric.send(0, 1, 1, kLength));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 2; }));
  EXPECT_TRUE(LoopFabric::is_sound(fabric.collector(1).chunks[1]));
  EXPECT_EQ(fabric.engine(1).counts().read_in_place, 0U);
}

TEST(Completions, of_requests_that_there_are_not_are_strangers) {
  LoopFabric fabric(2, kOneCable, 1, "", Checksums::carried, false);
  replace_poll(fabric.engine(1), poll_of_strangers);
  ASSERT_TRUE(fabric.send(0, 1, 1, 10));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(1).counts().strangers > 0; }));
  EXPECT_TRUE(fabric.collector(1).chunks.empty());
}

TEST(InPlace, a_checksum_is_made_and_checked_if_every_chunk_has_one) {
  LoopFabric fabric(2, kOneCable, 1, "", Checksums::every);
  say_hello(fabric);
  ASSERT_TRUE(fabric.send(0, 1, 1, kLength));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 2; }));
  EXPECT_TRUE(LoopFabric::is_sound(fabric.collector(1).chunks[1]));
  EXPECT_TRUE(fabric.collector(1).chunks[1].header.has_payload_crc);
  EXPECT_EQ(fabric.engine(1).counts().read_in_place, 1U);
}

TEST(InPlace, the_sender_keeps_a_chunk_until_it_has_been_used) {
  LoopFabric fabric(2, kOneCable);
  say_hello(fabric);
  uint32_t n_used = 0;
  fabric.collector(1).while_used = [&] {
    // Whatever the receiver tells the sender meanwhile, it does not tell it that this one has come.
    ASSERT_TRUE(fabric.send(1, 0, n_used, 10));
    for (uint64_t ms = 1; ms < 30; ms += 5) {
      fabric.go_on_at(0, ms);
    }
    EXPECT_EQ(fabric.collector(0).chunks.size(), 2 + n_used);
    EXPECT_EQ(fabric.engine(0).n_unacknowledged(), 2 - n_used);
    ++n_used;
  };
  ASSERT_TRUE(fabric.send(0, 1, 0, kLength) && fabric.send(0, 1, 1, kLength));
  ASSERT_TRUE(fabric.run_until([&] { return n_used == 2; }));
  EXPECT_EQ(fabric.engine(1).counts().read_in_place, 2U);
  ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(0).n_unacknowledged() == 0; }));
}

TEST(InPlace, a_chunk_sent_again_while_it_is_used_is_a_duplicate) {
  LoopFabric fabric(2, kOneCable);
  say_hello(fabric);
  ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(0).n_unacknowledged() == 0; }));
  bool is_used = false;
  fabric.collector(1).while_used = [&] {
    is_used = true;
    fabric.go_on_at(0, 1);
    fabric.go_on_at(0, 200);
    EXPECT_EQ(fabric.engine(0).counts().resent, 1U);
  };
  ASSERT_TRUE(fabric.send(0, 1, 0, kLength));
  ASSERT_TRUE(fabric.run_until([&] { return is_used; }));
  for (uint64_t ms = 201; fabric.engine(0).n_unacknowledged() > 0 && ms < 300; ++ms) {
    fabric.go_on_at(ms);
  }
  EXPECT_EQ(fabric.engine(1).counts().duplicates, 1U);
  EXPECT_EQ(fabric.engine(0).n_unacknowledged(), 0U);
  ASSERT_EQ(fabric.collector(1).chunks.size(), 2U);
  EXPECT_TRUE(LoopFabric::is_sound(fabric.collector(1).chunks[1]));
}

TEST(InPlace, what_is_kept_without_an_end_leaves_the_senders_memory) {
  LoopFabric fabric(2, kOneCable);
  say_hello(fabric);
  fabric.collector(1).keeps = true;
  ASSERT_TRUE(fabric.send(0, 1, 0, kLength));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == 2; }));
  ASSERT_TRUE(fabric.run_until([&] { return fabric.engine(0).n_unacknowledged() == 0; }));
  while (fabric.send(0, 1, 1, 5000)) {  // over all that was there
  }
  EXPECT_EQ(fabric.collector(1).kept[0].bytes[kLength - 1], LoopFabric::expected_byte(0, 0, kLength - 1));
}

TEST(InPlace, a_slot_that_is_set_aside_serves_a_chunk_like_the_last_one_as_soon_as_it_is_owned) {
  LoopFabric fabric(2, kOneCable);
  say_hello(fabric);
  Engine& engine = fabric.engine(0);
  EXPECT_TRUE(engine.set_slot_aside().empty());  // the last one was copied, so these lines are here
  size_t n_sent = 1;
  for (const uint32_t length : {4096U, 2048U, 8192U}) {  // large, small, large slots
    ASSERT_TRUE(fabric.send(0, 1, 1, length));
    ++n_sent;
    ASSERT_TRUE(fabric.run_until([&] { return fabric.collector(1).chunks.size() == n_sent; }));
    const std::span<std::byte> aside = engine.set_slot_aside();
    ASSERT_EQ(aside.size(), kHeaderBytes + length);
    EXPECT_TRUE(engine.set_slot_aside().empty());
    const auto other = engine.take_slot(length);
    ASSERT_TRUE(other);
    EXPECT_NE(other->bytes, aside.data() + kHeaderBytes);
    engine.cancel(other->id);
    engine.own(aside);
    EXPECT_TRUE(engine.set_slot_aside().empty());
    if (length != 4096) {  // that one is not used: it goes back when one of another size is wanted
      const auto slot = engine.take_slot(length);
      ASSERT_TRUE(slot);
      EXPECT_EQ(slot->bytes, aside.data() + kHeaderBytes);
      engine.cancel(slot->id);
    }
  }
  ASSERT_TRUE(fabric.send(0, 1, 1, 8193));
  EXPECT_TRUE(engine.set_slot_aside().empty());
  ASSERT_TRUE(fabric.run_until([&] { return engine.n_unacknowledged() == 0; }));
  std::vector<uint32_t> slots;
  while (const auto slot = engine.take_slot(kLength)) {
    slots.push_back(slot->id);
  }
  EXPECT_EQ(slots.size(), ChunkSlots::kLarge);
}

/// A relay's memory is free again when it has sent: nobody may go on reading there.
TEST(InPlace, what_is_relayed_is_copied_at_each_hop) {
  LoopFabric fabric(3, {{0, 1}, {1, 2}});
  for (const uint32_t end : {0U, 2U}) {
    ASSERT_TRUE(fabric.send(end, 1, 1000, 10) && fabric.send(1, end, 1000, 10));
  }
  ASSERT_TRUE(fabric.run_until([&] {
    return fabric.collector(0).chunks.size() == 1 && fabric.collector(1).chunks.size() == 2 &&
           fabric.collector(2).chunks.size() == 1;
  }));
  fabric.collector(2).keeps = true;
  constexpr uint32_t kCount = 80;
  uint32_t sent = 0;
  ASSERT_TRUE(fabric.run_until([&] {
    sent += sent < kCount && fabric.send(0, 2, sent, kLength) ? 1U : 0U;
    return fabric.collector(2).chunks.size() == 1 + kCount;
  }));
  EXPECT_GE(fabric.engine(1).counts().relayed, kCount);  // acknowledgements, too
  EXPECT_EQ(fabric.engine(1).counts().read_in_place + fabric.engine(2).counts().read_in_place, 0U);
  for (size_t i = 0; i < kCount; ++i) {  // the relay has used its receives twice and more since the first ones
    const Receipt& kept = fabric.collector(2).kept[i];
    const auto& chunk = fabric.collector(2).chunks[1 + i].header;
    EXPECT_TRUE(chunk.has_payload_crc);
    EXPECT_EQ(kept.bytes[kLength - 1], LoopFabric::expected_byte(0, chunk.chunk, kLength - 1));
  }
}

class GivenUp : public testing::TestWithParam<bool> {};

TEST_P(GivenUp, what_a_rank_that_lives_may_read_is_not_written_over) {
  const bool has_ended = GetParam();
  LoopFabric fabric(2, kOneCable);
  say_hello(fabric);
  const auto n_free = [&] {
    std::vector<uint32_t> slots;
    while (const auto slot = fabric.engine(0).take_slot(kLength)) {
      slots.push_back(slot->id);
    }
    for (const uint32_t slot : slots) {
      fabric.engine(0).cancel(slot);
    }
    return slots.size();
  };
  ASSERT_TRUE(fabric.send(0, 1, 0, kLength));
  // Nor if its cable has been made ready for another connection since.
  fabric.engine(0).fail_cable(0, "the test says so");
  fabric.engine(0).reset_cable(0, 2);
  fabric.engine(0).give_up(1, has_ended);
  EXPECT_EQ(n_free(), ChunkSlots::kLarge - (has_ended ? 0 : 1));
  fabric.go_on_at(60'000);
  EXPECT_EQ(n_free(), ChunkSlots::kLarge);
}

INSTANTIATE_TEST_SUITE_P(EndsAndLives, GivenUp, testing::Bool());

}  // namespace
}  // namespace ringbolt::engine
