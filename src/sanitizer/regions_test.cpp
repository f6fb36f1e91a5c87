// Memory regions: InfiniBand Architecture Specification 1.4, 10.6.3 (what a request may name).

#include "sanitizer/regions.h"

#include <gtest/gtest.h>

#include "sanitizer/parts_test_support.h"
#include "sanitizer/received_data.h"
#include "sanitizer/region_use.h"

namespace ringbolt::sanitizer {
namespace {

using testing::Memory;
using testing::Pair;
using testing::request;
using testing::Rules;
using testing::rules_of;
using testing::site;

constexpr uint32_t kKey = 7;

/// A region of 100 bytes at 0x1000, which requests call 0x9000.
class RegionsTest : public ::testing::Test {
 protected:
  void add(uint32_t access = 0, uint64_t iova = 0x9000) { regions_.add(kKey, region_of(mr(), iova, access, site(1))); }
  ibv_mr mr(uint64_t address = 0x1000, size_t length = 100) {
    ibv_mr one{};
    one.addr = reinterpret_cast<void*>(address);
    one.length = length;
    one.lkey = kKey;
    one.pd = &pd_;
    return one;
  }
  bool resolves(uint64_t address, uint32_t length, uint32_t lkey = kKey, Use use = Use::send) {
    const ibv_sge one{address, length, lkey};
    return resolves({&one, 1}, use);
  }
  bool resolves(std::span<const ibv_sge> list, Use use = Use::send, ibv_pd* pd = nullptr) {
    Request request;
    request.use = use;
    request.pd = pd == nullptr ? &pd_ : pd;
    const bool is_sound = regions_.resolve(request, list);
    pieces_ = request.pieces;
    read_only_ = request.read_only;
    return is_sound;
  }

  ibv_pd pd_{};
  Regions regions_;
  std::vector<Piece> pieces_;
  std::optional<ReadOnly> read_only_;
};

TEST_F(RegionsTest, a_piece_lies_where_the_region_does) {
  add();
  ASSERT_TRUE(resolves(0x9010, 20));
  ASSERT_EQ(pieces_.size(), 1U);
  EXPECT_EQ(pieces_[0].address, 0x1010U);
  EXPECT_EQ(pieces_[0].length, 20U);
  EXPECT_EQ(pieces_[0].lkey, kKey);
  EXPECT_TRUE(resolves(0x9000, 100)) << "all of it";
  EXPECT_TRUE(resolves(0x9063, 1)) << "its last byte";
}

TEST_F(RegionsTest, what_is_not_all_within_it_is_no_piece) {
  add();
  for (const auto& [address, length] : {std::pair<uint64_t, uint32_t>{0x9000, 101},
                                        {0x8fff, 2},
                                        {0x9064, 1},
                                        {0x1000, 8},
                                        {UINT64_MAX, 8},
                                        {0x9063, UINT32_MAX}}) {
    EXPECT_FALSE(resolves(address, length)) << address;
    EXPECT_TRUE(pieces_.empty());
  }
  EXPECT_FALSE(resolves(0x9000, 8, kKey + 1));
  ibv_pd other{};
  const ibv_sge one{0x9000, 8, kKey};
  EXPECT_FALSE(resolves({&one, 1}, Use::send, &other)) << "of another protection domain";
}

TEST_F(RegionsTest, a_list_keeps_the_places_of_its_pieces) {
  add();
  const std::vector<ibv_sge> list{{0x9000, 4, kKey}, {1, 0, 999}, {0x9000, 4, 999}, {0x9020, 4, kKey}};
  EXPECT_FALSE(resolves(list)) << "one has a key that is none";
  ASSERT_EQ(pieces_.size(), 2U);
  EXPECT_EQ(pieces_[0].segment, 0U);
  EXPECT_EQ(pieces_[1].segment, 3U);
}

TEST_F(RegionsTest, what_comes_goes_where_the_device_may_write_alone) {
  add(IBV_ACCESS_REMOTE_READ);
  EXPECT_TRUE(resolves(0x9000, 8)) << "a send reads";
  for (const Use use : {Use::receive, Use::read}) {
    EXPECT_FALSE(resolves(0x9000, 8, kKey, use));
    EXPECT_TRUE(pieces_.empty());
    ASSERT_TRUE(read_only_);
    EXPECT_EQ(read_only_->lkey, kKey);
    EXPECT_EQ(read_only_->made.returns[0], 1U) << "where it was registered";
    EXPECT_FALSE(resolves(0x9063, 2, kKey, use));
    EXPECT_FALSE(read_only_) << "it is not all within the region, which the device says first";
    EXPECT_TRUE(resolves(0x9000, 0, kKey, use)) << "no byte";
  }
  regions_.change(mr(), false, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_TRUE(resolves(0x9000, 8, kKey, Use::read));
  EXPECT_FALSE(read_only_);
}

TEST_F(RegionsTest, a_zero_based_region_begins_at_zero) {
  add(IBV_ACCESS_ZERO_BASED);
  EXPECT_TRUE(resolves(0, 100));
  EXPECT_EQ(pieces_[0].address, 0x1000U);
  EXPECT_FALSE(resolves(0x9000, 1));
}

TEST_F(RegionsTest, peers_may_write_where_they_have_the_right_until_it_goes) {
  const Piece last{0x1063, 10, 0, 0, {}};
  const Piece behind{0x1064, 10, 0, 0, {}};
  add(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  EXPECT_FALSE(regions_.is_exposed(last));
  for (const unsigned right : {unsigned{IBV_ACCESS_REMOTE_WRITE}, unsigned{IBV_ACCESS_REMOTE_ATOMIC}}) {
    add(IBV_ACCESS_LOCAL_WRITE | right);
    EXPECT_TRUE(regions_.is_exposed(last)) << "by its first byte";
    EXPECT_FALSE(regions_.is_exposed(behind));
    regions_.remove(kKey);
    EXPECT_FALSE(regions_.is_exposed(last));
    EXPECT_FALSE(resolves(0x9000, 1));
  }
}

TEST_F(RegionsTest, a_region_that_has_moved_has_its_new_address_alone) {
  add(IBV_ACCESS_REMOTE_WRITE);
  regions_.hide(kKey);
  EXPECT_FALSE(regions_.is_exposed({0x1000, 1, 0, 0, {}}));
  const ibv_mr moved = mr(0x5000, 50);
  const Region now = regions_.change(moved, true, std::nullopt);
  EXPECT_TRUE(now.lets_peers_write());
  EXPECT_TRUE(regions_.is_exposed({0x5031, 1, 0, 0, {}}));
  EXPECT_FALSE(regions_.is_exposed({0x1000, 1, 0, 0, {}}));
  EXPECT_TRUE(resolves(0x5000, 50));
  EXPECT_FALSE(resolves(0x9000, 1));
}

TEST_F(RegionsTest, a_region_that_is_moved_to_where_it_is_has_its_address_alone) {
  add();
  regions_.change(mr(0x1000, 200), true, std::nullopt);
  EXPECT_TRUE(resolves(0x1000, 200)) << "ibv_rereg_mr has no other address to go by";
  EXPECT_FALSE(resolves(0x9000, 1));
}

TEST_F(RegionsTest, another_access_is_known_at_once_and_changes_no_address) {
  const Piece first{0x1000, 1, 0, 0, {}};
  add();
  regions_.change(mr(), false, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  EXPECT_TRUE(regions_.is_exposed(first));
  EXPECT_TRUE(resolves(0x9000, 100));
  regions_.change(mr(), false, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_FALSE(regions_.is_exposed(first)) << "peers may write there no more";
  regions_.change(mr(), false, std::nullopt);
  EXPECT_FALSE(regions_.is_exposed(first));
}

/// Requests in the memory of a region, on a queue pair that works.
class RegionUseTest : public ::testing::Test {
 protected:
  RegionUseTest() {
    mr_.addr = memory_.bytes.data();
    mr_.length = memory_.bytes.size();
    mr_.lkey = kKey;
    memory_.write(0, "program's");
  }
  Request& post(uint32_t number, Use use, uint32_t lkey = kKey) {
    auto one = request(number, use, {memory_.piece(0, 9, lkey)});
    one->qp = &pair_.qp;
    return table_.insert(std::move(one));
  }
  std::vector<std::string> forsake() {
    return rules_of(forsake_requests(table_, queues_, mr_, "ibv_dereg_mr", site(1)));
  }

  Memory memory_;
  ibv_mr mr_{};
  Pair pair_;
  Queues queues_;
  RequestTable table_{0};
};

TEST_F(RegionUseTest, requests_of_its_key_are_told_of_once) {
  Request& one = post(1, Use::receive);
  const Request& other = post(2, Use::receive, kKey + 1);
  EXPECT_EQ(forsake(), Rules{"region-gone-in-use"});
  EXPECT_TRUE(one.is_forsaken);
  EXPECT_FALSE(other.is_forsaken);
  EXPECT_EQ(forsake(), Rules{}) << "known";
}

TEST_F(RegionUseTest, a_queue_pair_that_ended_or_failed_only_flushes) {
  post(1, Use::send);
  pair_.qp.told = IBV_QPS_ERR;
  EXPECT_EQ(forsake(), Rules{});
  pair_.qp.told = IBV_QPS_RTS;
  post(2, Use::send);
  pair_.qp.note_outcome(IBV_WC_RETRY_EXC_ERR, site(2));
  EXPECT_EQ(forsake(), Rules{});
}

TEST_F(RegionUseTest, poison_goes_where_peers_may_write) {
  testing::Kept kept;
  Request& one = post(1, Use::receive);
  kept.take(one);
  hold_back(one, true);
  ASSERT_NE(memory_.text(0, 9), "program's");
  const auto address = reinterpret_cast<uint64_t>(memory_.bytes.data());
  unpoison_exposed(table_, {address + 9, 100, 0, IBV_ACCESS_REMOTE_WRITE, nullptr, {}});
  EXPECT_TRUE(one.is_poisoned) << "beside it";
  unpoison_exposed(table_, {address, 100, 0, IBV_ACCESS_REMOTE_READ, nullptr, {}});
  EXPECT_TRUE(one.is_poisoned) << "they only read";
  unpoison_exposed(table_, {address + 8, 100, 0, IBV_ACCESS_REMOTE_WRITE, nullptr, {}});
  EXPECT_FALSE(one.is_poisoned);
  EXPECT_EQ(memory_.text(0, 9), "program's");
}

}  // namespace
}  // namespace ringbolt::sanitizer
