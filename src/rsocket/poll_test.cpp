#include "rsocket/poll.h"

#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <span>
#include <thread>

#include "rsocket/fake_socket_test_support.h"

namespace ringbolt::rsocket {
namespace {

using test::FakeSocket;
using test::kPatienceMs;
using test::SleepsUntilWoken;

/// Two sockets, numbers 1000 and 1001, and another descriptor.
class PollTest : public testing::Test {
 protected:
  PollTest() : first_(std::make_shared<FakeSocket>(1000)), second_(std::make_shared<FakeSocket>(1001)) {
    EXPECT_EQ(table_.add(first_), 1000);
    EXPECT_EQ(table_.add(second_), 1001);
  }
  int poll(std::span<pollfd> waits, int timeout_ms = 0) {
    const auto ready = poll_all(table_, waits.data(), waits.size(), timeout_ms);
    return ready ? *ready : -ready.error().value;
  }
  /// The same with a sleep that nothing ends but what it waits for; true if that came in time.
  bool is_woken(std::span<pollfd> waits) {
    const SleepsUntilWoken bounds_nothing;
    const Deadline patience = Deadline::in_ms(kPatienceMs);
    return poll(waits, kPatienceMs) == 1 && !patience.is_over();
  }

  DescriptorTable table_;
  std::shared_ptr<FakeSocket> first_;
  std::shared_ptr<FakeSocket> second_;
  base::UniqueFd other_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

TEST_F(PollTest, counts_what_is_ready_among_both_kinds) {
  std::array waits{pollfd{1000, POLLIN, 0}, pollfd{other_.get(), POLLIN | POLLOUT, 0}, pollfd{1001, POLLIN, 0}};
  EXPECT_EQ(poll(waits), 1);
  EXPECT_EQ(waits[0].revents, 0);
  EXPECT_EQ(waits[1].revents, POLLOUT);
  second_->arrived = 1;
  EXPECT_EQ(poll(waits), 2);
  EXPECT_EQ(waits[2].revents, POLLIN);
}

TEST_F(PollTest, passes_over_negative_numbers_and_names_those_that_are_not_open) {
  std::array waits{pollfd{-1, POLLIN, 7}, pollfd{999'999, POLLIN, 0}};
  EXPECT_EQ(poll(waits), 1);
  EXPECT_EQ(waits[0].revents, 0);
  EXPECT_EQ(waits[1].revents, POLLNVAL);
}

TEST_F(PollTest, of_nothing_is_a_sleep_and_without_a_place_a_fault) {
  EXPECT_EQ(poll({}), 0);
  EXPECT_EQ(poll_all(table_, nullptr, 1, 0).error().value, EFAULT);
}

TEST_F(PollTest, wakes_for_a_socket) {
  std::array waits{pollfd{1000, POLLIN, 0}, pollfd{1001, POLLIN, 0}};
  std::thread other([&] {
    second_->await_sleeper();
    second_->arrive_with_event();
  });
  EXPECT_TRUE(is_woken(waits));
  other.join();
  EXPECT_EQ(waits[1].revents, POLLIN);
}

TEST_F(PollTest, wakes_for_another_descriptor) {
  std::array waits{pollfd{1000, POLLIN, 0}, pollfd{other_.get(), POLLIN, 0}};
  std::thread ringing([&] {
    first_->await_sleeper();
    const uint64_t one = 1;
    EXPECT_EQ(::write(other_.get(), &one, sizeof one), 8);
  });
  EXPECT_TRUE(is_woken(waits));
  ringing.join();
  EXPECT_EQ(waits[1].revents, POLLIN);
}

/// The second one becomes ready as the first one has begun to sleep already.
TEST_F(PollTest, ends_the_sleeps_it_has_begun) {
  second_->is_armed = false;
  second_->on_arm = [&] { second_->arrived = 1; };
  std::array waits{pollfd{1000, POLLIN, 0}, pollfd{1001, POLLIN, 0}};
  EXPECT_EQ(poll(waits, -1), 1);
  EXPECT_EQ(first_->sleeps, 1) << "begun and ended";
  EXPECT_EQ(second_->sleeps, 0) << "never begun";
}

TEST_F(PollTest, ends_with_its_time) {
  std::array waits{pollfd{1000, POLLIN, 0}};
  EXPECT_EQ(poll(waits, 3), 0);
}

class SelectTest : public PollTest {
 protected:
  /// Of the other descriptor, and sockets whose numbers a set has room for.
  SelectTest() {
    third_ = std::make_shared<FakeSocket>(900);
    EXPECT_EQ(table_.add(third_), 900);
    for (fd_set* set : {&in_, &out_, &exceptional_}) {
      FD_ZERO(set);
    }
  }
  int select(int limit, const timeval* timeout) {
    const auto ready = select_all(table_, limit, &in_, &out_, &exceptional_, timeout);
    return ready ? *ready : -ready.error().value;
  }

  std::shared_ptr<FakeSocket> third_;
  fd_set in_, out_, exceptional_;
  const timeval none_{};
};

TEST_F(SelectTest, leaves_what_is_ready_in_the_sets) {
  third_->arrived = 1;
  third_->events = POLLOUT;
  FD_SET(900, &in_);
  FD_SET(900, &out_);
  FD_SET(900, &exceptional_);
  FD_SET(other_.get(), &in_);
  EXPECT_EQ(select(901, &none_), 2);
  EXPECT_TRUE(FD_ISSET(900, &in_));
  EXPECT_TRUE(FD_ISSET(900, &out_));
  EXPECT_FALSE(FD_ISSET(900, &exceptional_));
  EXPECT_FALSE(FD_ISSET(other_.get(), &in_));
}

TEST_F(SelectTest, looks_below_its_limit_alone) {
  third_->arrived = 1;
  FD_SET(900, &in_);
  EXPECT_EQ(select(900, &none_), 0);
}

TEST_F(SelectTest, refuses_what_select_refuses) {
  const timeval negative{-1, 0};
  EXPECT_EQ(select(-1, &none_), -EINVAL);
  EXPECT_EQ(select(1, &negative), -EINVAL);
  FD_SET(901, &in_);  // nobody's
  EXPECT_EQ(select(902, &none_), -EBADF);
}

/// select(2): on error the sets are unmodified.
TEST_F(SelectTest, leaves_the_sets_alone_where_it_refuses) {
  third_->arrived = 1;
  FD_SET(900, &in_);
  FD_SET(901, &in_);  // nobody's
  FD_SET(900, &out_);
  EXPECT_EQ(select(902, &none_), -EBADF);
  EXPECT_TRUE(FD_ISSET(900, &in_));
  EXPECT_TRUE(FD_ISSET(901, &in_));
  EXPECT_TRUE(FD_ISSET(900, &out_));
}

/// So many seconds are more than 64 bits of milliseconds have.
TEST_F(SelectTest, with_an_endless_time_waits) {
  const timeval endless{LONG_MAX, 999'999};
  FD_SET(900, &in_);
  std::thread other([&] { third_->arrive_with_event(); });
  EXPECT_EQ(select(901, &endless), 1);
  other.join();
}

}  // namespace
}  // namespace ringbolt::rsocket
