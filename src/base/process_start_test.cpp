#include "base/process_start.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ringbolt::base {
namespace {

TEST(ProcessStart, tells_a_process_from_another_with_its_pid) {
  const uint64_t start = process_start(getpid());
  EXPECT_GT(start, 0U);
  EXPECT_EQ(process_start(getpid()), start);
  EXPECT_TRUE(is_same_process(getpid(), start));
  EXPECT_FALSE(is_same_process(getpid(), start - 1));
  EXPECT_TRUE(is_same_process(getpid(), 0));  // of one that could not look at itself
}

TEST(ProcessStart, knows_that_a_process_is_gone) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(process_start(child), 0U);
  EXPECT_FALSE(is_same_process(child, 1));
}

}  // namespace
}  // namespace ringbolt::base
