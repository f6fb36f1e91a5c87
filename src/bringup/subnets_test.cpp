#include "bringup/subnets.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "bringup/gid_test_support.h"

namespace ringbolt::bringup {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Found {
  std::vector<std::string> pairs;  ///< "10.0.0.1-10.0.0.2", sorted
  std::vector<size_t> crowds;      ///< how many are in each
  std::vector<std::string> alone;
};

/// Each address with its rank.
Found found_in(const std::vector<std::pair<uint32_t, std::string>>& wanted) {
  std::vector<AddressOfPort> addresses;
  for (const auto& [rank, text] : wanted) {
    addresses.push_back({addresses.size(), rank, 1, test::gid(text)});
  }
  const SubnetPairs result = pairs_by_subnet(addresses);
  Found found;
  for (const auto& [a, b] : result.pairs) {
    found.pairs.push_back(wanted[a].second + "-" + wanted[b].second);
  }
  std::sort(found.pairs.begin(), found.pairs.end());
  for (const auto& crowd : result.crowds) {
    found.crowds.push_back(crowd.size());
  }
  for (const size_t i : result.alone) {
    found.alone.push_back(wanted[i].second);
  }
  return found;
}

TEST(Subnets, two_in_a_24_are_a_pair) {
  EXPECT_THAT(found_in({{0, "10.77.3.1"}, {1, "10.77.3.2"}, {1, "10.77.4.1"}, {2, "10.77.4.200"}}).pairs,
              ElementsAre("10.77.3.1-10.77.3.2", "10.77.4.1-10.77.4.200"));
  EXPECT_THAT(found_in({{0, "10.77.3.1"}, {1, "10.77.2.1"}}).pairs, IsEmpty());  // 23 bits
}

TEST(Subnets, two_in_a_64_are_a_pair) {
  EXPECT_THAT(found_in({{0, "fd77:0:0:5::1"}, {1, "fd77:0:0:5::2"}, {0, "fd77:0:0:6::1"}, {1, "fd77:0:0:7::1"}}).pairs,
              ElementsAre("fd77:0:0:5::1-fd77:0:0:5::2"));
}

TEST(Subnets, of_30_and_31_bits_are_found_in_a_24) {
  const Found of_30 = found_in({{0, "10.0.0.1"}, {1, "10.0.0.2"}, {0, "10.0.0.5"}, {1, "10.0.0.6"}, {2, "10.0.0.9"}});
  EXPECT_THAT(of_30.pairs, ElementsAre("10.0.0.1-10.0.0.2", "10.0.0.5-10.0.0.6"));
  EXPECT_THAT(of_30.alone, ElementsAre("10.0.0.9"));  // the other end of its cable is missing
  EXPECT_THAT(of_30.crowds, IsEmpty());
}

TEST(Subnets, three_in_one_are_a_crowd) {
  EXPECT_THAT(found_in({{0, "10.0.0.1"}, {1, "10.0.0.2"}, {2, "10.0.0.3"}}).crowds, ElementsAre(3U));
  const Found far = found_in({{0, "10.0.0.10"}, {1, "10.0.0.20"}, {2, "10.0.0.30"}});
  EXPECT_THAT(far.crowds, ElementsAre(3U));
  EXPECT_THAT(far.pairs, IsEmpty());
  EXPECT_THAT(found_in({{0, "fd00::1"}, {1, "fd00::100"}, {2, "fd00::200"}}).crowds, ElementsAre(3U));
}

TEST(Subnets, two_ports_of_a_rank_and_one_of_another_are_a_crowd) {
  const Found found = found_in({{0, "10.0.0.10"}, {0, "10.0.0.20"}, {1, "10.0.0.30"}});
  EXPECT_THAT(found.crowds, ElementsAre(3U));
  EXPECT_THAT(found.pairs, IsEmpty());
}

TEST(Subnets, ports_of_one_rank_say_nothing) {
  const Found found = found_in({{0, "10.0.0.1"}, {0, "10.0.0.2"}, {0, "10.0.0.3"}});
  EXPECT_THAT(found.pairs, IsEmpty());
  EXPECT_THAT(found.crowds, IsEmpty());
}

TEST(Subnets, addresses_that_ports_give_themselves_say_nothing) {
  EXPECT_THAT(found_in({{0, "169.254.1.1"}, {1, "169.254.1.2"}, {0, "fe80::1"}, {1, "fe80::2"}}).pairs, IsEmpty());
  EXPECT_THAT(found_in({{0, "127.77.0.1"}, {1, "127.77.0.2"}}).pairs, IsEmpty());
}

TEST(Subnets, nothing_comes_of_nothing) {
  EXPECT_THAT(found_in({}).pairs, IsEmpty());
  EXPECT_THAT(found_in({{0, "10.0.0.1"}}).pairs, IsEmpty());
}

}  // namespace
}  // namespace ringbolt::bringup
