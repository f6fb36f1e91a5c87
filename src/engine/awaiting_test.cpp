#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "engine/loop_fabric_test_support.h"

namespace ringbolt::engine {
namespace {

using test::LoopFabric;

/// Takes the chunks of a call, but for those that it does not want.
class Awaited : public Awaiting {
 public:
  explicit Awaited(Engine& engine) : engine_(engine) {}
  bool on_awaited(const ChunkHeader& header, const Receipt& receipt) override {
    if (header.chunk == unwanted) {
      return false;
    }
    chunks.push_back(header.chunk);
    engine_.release(receipt.id);
    return true;
  }

  uint32_t unwanted = UINT32_MAX;
  std::vector<uint32_t> chunks;

 private:
  Engine& engine_;
};

TEST(Awaiting, gets_the_chunks_of_its_call_and_no_others) {
  LoopFabric fabric(2, {{0, 1}});
  Engine& receiver = fabric.engine(1);
  Awaited awaited(receiver);
  Awaited another(receiver);
  const auto& others = fabric.collector(1).chunks;
  uint32_t n_sent = 0;
  const auto send = [&](uint16_t group, uint32_t call) {
    const auto slot = fabric.engine(0).take_slot(0);
    ASSERT_TRUE(slot);
    fabric.engine(0).send(slot->id, 0, {1, {}, group, 2, call, n_sent++, 5});
    ASSERT_TRUE(
        fabric.run_until([&] { return awaited.chunks.size() + another.chunks.size() + others.size() == n_sent; }));
  };
  receiver.await(awaited, 1, 3);
  send(1, 3);
  EXPECT_EQ(awaited.chunks, std::vector<uint32_t>{0});
  send(1, 4);  // of another call
  send(2, 3);  // of another group
  awaited.unwanted = 3;
  send(1, 3);
  EXPECT_EQ(awaited.chunks.size(), 1U);
  EXPECT_EQ(others.size(), 3U);
  receiver.await(another, 1, 3);  // the last one gets them
  receiver.await_no_more(awaited);
  send(1, 3);
  EXPECT_EQ(another.chunks, std::vector<uint32_t>{4});
  receiver.await_no_more(another);
  send(1, 3);
  EXPECT_EQ(others.size(), 4U);
}

}  // namespace
}  // namespace ringbolt::engine
