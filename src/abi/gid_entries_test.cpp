#include "abi/gid_entries.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace ringbolt::abi {
namespace {

constexpr uint32_t kLength = 8;
constexpr uint32_t kStreamInterface = 0x80000000;

ibv_gid gid(uint8_t last) {
  ibv_gid one{};
  one.raw[0] = 0xfe;
  one.raw[15] = last;
  return one;
}

/// A port with addresses at 0 and 2.
class GidEntriesTest : public ::testing::Test {
 protected:
  GidEntries entries(profile::GidLayout layout = profile::GidLayout::plain, uint32_t netdev = 0) const {
    return {shown_, kLength, layout, netdev};
  }
  static uint8_t last_of(const ibv_gid& one) { return one.raw[15]; }

  const std::vector<ibv_gid> shown_{gid(1), {}, gid(3)};
};

TEST_F(GidEntriesTest, indices_are_those_of_the_table) {
  const GidEntries table = entries();
  EXPECT_TRUE(table.has(0));
  EXPECT_TRUE(table.has(kLength - 1)) << "an empty slot";
  EXPECT_FALSE(table.has(kLength));
  EXPECT_FALSE(table.has(-1));
  EXPECT_FALSE(table.has(int64_t{1} << 32U)) << "not 0";
  EXPECT_EQ(last_of(table.at(2)), 3);
  EXPECT_EQ(last_of(table.at(1)), 0);
  EXPECT_EQ(last_of(table.at(kLength - 1)), 0);
}

TEST_F(GidEntriesTest, an_entry_says_what_its_address_is) {
  ibv_gid_entry one{};
  ASSERT_EQ(entries().write(2, &one, sizeof one), 0);
  EXPECT_EQ(last_of(one.gid), 3);
  EXPECT_EQ(one.gid_index, 2U);
  EXPECT_EQ(one.port_num, 1U);
  EXPECT_EQ(one.gid_type, uint32_t{IBV_GID_TYPE_ROCE_V2});
  EXPECT_EQ(one.ndev_ifindex, 1U) << "in shared memory: the loopback interface";
  ASSERT_EQ(entries(profile::GidLayout::plain, 7).write(0, &one, sizeof one), 0);
  EXPECT_EQ(one.ndev_ifindex, 7U);
  ASSERT_EQ(entries(profile::GidLayout::plain, kStreamInterface).write(0, &one, sizeof one), 0);
  EXPECT_EQ(one.ndev_ifindex, 1U) << "a stream is no interface of the kernel";
  ASSERT_EQ(entries(profile::GidLayout::mlx5).write(0, &one, sizeof one), 0);
  EXPECT_EQ(one.gid_type, uint32_t{IBV_GID_TYPE_ROCE_V1}) << "each address twice, for both versions";
}

TEST_F(GidEntriesTest, an_empty_slot_writes_nothing) {
  ibv_gid_entry one{};
  one.gid_index = 99;
  for (const uint32_t index : {1U, 3U, kLength - 1}) {
    EXPECT_EQ(entries().write(index, &one, sizeof one), ENODATA);
  }
  EXPECT_EQ(one.gid_index, 99U);
}

TEST_F(GidEntriesTest, programs_of_another_age_get_as_much_as_they_know) {
  struct Younger {
    ibv_gid_entry known;
    std::array<uint8_t, 16> later;
  } younger{};
  younger.later.fill(0xee);
  ASSERT_EQ(entries().write(2, &younger, sizeof younger), 0);
  EXPECT_EQ(younger.known.gid_index, 2U);
  EXPECT_EQ(younger.later, (std::array<uint8_t, 16>{})) << "what we do not know is zero";
  std::array<uint8_t, sizeof(ibv_gid) + 1> older{};
  older.fill(0xee);
  ASSERT_EQ(entries().write(2, older.data(), sizeof(ibv_gid)), 0);
  EXPECT_EQ(older[15], 3);
  EXPECT_EQ(older[16], 0xee) << "behind it is the program's";
}

TEST_F(GidEntriesTest, the_table_has_those_that_are_there) {
  std::array<ibv_gid_entry, 3> all{};
  EXPECT_EQ(entries().write_all(all.data(), 3, sizeof all[0]), 2);
  EXPECT_EQ(all[0].gid_index, 0U);
  EXPECT_EQ(all[1].gid_index, 2U);
  EXPECT_EQ(last_of(all[1].gid), 3);
  EXPECT_EQ(entries().write_all(all.data(), 2, sizeof all[0]), 2) << "just as many";
  EXPECT_EQ(entries().write_all(all.data(), 1, sizeof all[0]), -EINVAL);
  EXPECT_EQ(entries().write_all(nullptr, 0, sizeof all[0]), -EINVAL);
  EXPECT_EQ(GidEntries({}, kLength, profile::GidLayout::plain, 0).write_all(nullptr, 0, sizeof all[0]), 0);
}

}  // namespace
}  // namespace ringbolt::abi
