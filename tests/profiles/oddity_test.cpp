// Oddities that one user has seen, or of which sources contradict each other: each has a knob and is off unless it is
// turned.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

constexpr size_t kFrame = 4096;
constexpr size_t kPage = 16384;

class MacOddity : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Like, MacOddity, testing::Values("tn3205", "apple"), name_of_profile);

int to_error(ibv_qp* qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}
int to_reset(ibv_qp* qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RESET;
  return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

/// In a process of its own, as its regions stay: what deregistering says to one older and one younger than the
/// destroyed queue pair, both times that it is asked.
[[noreturn]] void leak_after_error(const std::string& profile) {
  const Rig rig(profile);
  const Buffer old(rig, kFrame);
  Held<ibv_qp> qp = rig.make_qp();
  const bool is_set_up = to_init(qp.get()) == 0 && to_error(qp.get()) == 0;
  qp.reset();
  const Buffer young(rig, kFrame);
  ibv_mr* stuck = old.mr.get();
  const bool stays = ibv_dereg_mr(stuck) == EBUSY && ibv_dereg_mr(stuck) == EBUSY;
  const bool keeps_domain = ibv_dealloc_pd(rig.pd.get()) == EBUSY;
  _exit(is_set_up && stays && keeps_domain && young.mr != nullptr ? 0 : 1);
}

TEST_P(MacOddity, keeps_regions_once_a_queue_pair_was_destroyed_in_error) {
  EXPECT_EXIT(leak_after_error(std::string(GetParam()) + ",err-leak=on"), testing::ExitedWithCode(0),
              "EBUSY.*\n.*\n.*RESET.*err-leak");
}

TEST_P(MacOddity, gives_regions_back_when_it_was_destroyed_otherwise) {
  for (const bool is_on : {true, false}) {
    const Rig rig(std::string(GetParam()) + (is_on ? ",err-leak=on" : ""));
    Buffer buffer(rig, kFrame);
    Held<ibv_qp> qp = rig.make_qp();
    ASSERT_EQ(to_init(qp.get()), 0);
    ASSERT_EQ(to_error(qp.get()), 0);
    if (is_on) {
      ASSERT_EQ(to_reset(qp.get()), 0);
    }
    qp.reset();
    EXPECT_EQ(ibv_dereg_mr(buffer.mr.release()), 0) << is_on;
  }
}

/// A send and a receive of two pieces each.
struct Pieces {
  explicit Pieces(const Rig& rig)
      : source(rig, kPage), target(rig, kPage), wanted(with_pieces(rig)), pair(rig, wanted) {
    std::iota(source.data(), source.data() + kPage, uint8_t{1});
  }
  static ibv_qp_init_attr with_pieces(const Rig& rig) {
    ibv_qp_init_attr init = rig.wanted();
    init.cap.max_send_sge = init.cap.max_recv_sge = 2;
    return init;
  }
  Buffer source;
  Buffer target;
  ibv_qp_init_attr wanted;
  Pair pair;
};

TEST_P(MacOddity, may_end_a_message_and_complete_with_each_piece) {
  const Rig rig(std::string(GetParam()) + ",multi-sge=accept");
  EXPECT_EQ(rig.device().max_sge, 1);  // as it says of itself
  const Pieces two(rig);
  ibv_sge receives[2] = {two.target.piece(kFrame), two.target.piece(2 * kFrame, kFrame)};
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  receive.wr_id = 2;
  receive.sg_list = receives;
  receive.num_sge = 2;
  ASSERT_EQ(ibv_post_recv(two.pair.b.get(), &receive, &bad_receive), 0);
  ibv_sge sends[2] = {two.source.piece(100), two.source.piece(kFrame + 1, 100)};
  ibv_send_wr send{};
  ibv_send_wr* bad_send = nullptr;
  send.wr_id = 1;
  send.sg_list = sends;
  send.num_sge = 2;
  send.opcode = IBV_WR_SEND;
  ASSERT_EQ(ibv_post_send(two.pair.a.get(), &send, &bad_send), 0);
  const auto all = poll(rig.cq.get(), 4);
  ASSERT_EQ(all.size(), 4U);
  std::vector<uint32_t> lengths;
  for (const ibv_wc& wc : all) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.wr_id == 2) {
      lengths.push_back(wc.byte_len);
    }
  }
  EXPECT_EQ(lengths, (std::vector<uint32_t>{100, kFrame + 1}));
  EXPECT_EQ(std::ranges::count(all, uint64_t{1}, &ibv_wc::wr_id), 2);
  EXPECT_TRUE(std::equal(two.source.data(), two.source.data() + 100, two.target.data()));
  EXPECT_TRUE(std::equal(two.source.data() + 100, two.source.data() + 101 + kFrame, two.target.data() + kFrame));
}

TEST_P(MacOddity, counts_the_frames_of_each_piece) {
  const Rig rig(std::string(GetParam()) + ",multi-sge=accept,short-grant=1020");  // of 1023 frames: 3
  const Pieces two(rig);
  ibv_sge pieces[2] = {two.target.piece(1), two.target.piece(1, kFrame)};  // 2 bytes, 2 frames
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  wr.sg_list = pieces;
  wr.num_sge = 2;
  EXPECT_EQ(ibv_post_recv(two.pair.b.get(), &wr, &bad), 0);
  EXPECT_EQ(ibv_post_recv(two.pair.b.get(), &wr, &bad), -ENOMEM);
  wr.num_sge = 1;
  EXPECT_EQ(ibv_post_recv(two.pair.b.get(), &wr, &bad), 0);
  EXPECT_EQ(ibv_post_recv(two.pair.b.get(), &wr, &bad), -ENOMEM);
}

/// A boundary of 4 GiB with a page before and a page behind it, and the same 4 GiB lower. Nothing else is touched.
class Boundary {
 public:
  Boundary() : reserved_(mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (reserved_ == MAP_FAILED) {
      return;
    }
    const auto first = reinterpret_cast<uintptr_t>(reserved_);
    upper_ = (first + kGib4 + kPage + kGib4 - 1) / kGib4 * kGib4;
    for (const uintptr_t around : {upper_, upper_ - kGib4}) {
      is_there_ = mprotect(reinterpret_cast<void*>(around - kPage), 2 * kPage, PROT_READ | PROT_WRITE) == 0;
    }
  }
  ~Boundary() {
    if (reserved_ != MAP_FAILED) {
      munmap(reserved_, kReserved);
    }
  }
  Boundary(const Boundary&) = delete;
  Boundary& operator=(const Boundary&) = delete;

  bool is_there() const { return reserved_ != MAP_FAILED && is_there_; }
  uint8_t* upper() const { return reinterpret_cast<uint8_t*>(upper_); }
  uint8_t* lower() const { return reinterpret_cast<uint8_t*>(upper_ - kGib4); }

 private:
  static constexpr uintptr_t kGib4 = uintptr_t{1} << 32U;
  static constexpr size_t kReserved = 3 * kGib4;
  void* reserved_;
  uintptr_t upper_ = 0;
  bool is_there_ = false;
};

/// Receives 3 pages of bytes that are all `mark`, of which the last two belong beyond the boundary.
void receive_across(const Rig& rig, const Boundary& boundary, uint8_t mark) {
  constexpr size_t kBytes = 3 * kFrame;
  const Buffer source(rig, kPage);
  std::memset(source.data(), mark, kBytes);
  uint8_t* const first = boundary.upper() - kFrame;
  const Held<ibv_mr> across(ibv_reg_mr(rig.pd.get(), boundary.upper() - kPage, 2 * kPage, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_NE(across, nullptr);
  const Pair pair(rig);
  ASSERT_EQ(post_receive(pair.b.get(), {reinterpret_cast<uint64_t>(first), kBytes, across->lkey}), 0);
  ASSERT_EQ(post_send(pair.a.get(), source.piece(kBytes)), 0);
  const auto all = poll(rig.cq.get(), 2);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(of(all, 2)->status, IBV_WC_SUCCESS);
  EXPECT_EQ(of(all, 2)->byte_len, kBytes);
}

TEST_P(MacOddity, warns_of_a_region_across_4_gib_and_delivers_where_it_belongs) {
  const Boundary boundary;
  if (!boundary.is_there()) {
    GTEST_SKIP() << "no 12 GiB of address space";
  }
  const Rig rig(GetParam());
  testing::internal::CaptureStderr();
  receive_across(rig, boundary, 7);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("mr-crosses-4-gib"), std::string::npos);
  EXPECT_EQ(boundary.upper()[-1], 7);
  EXPECT_EQ(boundary.upper()[0], 7);
  EXPECT_EQ(boundary.upper()[2 * kFrame - 1], 7);
  EXPECT_EQ(boundary.lower()[0], 0);
}

TEST_P(MacOddity, may_deliver_beyond_4_gib_too_low_where_a_region_takes_it) {
  const Boundary boundary;
  if (!boundary.is_there()) {
    GTEST_SKIP() << "no 12 GiB of address space";
  }
  const Rig rig(std::string(GetParam()) + ",wrap4g=corrupt");
  {
    const Held<ibv_mr> victim(ibv_reg_mr(rig.pd.get(), boundary.lower(), kFrame, IBV_ACCESS_LOCAL_WRITE));
    ASSERT_NE(victim, nullptr);
    receive_across(rig, boundary, 7);
  }
  EXPECT_EQ(boundary.upper()[-1], 7);
  EXPECT_EQ(boundary.upper()[0], 0);  // nothing where it belongs
  EXPECT_EQ(boundary.lower()[0], 7);
  EXPECT_EQ(boundary.lower()[kFrame - 1], 7);
  EXPECT_EQ(boundary.lower()[kFrame], 0);  // beyond the region: gone
  EXPECT_EQ(boundary.lower()[-1], 0);
  receive_across(rig, boundary, 9);  // now that nothing is registered there
  EXPECT_EQ(boundary.upper()[-1], 9);
  EXPECT_EQ(boundary.upper()[0], 0);
  EXPECT_EQ(boundary.lower()[0], 7);
}

TEST_P(MacOddity, harms_no_region_of_another_domain) {
  const Boundary boundary;
  if (!boundary.is_there()) {
    GTEST_SKIP() << "no 12 GiB of address space";
  }
  const Rig rig(std::string(GetParam()) + ",wrap4g=corrupt");
  const Held<ibv_pd> other(ibv_alloc_pd(rig.context.get()));
  const Held<ibv_mr> bystander(ibv_reg_mr(other.get(), boundary.lower(), kPage, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_NE(bystander, nullptr);
  receive_across(rig, boundary, 7);
  EXPECT_EQ(boundary.lower()[0], 0);
}

TEST_P(MacOddity, may_want_remote_access_of_each_region) {
  const Rig rig(std::string(GetParam()) + ",mr-access=remote");
  const Held<void> memory(std::aligned_alloc(kPage, kPage));
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(rig.pd.get(), memory.get(), kPage, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  const Held<ibv_mr> mr(ibv_reg_mr(rig.pd.get(), memory.get(), kPage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
  EXPECT_NE(mr, nullptr);
}

TEST_P(MacOddity, may_want_regions_off_the_heap) {
  const Rig rig(std::string(GetParam()) + ",mr-memory=mapped,align=any");
  void* const heap = sbrk(2 * kPage);
  ASSERT_NE(heap, reinterpret_cast<void*>(-1));
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(rig.pd.get(), heap, kPage, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  void* const mapped = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_NE(Held<ibv_mr>(ibv_reg_mr(rig.pd.get(), mapped, kPage, IBV_ACCESS_LOCAL_WRITE)), nullptr);
  munmap(mapped, kPage);
  const Rig plain(std::string(GetParam()) + ",align=any");
  EXPECT_NE(Held<ibv_mr>(ibv_reg_mr(plain.pd.get(), heap, kPage, IBV_ACCESS_LOCAL_WRITE)), nullptr);
}

TEST_P(MacOddity, may_show_no_device) {
  const Like like(std::string(GetParam()) + ",devices=none");
  int count = -1;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(list[0], nullptr);
  ibv_free_device_list(list);
}

}  // namespace
}  // namespace ringbolt::profiles
