#include "probe/report.h"

#include <gtest/gtest.h>

namespace ringbolt::tools {
namespace {

TEST(ProbeReport, round_trips) {
  const ProbeReport measured{"", false, false, 820, 1500, 90'000, 2000, 67'108'864, 9'000'001, {1, 2, 3, 4}};
  EXPECT_EQ(emit_report(measured), "ringbolt-probe measured 820 1500 90000 2000 67108864 9000001 1 2 3 4 0\n");
  EXPECT_EQ(parse_report(emit_report(measured)), measured);
  ProbeReport failed;
  failed.problem = "ibv_modify_qp to RTR: Connection timed out";
  EXPECT_EQ(parse_report(emit_report(failed)), failed);
  failed.is_echo = true;
  EXPECT_EQ(parse_report(emit_report(failed)), failed);
}

TEST(ProbeReport, takes_the_last_and_passes_over_noise) {
  EXPECT_EQ(parse_report("warning: x\nringbolt-probe failed: a\nringbolt-probe failed: b\nbye")->problem, "b");
}

TEST(ProbeReport, refuses_what_is_none) {
  for (const char* text :
       {"", "\n", "ringbolt-probe measured", "ringbolt-probe measured 1 2 3 4 5 6 7 8 9 10\n",
        "ringbolt-probe measured 1 2 3 4 5 6 7 8 9 10 11 12\n", "ringbolt-probe measured 1 2 3 4 5 6 7 8 9 10 -7\n",
        "ringbolt-probe measured 1 2 3 4 5 6 7 8 9 10 99999999999999999999999\n", "ringbolt-probe failed: \n"}) {
    EXPECT_EQ(parse_report(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ringbolt::tools
