#include "base/file_turn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_guard.h"
#include "base/locked_file.h"
#include "base/mutex.h"

namespace ringbolt::base {
namespace {

constexpr uint64_t kPatienceMs = 60'000;

class FileTurn : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (getenv("TMPDIR") != nullptr ? std::string(getenv("TMPDIR")) : "/tmp") + "/ringbolt-turn-XXXXXX";
    ASSERT_TRUE(UniqueFd(mkstemp(path_.data())).is_open());
  }
  void TearDown() override { unlink(path_.c_str()); }

  UniqueFd open_file() const { return UniqueFd(::open(path_.c_str(), O_RDWR | O_CLOEXEC)); }

  /// Somebody has that number: he waits, or it is his turn.
  bool is_drawn(off_t number) const {
    const UniqueFd file = open_file();
    struct flock range {};
    range.l_type = F_RDLCK;  // which the read locks of who waits do not conflict with
    range.l_whence = SEEK_SET;
    range.l_start = number;
    range.l_len = 1;
    EXPECT_EQ(fcntl(file.get(), F_OFD_GETLK, &range), 0);
    return range.l_type != F_UNLCK;
  }
  void wait_until_drawn(off_t number) const {
    while (!is_drawn(number)) {
      std::this_thread::yield();
    }
  }

  void note(int who) {
    const LockGuard guard(mutex_);
    order_.push_back(who);
  }

  std::string path_;
  Mutex mutex_;
  std::vector<int> order_;
};

TEST_F(FileTurn, is_had_at_once_where_nobody_is_and_again_afterwards) {
  const UniqueFd one = open_file();
  const UniqueFd other = open_file();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(take_file_turn(one.get(), 0), 0);
    EXPECT_EQ(take_file_turn(other.get(), 0), EWOULDBLOCK);
    end_file_turn(one.get());
    EXPECT_EQ(take_file_turn(other.get(), 0), 0);
    end_file_turn(other.get());
    EXPECT_FALSE(is_drawn(0) || is_drawn(1));
  }
}

TEST_F(FileTurn, comes_in_the_order_of_asking) {
  const UniqueFd first = open_file();
  ASSERT_EQ(take_file_turn(first.get(), 0), 0);
  std::vector<std::thread> threads;
  for (int i = 1; i <= 6; ++i) {
    threads.emplace_back([this, i] {
      const UniqueFd file = open_file();
      EXPECT_EQ(take_file_turn(file.get(), kPatienceMs), 0);
      note(i);
      end_file_turn(file.get());
    });
    wait_until_drawn(i);
  }
  end_file_turn(first.get());
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(order_, (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

// A lock that is polled for goes to who has just had it, as long as he wants it.
TEST_F(FileTurn, is_not_had_twice_while_another_one_waits) {
  std::thread waiting;
  {
    const LockedFile held(AT_FDCWD, path_, 0);
    ASSERT_TRUE(held.is_held());
    waiting = std::thread([this] {
      const LockedFile file(AT_FDCWD, path_, kPatienceMs);
      EXPECT_TRUE(file.is_held());
      note(1);
    });
    wait_until_drawn(1);
  }
  {
    const LockedFile again(AT_FDCWD, path_, kPatienceMs);
    EXPECT_TRUE(again.is_held());
    note(2);
  }
  waiting.join();
  EXPECT_EQ(order_, (std::vector<int>{1, 2}));
}

TEST_F(FileTurn, of_the_dead_goes_to_the_next_whether_they_held_or_waited) {
  std::vector<pid_t> children;
  for (off_t number = 0; number < 2; ++number) {
    const pid_t child = fork();
    if (child == 0) {
      static_cast<void>(take_file_turn(open_file().release(), kPatienceMs));
      for (;;) {
        pause();
      }
    }
    children.push_back(child);
    wait_until_drawn(number);
  }
  std::thread waiting([this] {
    const UniqueFd file = open_file();
    EXPECT_EQ(take_file_turn(file.get(), kPatienceMs), 0);
  });
  wait_until_drawn(2);
  for (auto child = children.rbegin(); child != children.rend(); ++child) {
    EXPECT_EQ(kill(*child, SIGKILL), 0);
    EXPECT_EQ(waitpid(*child, nullptr, 0), *child);
  }
  waiting.join();
}

TEST_F(FileTurn, of_one_who_gives_up_does_not_come_early_to_the_next) {
  const UniqueFd first = open_file();
  ASSERT_EQ(take_file_turn(first.get(), 0), 0);
  std::atomic<bool> has_given_up{false};
  std::thread leaving([&] {
    const UniqueFd file = open_file();
    EXPECT_EQ(take_file_turn(file.get(), 300), EWOULDBLOCK);
    has_given_up = true;
  });
  while (!is_drawn(1) && !has_given_up) {
    std::this_thread::yield();
  }
  std::thread waiting([this] {
    const UniqueFd file = open_file();
    EXPECT_EQ(take_file_turn(file.get(), kPatienceMs), 0);
    note(2);
  });
  leaving.join();
  while (!is_drawn(1) && !is_drawn(2)) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(is_drawn(1) && is_drawn(2));
  note(0);
  end_file_turn(first.get());
  waiting.join();
  EXPECT_EQ(order_, (std::vector<int>{0, 2}));
}

TEST_F(FileTurn, ends_although_a_forked_child_has_the_descriptor) {
  const UniqueFd one = open_file();
  ASSERT_EQ(take_file_turn(one.get(), 0), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) {
      pause();
    }
  }
  end_file_turn(one.get());
  EXPECT_EQ(take_file_turn(open_file().get(), 0), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(FileTurn, is_one_at_a_time_whoever_asks) {
  // The kernel keeps them apart, which ThreadSanitizer does not know of.
  std::atomic<int> inside = 0;
  std::atomic<int> turns = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 100; ++turn) {
        const LockedFile file(AT_FDCWD, path_, kPatienceMs);
        ASSERT_TRUE(file.is_held());
        EXPECT_EQ(++inside, 1);
        ++turns;
        --inside;
        if (turn % 10 == 0) {
          EXPECT_EQ(file.remove(), 0);  // as who finds it empty does
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(turns, 600);
}

}  // namespace
}  // namespace ringbolt::base
