#include "bringup/common_type.h"

#include <gtest/gtest.h>

namespace ringbolt::bringup {
namespace {

Capabilities with(bool has_rc, bool has_uc) {
  Capabilities one;
  one.has_rc = has_rc;
  one.has_uc = has_uc;
  return one;
}

TEST(CommonType, is_the_preferred_one_where_both_ends_have_it) {
  const Capabilities both = with(true, true);
  EXPECT_EQ(common_type(both, both, IBV_QPT_RC), IBV_QPT_RC);
  EXPECT_EQ(common_type(both, both, IBV_QPT_UC), IBV_QPT_UC);
}

TEST(CommonType, is_what_the_poorer_end_has) {
  const Capabilities both = with(true, true);
  for (const ibv_qp_type preferred : {IBV_QPT_RC, IBV_QPT_UC}) {
    EXPECT_EQ(common_type(both, with(false, true), preferred), IBV_QPT_UC);
    EXPECT_EQ(common_type(with(true, false), both, preferred), IBV_QPT_RC);
    EXPECT_EQ(common_type(with(true, false), with(false, true), preferred), std::nullopt);
    EXPECT_EQ(common_type(both, with(false, false), preferred), std::nullopt);
  }
}

}  // namespace
}  // namespace ringbolt::bringup
