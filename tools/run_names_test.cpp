#include <gtest/gtest.h>

#include "commands.h"

namespace ringbolt::tools {
namespace {

TEST(RunNames, tell_the_process_that_takes_the_cluster_down) {
  EXPECT_EQ(maker_of("run-1"), 1);
  EXPECT_EQ(maker_of("run-4194304"), 4194304);
}

TEST(RunNames, of_other_clusters_tell_none) {
  // kill(2): 0 and negative numbers are groups of processes, and nobody's cluster hangs on these.
  for (const char* name :
       {"", "run", "run-", "run-0", "run--7", "run-7x", "run-x7", "run- 7", "run-99999999999", "my-run-7"}) {
    EXPECT_EQ(maker_of(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace ringbolt::tools
