#include "mesh/mender.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "mesh/watch_test_support.h"

namespace ringbolt::mesh {
namespace {

using test::kRing;

constexpr uint64_t kIntervalNs = 100'000'000;

/// One rank whose mender is told of cables that fail, and of words that come over others.
class MendingRank final : public engine::Receiver, public Mender::Surroundings {
 public:
  using Carry = std::function<bool(uint32_t from, uint32_t to, std::span<const std::byte> word)>;
  MendingRank(engine::test::LoopFabric& fabric, uint32_t rank, Carry carry)
      : mender(test::station_of(fabric, rank), *this),
        station(*fabric.stations[rank]),
        rank_(rank),
        carry_(std::move(carry)) {
    station.engine().set_receiver(*this);
  }
  void on_chunk(const engine::ChunkHeader&, const engine::Receipt& receipt) override {
    ++n_chunks;
    station.engine().release(receipt.id);
  }
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override {
    ASSERT_EQ(bytes[0], static_cast<std::byte>(WordKind::mending));
    ++n_words;
    mender.hear(header.source, bytes.subspan(1));
  }
  void on_beat(uint32_t, std::span<const std::byte>) override {}
  void on_cable_failed(uint32_t cable) override {
    ++n_failures;
    station.engine().set_cable_up(station.fabric_cable(cable), false);
    mender.fail(cable);
  }
  bool send_mending(uint32_t to, std::span<const std::byte> word) override {
    ++n_sent;
    return carry_(rank_, to, word);
  }
  void on_mended(uint32_t cable, uint64_t) override { mended.push_back(cable); }

  Mender mender;
  engine::Station& station;
  std::vector<uint32_t> mended;
  int n_chunks = 0;
  int n_words = 0;
  int n_sent = 0;
  int n_failures = 0;

 private:
  uint32_t rank_;
  Carry carry_;
};

class MenderTest : public testing::Test {
 protected:
  MenderTest() : fabric_(3, test::fabric_of(kRing)) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      members_.push_back(std::make_unique<MendingRank>(
          fabric_, rank, [this](uint32_t from, uint32_t to, std::span<const std::byte> word) {
            return carries_ && carry(from, to, word);
          }));
    }
  }
  ~MenderTest() override {
    for (const auto& member : members_) {
      member->mender.wait_for_each(60'000'000'000);  // the stations are not theirs
    }
  }
  bool carry(uint32_t from, uint32_t to, std::span<const std::byte> word) {
    if (n_to_lose_ > 0) {
      --n_to_lose_;
      return true;
    }
    under_way_.push_back({from, to, {word.begin(), word.end()}});
    return true;
  }
  void deliver() {
    for (const auto& [from, to, word] : std::exchange(under_way_, {})) {
      EXPECT_TRUE(members_[to]->mender.hear(from, word));
    }
  }
  /// Cable 0-1, number 0 of the fabric and of both.
  void fail_at(uint32_t rank) { members_[rank]->station.engine().fail_cable(0, "cut"); }
  bool works_at(uint32_t rank) { return members_[rank]->station.cable(0).is_alive(); }
  /// Time goes by an interval each round; false after a minute of the real one.
  bool run_until(const std::function<bool()>& is_done) {
    return fabric_.run_until([&] {
      now_ns_ += kIntervalNs;
      for (const auto& member : members_) {
        member->mender.progress(now_ns_);
      }
      deliver();
      return is_done();
    });
  }

  struct UnderWay {
    uint32_t from;
    uint32_t to;
    std::vector<std::byte> word;
  };
  engine::test::LoopFabric fabric_;
  std::vector<std::unique_ptr<MendingRank>> members_;
  std::vector<UnderWay> under_way_;
  uint64_t now_ns_ = kIntervalNs;
  int n_to_lose_ = 0;
  bool carries_ = true;
};

TEST_F(MenderTest, both_ends_of_a_cable_connect_it_anew) {
  fail_at(0);
  fail_at(1);
  ASSERT_TRUE(run_until([&] { return works_at(0) && works_at(1); }));
  EXPECT_EQ(members_[0]->mended, std::vector<uint32_t>{0});
  EXPECT_EQ(members_[1]->mended, std::vector<uint32_t>{0});
  for (const uint32_t rank : {0U, 1U}) {
    members_[rank]->station.engine().set_cable_up(0, true);
  }
  ASSERT_TRUE(fabric_.send(0, 1, 0, 100));
  EXPECT_TRUE(run_until([&] { return members_[1]->n_chunks == 1; }));
  EXPECT_EQ(members_[2]->n_failures, 0);
}

TEST_F(MenderTest, an_end_that_works_fails_when_the_other_one_begins_anew) {
  fail_at(0);
  ASSERT_TRUE(run_until([&] { return members_[1]->n_failures > 0; }));
  ASSERT_TRUE(run_until([&] { return works_at(0) && works_at(1); }));
  EXPECT_EQ(members_[1]->n_failures, 1);
}

TEST_F(MenderTest, what_is_lost_is_said_again) {
  fail_at(0);
  fail_at(1);
  n_to_lose_ = 7;
  ASSERT_TRUE(run_until([&] { return works_at(0) && works_at(1); }));
  EXPECT_EQ(n_to_lose_, 0);
}

TEST_F(MenderTest, words_go_over_other_cables_where_there_is_no_other_way) {
  carries_ = false;
  fail_at(0);
  fail_at(1);
  ASSERT_TRUE(run_until([&] { return works_at(0) && works_at(1); }));
  EXPECT_GT(members_[0]->n_words, 0);  // by way of rank 2
  EXPECT_GT(members_[1]->n_words, 0);
}

TEST_F(MenderTest, a_cable_that_fails_again_is_mended_again) {
  for (size_t turn = 1; turn <= 3; ++turn) {
    fail_at(turn % 2 == 0 ? 0 : 1);
    ASSERT_TRUE(run_until([&] { return !works_at(0) || !works_at(1); }));
    ASSERT_TRUE(run_until([&] {
      return works_at(0) && works_at(1) && members_[0]->mended.size() >= turn && members_[1]->mended.size() >= turn;
    })) << "turn "
        << turn;
  }
}

TEST_F(MenderTest, nothing_is_done_before_the_next_interval) {
  carries_ = true;
  fail_at(0);
  members_[0]->mender.progress(now_ns_);
  const int n_sent = members_[0]->n_sent;
  EXPECT_GT(n_sent, 0);
  members_[0]->mender.progress(now_ns_ + kIntervalNs - 1);
  EXPECT_EQ(members_[0]->n_sent, n_sent);
  members_[0]->mender.progress(now_ns_ + kIntervalNs);
  EXPECT_GT(members_[0]->n_sent, n_sent);
}

TEST_F(MenderTest, nothing_is_done_for_a_rank_that_is_given_up) {
  fail_at(0);
  members_[0]->mender.give_up(1);
  for (int interval = 0; interval < 5; ++interval) {
    now_ns_ += kIntervalNs;
    members_[0]->mender.progress(now_ns_);
  }
  EXPECT_EQ(members_[0]->n_sent, 0);
  EXPECT_FALSE(works_at(0));
}

TEST_F(MenderTest, hears_of_its_own_cables_alone) {
  MendingWord word;
  word.fabric_cable = 1;  // 1-2
  word.stage = Mending::Stage::reset;
  word.incarnation = 9;
  EXPECT_FALSE(members_[0]->mender.hear(1, emit(word)));
  word.fabric_cable = 0;
  EXPECT_FALSE(members_[0]->mender.hear(2, emit(word)));  // it does not lead there
  word.fabric_cable = 77;
  EXPECT_FALSE(members_[0]->mender.hear(1, emit(word)));
  EXPECT_FALSE(members_[0]->mender.hear(1, {}));
  EXPECT_FALSE(members_[0]->mender.hear(1, std::vector<std::byte>(5)));
  EXPECT_EQ(members_[0]->n_failures, 0);
  word.fabric_cable = 0;
  EXPECT_TRUE(members_[0]->mender.hear(1, emit(word)));
  EXPECT_EQ(members_[0]->n_failures, 1);
}

TEST(Mender, without_a_station_has_nothing_to_do) {
  class Nobody final : public Mender::Surroundings {
   public:
    bool send_mending(uint32_t, std::span<const std::byte>) override { return ++n_calls > 0; }
    void on_mended(uint32_t, uint64_t) override { ++n_calls; }
    int n_calls = 0;
  } nobody;
  Mender mender(nullptr, nobody);
  mender.progress(kIntervalNs);
  mender.give_up(0);
  mender.wait_for_each(kIntervalNs);
  EXPECT_FALSE(mender.hear(1, emit(MendingWord())));
  EXPECT_EQ(nobody.n_calls, 0);
}

}  // namespace
}  // namespace ringbolt::mesh
