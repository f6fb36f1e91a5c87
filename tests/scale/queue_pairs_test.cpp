// A thousand queue pairs in one process.
#include "census.h"
#include "far.h"

namespace ringbolt::scale {
namespace {

using namespace conformance;

constexpr size_t kQueuePairs = 1000;

/// The depth of a program that asks for little: what the footprint promise is about.
QpOptions plain() {
  QpOptions options;
  options.send_wr = options.recv_wr = 128;
  options.send_sge = options.recv_sge = 1;
  return options;
}

class QueuePairsTest : public testing::Test {
 protected:
  QueuePairsTest()
      : device(open_device()),
        pd(make_pd(device)),
        cq(make_cq(device, 4096)),
        memory(pd.get(), 16 * kQueuePairs) {}

  std::vector<std::unique_ptr<Endpoint>> make_all() {
    std::vector<std::unique_ptr<Endpoint>> ends;
    const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
    for (size_t i = 0; i < kQueuePairs; ++i) {
      ends.push_back(std::make_unique<Endpoint>(device, plain(), parts));
    }
    return ends;
  }

  /// Connects them in pairs; everyone sends a word to its partner.
  void talk(const std::vector<std::unique_ptr<Endpoint>>& ends) {
    for (size_t i = 0; i < kQueuePairs; i += 2) {
      connect(*ends[i], *ends[i + 1]);
    }
    for (size_t i = 0; i < kQueuePairs; ++i) {
      memory.set_word(16 * i, 0x1000 + i);
      memory.set_word(16 * i + 8, 0);
      ASSERT_EQ(post_recv(ends[i]->qp(), i, {memory.sge(16 * i + 8, 8)}), 0);
    }
    for (size_t i = 0; i < kQueuePairs; ++i) {
      ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(16 * i, 8)}).post(ends[i]->qp()), 0);
    }
    for (const ibv_wc& wc : wait_completions(cq.get(), 2 * kQueuePairs)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << conformance::describe(wc);
    }
    for (size_t i = 0; i < kQueuePairs; ++i) {
      EXPECT_EQ(memory.word(16 * i + 8), 0x1000 + (i ^ 1));
    }
  }

  Device device;
  Pd pd;
  Cq cq;
  Region memory;
};

TEST_F(QueuePairsTest, thousand_idle_ones_stay_small) {
  const Census before = take_census();
  const auto ends = make_all();
  const Census now = take_census();
  if (!kIsSanitized) {
    EXPECT_LE(now.resident_kib - before.resident_kib, kQueuePairs * 64) << describe(now);
  }
  EXPECT_LE(now.threads, before.threads + 1) << describe(now);
}

// An allocator may keep what it got, so the second thousand is compared with the first.
TEST_F(QueuePairsTest, second_thousand_takes_no_more_than_the_first) {
  talk(make_all());
  const Census settled = take_census();
  for (int round = 0; round < 3; ++round) {
    const auto ends = make_all();
    talk(ends);
    EXPECT_LE(take_census().threads, settled.threads);
  }
  expect_no_growth(settled, 64, 8192);
}

}  // namespace
}  // namespace ringbolt::scale
