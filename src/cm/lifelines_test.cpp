#include "cm/lifelines.h"

#include <gtest/gtest.h>

#include "cm/scripted_peer.h"

namespace ringbolt::cm {
namespace {

constexpr Token kOwnToken = 0x0101;
constexpr Token kPeerToken = 0x0202;
constexpr uint16_t kOwnLinePort = 40001;
constexpr uint16_t kPeerLinePort = 50002;
constexpr Path kWay{0, kOwnAddress, kPeerAddress, 0, 0, 64};
using Kind = Lifelines::Order::Kind;

class Lifeline : public testing::Test {
 protected:
  static Standing standing(uint32_t number, bool is_active) {
    return {0x00c00000 + number, true, is_active, 0x01400000 + number, 0x12, kNoSlot, kWay};
  }
  void say(uint32_t number, bool is_answer, Token token = kPeerToken, const wire::Address& from = kPeerAddress) {
    Arrival arrival{kWay, kNoSlot, {}};
    arrival.path.remote = from;
    wire::emit(wire::LifelineOffer{0x01400000 + number, 0x00c00000 + number, token, kPeerLinePort, is_answer},
               arrival.bytes);
    EXPECT_TRUE(lifelines.receive(now, arrival));
  }
  std::vector<wire::LifelineOffer> heard() {
    std::vector<wire::LifelineOffer> all;
    for (const Outgoing& out : lifelines.take_outgoing()) {
      EXPECT_EQ(out.path, kWay);
      all.push_back(wire::parse_lifeline_offer(out.bytes).value());
    }
    return all;
  }
  std::vector<Kind> ordered() {
    std::vector<Kind> all;
    for (const Lifelines::Order& order : lifelines.take_orders()) {
      EXPECT_EQ(order.token, kPeerToken);
      if (order.kind == Kind::expect || order.kind == Kind::call) {
        EXPECT_EQ(order.place, (Lifelines::Place{0, kOwnAddress, kPeerAddress, kPeerLinePort}));
      }
      all.push_back(order.kind);
    }
    return all;
  }
  void pass(uint64_t duration_ns) {
    now += duration_ns;
    lifelines.on_timer(now);
  }
  uint64_t now = 1000 * kMs;
  uint16_t port = kOwnLinePort;
  Lifelines lifelines{kOwnToken, [this](const Path&) { return port; }};
};

TEST_F(Lifeline, is_offered_by_the_active_side_a_few_times) {
  lifelines.add(now, standing(1, true));
  pass(20 * kMs - 1);
  EXPECT_TRUE(heard().empty());
  pass(1);
  EXPECT_EQ(heard(), (std::vector{wire::LifelineOffer{0x00c00001, 0x01400001, kOwnToken, kOwnLinePort, false}}));
  for (const uint64_t pause : {100U, 200U, 400U}) {
    pass(pause * kMs - 1);
    EXPECT_TRUE(heard().empty());
    pass(1);
    EXPECT_EQ(heard().size(), 1U);
  }
  pass(800 * kMs);
  EXPECT_TRUE(heard().empty());  // a stranger
  EXPECT_EQ(lifelines.next_deadline_ns(), UINT64_MAX);
  EXPECT_TRUE(ordered().empty());
}

TEST_F(Lifeline, of_a_short_connection_is_not_offered) {
  lifelines.add(now, standing(1, true));
  lifelines.remove(now, standing(1, true).handle);
  EXPECT_EQ(lifelines.next_deadline_ns(), UINT64_MAX);
  EXPECT_EQ(lifelines.size(), 0U);
}

TEST_F(Lifeline, is_called_by_the_active_side_once_for_all_connections) {
  for (uint32_t i = 1; i <= 3; ++i) {
    lifelines.add(now, standing(i, true));
  }
  pass(20 * kMs);
  EXPECT_EQ(heard().size(), 3U);
  say(1, true);
  EXPECT_EQ(ordered(), (std::vector{Kind::expect, Kind::call}));
  say(2, true);
  say(2, true);  // twice
  say(3, true);
  EXPECT_EQ(ordered(), (std::vector{Kind::expect, Kind::expect}));
  EXPECT_EQ(lifelines.next_deadline_ns(), UINT64_MAX);
  EXPECT_EQ(lifelines.processes(), 1U);
  EXPECT_EQ(lifelines.take_dead(kPeerToken).size(), 3U);
  EXPECT_EQ(lifelines.size() + lifelines.processes(), 0U);
  EXPECT_TRUE(lifelines.take_dead(kPeerToken).empty());
}

TEST_F(Lifeline, is_expected_by_the_passive_side_before_it_answers) {
  lifelines.add(now, standing(1, false));
  EXPECT_EQ(lifelines.next_deadline_ns(), UINT64_MAX);
  say(1, false);
  EXPECT_EQ(ordered(), (std::vector{Kind::expect}));
  EXPECT_EQ(heard(), (std::vector{wire::LifelineOffer{0x00c00001, 0x01400001, kOwnToken, kOwnLinePort, true}}));
  say(1, false);  // our answer was lost
  EXPECT_TRUE(ordered().empty());
  EXPECT_EQ(heard().size(), 1U);
  EXPECT_EQ(lifelines.take_dead(kPeerToken), std::vector{standing(1, false).handle});
}

TEST_F(Lifeline, is_agreed_on_with_nobody_else) {
  lifelines.add(now, standing(1, false));
  lifelines.add(now, standing(2, true));
  pass(20 * kMs);
  heard();
  say(1, false, kPeerToken, wire::ipv4_address(10, 77, 0, 3));  // from another address
  say(1, true);                                                 // an answer that nobody asked for
  say(2, false);                                                // an offer to the side that makes them
  say(3, false);                                                // of no connection
  say(1, false, 0);
  EXPECT_TRUE(heard().empty());
  EXPECT_TRUE(ordered().empty());
  say(1, false);
  say(1, false, 0x666);  // one connection, another process
  EXPECT_EQ(heard().size(), 1U);
  EXPECT_EQ(ordered().size(), 1U);
}

TEST_F(Lifeline, needs_a_port) {
  port = 0;
  lifelines.add(now, standing(1, true));
  lifelines.add(now, standing(2, false));
  pass(20 * kMs);
  say(2, false);
  EXPECT_TRUE(heard().empty());
}

TEST_F(Lifeline, rests_for_a_while_when_nobody_needs_it) {
  lifelines.add(now, standing(1, true));
  pass(20 * kMs);
  say(1, true);
  ordered();
  lifelines.remove(now, standing(1, true).handle);
  pass(4999 * kMs);
  EXPECT_TRUE(ordered().empty());
  lifelines.add(now, standing(2, true));
  pass(20 * kMs);  // at the first one's time to go
  EXPECT_EQ(ordered(), (std::vector{Kind::drop, Kind::forget}));
  say(2, true);
  EXPECT_EQ(ordered(), (std::vector{Kind::expect, Kind::call}));
  lifelines.remove(now, standing(2, true).handle);
  pass(kMs);
  lifelines.add(now, standing(3, true));
  pass(20 * kMs);
  say(3, true);
  EXPECT_EQ(ordered(), (std::vector{Kind::expect}));  // it stands
  pass(60'000 * kMs);
  EXPECT_TRUE(ordered().empty());
}

TEST_F(Lifeline, that_broke_is_agreed_on_anew_a_few_times) {
  lifelines.add(now, standing(1, true));
  pass(20 * kMs);
  say(1, true);
  for (int i = 0; i < 3; ++i) {
    heard();
    ordered();
    lifelines.on_broken(now, kPeerToken);
    pass(100 * kMs);
    EXPECT_EQ(heard().size(), 1U);
    say(1, true);
    EXPECT_EQ(ordered(), (std::vector{Kind::call}));
  }
  lifelines.on_broken(now, kPeerToken);
  EXPECT_EQ(lifelines.next_deadline_ns(), UINT64_MAX);
  EXPECT_EQ(lifelines.size(), 1U);  // nothing is said of the connection
}

TEST(Standing, begins_with_the_peers_answer_and_ends_with_the_connection) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_actively();
  const std::vector<Standing> begun = peer.engine.take_standings();
  EXPECT_EQ(begun, (std::vector{Standing{handle, true, true, kPeerId, kPeerQpn, kNoSlot, peer.path()}}));
  EXPECT_EQ(peer.engine.disconnect(peer.now, handle), 0);
  EXPECT_TRUE(peer.engine.take_standings().empty());
  peer.hear<wire::CmDreq>();
  peer.say(wire::CmDrep{kPeerId, handle, {}});
  EXPECT_EQ(peer.engine.take_standings(), (std::vector{Standing{.handle = handle}}));
  peer.engine.destroy(peer.now, handle);
  EXPECT_TRUE(peer.engine.take_standings().empty());
}

TEST(Standing, of_the_passive_side_begins_with_its_answer) {
  ScriptedPeer peer;
  const Handle handle = peer.accepted();
  EXPECT_EQ(peer.engine.take_standings(),
            (std::vector{Standing{handle, true, false, kPeerId, kPeerQpn, kNoSlot, peer.path()}}));
  peer.engine.destroy(peer.now, handle);
  EXPECT_EQ(peer.engine.take_standings(), (std::vector{Standing{.handle = handle}}));
}

TEST(LostPeer, ends_the_connection_as_its_own_word_would) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_passively();
  peer.engine.on_peer_lost(peer.now, handle + 1);
  peer.told_nothing();
  peer.engine.on_peer_lost(peer.now, handle);
  EXPECT_EQ(peer.one_event(Event::Kind::disconnected).handle, handle);
  EXPECT_EQ(peer.engine.state_of(handle), State::timewait);
  peer.engine.on_peer_lost(peer.now, handle);
  peer.told_nothing();
  EXPECT_EQ(peer.engine.disconnect(peer.now, handle), 0);
  peer.hear_nothing();
  peer.say(peer.end_of(handle));  // whoever was left there says it, too
  peer.hear<wire::CmDrep>();
  peer.told_nothing();
}

}  // namespace
}  // namespace ringbolt::cm
