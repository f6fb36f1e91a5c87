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

TEST(QueuePairs, thousand_idle_ones_stay_small) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 4096);
  const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
  const Census before = take_census();
  {
    std::vector<std::unique_ptr<Endpoint>> ends;
    for (size_t i = 0; i < kQueuePairs; ++i) {
      ends.push_back(std::make_unique<Endpoint>(device, plain(), parts));
    }
    const Census now = take_census();
    if (!kIsSanitized) {
      EXPECT_LE(now.resident_kib - before.resident_kib, kQueuePairs * 64) << describe(now);
    }
    EXPECT_LE(now.threads, before.threads + 1) << describe(now);
  }
  expect_no_growth(before, 64, 16384);
}

TEST(QueuePairs, thousand_connected_ones_all_work) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 4096);
  const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
  Region memory(pd.get(), 16 * kQueuePairs);
  const Census before = take_census();
  {
    std::vector<std::unique_ptr<Endpoint>> ends;
    for (size_t i = 0; i < kQueuePairs; ++i) {
      ends.push_back(std::make_unique<Endpoint>(device, plain(), parts));
    }
    for (size_t i = 0; i < kQueuePairs; i += 2) {
      connect(*ends[i], *ends[i + 1]);
    }
    for (size_t i = 0; i < kQueuePairs; ++i) {
      memory.set_word(16 * i, 0x1000 + i);
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
    EXPECT_LE(take_census().threads, before.threads + 2);
  }
  expect_no_growth(before, 64, 32768);
}

}  // namespace
}  // namespace ringbolt::scale
