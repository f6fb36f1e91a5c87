// Payload and flags between threads and between processes, many times over. FLAG_ROUNDS: how many rounds of small ones,
// 10,000 unless it is set.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <ringbolt/completion_flag.h>

namespace ringbolt {
namespace {

using namespace std::chrono_literals;
using Clock = CompletionFlag::Clock;

uint64_t small_rounds() {
  const char* wanted = std::getenv("FLAG_ROUNDS");
  return wanted == nullptr ? 10'000 : std::strtoull(wanted, nullptr, 10);
}

auto soon() { return Clock::now() + 30s; }

constexpr size_t kMostBytes = size_t{1} << 20U;

/// What two parties share: a flag there, a flag back, and payload.
struct Shared {
  explicit Shared() {
    memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      throw std::system_error(errno, std::generic_category(), "mmap");
    }
    there = CompletionFlag::create(memory_);
    back = CompletionFlag::create(static_cast<std::byte*>(memory_) + sizeof(CompletionFlag));
    payload = reinterpret_cast<uint64_t*>(static_cast<std::byte*>(memory_) + 2 * sizeof(CompletionFlag));
  }
  ~Shared() { munmap(memory_, kBytes); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  static constexpr size_t kBytes = 2 * sizeof(CompletionFlag) + kMostBytes;
  CompletionFlag* there = nullptr;
  CompletionFlag* back = nullptr;
  uint64_t* payload = nullptr;

 private:
  void* memory_ = nullptr;
};

/// Writes words that carry the round, signals, and waits until they were read.
bool produce(Shared& shared, uint64_t rounds, size_t words) {
  for (uint64_t round = 1; round <= rounds; ++round) {
    for (size_t i = 0; i < words; ++i) {
      shared.payload[i] = round + i;
    }
    if (shared.there->signal(round) != FlagSignal::done || shared.back->wait(round, soon()) != FlagStatus::ready) {
      return false;
    }
  }
  return true;
}

/// How many words were stale; 1 and more, too, when it did not get to the end.
uint64_t consume(Shared& shared, uint64_t rounds, size_t words) {
  uint64_t stale = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    if (shared.there->wait(round, soon()) != FlagStatus::ready) {
      return stale + 1;
    }
    for (size_t i = 0; i < words; ++i) {
      stale += shared.payload[i] != round + i ? 1U : 0U;
    }
    if (shared.back->signal(round) != FlagSignal::done) {
      return stale + 1;
    }
  }
  return stale;
}

/// A child that runs `act` and leaves with what that returns.
pid_t child(const std::function<int()>& act) {
  const pid_t id = fork();
  if (id == 0) {
    _exit(act());
  }
  return id;
}

int status_of(pid_t id) {
  int status = 0;
  return waitpid(id, &status, 0) == id && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Payload {
  size_t words;
  uint64_t one_of;  ///< of the rounds: large ones take longer
};
constexpr Payload kPayloads[] = {{1, 1}, {8, 1}, {512, 20}, {kMostBytes / 8, 1000}};

TEST(CompletionFlagHandoff, no_stale_word_between_threads) {
  for (const Payload& payload : kPayloads) {
    Shared shared;
    const uint64_t rounds = small_rounds() / payload.one_of;
    uint64_t stale = 1;
    std::thread reader([&] { stale = consume(shared, rounds, payload.words); });
    EXPECT_TRUE(produce(shared, rounds, payload.words));
    reader.join();
    EXPECT_EQ(stale, 0U) << payload.words;
  }
}

TEST(CompletionFlagHandoff, no_stale_word_between_processes) {
  for (const Payload& payload : kPayloads) {
    Shared shared;
    const uint64_t rounds = small_rounds() / payload.one_of;
    const pid_t reader = child([&] { return consume(shared, rounds, payload.words) == 0 ? 0 : 1; });
    EXPECT_TRUE(produce(shared, rounds, payload.words));
    EXPECT_EQ(status_of(reader), 0) << payload.words;
  }
}

// Two threads on one flag at nearly the same time, each round on a flag of its own, since they are never reset.
TEST(CompletionFlagHandoff, no_abort_is_lost_beside_a_signal) {
  constexpr size_t kFlags = 1024;
  const uint64_t rounds = small_rounds();
  std::vector<CompletionFlag> flags(kFlags);
  std::atomic<uint64_t> turn{0}, done{0};
  std::thread aborter([&] {
    for (uint64_t round = 1; round <= rounds; ++round) {
      while (turn.load() < round) {
        detail::pause();
        if (turn.load() < round) {
          sched_yield();
        }
      }
      flags[round % kFlags].abort({FlagReason::user, 1, 1});
      done = round;
    }
  });
  uint64_t unpoisoned = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    CompletionFlag& flag = *CompletionFlag::create(&flags[round % kFlags]);
    turn = round;
    for (uint64_t little = round % 64; little > 0; --little) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    flag.signal(round);
    while (done.load() < round) {
      sched_yield();
    }
    unpoisoned += (flag.seq & CompletionFlag::kPoison) == 0 ? 1U : 0U;
  }
  aborter.join();
  EXPECT_EQ(unpoisoned, 0U);
}

// Were a wake-up lost, the sleeper would take the whole slice of 1 ms that park() gets elsewhere, and a minute here.
TEST(CompletionFlagHandoff, no_wake_up_is_lost) {
  const uint64_t rounds = small_rounds();
  Shared shared;
  std::thread sleeper([&] {
    detail::FlagProtocol<detail::HostAccess> there(*shared.there);
    for (uint64_t round = 1; round <= rounds; ++round) {
      while (__atomic_load_n(&shared.there->seq, __ATOMIC_ACQUIRE) < round) {
        there.park(round, 60'000'000'000);
      }
      shared.back->signal(round);
    }
  });
  const auto begin = Clock::now();
  detail::FlagProtocol<detail::HostAccess> back(*shared.back);
  for (uint64_t round = 1; round <= rounds; ++round) {
    shared.there->signal(round);
    while (__atomic_load_n(&shared.back->seq, __ATOMIC_ACQUIRE) < round) {
      back.park(round, 60'000'000'000);
    }
  }
  sleeper.join();
  EXPECT_LT(Clock::now() - begin, 50s + rounds * 100us);
}

// A layer of a model after the other, as engines do it: many flags, each signalled and waited for once an iteration.
TEST(CompletionFlagHandoff, seventy_eight_pairs_an_iteration) {
  constexpr size_t kPairs = 78;
  const uint64_t iterations = small_rounds() / 10;
  std::vector<CompletionFlag> there(kPairs), back(kPairs);
  for (size_t i = 0; i < kPairs; ++i) {
    CompletionFlag::create(&there[i]);
    CompletionFlag::create(&back[i]);
  }
  std::atomic<uint64_t> timeouts{0};
  std::thread other([&] {
    for (uint64_t round = 1; round <= iterations; ++round) {
      for (size_t i = 0; i < kPairs; ++i) {
        timeouts += there[i].wait(round, soon()) != FlagStatus::ready ? 1U : 0U;
        back[i].signal(round);
      }
    }
  });
  for (uint64_t round = 1; round <= iterations; ++round) {
    for (size_t i = 0; i < kPairs; ++i) {
      there[i].signal(round);
      timeouts += back[i].wait(round, soon()) != FlagStatus::ready ? 1U : 0U;
    }
  }
  other.join();
  EXPECT_EQ(timeouts.load(), 0U);
}

TEST(CompletionFlagHandoff, signaller_that_was_killed_is_named_and_one_that_stands_still_times_out) {
  Shared shared;
  const pid_t signaller = child([&] {
    shared.there->signal(1);
    while (true) {
      pause();
    }
    return 0;
  });
  const auto is_alive = [&] {
    siginfo_t info{};  // WNOWAIT: the process stays to be asked again
    return waitid(P_PID, static_cast<id_t>(signaller), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  };
  EXPECT_EQ(shared.there->wait(1, soon(), is_alive, 6), FlagStatus::ready);
  ASSERT_EQ(kill(signaller, SIGSTOP), 0);
  EXPECT_EQ(shared.there->wait(2, Clock::now() + 50ms, is_alive, 6), FlagStatus::timeout);
  ASSERT_EQ(kill(signaller, SIGKILL), 0);
  EXPECT_EQ(shared.there->wait(2, soon(), is_alive, 6), FlagStatus::peer_error);
  EXPECT_EQ(shared.there->aborted().rank, 6);
  EXPECT_EQ(status_of(signaller), -1);
}

}  // namespace
}  // namespace ringbolt
