#include "device/queue_pair_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "device/queue_pair_places_test_support.h"

namespace ringbolt::device {
namespace {

class QueuePairTableTest : public testing::Test {
 protected:
  QueuePair& qp(size_t number) { return queue_pairs_.at(number); }

  QueuePairPlaces<4> queue_pairs_;
  std::unique_ptr<QueuePairTable> table_ = std::make_unique<QueuePairTable>();
};

TEST_F(QueuePairTableTest, finds_what_was_put_in_until_it_is_removed) {
  EXPECT_EQ(table_->find(5), nullptr);
  table_->put(5, qp(0));
  table_->put(kMaxQueuePairs - 1, qp(1));
  {
    const QueuePairTable::Reading reading(*table_);
    EXPECT_EQ(table_->find(5), &qp(0));
    EXPECT_EQ(table_->find((3U << kQpnIndexBits) | 5), &qp(0)) << "the upper bits are the process'";
    EXPECT_EQ(table_->find(kMaxQueuePairs - 1), &qp(1));
  }
  table_->remove(5);
  EXPECT_EQ(table_->find(5), nullptr);
  EXPECT_EQ(table_->find(kMaxQueuePairs - 1), &qp(1));
}

TEST_F(QueuePairTableTest, who_removes_waits_for_who_reads) {
  table_->put(1, qp(0));
  std::atomic<bool> is_removed{false};
  std::thread remover;
  {
    const QueuePairTable::Reading reading(*table_);
    remover = std::thread([&] {
      table_->remove(1);
      is_removed = true;
    });
    while (table_->find(1) != nullptr) {
      std::this_thread::yield();
    }
    for (int i = 0; i < 100; ++i) {
      std::this_thread::yield();
    }
    EXPECT_FALSE(is_removed);
  }
  remover.join();
}

// What is found is alive as long as its finder reads: the remover kills it at once.
TEST_F(QueuePairTableTest, nobody_finds_the_dead) {
  constexpr int kRounds = 3'000;
  constexpr uint64_t kAlive = 0x5a5a;
  std::atomic<uint64_t> life{0};
  std::atomic<bool> is_over{false};
  std::atomic<uint32_t> dead_found{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!is_over.load(std::memory_order_relaxed)) {
        const QueuePairTable::Reading reading(*table_);
        if (table_->find(2) != nullptr && life.load(std::memory_order_relaxed) != kAlive) {
          ++dead_found;
        }
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    life.store(kAlive, std::memory_order_relaxed);
    table_->put(2, qp(0));
    table_->remove(2);
    life.store(0, std::memory_order_relaxed);
  }
  is_over = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
  EXPECT_EQ(dead_found, 0U);
}

}  // namespace
}  // namespace ringbolt::device
