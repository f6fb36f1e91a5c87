// Compare-and-swap and fetch-and-add: values, alignment, lengths, and many at once.
#include <thread>

#include "far.h"

namespace ringbolt::conformance {
namespace {

constexpr uint64_t kWord = 128;

class AtomicTest : public testing::TestWithParam<Placement> {
 protected:
  AtomicTest() : link(GetParam(), {}, 4096) {}

  /// Posts the atomic and returns the completion; the old value lands at offset 0.
  ibv_wc run(ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap = 0) {
    SendWr wr(1, opcode, {link.memory.sge(0, 8)});
    wr.atomic(link.far.region_address(kWord), link.far.rkey(), compare_add, swap);
    must_succeed(wr.post(link.near.qp()), "ibv_post_send");
    return wait_completion(link.near.send_cq());
  }

  Link link;
};

INSTANTIATE_TEST_SUITE_P(All, AtomicTest,
                         testing::ValuesIn(kPlacements), parameter_name);

TEST_P(AtomicTest, fetch_and_add_returns_the_old_value) {
  link.far.set_word(kWord, 0x1111222233334444);
  const ibv_wc wc = run(IBV_WR_ATOMIC_FETCH_AND_ADD, 0x0000000100000001);
  expect_success(wc, 1, IBV_WC_FETCH_ADD);
  EXPECT_EQ(wc.byte_len, 8u);
  EXPECT_EQ(link.memory.word(0), 0x1111222233334444u);
  EXPECT_EQ(link.far.word(kWord), 0x1111222333334445u);
}

TEST_P(AtomicTest, fetch_and_add_wraps_around) {
  link.far.set_word(kWord, ~0ull);
  expect_success(run(IBV_WR_ATOMIC_FETCH_AND_ADD, 3), 1, IBV_WC_FETCH_ADD);
  EXPECT_EQ(link.memory.word(0), ~0ull);
  EXPECT_EQ(link.far.word(kWord), 2u);
}

TEST_P(AtomicTest, compare_and_swap_swaps_on_equality) {
  link.far.set_word(kWord, 77);
  const ibv_wc wc = run(IBV_WR_ATOMIC_CMP_AND_SWP, 77, 0xfeedfacecafebeef);
  expect_success(wc, 1, IBV_WC_COMP_SWAP);
  EXPECT_EQ(wc.byte_len, 8u);
  EXPECT_EQ(link.memory.word(0), 77u);
  EXPECT_EQ(link.far.word(kWord), 0xfeedfacecafebeefu);
}

TEST_P(AtomicTest, compare_and_swap_leaves_an_unequal_value) {
  link.far.set_word(kWord, 78);
  expect_success(run(IBV_WR_ATOMIC_CMP_AND_SWP, 77, 1), 1, IBV_WC_COMP_SWAP);
  EXPECT_EQ(link.memory.word(0), 78u);
  EXPECT_EQ(link.far.word(kWord), 78u);
}

TEST_P(AtomicTest, neighbours_of_the_word_are_untouched) {
  link.far.set_word(kWord, 5);
  run(IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
  EXPECT_EQ(link.far.word(kWord - 8), 0xa5a5a5a5a5a5a5a5u);
  EXPECT_EQ(link.far.word(kWord + 8), 0xa5a5a5a5a5a5a5a5u);
  EXPECT_EQ(link.memory.word(8), 0xa5a5a5a5a5a5a5a5u);
}

TEST_P(AtomicTest, misaligned_word_is_a_remote_invalid_request) {
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    for (const uint64_t offset : {1u, 4u, 7u}) {
      Link fresh(GetParam(), {}, 4096);
      SendWr wr(1, opcode, {fresh.memory.sge(0, 8)});
      wr.atomic(fresh.far.region_address(kWord + offset), fresh.far.rkey(), 1, 2);
      ASSERT_EQ(wr.post(fresh.near.qp()), 0);
      expect_status(wait_completion(fresh.near.send_cq()), 1, IBV_WC_REM_INV_REQ_ERR);
      EXPECT_EQ(fresh.far.check({}, 0, 0), "");
      EXPECT_EQ(fresh.near.state(), IBV_QPS_ERR);
    }
  }
}

TEST_P(AtomicTest, answer_may_be_scattered) {
  link.far.set_word(kWord, 0x0807060504030201);
  SendWr wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, {link.memory.sge(16, 3), link.memory.sge(40, 5)});
  wr.atomic(link.far.region_address(kWord), link.far.rkey(), 0);
  ASSERT_EQ(wr.post(link.near.qp()), 0);
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_FETCH_ADD);
  EXPECT_EQ(link.memory.data()[16], 1);
  EXPECT_EQ(link.memory.data()[18], 3);
  EXPECT_EQ(link.memory.data()[19], 0xA5);
  EXPECT_EQ(link.memory.data()[40], 4);
  EXPECT_EQ(link.memory.data()[44], 8);
}

TEST_P(AtomicTest, answer_needs_local_write) {
  Region constant(link.near.pd(), 64, 0);
  SendWr wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, {constant.sge(0, 8)});
  wr.atomic(link.far.region_address(kWord), link.far.rkey(), 1);
  ASSERT_EQ(wr.post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_LOC_PROT_ERR);
}

TEST_P(AtomicTest, burst_beyond_the_read_depth_completes_in_order) {
  constexpr uint64_t kCount = 60;
  link.far.set_word(kWord, 1000);
  for (uint64_t i = 0; i < kCount; ++i) {
    SendWr wr(i, IBV_WR_ATOMIC_FETCH_AND_ADD, {link.memory.sge(8 * i, 8)});
    wr.atomic(link.far.region_address(kWord), link.far.rkey(), 1);
    ASSERT_EQ(wr.post(link.near.qp()), 0);
  }
  for (uint64_t i = 0; i < kCount; ++i) {
    expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_FETCH_ADD);
    EXPECT_EQ(link.memory.word(8 * i), 1000 + i);
  }
}

/// Adds `count` ones to a word through a queue pair of its own.
void add_ones(Endpoint& endpoint, const Region& target, uint64_t count) {
  Region answer(endpoint.pd(), 64);
  for (uint64_t i = 0; i < count; ++i) {
    SendWr wr(i, IBV_WR_ATOMIC_FETCH_AND_ADD, {answer.sge(0, 8)});
    wr.atomic(target.address(), target.rkey(), 1);
    must_succeed(wr.post(endpoint.qp()), "ibv_post_send");
    expect_success(wait_completion(endpoint.send_cq()), i, IBV_WC_FETCH_ADD);
  }
}

TEST(Atomic, adds_of_two_queue_pairs_are_never_lost) {
  constexpr uint64_t kCount = 500;
  const Device device = open_device();
  const Pd pd = make_pd(device);
  Region target(pd.get(), 64);
  target.set_word(0, 0);
  const Parts parts{pd.get(), nullptr, nullptr, nullptr};
  Endpoint a1(device, {}), a2(device, {}), b1(device, {}, parts), b2(device, {}, parts);
  connect(a1, b1);
  connect(a2, b2);
  std::thread other([&] {
    try {
      add_ones(a1, target, kCount);
    } catch (const std::exception& problem) {
      ADD_FAILURE() << problem.what();
    }
  });
  add_ones(a2, target, kCount);
  other.join();
  EXPECT_EQ(target.word(0), 2 * kCount);
}

}  // namespace
}  // namespace ringbolt::conformance
