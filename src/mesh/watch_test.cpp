#include "mesh/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "fabric/heartbeat.h"
#include "mesh/watch_test_support.h"

namespace ringbolt::mesh {
namespace {

using bootstrap::Event;
using test::kLine;
using test::kRing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMs = 1'000'000;

/// One rank, whose surroundings are the test.
class WatchingRank final : public engine::Receiver, public Watch::Surroundings {
 public:
  struct Sent {
    uint32_t to;
    uint16_t kind;
    std::vector<std::byte> bytes;
  };
  WatchingRank(engine::test::LoopFabric& fabric, uint32_t rank, const fabric::Graph& graph, const uint64_t& now_ns)
      : made_(test::brought_up(fabric, rank, graph)),
        now_ns_(now_ns),
        watch(*this, made_, rank, graph.n_nodes, {}, 100 + rank, now_ns) {
    made_.station->engine().set_receiver(*this);
  }
  // engine::Receiver
  void on_chunk(const engine::ChunkHeader&, const engine::Receipt& receipt) override {
    made_.station->engine().release(receipt.id);
  }
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override {
    watch.hear_mending(header.source, bytes.subspan(1));
  }
  void on_beat(uint32_t cable, std::span<const std::byte> bytes) override { watch.hear_beat(cable, bytes, now_ns_); }
  void on_cable_failed(uint32_t cable) override { watch.on_cable_failed(cable, now_ns_); }
  // Watch::Surroundings
  bool send(uint32_t to, uint16_t kind, std::span<const std::byte> bytes, bool) override {
    sent.push_back({to, kind, {bytes.begin(), bytes.end()}});
    return true;
  }
  uint64_t hosts_answering(uint32_t) override { return hosts; }
  void on_message(uint32_t from, uint16_t kind, std::span<const std::byte>) override { heard.push_back({from, kind}); }
  void on_rank_failed(uint32_t rank, const Status&) override { failed.push_back(rank); }
  void on_rank_given_up(uint32_t rank, bool) override { given_up.push_back(rank); }

  size_t n_sent(uint16_t kind) const {
    return static_cast<size_t>(
        std::count_if(sent.begin(), sent.end(), [&](const Sent& one) { return one.kind == kind; }));
  }
  engine::Station& station() { return *made_.station; }

 private:
  BroughtUp made_;
  const uint64_t& now_ns_;

 public:
  Watch watch;
  uint64_t hosts = 0;
  std::vector<Sent> sent;
  std::vector<std::pair<uint32_t, uint16_t>> heard;
  std::vector<uint32_t> failed;
  std::vector<uint32_t> given_up;
  bool is_stopped = false;
};

class WatchTest : public testing::Test {
 protected:
  void make(const fabric::Graph& graph) {
    fabric_ = std::make_unique<engine::test::LoopFabric>(graph.n_nodes, test::fabric_of(graph));
    for (uint32_t rank = 0; rank < graph.n_nodes; ++rank) {
      members_.push_back(std::make_unique<WatchingRank>(*fabric_, rank, graph, now_ns_));
    }
  }
  ~WatchTest() override {
    for (const auto& member : members_) {
      member->watch.wait_for_mending(60'000 * kMs);  // the stations are not theirs
    }
  }
  WatchingRank& member(uint32_t rank) { return *members_[rank]; }
  Watch& watch(uint32_t rank) { return members_[rank]->watch; }
  void say(uint32_t from, uint32_t to, uint16_t kind, std::span<const std::byte> bytes = {}) {
    Event event;
    event.rank = from;
    event.message_kind = kind;
    event.bytes.assign(bytes.begin(), bytes.end());
    watch(to).hear(event, now_ns_);
  }
  void say(uint32_t from, uint32_t to, uint16_t kind, const std::string& text) {
    say(from, to, kind, std::as_bytes(std::span(text)));
  }
  /// The connection of a rank has ended, as another one sees it.
  void close(uint32_t rank, uint32_t at, int errno_value = 0) {
    Event event;
    event.kind = Event::Kind::lost;
    event.rank = rank;
    event.errno_value = errno_value;
    watch(at).hear(event, now_ns_);
  }
  /// All that the side channel has is brought, but from and to ranks that are stopped.
  void deliver() {
    for (uint32_t from = 0; from < members_.size(); ++from) {
      for (const WatchingRank::Sent& one : std::exchange(member(from).sent, {})) {
        for (uint32_t to = 0; to < members_.size(); ++to) {
          if (to != from && !member(to).is_stopped && (one.to == to || one.to == bootstrap::kEveryone)) {
            say(from, to, one.kind, one.bytes);
          }
        }
      }
    }
  }
  /// Ten milliseconds go by.
  void step() {
    now_ns_ += 10 * kMs;
    for (const auto& member : members_) {
      if (!member->is_stopped && now_ns_ >= member->watch.next_ns()) {
        member->watch.progress(now_ns_);
      }
    }
    deliver();
    for (int round = 0; round < 8; ++round) {
      for (const auto& member : members_) {
        if (!member->is_stopped) {
          member->station().engine().progress(base::now_ns());
        }
      }
    }
  }
  void run_ms(uint64_t time_ms) {
    for (uint64_t passed_ms = 0; passed_ms < time_ms; passed_ms += 10) {
      step();
    }
  }
  /// False after a minute of the real time.
  bool run_until(const std::function<bool()>& is_done) {
    const uint64_t deadline_ns = base::now_ns() + 60'000 * kMs;
    while (!is_done() && base::now_ns() < deadline_ns) {
      step();
    }
    return is_done();
  }
  void cut(uint32_t fabric_cable) {
    for (const uint32_t rank : {kRing.cables[fabric_cable].a, kRing.cables[fabric_cable].b}) {
      const uint32_t cable = test::local_cable(member(rank).station(), fabric_cable);
      member(rank).station().engine().fail_cable(cable, "cut");
    }
  }

  uint64_t now_ns_ = 1'000'000 * kMs;
  std::unique_ptr<engine::test::LoopFabric> fabric_;
  std::vector<std::unique_ptr<WatchingRank>> members_;
};

TEST_F(WatchTest, ranks_that_hear_each_other_stay) {
  make(kRing);
  run_ms(5000);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(member(rank).failed.empty());
    EXPECT_THAT(watch(rank).cables().down(), ElementsAre(false, false, false));
    EXPECT_EQ(watch(rank).ranks().explained({ETIMEDOUT, ""}).text, "");
  }
}

TEST_F(WatchTest, beats_go_through_the_side_channel_once_an_interval) {
  make(kRing);
  size_t n_beats = 0;
  for (int i = 0; i < 100; ++i) {  // a second, ten intervals
    now_ns_ += 10 * kMs;
    watch(0).progress(now_ns_);
    n_beats += member(0).n_sent(kHeartbeatMessage);
    member(0).sent.clear();
  }
  EXPECT_EQ(n_beats, 10U);
}

TEST_F(WatchTest, is_due_again_within_20_ms) {
  make(kRing);
  watch(0).progress(now_ns_);
  EXPECT_GT(watch(0).next_ns(), now_ns_);
  EXPECT_LE(watch(0).next_ns(), now_ns_ + 20 * kMs);
  watch(0).look_soon();
  EXPECT_LE(watch(0).next_ns(), now_ns_);
}

TEST_F(WatchTest, a_process_that_has_ended_fails_once_with_where_it_was) {
  make(kRing);
  run_ms(500);
  member(2).is_stopped = true;
  close(2, 0);
  watch(0).progress(now_ns_);
  EXPECT_THAT(member(0).failed, ElementsAre(2));
  EXPECT_THAT(member(0).given_up, ElementsAre(2));
  ASSERT_TRUE(watch(0).ranks().has_failed(2));
  const Status& why = watch(0).ranks().failed().at(2);
  EXPECT_EQ(why.code, ECONNRESET);
  EXPECT_THAT(why.text, HasSubstr("it was at cable 1-2 (rdma_a to rdma_b), cable 0-2 (rdma_a to rdma_b)"));
  EXPECT_EQ(watch(0).ranks().ended(), 0b100U);
  // Nothing goes through it any more, and should it live it hears so.
  EXPECT_THAT(watch(0).cables().down(), ElementsAre(false, true, true));
  EXPECT_EQ(member(0).n_sent(kGivenUpMessage), 1U);
  run_ms(2000);
  EXPECT_THAT(member(0).failed, ElementsAre(2));
}

TEST_F(WatchTest, who_is_given_up_gives_up_the_other_one) {
  make(kRing);
  say(1, 0, kGivenUpMessage, "silent\nfor long");
  EXPECT_THAT(member(0).failed, ElementsAre(1));
  EXPECT_EQ(watch(0).ranks().failed().at(1).code, ECONNRESET);
  // Foreign text obeys no terminal.
  EXPECT_EQ(watch(0).ranks().failed().at(1).text, "rank 1 has given up this rank, 0: silent?for long");
  EXPECT_EQ(watch(0).ranks().ended(), 0U);
}

TEST_F(WatchTest, a_cut_cable_is_news_for_all_and_costs_no_rank) {
  make(kRing);
  run_ms(500);
  cut(0);
  EXPECT_EQ(watch(0).cables().why_down(0), "cut");
  ASSERT_TRUE(run_until([&] { return watch(2).cables().is_down(0); }));
  EXPECT_THAT(watch(2).cables().why_down(0), HasSubstr("says that it is down"));
  EXPECT_EQ(member(0).station().engine().paths().via(1).size(), 1U);  // through 2
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(member(rank).failed.empty()) << "rank " << rank;
  }
}

TEST_F(WatchTest, a_cable_that_works_again_is_up_everywhere_after_a_while) {
  make(kRing);
  run_ms(500);
  cut(0);
  ASSERT_TRUE(run_until([&] { return watch(2).cables().is_down(0); }));
  const uint64_t cut_ns = now_ns_;
  ASSERT_TRUE(run_until([&] {
    return std::all_of(members_.begin(), members_.end(),
                       [](const auto& one) { return !one->watch.cables().is_down(0); });
  }));
  EXPECT_GE(now_ns_ - cut_ns, fabric::LivenessKnobs{}.heal_ns);
  EXPECT_TRUE(member(0).station().engine().paths().via(1).empty());  // direct again
  EXPECT_EQ(watch(0).cables().versions()[0] % 2, 0);
}

TEST_F(WatchTest, a_rank_without_any_way_fails_with_the_cables_that_are_down) {
  make(kLine);
  run_ms(500);
  cut(1);
  ASSERT_TRUE(run_until([&] { return watch(0).ranks().has_failed(2); }));
  const Status& why = watch(0).ranks().failed().at(2);
  EXPECT_EQ(why.code, ECONNRESET);
  EXPECT_THAT(why.text, HasSubstr("rank 2 can't be reached any more; cable 1-2 (rdma_a to rdma_b): "));
  EXPECT_EQ(watch(0).ranks().ended(), 0U);  // it may live
  EXPECT_FALSE(watch(0).ranks().has_failed(1));
}

TEST_F(WatchTest, a_frozen_rank_explains_deadlines_until_it_is_back) {
  make(kRing);
  run_ms(500);
  member(2).is_stopped = true;
  for (const uint32_t rank : {0U, 1U}) {
    member(rank).hosts = 0b111;  // its kernel answers
  }
  run_ms(1500);
  const auto late = [&] { return watch(0).ranks().explained({ETIMEDOUT, "late"}).text; };
  EXPECT_THAT(late(), HasSubstr("late; rank 2"));
  EXPECT_TRUE(member(0).failed.empty());
  member(2).is_stopped = false;
  ASSERT_TRUE(run_until([&] { return late() == "late"; }));
  EXPECT_TRUE(member(0).failed.empty());
}

TEST_F(WatchTest, malformed_beats_change_nothing) {
  make(kRing);
  watch(0).progress(now_ns_);
  const uint64_t due_ns = watch(0).next_ns();
  for (const size_t length : {size_t{0}, size_t{1}, fabric::heartbeat_bytes(3), fabric::heartbeat_bytes(3) + 3}) {
    const std::vector<std::byte> bytes(length, std::byte{0xa5});
    watch(0).hear_beat(0, bytes, now_ns_);
    say(1, 0, kHeartbeatMessage, bytes);
  }
  EXPECT_EQ(watch(0).next_ns(), due_ns);
  EXPECT_THAT(watch(0).cables().versions(), ElementsAre(0, 0, 0));
}

TEST_F(WatchTest, messages_of_other_kinds_are_its_clients) {
  make(kRing);
  say(2, 0, 77);
  say(1, 0, kLeavingMessage);
  EXPECT_THAT(member(0).heard, ElementsAre(std::pair<uint32_t, uint16_t>(2, 77)));
  EXPECT_FALSE(watch(0).ranks().may_leave(0));
  say(2, 0, kLeavingMessage);
  EXPECT_TRUE(watch(0).ranks().may_leave(0));
}

TEST(Watch, of_one_rank_watches_nobody) {
  class Alone final : public Watch::Surroundings {
   public:
    bool send(uint32_t, uint16_t, std::span<const std::byte>, bool) override { return ++n_calls > 0; }
    uint64_t hosts_answering(uint32_t) override { return 0; }
    void on_message(uint32_t, uint16_t, std::span<const std::byte>) override { ++n_calls; }
    void on_rank_failed(uint32_t, const Status&) override { ++n_calls; }
    void on_rank_given_up(uint32_t, bool) override { ++n_calls; }
    int n_calls = 0;
  } alone;
  const BroughtUp made;
  Watch watch(alone, made, 0, 1, {}, 1, 5 * kMs);
  watch.progress(5 * kMs);
  watch.progress(5000 * kMs);
  EXPECT_GT(watch.next_ns(), 5000 * kMs);
  EXPECT_TRUE(watch.cables().down().empty());
  EXPECT_TRUE(watch.ranks().may_leave(0));
  EXPECT_EQ(alone.n_calls, 0);
}

}  // namespace
}  // namespace ringbolt::mesh
