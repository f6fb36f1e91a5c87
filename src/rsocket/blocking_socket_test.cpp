#include "rsocket/blocking_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <thread>

#include "rsocket/fake_socket_test_support.h"

namespace ringbolt::rsocket {
namespace {

using test::FakeSocket;
using test::kPatienceMs;
using test::SleepsUntilWoken;

TEST(BlockingSocket, does_not_wait_for_what_is_there) {
  FakeSocket socket;
  socket.arrived = 1;
  EXPECT_EQ(socket.await(1, Deadline::in_ns(0)), 0);
  EXPECT_EQ(socket.sleeps, 0);
}

TEST(BlockingSocket, looks_once_when_it_is_not_to_block) {
  FakeSocket socket;
  int looks = 0;
  socket.on_progress = [&] { ++looks; };
  EXPECT_EQ(socket.await(1, Deadline::in_ns(0)), EAGAIN);
  EXPECT_EQ(looks, 1);
  socket.on_progress = [&] { ++socket.arrived; };
  EXPECT_EQ(socket.await(1, Deadline::in_ns(0)), 0) << "what came in with that look counts";
}

/// The event is there before the sleep: poll(2) returns at once.
TEST(BlockingSocket, sleeps_until_its_descriptor_shows_an_event) {
  FakeSocket socket;
  socket.raise();
  socket.on_progress = [&] { socket.arrived = socket.sleeps; };
  EXPECT_EQ(socket.await(1, Deadline::never()), 0);
  EXPECT_EQ(socket.sleeps, 1);
}

/// What came in before the queue was armed raises no event: a sleep without another look would be for ever.
TEST(BlockingSocket, looks_again_after_arming) {
  FakeSocket socket;
  socket.is_armed = false;
  bool has_armed = false;
  socket.on_arm = [&] { has_armed = true; };
  socket.on_progress = [&] { socket.arrived = has_armed ? 1 : 0; };
  EXPECT_EQ(socket.await(1, Deadline::never()), 0);
  EXPECT_EQ(socket.arms, 1);
  EXPECT_EQ(socket.sleeps, 0);
}

TEST(BlockingSocket, wakes_one_whose_event_another_thread_took) {
  FakeSocket socket;
  const Deadline patience = Deadline::in_ms(kPatienceMs);
  std::thread waiting([&] {
    const SleepsUntilWoken bounds_nothing;
    EXPECT_EQ(socket.await(1, patience), 0);
    EXPECT_FALSE(patience.is_over()) << "nobody woke it";
  });
  socket.await_sleeper();
  socket.arrive();
  waiting.join();
}

TEST(BlockingSocket, lets_others_in_while_it_waits) {
  FakeSocket socket;
  std::thread first([&] { EXPECT_EQ(socket.await(2, Deadline::never()), 0); });
  std::thread second([&] { EXPECT_EQ(socket.await(1, Deadline::never()), 0); });
  socket.arrive_with_event();
  socket.arrive();
  first.join();
  second.join();
}

TEST(BlockingSocket, gives_up_at_its_deadline) {
  FakeSocket socket;
  EXPECT_EQ(socket.await(1, Deadline::in_ms(5)), EAGAIN);
}

/// A handler that does nothing, so that poll(2) ends with EINTR.
void install_handler() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR2, &action, nullptr);
}

/// Sent until the call has ended: one that comes before poll(2) sleeps interrupts nothing.
TEST(BlockingSocket, is_interrupted_by_a_signal) {
  install_handler();
  FakeSocket socket;
  std::atomic<bool> is_over{false};
  std::atomic<pthread_t> sleeper{};
  std::thread waiting([&] {
    sleeper = ::pthread_self();
    EXPECT_EQ(socket.await(1, Deadline::never()), EINTR);
    is_over = true;
  });
  while (!is_over) {
    if (sleeper.load() != pthread_t{}) {
      ::pthread_kill(sleeper, SIGUSR2);
    }
    std::this_thread::yield();
  }
  waiting.join();
}

TEST(BlockingSocket, waits_through_signals_where_it_is_told_to) {
  install_handler();
  FakeSocket socket;
  std::atomic<pthread_t> sleeper{};
  std::atomic<int> sleeps{0};
  socket.on_progress = [&] { sleeps = socket.sleeps; };
  std::thread waiting([&] {
    sleeper = ::pthread_self();
    EXPECT_EQ(socket.await_through_signals(1, Deadline::never()), 0);
  });
  while (sleeps < 3) {
    if (sleeper.load() != pthread_t{}) {
      ::pthread_kill(sleeper, SIGUSR2);
    }
    std::this_thread::yield();
  }
  socket.arrive();
  waiting.join();
}

TEST(BlockingSocket, does_not_block_by_its_flags_or_the_calls) {
  FakeSocket socket;
  EXPECT_FALSE(socket.is_nonblocking(0));
  EXPECT_TRUE(socket.is_nonblocking(MSG_DONTWAIT));
  ASSERT_TRUE(socket.set_file_flags(O_NONBLOCK | O_APPEND));
  EXPECT_EQ(socket.file_flags(), O_NONBLOCK | O_APPEND);
  EXPECT_TRUE(socket.is_nonblocking(0));
  ASSERT_TRUE(socket.set_file_flags(0));
  EXPECT_FALSE(socket.is_nonblocking(MSG_PEEK));
}

TEST(BlockingSocket, has_no_deadline_without_a_timeout) {
  FakeSocket socket;
  EXPECT_FALSE(socket.deadline_of({}, 0).is_over());
  EXPECT_TRUE(socket.deadline_of({100, 0}, MSG_DONTWAIT).is_over());
  EXPECT_FALSE(socket.deadline_of({100, 0}, 0).is_over());
}

TEST(BlockingSocket, begins_no_sleep_when_something_holds) {
  FakeSocket socket;
  socket.events = POLLOUT;
  std::vector<pollfd> waits;
  EXPECT_EQ(socket.begin_sleep(POLLIN | POLLOUT, Sleeper::of_this_thread(), waits), POLLOUT);
  EXPECT_TRUE(waits.empty());
}

TEST(BlockingSocket, of_a_poll_that_begins_to_sleep_is_armed_and_looked_at_once_more) {
  FakeSocket socket;
  socket.is_armed = false;
  socket.on_arm = [&] { socket.arrived = 1; };
  std::vector<pollfd> waits;
  EXPECT_EQ(socket.begin_sleep(POLLIN, Sleeper::of_this_thread(), waits), POLLIN);
  EXPECT_EQ(socket.arms, 1);
}

TEST(BlockingSocket, rings_who_sleeps_in_poll_until_the_sleep_ends) {
  FakeSocket socket;
  Sleeper& sleeper = Sleeper::of_this_thread();
  std::vector<pollfd> waits;
  ASSERT_EQ(socket.begin_sleep(POLLIN, sleeper, waits), 0);
  ASSERT_EQ(waits.size(), 1U);
  std::thread other([&] { socket.arrive(); });
  EXPECT_EQ(sleeper.sleep(waits, Deadline::never()), 1);
  other.join();
  EXPECT_EQ(waits[0].revents, 0) << "the bell rang, not the descriptor";
  socket.end_sleep(sleeper);
  socket.arrive();
  EXPECT_EQ(sleeper.sleep(waits, Deadline::in_ns(0)), 0) << "nobody rings for who has left";
}

}  // namespace
}  // namespace ringbolt::rsocket
