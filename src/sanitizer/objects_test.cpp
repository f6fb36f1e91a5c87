// What the program leaves, and what it makes that only works here.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sanitizer/owned_objects.h"
#include "sanitizer/parts_test_support.h"
#include "sanitizer/portable_use.h"

namespace ringbolt::sanitizer {
namespace {

using testing::rule_of;
using testing::Rules;
using testing::rules_of;
using testing::site;

TEST(OwnedObjects, are_counted_by_kind_and_place_in_the_order_of_kinds) {
  OwnedObjects owned;
  EXPECT_TRUE(owned.leaks().empty());
  int objects[5];
  owned.made(ObjectKind::qp, &objects[0], site(1));
  owned.made(ObjectKind::pd, &objects[1], site(1));
  owned.made(ObjectKind::qp, &objects[2], site(1));
  owned.made(ObjectKind::qp, &objects[3], site(2));
  owned.made(ObjectKind::qp, &objects[4], site(1));
  owned.gone(&objects[4]);
  const auto leaks = owned.leaks();
  ASSERT_EQ(leaks.size(), 3U);
  EXPECT_EQ(leaks[0].numbers, "1 protection domain left when the process ended");
  std::vector<std::string> rest{leaks[1].numbers, leaks[2].numbers};
  std::ranges::sort(rest);
  EXPECT_EQ(rest, (std::vector<std::string>{"1 queue pair left when the process ended",
                                            "2 queue pairs left when the process ended"}));
  EXPECT_EQ(leaks[1].fix, "call ibv_destroy_qp for each");
}

TEST(OwnedObjects, a_destroy_that_failed_is_told_unless_a_later_one_does_not) {
  OwnedObjects owned;
  int object = 0;
  int stranger = 0;
  owned.made(ObjectKind::cq, &object, site(1));
  owned.busy(&object, site(2));
  owned.busy(&stranger, site(3));
  const auto leaks = owned.leaks();
  ASSERT_EQ(rules_of(leaks), Rules{"destroy-failed"});
  EXPECT_EQ(leaks[0].what, "ibv_destroy_cq answered EBUSY, and nobody tried again");
  EXPECT_EQ(leaks[0].places[0].site.returns[0], 2U);
  EXPECT_EQ(leaks[0].places[1].site.returns[0], 1U);
  owned.gone(&object);
  EXPECT_TRUE(owned.leaks().empty());
}

TEST(OwnedObjects, memory_that_is_used_again_is_another_object) {
  OwnedObjects owned;
  int object = 0;
  owned.made(ObjectKind::cq, &object, site(1));
  owned.busy(&object, site(2));
  owned.made(ObjectKind::mr, &object, site(3));
  EXPECT_EQ(rules_of(owned.leaks()), Rules{"object-left"});
  owned.forget();
  EXPECT_TRUE(owned.leaks().empty());
}

TEST(PortableUse, finds_nothing_unless_somebody_wished_for_it) {
  const PortableUse unwished(false);
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  ibv_ah_attr path{};
  path.is_global = 1;
  EXPECT_EQ(rule_of(unwished.of_queue_pair(wanted, site(1))), "nothing");
  EXPECT_EQ(rule_of(unwished.of_srq(site(1))), "nothing");
  EXPECT_EQ(rule_of(unwished.of_request(IBV_WR_RDMA_READ, 8, site(1))), "nothing");
  EXPECT_EQ(rule_of(unwished.of_path(path, false, site(1))), "nothing");
}

TEST(PortableUse, names_what_some_machine_lacks) {
  // docs/profiles: tn3205 and apple have UC and SEND alone, and no channels; all take a SEND of a few bytes.
  const PortableUse use(true);
  const auto read = use.of_request(IBV_WR_RDMA_READ, 8, site(1));
  ASSERT_EQ(rule_of(read), "not-everywhere");
  EXPECT_EQ(read->what, "the request works here and not everywhere");
  EXPECT_EQ(read->numbers, "fails on tn3205, apple: no READ");
  EXPECT_EQ(read->places[0].done, "posted");
  EXPECT_EQ(rule_of(use.of_request(IBV_WR_SEND, 8, site(1))), "nothing");
  ibv_cq cq{};
  cq.cqe = 16;
  EXPECT_EQ(rule_of(use.of_queue(cq, site(1))), "nothing");
  ibv_comp_channel channel{};
  cq.channel = &channel;
  EXPECT_EQ(rule_of(use.of_queue(cq, site(1))), "not-everywhere");
  EXPECT_EQ(rule_of(use.of_srq(site(1))), "not-everywhere");
  EXPECT_EQ(rule_of(use.of_region(0x4000, 0x4000, IBV_ACCESS_LOCAL_WRITE, site(1))), "nothing");
  EXPECT_EQ(rule_of(use.of_region(0x4000, 0x4000, IBV_ACCESS_REMOTE_ATOMIC, site(1))), "not-everywhere");
  ibv_qp_attr attributes{};
  attributes.max_rd_atomic = 255;
  EXPECT_EQ(rule_of(use.of_change(attributes, IBV_QP_STATE, site(1))), "nothing") << "the mask leaves it out";
}

TEST(PortableUse, a_gid_index_is_guessed_where_nobody_looked) {
  const PortableUse use(true);
  ibv_ah_attr path{};
  path.grh.sgid_index = 3;
  EXPECT_EQ(rule_of(use.of_path(path, false, site(1))), "nothing") << "without a global route it means nothing";
  path.is_global = 1;
  EXPECT_EQ(rule_of(use.of_path(path, true, site(1))), "nothing");
  const auto found = use.of_path(path, false, site(1));
  ASSERT_EQ(rule_of(found), "gid-index-guessed");
  EXPECT_NE(found->numbers.find("grh.sgid_index is 3"), std::string::npos);
}

}  // namespace
}  // namespace ringbolt::sanitizer
