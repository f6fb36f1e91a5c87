#include "bench/stream_blocks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "failure.h"

namespace ringbolt::tools::bench {
namespace {

constexpr uint64_t kPatienceMs = 60'000;

std::string words_of_failure(const std::function<void(int)>& serve, const std::function<BlockFigures(int)>& call,
                             uint64_t limit_ms = kPatienceMs) {
  try {
    in_two_processes(serve, call, limit_ms);
  } catch (const FoundProblem& problem) {
    return problem.what();
  }
  return "";
}

TEST(TwoProcesses, tells_what_the_caller_has_found) {
  const auto serve = [](int socket) {
    std::vector<char> data(100'000);
    read_whole(socket, data.data(), data.size());
    write_whole(socket, data.data(), data.size());
  };
  const auto call = [](int socket) {
    std::vector<char> data(100'000, 'x');
    data[77'777] = 'y';
    write_whole(socket, data.data(), data.size());
    data[77'777] = 'z';
    read_whole(socket, data.data(), data.size(), true);
    return BlockFigures{data[77'777] == 'y' ? 1.5 : 0, 2, static_cast<double>(getpid())};
  };
  const BlockFigures found = in_two_processes(serve, call, kPatienceMs);
  EXPECT_EQ(found.p50_us, 1.5);
  EXPECT_EQ(found.p99_us, 2);
  EXPECT_NE(found.gbytes_per_s, static_cast<double>(getpid()));
}

TEST(TwoProcesses, tells_why_there_are_no_figures) {
  const auto quiet = [](int) {};
  const auto fails = [](int) -> BlockFigures { throw FoundProblem("no device"); };
  EXPECT_EQ(words_of_failure(quiet, fails), "no device");
  const auto refuses = [](int) { throw FoundProblem("no port"); };
  const auto waits = [](int socket) {
    char word = 0;
    read_whole(socket, &word, 1);
    return BlockFigures{};
  };
  EXPECT_EQ(words_of_failure(refuses, waits), "no port");  // not that the other process has ended
  const auto dies = [](int) -> BlockFigures { _exit(7); };
  EXPECT_EQ(words_of_failure(quiet, dies), "a process of a block has died");
}

TEST(TwoProcesses, ends_both_when_time_is_over) {
  const auto hang = [](int) { pause(); };
  const auto hangs = [](int) {
    pause();
    return BlockFigures{};
  };
  EXPECT_NE(words_of_failure(hang, hangs, 1).find("did not end in time"), std::string::npos);
}

}  // namespace
}  // namespace ringbolt::tools::bench
