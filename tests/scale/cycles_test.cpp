// Ten thousand times connected and destroyed: bounded memory, and the last as quick as the first.
#include <algorithm>
#include <chrono>

#include "census.h"
#include "far.h"

namespace ringbolt::scale {
namespace {

using namespace conformance;
using std::chrono::steady_clock;

constexpr size_t kCycles = kIsSanitized ? 1000 : 10000;

/// Runs `cycle` kCycles times; checks that nothing grows after a tenth of them, nor slows down.
template <typename Cycle>
void repeat(size_t cycles, Cycle cycle) {
  const size_t part = cycles / 10;
  Census settled;
  std::vector<double> seconds;
  for (size_t tenth = 0; tenth < 10; ++tenth) {
    const auto start = steady_clock::now();
    for (size_t i = 0; i < part; ++i) {
      cycle(tenth * part + i);
      if (testing::Test::HasFailure()) {
        return;
      }
    }
    seconds.push_back(std::chrono::duration<double>(steady_clock::now() - start).count());
    if (tenth == 0) {
      settled = take_census();
    }
  }
  expect_no_growth(settled, 64, 8192);
  // A leak that slows things down grows with the cycles; noise of the machine does not. The best
  // of the last three tenths against the worst of the first three needs no luck.
  const double early = *std::max_element(seconds.begin(), seconds.begin() + 3);
  const double late = *std::min_element(seconds.end() - 3, seconds.end());
  EXPECT_LE(late, 2 * early) << "first tenths up to " << early << " s, last from " << late << " s";
}

TEST(Cycles, connecting_and_destroying_in_one_process) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 64);
  Region memory(pd.get(), 4096);
  const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
  repeat(kCycles, [&](uint64_t i) {
    Endpoint a(device, {}, parts), b(device, {}, parts);
    connect(a, b);
    ASSERT_EQ(post_recv(b.qp(), i, {memory.sge(8, 8)}), 0);
    memory.set_word(0, i);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(0, 8)}).post(a.qp()), 0);
    for (const ibv_wc& wc : wait_completions(cq.get(), 2)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << conformance::describe(wc);
    }
    ASSERT_EQ(memory.word(8), i);
  });
}

TEST(Cycles, connecting_and_destroying_between_two_processes) {
  PeerProcess peer;
  const Device device = open_device();
  const Pd pd = make_pd(device);
  Region memory(pd.get(), 4096);
  repeat(kCycles / 10, [&](uint64_t i) {
    Endpoint near(device, {}, {pd.get(), nullptr, nullptr, nullptr});
    Far far(peer);
    far.open({}, 4096);
    near.connect(far.address());
    far.connect(near.address());
    ASSERT_EQ(far.post_recv(i, {{0, 8}}), 0);
    memory.set_word(0, i);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(0, 8)}).post(near.qp()), 0);
    expect_success(wait_completion(near.send_cq()), i, IBV_WC_SEND);
    expect_success(far.wait_recv(), i, IBV_WC_RECV);
    ASSERT_EQ(far.word(0), i);
  });
}

TEST(Cycles, peers_that_come_and_go) {
  const Device device = open_device();
  repeat(kIsSanitized ? 20 : 100, [&](uint64_t i) {
    PeerProcess peer;
    Endpoint near(device, {});
    Region memory(near.pd(), 64);
    Far far(peer);
    far.open({}, 4096);
    near.connect(far.address());
    far.connect(near.address());
    ASSERT_EQ(far.post_recv(i, {{0, 8}}), 0);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(0, 8)}).post(near.qp()), 0);
    expect_success(wait_completion(near.send_cq()), i, IBV_WC_SEND);
    if (i % 2 == 0) {
      peer.kill();
      far.abandon();
    }
  });
}

TEST(Cycles, opening_and_closing_the_device) {
  repeat(kCycles / 10, [](uint64_t) {
    const Device device = open_device();
    const Endpoint endpoint(device, {});
    const Region region(endpoint.pd(), 4096);
  });
}

TEST(Cycles, registering_and_deregistering) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  std::vector<uint8_t> memory(65536);
  repeat(kCycles, [&](uint64_t i) {
    const Mr mr(must(ibv_reg_mr(pd.get(), memory.data() + i % 4096, 4096, kAllAccess), "reg_mr"));
  });
}

// More senders than a queue pair keeps in mind at once, one after the other: it must forget those that are gone.
TEST(Cycles, datagrams_from_ever_new_queue_pairs) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 64);
  Region memory(pd.get(), 4096);
  QpOptions options;
  options.type = IBV_QPT_UD;
  const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
  Endpoint sink(device, options, parts);
  sink.connect({});
  const Ah ah = make_ah(device, pd.get(), sink.address().gid);
  repeat(kCycles / 2, [&](uint64_t i) {
    Endpoint source(device, options, parts);
    source.connect({});
    ASSERT_EQ(post_recv(sink.qp(), i, {memory.sge(64, 64)}), 0);
    memory.set_word(0, i);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(0, 8)}).datagram(ah.get(), sink.qp()->qp_num).post(source.qp()), 0);
    for (const ibv_wc& wc : wait_completions(cq.get(), 2)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << conformance::describe(wc);
    }
    ASSERT_EQ(memory.word(64 + 40), i);
  });
}

}  // namespace
}  // namespace ringbolt::scale
