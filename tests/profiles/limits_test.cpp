// How many objects there are, over all processes, and what happens beyond.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

class MacLimits : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Like, MacLimits, testing::Values("tn3205", "apple"), name_of_profile);

std::vector<Held<ibv_qp>> queue_pairs(const Rig& rig, size_t count) {
  std::vector<Held<ibv_qp>> all;
  for (size_t i = 0; i < count; ++i) {
    all.push_back(rig.make_qp());
    EXPECT_NE(all.back(), nullptr) << i << ": " << std::strerror(errno);
  }
  return all;
}

TEST_P(MacLimits, refuses_the_eleventh_queue_pair_and_says_why_once) {
  const Rig rig(GetParam());
  testing::internal::CaptureStderr();
  auto held = queue_pairs(rig, 10);
  for (int again = 0; again < 3; ++again) {
    errno = 0;
    EXPECT_EQ(rig.make_qp(), nullptr);
    EXPECT_EQ(errno, EBUSY);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("queue pair"), said.rfind("one more queue pair") + 9) << said;
  EXPECT_NE(said.find("why: "), std::string::npos);
  EXPECT_NE(said.find("fix: "), std::string::npos);
  EXPECT_NE(said.find("EBUSY"), std::string::npos);
  held.pop_back();
  EXPECT_NE(rig.make_qp(), nullptr);  // its place came back
}

/// In a child process: makes queue pairs until it is refused, says how many, and waits to be killed.
pid_t hold_queue_pairs(const std::string& profile, int& told) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Rig rig(profile);
    std::vector<Held<ibv_qp>> held;
    for (Held<ibv_qp> qp = rig.make_qp(); qp != nullptr; qp = rig.make_qp()) {
      held.push_back(std::move(qp));
    }
    const auto count = static_cast<uint8_t>(held.size());
    (void)!write(pipe_ends[1], &count, 1);
    pause();
    _exit(0);
  }
  close(pipe_ends[1]);
  told = pipe_ends[0];
  return child;
}

TEST_P(MacLimits, counts_the_queue_pairs_of_all_processes) {
  int told = -1;
  const pid_t child = hold_queue_pairs(GetParam(), told);
  uint8_t count = 0;
  ASSERT_EQ(read(told, &count, 1), 1);
  EXPECT_EQ(count, 10);
  {
    const Rig rig(GetParam());
    errno = 0;
    EXPECT_EQ(rig.make_qp(), nullptr);
    EXPECT_EQ(errno, EBUSY);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_NE(rig.make_qp(), nullptr);  // what the dead held is free again
  }
  close(told);
}

TEST_P(MacLimits, keeps_the_domains_of_the_dead_until_reboot_when_told) {
  const std::string leaky = std::string(GetParam()) + ",leak=boot";
  for (int run = 0; run < 11; ++run) {
    int told = -1;
    const pid_t child = hold_queue_pairs(leaky, told);
    uint8_t count = 0;
    ASSERT_EQ(read(told, &count, 1), 1) << "run " << run;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(told);
  }
  const Rig rig(leaky);
  EXPECT_EQ(rig.pd, nullptr);
  EXPECT_EQ(ibv_alloc_pd(rig.context.get()), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  const Rig patient(GetParam());  // leaked is leaked: only the ledger's file knows
  EXPECT_EQ(patient.pd, nullptr);
  ASSERT_EQ(unlink((std::string(std::getenv("RINGBOLT_RUNTIME_DIR")) + "/default/rdma_lo.ledger").c_str()), 0);
  EXPECT_NE(Rig(GetParam()).pd, nullptr);
}

TEST_P(MacLimits, refuses_the_twelfth_protection_domain) {
  const Rig rig(GetParam());
  std::vector<Held<ibv_pd>> held;
  for (int i = 1; i < 11; ++i) {
    held.emplace_back(ibv_alloc_pd(rig.context.get()));
    EXPECT_NE(held.back(), nullptr);
  }
  errno = 0;
  EXPECT_EQ(ibv_alloc_pd(rig.context.get()), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_P(MacLimits, refuses_the_twelfth_completion_queue_and_one_that_is_too_long) {
  const Rig rig(GetParam());
  std::vector<Held<ibv_cq>> held;
  errno = 0;
  EXPECT_EQ(ibv_create_cq(rig.context.get(), 4097, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  for (int i = 1; i < 11; ++i) {
    held.emplace_back(ibv_create_cq(rig.context.get(), 16, nullptr, nullptr, 0));
    EXPECT_NE(held.back(), nullptr);
  }
  errno = 0;
  EXPECT_EQ(ibv_create_cq(rig.context.get(), 16, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ibv_resize_cq(held[0].get(), 4097), EINVAL);
}

TEST_P(MacLimits, refuses_the_hundred_and_first_region) {
  const Rig rig(GetParam());
  const Held<void> memory(std::aligned_alloc(16384, 16384));
  std::vector<Held<ibv_mr>> held;
  for (int i = 0; i < 100; ++i) {
    held.emplace_back(ibv_reg_mr(rig.pd.get(), memory.get(), 16384, IBV_ACCESS_LOCAL_WRITE));
    ASSERT_NE(held.back(), nullptr) << i;
  }
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(rig.pd.get(), memory.get(), 16384, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  held.pop_back();
  held.emplace_back(ibv_reg_mr(rig.pd.get(), memory.get(), 16384, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_NE(held.back(), nullptr);
}

TEST_P(MacLimits, registers_more_than_it_says_that_it_can) {
  constexpr size_t kBytes = size_t{2} << 30U;
  const Rig rig(GetParam());
  EXPECT_LT(rig.device().max_mr_size, kBytes);
  void* const memory = mmap(nullptr, kBytes + 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    GTEST_SKIP() << "no 2 GiB of address space";
  }
  const auto page = (reinterpret_cast<uintptr_t>(memory) + 16383) / 16384 * 16384;
  EXPECT_NE(Held<ibv_mr>(ibv_reg_mr(rig.pd.get(), reinterpret_cast<void*>(page), kBytes, IBV_ACCESS_LOCAL_WRITE)), nullptr);
  munmap(memory, kBytes + 16384);
}

TEST_P(MacLimits, has_no_types_but_uc) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UD}) {
    const Rig rig(GetParam());
    errno = 0;
    EXPECT_EQ(rig.make_qp(rig.wanted(type)), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

TEST_P(MacLimits, may_refuse_the_type_only_at_the_first_step) {
  const Rig rig(std::string(GetParam()) + ",type-at=modify");
  const Held<ibv_qp> qp = rig.make_qp(rig.wanted(IBV_QPT_RC));
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(to_init(qp.get()), EOPNOTSUPP);
}

TEST_P(MacLimits, refuses_pieces_inline_data_and_deep_queues) {
  const Rig rig(GetParam());
  const auto refusal = [&](auto change) {
    ibv_qp_init_attr init = rig.wanted();
    change(init.cap);
    errno = 0;
    const Held<ibv_qp> qp = rig.make_qp(init);
    return qp == nullptr ? errno : 0;
  };
  EXPECT_EQ(refusal([](ibv_qp_cap& cap) { cap.max_send_sge = 2; }), EINVAL);
  EXPECT_EQ(refusal([](ibv_qp_cap& cap) { cap.max_recv_sge = 2; }), EINVAL);
  EXPECT_EQ(refusal([](ibv_qp_cap& cap) { cap.max_inline_data = 8; }), EINVAL);
  EXPECT_EQ(refusal([](ibv_qp_cap& cap) { cap.max_send_wr = 4096; }), EINVAL);
  EXPECT_EQ(refusal([](ibv_qp_cap& cap) { cap.max_recv_wr = 4095; }), 0);
}

TEST_P(MacLimits, has_none_of_the_finer_objects) {
  const Rig rig(GetParam());
  const auto error_of = [](const void* made) { return made == nullptr ? errno : 0; };
  ibv_srq_init_attr srq{};
  srq.attr.max_wr = srq.attr.max_sge = 1;
  ibv_ah_attr path{};
  path.port_num = 1;
  path.is_global = 1;
  path.grh.dgid = rig.gid(1);
  path.grh.sgid_index = 1;
  EXPECT_EQ(error_of(ibv_create_srq(rig.pd.get(), &srq)), EOPNOTSUPP);
  EXPECT_EQ(error_of(ibv_create_ah(rig.pd.get(), &path)), EOPNOTSUPP);
  EXPECT_EQ(error_of(ibv_alloc_mw(rig.pd.get(), IBV_MW_TYPE_1)), EOPNOTSUPP);
  EXPECT_EQ(error_of(ibv_create_comp_channel(rig.context.get())), EOPNOTSUPP);
  const Rig kinder(std::string(GetParam()) + ",channels=on");
  ibv_comp_channel* channel = ibv_create_comp_channel(kinder.context.get());
  ASSERT_NE(channel, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST(Tn3205, wants_regions_to_begin_on_a_page) {
  const Rig rig("tn3205");
  const Held<void> memory(std::aligned_alloc(16384, 32768));
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(rig.pd.get(), static_cast<char*>(memory.get()) + 4096, 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  const Rig kinder("apple");
  const Held<ibv_mr> mr(
      ibv_reg_mr(kinder.pd.get(), static_cast<char*>(memory.get()) + 4096, 4096, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_NE(mr, nullptr);
}

TEST_P(MacLimits, has_no_zero_based_regions) {
  const Rig rig(GetParam());
  const Held<void> memory(std::aligned_alloc(16384, 16384));
  errno = 0;
  EXPECT_EQ(ibv_reg_mr_iova(rig.pd.get(), memory.get(), 16384, 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_P(MacLimits, says_darwins_numbers_when_told) {
  const Rig rig(std::string(GetParam()) + ",errno=darwin");
  errno = 0;
  EXPECT_EQ(rig.make_qp(rig.wanted(IBV_QPT_RC)), nullptr);
  EXPECT_EQ(errno, 102);
  auto held = queue_pairs(rig, 10);
  EXPECT_EQ(rig.make_qp(), nullptr);
  EXPECT_EQ(errno, 16);
}

TEST(Usb4Linux, has_its_own_limits) {
  const Rig rig("usb4-linux");
  EXPECT_EQ(rig.make_qp(rig.wanted(IBV_QPT_UD)), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_NE(rig.make_qp(rig.wanted(IBV_QPT_RC, 1024)), nullptr);
  EXPECT_EQ(rig.make_qp(rig.wanted(IBV_QPT_RC, 1025)), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_qp_init_attr init = rig.wanted(IBV_QPT_RC);
  init.cap.max_recv_sge = 4;
  const Held<ibv_qp> qp = rig.make_qp(init);
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(to_init(qp.get()), 0);
  const Buffer buffer(rig, 16384);
  ibv_sge pieces[2] = {buffer.piece(64), buffer.piece(64)};
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  wr.sg_list = pieces;
  wr.num_sge = 2;
  EXPECT_EQ(ibv_post_recv(qp.get(), &wr, &bad), EINVAL);  // granted four, takes one
  EXPECT_EQ(bad, &wr);
}

TEST(Mixed, gives_up_in_time_when_somebody_was_stopped_with_the_ledger) {
  const Rig rig("apple");
  const std::string ledger = std::string(std::getenv("RINGBOLT_RUNTIME_DIR")) + "/default/rdma_lo.ledger";
  const int held = open(ledger.c_str(), O_RDWR | O_CLOEXEC);
  struct flock first_number {};
  first_number.l_type = F_WRLCK;
  first_number.l_whence = SEEK_SET;
  first_number.l_len = 1;
  ASSERT_EQ(fcntl(held, F_OFD_SETLK, &first_number), 0);
  testing::internal::CaptureStderr();
  errno = 0;
  EXPECT_EQ(rig.make_qp(), nullptr);
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(ledger), std::string::npos);
  close(held);
  EXPECT_NE(rig.make_qp(), nullptr);
}

TEST(Mixed, leaves_nothing_behind) {
  const std::string ledger = std::string(std::getenv("RINGBOLT_RUNTIME_DIR")) + "/default/rdma_lo.ledger";
  {
    const Rig rig("apple");
    EXPECT_EQ(access(ledger.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(ledger.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace ringbolt::profiles
