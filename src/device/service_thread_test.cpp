// The service thread, one turn after the other, with a rendezvous and duties of the test's: no process, and no peer.

#include "device/service_thread.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "device/service_thread_test_support.h"

namespace ringbolt::device {
namespace {

/// Whose sleep is a call of the test's.
class ScriptedRendezvous final : public RendezvousWithoutPeers {
 public:
  std::function<void(int timeout_ms)> on_dispatch;
  int rings = 0;  ///< of the bell, not heard yet; everything is on the service thread
  void dispatch(int timeout_ms) override { on_dispatch(timeout_ms); }
  void wake() override { ++rings; }
};

/// A thread that takes turns of the script: it sleeps, and then looks. After the last turn it sleeps once more, is
/// asked to end, and looks for the last time.
class ScriptedServiceTest : public testing::Test, private ServiceThread::Duties {
 protected:
  using Step = std::function<void()>;
  static constexpr uint64_t kFarNs = 1'000'000'000'000;  ///< no test takes that long
  struct Turn {
    Step while_asleep;
    Step while_looking;  ///< once it has taken its marks
    ServiceFindings found;
  };
  struct Seen {
    int sleep_ms = 0;
    int rings_before = 0;  ///< of the bell, since the last look began to be asked for: it does not sleep at all then
    int rings = 0;         ///< those, and the ones while it slept
    bool looks_at_all = false;
    std::vector<uint32_t> marked;
    int drains = 0;
    int remarks = 0;
  };

  void run(std::vector<Turn> turns, bool changes_by_clock = false) {
    turns_ = std::move(turns);
    service_.start(changes_by_clock);
    over_.get_future().wait();
    service_.stop();
    EXPECT_EQ(seen_.size(), turns_.size() + 1);
    seen_.resize(turns_.size() + 1);
  }
  /// Turns in which the thread finds this, and nothing comes; or this step does.
  Turn finding(Remains remains) { return {{}, {}, {remains, UINT64_MAX, false}}; }
  Turn during_sleep(Step step, Remains remains = Remains::nothing) {
    return {std::move(step), {}, {remains, UINT64_MAX, false}};
  }
  Turn during_look(Step step, Remains remains = Remains::nothing) {
    return {{}, std::move(step), {remains, UINT64_MAX, false}};
  }
  std::vector<int> sleeps() const {
    std::vector<int> result;
    for (const Seen& seen : seen_) {
      result.push_back(seen.sleep_ms);
    }
    return result;
  }

  std::vector<Seen> seen_;
  bool drain_fails_ = false;  ///< the next time: for want of memory; and so do the remarks
  bool remarks_fail_ = false;
  std::vector<bool> drains_;  ///< what drain_windows() says, one after the other; then no
  ScriptedRendezvous rendezvous_;
  std::unique_ptr<link::MarkSet> marks_ = std::make_unique<link::MarkSet>();
  inline static uint64_t now_ns_;  ///< moves while the thread sleeps, and no bell cuts that short
  ServiceThread service_{rendezvous_, *marks_, *this, [] { return now_ns_; }};

 private:
  void SetUp() override {
    now_ns_ = 5'000'000'000;
    rendezvous_.on_dispatch = [this](int timeout_ms) { sleep(timeout_ms); };
  }
  /// Null: the script is over.
  const Turn* current_turn() const { return seen_.size() <= turns_.size() ? &turns_[seen_.size() - 1] : nullptr; }
  void sleep(int timeout_ms) {
    seen_.push_back({timeout_ms, rendezvous_.rings, 0, false, {}, 0, 0});
    if (current_turn() != nullptr && current_turn()->while_asleep) {
      current_turn()->while_asleep();
    }
    seen_.back().rings = std::exchange(rendezvous_.rings, 0);
    if (seen_.back().rings != 0) {
      service_.note_bell();
    } else if (timeout_ms > 0) {
      now_ns_ += static_cast<uint64_t>(timeout_ms) * 1'000'000;
    }
    if (current_turn() == nullptr) {
      service_.end();
      over_.set_value();
    }
  }
  ServiceFindings serve(uint64_t, bool looks_at_all) override {
    seen_.back().looks_at_all = looks_at_all;
    service_.take_marked([this](uint32_t number) { seen_.back().marked.push_back(number); });
    if (current_turn() == nullptr) {
      return {};
    }
    if (current_turn()->while_looking) {
      current_turn()->while_looking();
    }
    return current_turn()->found;
  }
  bool drain_windows() override {
    const auto drains = static_cast<size_t>(drains_asked_++);
    ++seen_.back().drains;
    if (std::exchange(drain_fails_, false)) {
      throw std::bad_alloc();
    }
    return drains < drains_.size() && drains_[drains];
  }
  void tell_remarks() override {
    ++seen_.back().remarks;
    if (std::exchange(remarks_fail_, false)) {
      throw std::bad_alloc();
    }
  }

  std::vector<Turn> turns_;
  int drains_asked_ = 0;
  std::promise<void> over_;
};

TEST_F(ScriptedServiceTest, sleeps_for_good_where_there_is_nothing) {
  run({finding(Remains::nothing), finding(Remains::nothing)});
  EXPECT_EQ(sleeps(), (std::vector{-1, -1, -1}));
}

TEST_F(ScriptedServiceTest, sleeps_as_long_as_its_ticks_say) {
  run({finding(Remains::timers), finding(Remains::timers), finding(Remains::timers), finding(Remains::work),
       finding(Remains::nothing)});
  EXPECT_EQ(sleeps(), (std::vector{-1, 1, 2, 4, 1, 8}));
}

TEST_F(ScriptedServiceTest, the_first_request_wakes_it_and_the_next_ones_need_not) {
  run({during_sleep([this] {
    service_.request(3);
    service_.request(3);
    service_.request(4);
    service_.watch_timers(5);
  })});
  EXPECT_EQ(seen_[0].rings, 1);
  EXPECT_EQ(seen_[0].marked, (std::vector<uint32_t>{3, 4, 5}));
  EXPECT_FALSE(seen_[0].looks_at_all);
  EXPECT_EQ(seen_[1].rings, 0);
  EXPECT_TRUE(seen_[1].marked.empty());
}

TEST_F(ScriptedServiceTest, watched_timers_wake_it_only_from_its_sleep_for_good) {
  run({during_sleep([this] { service_.watch_timers(1); }, Remains::timers), finding(Remains::timers),
       finding(Remains::timers), during_sleep([this] { service_.watch_timers(2); })});
  EXPECT_EQ(seen_[0].rings, 1);
  EXPECT_EQ(seen_[3].sleep_ms, 4);
  EXPECT_EQ(seen_[3].rings, 0);
  EXPECT_EQ(seen_[3].marked, std::vector<uint32_t>{2});
}

TEST_F(ScriptedServiceTest, work_wakes_it_where_it_looks_at_timers_only) {
  run({finding(Remains::timers), finding(Remains::timers), finding(Remains::timers),
       during_sleep(
           [this] {
             service_.watch_timers(2);
             service_.request(1);
             service_.request(3);
           },
           Remains::timers),
       finding(Remains::nothing)});
  EXPECT_EQ(seen_[3].sleep_ms, 4);
  EXPECT_EQ(seen_[3].rings, 1);
  EXPECT_EQ(seen_[3].marked, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(seen_[4].sleep_ms, 2);  // a bell: looked at soon again
}

TEST_F(ScriptedServiceTest, nothing_wakes_it_where_it_is_at_work) {
  run({finding(Remains::work), during_sleep([this] {
         service_.request(1);
         service_.request_all();
         service_.watch_timers(2);
       })});
  EXPECT_EQ(seen_[1].sleep_ms, 1);
  EXPECT_EQ(seen_[1].rings, 0);
  EXPECT_EQ(seen_[1].marked, (std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(seen_[1].looks_at_all);
}

// It has looked already, and is about to sleep for good.
TEST_F(ScriptedServiceTest, a_request_that_comes_while_it_decides_to_sleep_is_not_lost) {
  run({during_look([this] { service_.request(9); }), during_look([this] { service_.watch_timers(8); }),
       during_look([this] { service_.request_all(); }), during_look([this] { service_.wake(); }),
       finding(Remains::nothing)});
  EXPECT_EQ(sleeps(), (std::vector{-1, -1, -1, -1, -1, -1}));
  for (const size_t number : {1U, 2U, 3U, 4U}) {
    EXPECT_EQ(seen_[number].rings_before, 1) << number;
  }
  EXPECT_EQ(seen_[5].rings_before, 0);
  EXPECT_EQ(seen_[1].marked, std::vector<uint32_t>{9});
  EXPECT_EQ(seen_[2].marked, std::vector<uint32_t>{8});
  EXPECT_FALSE(seen_[2].looks_at_all);
  EXPECT_TRUE(seen_[3].looks_at_all);
}

// What was asked for before it began to look does not hide what comes while it looks.
TEST_F(ScriptedServiceTest, who_asks_again_while_it_looks_wakes_it_again) {
  const auto request = [this] { service_.request(6); };
  const auto wake = [this] { service_.wake(); };
  run({{request, request, {}}, {wake, wake, {}}, finding(Remains::nothing), finding(Remains::nothing)});
  EXPECT_EQ(seen_[0].rings, 1);
  EXPECT_EQ(seen_[1].rings_before, 1);
  EXPECT_EQ(seen_[1].marked, std::vector<uint32_t>{6});
  EXPECT_EQ(seen_[2].rings_before, 1);
  EXPECT_EQ(seen_[3].rings_before, 0);
}

// The end of a look, with timers far away, does not take back what somebody has asked for in its midst.
TEST_F(ScriptedServiceTest, a_request_in_the_midst_of_a_look_wakes_it_once) {
  const auto request_two = [this] {
    service_.request(1);
    service_.request(2);
  };
  run({{{}, request_two, {Remains::nothing, now_ns_ + kFarNs, false}}, during_sleep([this] { service_.request(3); })});
  EXPECT_EQ(seen_[1].sleep_ms, ServiceTicks::kLastMs);
  EXPECT_EQ(seen_[1].rings_before, 1);
  EXPECT_EQ(seen_[1].rings, 1);
  EXPECT_EQ(seen_[1].marked, (std::vector<uint32_t>{1, 2, 3}));
}

TEST_F(ScriptedServiceTest, what_it_marks_itself_waits_for_its_next_look) {
  run({during_look([this] { service_.mark(5); }, Remains::work), finding(Remains::nothing)});
  EXPECT_EQ(seen_[1].rings_before, 0);
  EXPECT_EQ(seen_[1].marked, std::vector<uint32_t>{5});
}

TEST_F(ScriptedServiceTest, queues_that_share_a_mark_are_looked_at_together) {
  run({during_sleep([this] {
    service_.request(7);
    service_.request(7 + link::kMarks);
    service_.request(link::kMarks - 1);
  })});
  EXPECT_EQ(seen_[0].marked, (std::vector<uint32_t>{7, link::kMarks - 1}));
}

TEST_F(ScriptedServiceTest, packets_wake_it_once_a_look_whatever_it_is_at) {
  const auto wake_twice = [this] {
    service_.wake();
    service_.wake();
  };
  run({during_sleep(wake_twice, Remains::work), during_sleep(wake_twice), finding(Remains::nothing)});
  EXPECT_EQ(seen_[0].rings, 1);
  EXPECT_EQ(seen_[1].sleep_ms, 1);
  EXPECT_EQ(seen_[1].rings, 1);
  EXPECT_EQ(seen_[2].rings, 0);
}

TEST_F(ScriptedServiceTest, looks_at_windows_until_none_is_in_use) {
  drains_ = {true, true, false};
  run({during_sleep([this] { service_.ask_for_drain(); }), finding(Remains::nothing), finding(Remains::nothing),
       finding(Remains::nothing), during_sleep([this] { service_.ask_for_drain(); })});
  EXPECT_EQ(seen_[0].rings, 1);
  EXPECT_EQ(sleeps(), (std::vector{-1, 1, 1, 8, 8, 8}));
  for (const size_t number : {0U, 1U, 2U, 4U}) {
    EXPECT_EQ(seen_[number].drains, 1) << number;
  }
  EXPECT_EQ(seen_[3].drains, 0);
}

TEST_F(ScriptedServiceTest, tells_remarks_once_itself_or_for_who_can_not_wait) {
  run({during_sleep([this] { service_.tell_soon(); }), finding(Remains::nothing), during_look([this] {
         service_.tell_soon();
         service_.tell_remarks();
         service_.tell_remarks();
       }),
       finding(Remains::nothing)});
  EXPECT_EQ(seen_[0].rings, 1);
  EXPECT_EQ(seen_[0].remarks, 1);
  EXPECT_EQ(seen_[1].remarks, 0);
  EXPECT_EQ(seen_[2].remarks, 1);
  EXPECT_EQ(seen_[3].remarks, 0);
}

TEST_F(ScriptedServiceTest, a_timer_wakes_it_only_where_it_would_look_too_late) {
  run({during_sleep([this] { service_.watch_until(now_ns_ + kFarNs); }),
       during_sleep([this] { service_.watch_until(now_ns_ + kFarNs + 1); }),
       during_sleep([this] { service_.watch_until(now_ns_ - 1); })});
  EXPECT_EQ(seen_[0].rings, 1);
  EXPECT_EQ(seen_[1].sleep_ms, ServiceTicks::kLastMs);  // the look that is to come is kept, though nothing was found
  EXPECT_EQ(seen_[1].rings, 0);
  EXPECT_EQ(seen_[2].sleep_ms, ServiceTicks::kQuietMs);
  EXPECT_EQ(seen_[2].rings, 1);
  EXPECT_EQ(seen_[3].sleep_ms, ServiceTicks::kQuietMs);  // it has looked
}

// A bell of somebody else: the look that it was to take then still comes, and not later.
TEST_F(ScriptedServiceTest, a_look_that_is_to_come_is_kept_by_those_between) {
  run({during_sleep([this] { service_.watch_until(now_ns_ + 5'500'000); }), during_sleep([this] { service_.wake(); }),
       finding(Remains::nothing)});
  EXPECT_EQ(sleeps(), (std::vector{-1, 6, 6, 8}));
}

TEST_F(ScriptedServiceTest, a_timer_that_is_set_while_it_looks_wakes_nobody_and_is_minded) {
  run({during_look([this] { service_.watch_until(now_ns_ - 1); }),
       during_look([this] { service_.watch_until(now_ns_ + kFarNs); }, Remains::work), finding(Remains::nothing)});
  EXPECT_EQ(seen_[1].sleep_ms, 1);
  EXPECT_EQ(seen_[1].rings, 0);
  EXPECT_EQ(seen_[2].sleep_ms, 1);  // the work comes first
  EXPECT_EQ(seen_[2].rings, 0);
}

TEST_F(ScriptedServiceTest, sleeps_until_the_deadline_that_it_found) {
  run({{{}, {}, {Remains::nothing, now_ns_ + kFarNs, false}},
       during_sleep([this] { service_.watch_timers(1); }),
       {{}, {}, {Remains::nothing, 1, false}},
       finding(Remains::nothing)});
  EXPECT_EQ(seen_[1].sleep_ms, ServiceTicks::kLastMs);
  EXPECT_EQ(seen_[1].rings, 0);  // it looks at timers
  EXPECT_EQ(seen_[3].sleep_ms, 1);
}

TEST_F(ScriptedServiceTest, looks_by_the_clock_from_its_start_where_faults_want_it) {
  const ServiceFindings by_clock{Remains::nothing, UINT64_MAX, true};
  run({{{}, {}, by_clock}, {[this] { service_.request(1); }, {}, by_clock}}, true);
  EXPECT_EQ(sleeps(), (std::vector{2, 2, 2}));
  EXPECT_EQ(seen_[1].rings, 0);
}

TEST_F(ScriptedServiceTest, outlives_a_want_of_memory_and_says_so_once) {
  const auto fail = [] { throw std::bad_alloc(); };
  testing::internal::CaptureStderr();
  run({{[this] { service_.request(3); }, fail, {}},
       during_sleep(fail),
       finding(Remains::nothing),
       finding(Remains::nothing)});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, "ringbolt: out of memory: what peers asked for may end in errors\n");
  EXPECT_EQ(seen_[1].sleep_ms, 1);
  EXPECT_EQ(seen_[2].sleep_ms, 1);
  EXPECT_TRUE(seen_[2].looks_at_all);  // for who has asked and was not looked at
  EXPECT_FALSE(seen_[3].looks_at_all);
}

TEST_F(ScriptedServiceTest, asks_again_for_what_failed_for_want_of_memory) {
  drain_fails_ = remarks_fail_ = true;
  testing::internal::CaptureStderr();
  run({during_sleep([this] {
         service_.ask_for_drain();
         service_.tell_soon();
       }),
       finding(Remains::nothing), finding(Remains::nothing)});
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(seen_[0].drains, 1);  // and the look ends there
  EXPECT_EQ(seen_[0].remarks, 0);
  EXPECT_EQ(seen_[1].sleep_ms, 1);
  EXPECT_EQ(seen_[1].drains, 1);
  EXPECT_TRUE(seen_[1].looks_at_all);
  EXPECT_EQ(seen_[1].remarks, 1);
  EXPECT_EQ(seen_[2].sleep_ms, 1);
  EXPECT_EQ(seen_[2].drains, 0);
  EXPECT_EQ(seen_[2].remarks, 1);
  EXPECT_EQ(seen_[3].remarks, 0);
}

}  // namespace
}  // namespace ringbolt::device
