#include "bringup/trial.h"
#include "base/condition.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "bringup/gid_test_support.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::bringup {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr uint32_t kPatienceMs = 20000;
constexpr uint64_t kNever = UINT64_MAX;

std::vector<TrialCandidate> candidates(const std::vector<std::string>& addresses) {
  std::vector<TrialCandidate> list;
  for (const std::string& one : addresses) {
    list.push_back({test::gid(one), 0});
  }
  return list;
}

TEST(Trial, tells_who_is_on_the_cable) {
  const verbs::test::RuntimeFolder folder;
  setenv("RINGBOLT_LIKE", "tn3205", 1);
  const auto errors = try_candidates(verbs::Library::open("soft"), "rdma_lo", IBV_QPT_UC, {.gid_index = 1},
                                     candidates({"127.0.0.1", "127.0.0.9", "127.0.0.1"}), kPatienceMs, kNever);
  EXPECT_THAT(errors, ElementsAre(0, ETIMEDOUT, 0));
}

TEST(Trial, leaves_nothing_behind) {
  const verbs::test::RuntimeFolder folder;
  setenv("RINGBOLT_LIKE", "tn3205", 1);
  // A Mac has ten queue pairs and eleven protection domains.
  const auto errors = try_candidates(verbs::Library::open("soft"), "rdma_lo", IBV_QPT_UC, {.gid_index = 1},
                                     candidates(std::vector<std::string>(40, "127.0.0.1")), kPatienceMs, kNever);
  EXPECT_EQ(errors.size(), 40U);
  EXPECT_THAT(errors, Each(0));
}

TEST(Trial, says_what_the_device_says) {
  const verbs::test::RuntimeFolder folder;
  setenv("RINGBOLT_LIKE", "tn3205", 1);
  const verbs::Library library = verbs::Library::open("soft");
  EXPECT_THAT(
      try_candidates(library, "rdma_lo", IBV_QPT_UC, {.gid_index = 9}, candidates({"127.0.0.1"}), kPatienceMs, kNever),
      ElementsAre(EINVAL));
  EXPECT_THROW(
      try_candidates(library, "rdma_lo", IBV_QPT_RC, {.gid_index = 1}, candidates({"127.0.0.1"}), kPatienceMs, kNever),
      base::Error);
  EXPECT_THROW(try_candidates(library, "none", IBV_QPT_UC, {}, candidates({"127.0.0.1"}), kPatienceMs, kNever),
               base::Error);
  EXPECT_THAT(try_candidates(library, "rdma_lo", IBV_QPT_UC, {}, {}, kPatienceMs, kNever), ElementsAre());
}

TEST(Trial, throws_whatever_is_thrown_while_it_tries) {
  const verbs::test::RuntimeFolder folder;
  verbs::Calls calls = verbs::Library::open("soft").calls();
  calls.open_device = [](ibv_device*) -> ibv_context* { throw std::bad_alloc(); };
  EXPECT_THROW(try_candidates(verbs::Library("without memory", calls), "rdma_lo", IBV_QPT_UC, {.gid_index = 1},
                              candidates({"127.0.0.1"}), kPatienceMs, kNever),
               std::bad_alloc);
}

/// A device that blocks in RTR towards one address, as a Mac's may, until it is let go.
struct Blocking {
  base::Mutex mutex;
  base::Condition changed;
  bool is_let_go RINGBOLT_GUARDED_BY(mutex) = false;
  int n_blocked RINGBOLT_GUARDED_BY(mutex) = 0;
  int n_open RINGBOLT_GUARDED_BY(mutex) = 0;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int) = nullptr;
  ibv_context* (*open_device)(ibv_device*) = nullptr;
  int (*close_device)(ibv_context*) = nullptr;
};
Blocking blocking;

/// Those of the device, which count in `blocking` how often it is open.
verbs::Calls counting_calls() {
  verbs::Calls calls = verbs::Library::open("soft").calls();
  blocking.modify_qp = calls.modify_qp;
  blocking.open_device = calls.open_device;
  blocking.close_device = calls.close_device;
  calls.open_device = [](ibv_device* device) {
    const base::LockGuard lock(blocking.mutex);
    ++blocking.n_open;
    return blocking.open_device(device);
  };
  calls.close_device = [](ibv_context* context) {
    const int error = blocking.close_device(context);
    const base::LockGuard lock(blocking.mutex);
    --blocking.n_open;
    blocking.changed.notify_all();
    return error;
  };
  return calls;
}

/// Threads that were left alone use the device, and the runtime folder with it, until they have closed it.
bool all_close() RINGBOLT_REQUIRES(blocking.mutex) {
  return blocking.changed.wait_for(blocking.mutex, std::chrono::seconds(20),
                                   []() RINGBOLT_REQUIRES(blocking.mutex) { return blocking.n_open == 0; });
}

verbs::Library blocking_library() {
  verbs::Calls calls = counting_calls();
  {
    const base::LockGuard lock(blocking.mutex);
    blocking.is_let_go = false;
    blocking.n_blocked = 0;
  }
  calls.modify_qp = [](ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    if ((mask & IBV_QP_AV) != 0 && attributes->ah_attr.grh.dgid.raw[15] == 66) {
      const base::LockGuard lock(blocking.mutex);
      ++blocking.n_blocked;
      blocking.changed.wait(blocking.mutex, []() RINGBOLT_REQUIRES(blocking.mutex) { return blocking.is_let_go; });
    }
    return blocking.modify_qp(qp, attributes, mask);
  };
  return verbs::Library("blocking", calls);
}

TEST(Trial, goes_on_without_a_thread_that_is_stuck) {
  const verbs::test::RuntimeFolder folder;
  const auto errors = try_candidates(
      blocking_library(), "rdma_lo", IBV_QPT_UC, {.gid_index = 1},
      candidates({"127.0.0.1", "127.0.0.66", "127.0.0.1", "127.0.0.66", "127.0.0.66", "127.0.0.1", "127.0.0.1"}), 1500,
      kNever);
  EXPECT_THAT(errors, ElementsAre(0, EINPROGRESS, 0, EINPROGRESS, EINPROGRESS, ECANCELED, ECANCELED));
  const base::LockGuard lock(blocking.mutex);
  EXPECT_EQ(blocking.n_blocked, 3);
  EXPECT_EQ(blocking.n_open, 3);  // what the stuck threads keep
  blocking.is_let_go = true;
  blocking.changed.notify_all();
  EXPECT_TRUE(all_close());
}

TEST(Trial, ends_with_the_deadline_of_all_where_each_is_slow) {
  const verbs::test::RuntimeFolder folder;
  verbs::Calls calls = counting_calls();
  calls.modify_qp = [](ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    if ((mask & IBV_QP_AV) != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // time itself is tested: a slow device
      return ETIMEDOUT;
    }
    return blocking.modify_qp(qp, attributes, mask);
  };
  const auto slow = candidates(std::vector<std::string>(200, "127.0.0.1"));
  const verbs::Library library("slow", calls);
  const auto errors =
      try_candidates(library, "rdma_lo", IBV_QPT_UC, {.gid_index = 1}, slow, kPatienceMs, base::now_ns() + 500'000'000);
  // Those that have returned, the one that had not, and those that were not tried.
  const auto under_way = std::find(errors.begin(), errors.end(), EINPROGRESS);
  ASSERT_NE(under_way, errors.end());
  EXPECT_THAT(std::vector<int>(errors.begin(), under_way), Each(ETIMEDOUT));
  EXPECT_THAT(std::vector<int>(under_way + 1, errors.end()), Each(ECANCELED));
  EXPECT_EQ(errors.back(), ECANCELED);
  EXPECT_THAT(try_candidates(library, "rdma_lo", IBV_QPT_UC, {.gid_index = 1}, slow, kPatienceMs, 0), Each(ECANCELED));
  const base::LockGuard lock(blocking.mutex);
  EXPECT_TRUE(all_close());
}

}  // namespace
}  // namespace ringbolt::bringup
