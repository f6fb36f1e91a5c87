// Faults of calls and completions: what a program meets, by seed, and that the device is sound afterwards.
#include <gtest/gtest.h>

#include <chrono>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

constexpr size_t kBytes = 64;

/// Sends `count` messages one after the other; the statuses of their completions, -1 for one that did not come.
std::string statuses(const Rig& rig, const Pair& pair, const Buffer& buffer, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    if (post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)) != 0 || post_send(pair.a.get(), buffer.piece(kBytes)) != 0) {
      return all + " refused";
    }
    const conformance::Deadline deadline(std::chrono::milliseconds(40));
    bool has_received = false;
    std::string said = " none";
    while (!deadline.has_passed() && (said == " none" || !has_received)) {
      ibv_wc wc{};
      if (ibv_poll_cq(rig.cq.get(), 1, &wc) == 1) {
        has_received = has_received || wc.wr_id == 2;
        said = wc.wr_id == 1 ? " " + std::to_string(wc.status) : said;
      }
    }
    all += said;
  }
  return all;
}

TEST(Fault, refuses_the_step_to_rtr_as_often_as_it_says) {
  const Faults faults("rtr-errno 100% errno ENODATA count 1-2");
  const Rig rig("roce");
  const Held<ibv_qp> qp = rig.make_qp();
  ASSERT_EQ(to_init(qp.get()), 0);
  const Held<ibv_qp> first = rig.make_qp();
  ASSERT_EQ(to_init(first.get()), 0);
  EXPECT_EQ(to_rtr(first.get(), qp->qp_num, rig.gid(1), 1), 0);
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), ENODATA);
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), ENODATA);
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), 0);  // and is usable then
  EXPECT_EQ(to_rts(qp.get()), 0);
}

TEST(Fault, refuses_the_step_with_each_number_that_was_seen) {
  for (const auto& [name, error] :
       {std::pair{"EINVAL", EINVAL}, std::pair{"ETIMEDOUT", ETIMEDOUT}, std::pair{"EBUSY", EBUSY}, std::pair{"ENODATA", ENODATA},
        std::pair{"EFAULT", EFAULT}, std::pair{"ENOMEM", ENOMEM}, std::pair{"EOPNOTSUPP", EOPNOTSUPP}}) {
    const Faults faults(std::string("rtr-errno count 0-0 errno ") + name);
    const Rig rig("apple");
    const Held<ibv_qp> qp = rig.make_qp();
    ASSERT_EQ(to_init(qp.get()), 0);
    EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), error);
    EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), 0);  // as with a neighbour that was cold
  }
}

TEST(Fault, tells_darwins_numbers_where_the_profile_does) {
  const Faults faults("rtr-errno 100% errno ENODATA");
  const Rig rig("apple,errno=darwin");
  const Held<ibv_qp> qp = rig.make_qp();
  ASSERT_EQ(to_init(qp.get()), 0);
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), 96);
}

TEST(Fault, blocks_the_step_to_rtr) {
  const Faults faults("rtr-block 100% by 50ms");
  const Rig rig("roce");
  const Held<ibv_qp> qp = rig.make_qp();
  ASSERT_EQ(to_init(qp.get()), 0);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), 0);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(50));
}

TEST(Fault, gives_out_no_protection_domain) {
  const Faults faults("pd-null 100% count 1-1");
  const Rig rig("roce");
  errno = 0;
  EXPECT_EQ(ibv_alloc_pd(rig.context.get()), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  const Held<ibv_pd> pd(ibv_alloc_pd(rig.context.get()));
  EXPECT_NE(pd, nullptr);
}

TEST(Fault, ends_a_send_with_the_status_that_it_says) {
  for (const char* profile : {"roce", "apple"}) {
    const Faults faults("completion-error 100% status 12 count 2-2");
    const Rig rig(profile);
    const Buffer buffer(rig, 2 * kBytes);
    const Pair pair(rig);
    EXPECT_EQ(statuses(rig, pair, buffer, 3), " 0 0 12") << profile;
  }
}

TEST(Fault, loses_completions_but_no_messages) {
  const Faults faults("completion-missing 100% count 1-2");
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig);
  EXPECT_EQ(statuses(rig, pair, buffer, 4), " 0 none none 0");
}

TEST(Fault, delays_completions_in_their_order) {
  const Faults faults("completion-late 100% by 30ms count 1-1");
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig);
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
    ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
  }
  EXPECT_EQ(poll(rig.cq.get(), 6).size(), 6U);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(30));
}

/// The numbers of those of 64 sends whose completions came.
std::vector<uint64_t> completed_sends(const std::string& seed) {
  constexpr uint64_t kFirst = 1000;
  const Faults faults("completion-missing 20% seed " + seed);
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig);
  std::vector<uint64_t> numbers;
  ibv_wc wc{};
  for (uint64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
    EXPECT_EQ(post_send(pair.a.get(), buffer.piece(kBytes), IBV_WR_SEND, nullptr, kFirst + i), 0);
    for (bool has_received = false; !has_received;) {
      if (ibv_poll_cq(rig.cq.get(), 1, &wc) == 1) {
        has_received = wc.wr_id < kFirst;
        numbers.insert(numbers.end(), wc.wr_id < kFirst ? 0U : 1U, wc.wr_id);
      }
    }
  }
  while (ibv_poll_cq(rig.cq.get(), 1, &wc) == 1) {
    numbers.push_back(wc.wr_id);
  }
  return numbers;
}

TEST(Fault, comes_at_the_same_messages_for_the_same_seed) {
  const std::vector<uint64_t> first = completed_sends("7");
  for (int repetition = 0; repetition < 100; ++repetition) {
    ASSERT_EQ(completed_sends("7"), first);
  }
  EXPECT_LT(first.size(), 64U);
  EXPECT_GT(first.size(), 32U);
  EXPECT_NE(completed_sends("8"), first);
}

TEST(Fault, is_refused_with_the_words_that_it_lacks) {
  for (const auto& [text, word] : {std::pair{"rtr-errno 100%", "errno EINVAL"}, std::pair{"completion-error 1%", "status 12"},
                                   std::pair{"completion-late 1%", "by 1ms"}, std::pair{"rtr-errno 1% errno EXDEV", "ENODATA"},
                                   std::pair{"pd-null 1% direction send", "direction"},
                                   std::pair{"completion-error 1% status 24", "from 1 to 23"}}) {
    const Faults faults(text);
    testing::internal::CaptureStderr();
    int count = 0;
    EXPECT_EQ(ibv_get_device_list(&count), nullptr) << text;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(word), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace ringbolt::profiles
