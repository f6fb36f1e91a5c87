#include "verbs/errand.h"
#include "base/condition.h"

#include <gmock/gmock.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace ringbolt::verbs {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kNever = UINT64_MAX;

/// A driver that does not return until it is let go, and what it was called with, which tells when that goes.
struct Driver {
  base::Mutex mutex;
  base::Condition changed;
  bool is_called RINGBOLT_GUARDED_BY(mutex) = false;
  bool is_let_go RINGBOLT_GUARDED_BY(mutex) = false;
  bool is_over RINGBOLT_GUARDED_BY(mutex) = false;

  void hang() {
    const base::LockGuard lock(mutex);
    is_called = true;
    changed.notify_all();
    changed.wait(mutex, [this]() RINGBOLT_REQUIRES(mutex) { return is_let_go; });
  }
  void wait_for_call() {
    const base::LockGuard lock(mutex);
    changed.wait(mutex, [this]() RINGBOLT_REQUIRES(mutex) { return is_called; });
  }
  void let_go() {
    const base::LockGuard lock(mutex);
    is_let_go = true;
    changed.notify_all();
    changed.wait(mutex, [this]() RINGBOLT_REQUIRES(mutex) { return is_over; });
  }
};

struct Load {
  ~Load() {
    const base::LockGuard lock(driver->mutex);
    driver->is_over = true;
    driver->changed.notify_all();
  }
  const std::shared_ptr<Driver> driver;
};

TEST(Errand, returns_what_the_stage_returns) {
  EXPECT_EQ(within<int>(kNever, [](Whereabouts&) { return 7; }), 7);
  const auto moved = within<std::unique_ptr<int>>(kNever, [](Whereabouts&) { return std::make_unique<int>(8); });
  EXPECT_EQ(*moved, 8);
}

TEST(Errand, throws_what_the_stage_throws) {
  const auto refuse = [](Whereabouts&) -> int { throw base::Error(EBUSY, "ibv_create_qp", "rdma_en2"); };
  EXPECT_THROW(within<int>(kNever, refuse), base::Error);
}

TEST(Errand, that_is_stuck_says_where_and_keeps_what_it_works_on) {
  const auto driver = std::make_shared<Driver>();
  std::shared_ptr<Load> load(new Load{driver});
  std::optional<Errand> errand(std::in_place, [load](Whereabouts& where) {
    where.set_subject("cable 0-1");
    const DriverCall at(Step::kToRtr, "rdma_en2, UC queue pair 0x900");
    load->driver->hang();
  });
  load.reset();
  driver->wait_for_call();
  EXPECT_FALSE(errand->wait_until(base::now_ns()));
  EXPECT_FALSE(errand->is_over());
  EXPECT_THAT(errand->whereabouts(),
              AllOf(StartsWith("rdma_en2, UC queue pair 0x900, cable 0-1: ibv_modify_qp to RTR has not returned for "),
                    HasSubstr("the other end")));
  {
    const base::LockGuard lock(driver->mutex);
    EXPECT_FALSE(driver->is_over);
  }
  errand.reset();
  driver->let_go();  // returns when the load has gone, with the thread
}

TEST(Errand, without_time_is_given_up_at_once) {
  const auto driver = std::make_shared<Driver>();
  const auto give_up = [&] {
    within<int>(0, [load = std::shared_ptr<Load>(new Load{driver})](Whereabouts&) {
      load->driver->hang();
      return 0;
    });
  };
  EXPECT_THROW(give_up(), Stuck);
  driver->wait_for_call();
  driver->let_go();
}

TEST(Errand, is_in_no_call_once_that_has_returned) {
  Whereabouts* place = nullptr;
  Errand errand([&place](Whereabouts& where) {
    { const DriverCall at(Step::kQueryDevice, "rdma_en2"); }
    { const DriverCall at("ibv_destroy_qp"); }
    place = &where;
  });
  ASSERT_TRUE(errand.wait_until(kNever));
  EXPECT_THAT(errand.whereabouts(), StartsWith("rdma_en2: not done in time"));
  errand.finish();
  EXPECT_NE(place, nullptr);
}

TEST(DriverCall, of_a_thread_without_an_errand_is_nothing) {
  const DriverCall at(Step::kQueryDevice, "rdma_en2");
  const DriverCall inner("ibv_destroy_qp");
}

}  // namespace
}  // namespace ringbolt::verbs
