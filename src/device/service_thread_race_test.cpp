// The service thread beside those who wake it: nobody is overheard while it falls asleep. And its end.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "device/service_thread_test_support.h"

namespace ringbolt::device {
namespace {

/// Sleeps until its bell rings, and no longer than a test may take: ticks are no help to who was overheard. It spins,
/// so that the thread is back as soon as it is woken, beside those who wake it.
class SleepingRendezvous final : public RendezvousWithoutPeers {
 public:
  static constexpr uint64_t kPatienceNs = 20'000'000'000;  ///< what takes that long has failed
  void dispatch(int) override {
    ++sleeps_;
    const uint64_t deadline = base::now_ns() + kPatienceNs;
    while (!has_rung_.exchange(false)) {
      if (base::now_ns() > deadline) {
        has_overslept_ = true;
        return;
      }
      std::this_thread::yield();
    }
  }
  void wake() override { has_rung_ = true; }
  bool has_overslept() const { return has_overslept_; }
  /// Its sleeps so far, with the one that it may be in.
  uint64_t sleeps() const { return sleeps_; }
  /// False: it did not fall asleep for the `number`th time.
  bool await_sleep(uint64_t number) const {
    const uint64_t deadline = base::now_ns() + kPatienceNs;
    while (sleeps_ < number && base::now_ns() < deadline) {
      std::this_thread::yield();
    }
    return sleeps_ >= number;
  }

 private:
  std::atomic<uint64_t> sleeps_{0};
  std::atomic<bool> has_rung_{false};
  std::atomic<bool> has_overslept_{false};
};

/// The thread, and two who ask it for something, each with a word of its own, under one mark.
class SleepingServiceTest : public testing::Test, private ServiceThread::Duties {
 protected:
  static constexpr uint32_t kQueue = 5;
  struct alignas(128) Word {
    std::atomic<uint64_t> asked{0};
    std::atomic<uint64_t> seen{0};
  };
  /// Asks for `number`, in any of the ways. False: it was not looked at.
  bool ask(Word& word, uint64_t number, const std::function<void()>& wake) {
    word.asked.store(number, std::memory_order_relaxed);  // the order is the fences'
    wake();
    const uint64_t deadline = base::now_ns() + SleepingRendezvous::kPatienceNs;
    while (word.seen.load(std::memory_order_acquire) < number) {
      if (base::now_ns() > deadline) {
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }
  /// Both ask at once, again and again, beside the thread that falls asleep after each look. Neither asks anew before
  /// both were heard: who is not is helped by nobody else's bell. As often as half a second allows, for on a busy
  /// machine each round takes long, but kLeastRounds times however long that takes.
  void expect_all_are_heard(const std::function<void()>& wake) {
    constexpr uint64_t kLeastRounds = 100;
    constexpr uint64_t kRounds = 10'000;
    const uint64_t end_ns = base::now_ns() + 500'000'000;
    uint64_t rounds = 0;
    std::array<uint64_t, 2> heard{};
    std::atomic<bool> is_over{false};
    std::barrier both(2);
    const auto ask_all = [&](size_t asker) {
      for (uint64_t round = 1; !is_over; ++round) {
        both.arrive_and_wait();
        if (ask(words_[asker], round, wake)) {
          heard[asker] = round;
        } else {
          is_over = true;
        }
        if (asker == 0) {
          rounds = round;
          if (round == kRounds || (round >= kLeastRounds && base::now_ns() > end_ns)) {
            is_over = true;
          }
        }
        both.arrive_and_wait();  // both see the same of is_over
      }
    };
    service_->start(false);
    std::thread other(ask_all, 1);
    ask_all(0);
    other.join();
    service_->stop();
    RecordProperty("rounds", std::to_string(rounds));
    EXPECT_GE(rounds, kLeastRounds);
    EXPECT_EQ(heard[0], rounds);
    EXPECT_EQ(heard[1], rounds);
    EXPECT_FALSE(rendezvous_.has_overslept());
  }

  ServiceThread::Duties& duties_ = *this;
  std::array<Word, 2> words_;
  SleepingRendezvous rendezvous_;
  std::unique_ptr<link::MarkSet> marks_ = std::make_unique<link::MarkSet>();
  std::unique_ptr<ServiceThread> service_ = std::make_unique<ServiceThread>(rendezvous_, *marks_, duties_);
  bool looks_at_all_ = false;  ///< whether it was asked or not, as on a network

 private:
  void look() {
    for (Word& word : words_) {
      word.seen.store(word.asked.load(std::memory_order_relaxed), std::memory_order_release);
    }
  }
  ServiceFindings serve(uint64_t, bool looks_at_all) override {
    if (looks_at_all || looks_at_all_) {
      look();
    } else {
      service_->take_marked([this](uint32_t) { look(); });
    }
    return {};
  }
  bool drain_windows() override {
    look();
    return false;
  }
  void tell_remarks() override { look(); }
};

TEST_F(SleepingServiceTest, loses_no_request_beside_its_falling_asleep) {
  expect_all_are_heard([this] { service_->request(kQueue); });
}

TEST_F(SleepingServiceTest, loses_no_watched_timer_beside_its_falling_asleep) {
  expect_all_are_heard([this] { service_->watch_timers(kQueue); });
}

TEST_F(SleepingServiceTest, loses_no_request_of_all_beside_its_falling_asleep) {
  expect_all_are_heard([this] { service_->request_all(); });
}

TEST_F(SleepingServiceTest, loses_no_packet_beside_its_falling_asleep) {
  looks_at_all_ = true;
  expect_all_are_heard([this] { service_->wake(); });
}

TEST_F(SleepingServiceTest, loses_no_drain_and_no_remark_beside_its_falling_asleep) {
  expect_all_are_heard([this] { service_->ask_for_drain(); });
  words_[0].seen = words_[1].seen = 0;
  service_ = std::make_unique<ServiceThread>(rendezvous_, *marks_, duties_);
  expect_all_are_heard([this] { service_->tell_soon(); });
}

TEST_F(SleepingServiceTest, stop_wakes_it_from_its_sleep_for_good) {
  service_->start(false);
  ASSERT_TRUE(ask(words_[0], 1, [this] { service_->request(kQueue); }));
  service_->stop();
  EXPECT_FALSE(rendezvous_.has_overslept());
}

// The thread must be asleep when end() comes: the look before that would be the last one else.
TEST_F(SleepingServiceTest, end_makes_the_next_look_the_last_one) {
  service_->start(false);
  ASSERT_TRUE(ask(words_[0], 1, [this] { service_->request(kQueue); }));
  ASSERT_TRUE(rendezvous_.await_sleep(2));
  service_->end();
  ASSERT_TRUE(ask(words_[0], 2, [this] { service_->request(kQueue); }));
  words_[0].asked = 3;
  service_->request(kQueue);
  service_->stop();
  EXPECT_EQ(words_[0].seen, 2U) << "it has looked once more";
  EXPECT_EQ(rendezvous_.sleeps(), 2U) << "it has slept once more";
  EXPECT_FALSE(rendezvous_.has_overslept());
}

TEST_F(SleepingServiceTest, a_forked_child_leaves_it_to_its_parent) {
  service_->start(false);
  ASSERT_TRUE(ask(words_[0], 1, [this] { service_->request(kQueue); }));
  const pid_t child = fork();
  if (child == 0) {
    service_->abandon_after_fork();
    service_->abandon_after_fork();  // once is enough
    service_.reset();
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  EXPECT_TRUE(ask(words_[0], 2, [this] { service_->request(kQueue); }));
  service_->stop();
}

TEST_F(SleepingServiceTest, one_that_was_never_started_ends_without_a_word) {
  service_->request(kQueue);
  service_->abandon_after_fork();
  service_.reset();
  EXPECT_TRUE(marks_->has(kQueue));
}

}  // namespace
}  // namespace ringbolt::device
