#include "stream/address.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/resolving_test_support.h"

namespace ringbolt::stream {
namespace {

Address one(const char* host, uint16_t port = 1) { return addresses_of(host, port, Deadline::now()).front(); }

TEST(Address, is_shown_as_it_is_written) {
  EXPECT_EQ(one("10.0.0.7", 6379).text(), "10.0.0.7:6379");
  EXPECT_EQ(one("fd77::1", 80).text(), "[fd77::1]:80");
  EXPECT_EQ(one("10.0.0.7", 6379).port(), 6379);
  EXPECT_EQ(any_addresses(7)[1].text(), "[::]:7");
}

TEST(Address, that_nobody_knows_is_refused_with_its_name) {
  try {
    addresses_of("no such host.", 1, Deadline::in_ms(60'000));
    ADD_FAILURE() << "there is no such host";
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"no such host.\""), std::string::npos) << error.what();
  }
}

TEST(Address, of_a_name_that_nobody_answers_for_is_refused_by_the_deadline) {
  const base::test::DeadNameService dead;
  EXPECT_EQ(addresses_of("10.0.0.7", 6379, Deadline::now(), dead.look_up()).size(), 1U) << "nobody is asked";
  try {
    addresses_of("node0", 6379, Deadline::in_ms(20), dead.look_up());
    ADD_FAILURE() << "nobody has answered";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.errno_value(), ETIMEDOUT);
    EXPECT_NE(std::string(error.what()).find("node0: the name service does not answer"), std::string::npos);
  }
}

TEST(AllowList, without_entries_allows_everybody) { EXPECT_TRUE(AllowList({}).allows(one("192.0.2.1"))); }

TEST(AllowList, takes_addresses_and_networks_of_both_kinds) {
  const std::vector<std::string> entries = {"10.1.0.0/16", "192.0.2.7", "fd77::/63", "10.2.3.4/31"};
  const AllowList list(entries);
  for (const char* yes : {"10.1.0.0", "10.1.255.255", "192.0.2.7", "fd77::1", "fd77:0:0:1::2", "10.2.3.5"}) {
    EXPECT_TRUE(list.allows(one(yes))) << yes;
  }
  for (const char* no : {"10.0.255.255", "10.2.0.0", "192.0.2.8", "fd77:0:0:2::1", "::1", "10.2.3.6"}) {
    EXPECT_FALSE(list.allows(one(no))) << no;
  }
  const std::vector<std::string> all = {"0.0.0.0/0"};
  EXPECT_TRUE(AllowList(all).allows(one("8.8.8.8")));
  EXPECT_FALSE(AllowList(all).allows(one("fd77::1")));
}

TEST(AllowList, entry_that_is_no_address_is_refused) {
  for (const char* entry :
       {"", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "fd77::/129", "host"}) {
    const std::vector<std::string> entries = {entry};
    EXPECT_THROW(AllowList list(entries), base::Error) << entry;
  }
}

}  // namespace
}  // namespace ringbolt::stream
