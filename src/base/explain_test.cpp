#include "base/explain.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ringbolt::base {
namespace {

TEST(Explain, says_call_error_place_why_and_fix) {
  EXPECT_EQ(explanation_text(EINVAL, "ibv_modify_qp", {"a is 5", "set it to 1"}, "client.c:88 in main()"),
            "ringbolt: ibv_modify_qp: EINVAL (Invalid argument), at client.c:88 in main()\n  why: a is 5\n  fix: set "
            "it to 1\n");
  EXPECT_NE(explanation_text(-3, "f", {"w", "x"}, "p").find("errno -3"), std::string::npos);
}

TEST(Explain, makes_no_words_for_nobody) {
  EXPECT_EQ(refused(EBUSY, "f",
                    []() -> Explanation {
                      ADD_FAILURE() << "nobody has asked";
                      return {};
                    }),
            EBUSY);
}

}  // namespace
}  // namespace ringbolt::base
