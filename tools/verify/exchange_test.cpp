#include "verify/exchange.h"

#include <gtest/gtest.h>

namespace ringbolt::tools::verify {
namespace {

TEST(Exchange, outcomes_come_back) {
  for (const char* refusal : {"", "the device refuses", "in two\nlines"}) {
    const Outcome one{1, 2, 3, 4, 5, UINT64_MAX, refusal};
    EXPECT_EQ(parse_outcome(emit_outcome(one)), one);
  }
}

TEST(Exchange, what_is_no_outcome_is_none) {
  for (const char* text : {"", "\n", "1 2 3 4 5\n", "1 2 3 4 5 6 7\n", "1 2 3 4 5 x\n", "-1 2 3 4 5 6\n"}) {
    EXPECT_FALSE(parse_outcome(text)) << text;
  }
  EXPECT_TRUE(parse_outcome("1 2 3 4 5 6"));
}

TEST(Exchange, facts_come_back) {
  const EndFacts found = parse_facts(emit_facts({"client", "rdma_en2", "/lib/with blanks.so", 40}));
  EXPECT_EQ(found.device, "rdma_en2");
  EXPECT_EQ(found.library, "/lib/with blanks.so");
  for (const char* text : {"", "40", "40\nrdma_en2"}) {
    EXPECT_EQ(parse_facts(text).device, "?") << text;
  }
}

}  // namespace
}  // namespace ringbolt::tools::verify
