// The active side against a scripted peer: each row of the state tables, and what time does.

#include <cerrno>

#include "cm/scripted_peer.h"

namespace ringbolt::cm {
namespace {

TEST(CmActive, connects_and_tells_readiness_only_when_asked) {
  ScriptedPeer peer;
  const Handle handle = peer.asked();
  EXPECT_EQ(handle >> 22, 3U);
  peer.say(peer.reply_to(handle), 999);  // a foreign transaction id is no objection
  peer.one_event(Event::Kind::response);
  peer.hear_nothing();
  EXPECT_EQ(peer.engine.ready(peer.now, handle), 0);
  const auto ready = peer.hear<wire::CmRtu>();
  EXPECT_EQ(ready.local_id, handle);
  EXPECT_EQ(ready.remote_id, kPeerId);
  EXPECT_EQ(peer.engine.ready(peer.now, handle), EINVAL);
}

TEST(CmActive, asks_sixteen_times_in_all_and_early_meanwhile) {
  ScriptedPeer peer;
  peer.asked();
  peer.pass_first_wait<wire::CmReq>(6144 * kMs);
  peer.hear<wire::CmReq>();
  for (int i = 0; i < 14; ++i) {
    peer.pass(6144 * kMs);
    peer.hear<wire::CmReq>();
  }
  peer.told_nothing();
  peer.pass(6144 * kMs);
  peer.hear_nothing();
  peer.one_event(Event::Kind::unreachable, -ETIMEDOUT);
  EXPECT_EQ(peer.engine.next_deadline_ns(), UINT64_MAX);
}

TEST(CmActive, waits_longer_when_told_to) {
  ScriptedPeer peer;
  const Handle handle = peer.asked();
  peer.say(wire::CmMra{kPeerId, handle, wire::CmAnswered::req, 24, {}});
  peer.pass(67'583 * kMs);
  peer.hear_nothing();
  peer.pass(1 * kMs);
  peer.hear<wire::CmReq>();
  peer.say(peer.reply_to(handle));
  peer.one_event(Event::Kind::response);
}

TEST(CmActive, repeats_readiness_when_the_reply_is_repeated) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_actively();
  peer.say(peer.reply_to(handle));
  peer.hear<wire::CmRtu>();
  peer.told_nothing();
}

TEST(CmActive, asks_for_patience_while_the_program_has_not_looked) {
  ScriptedPeer peer;
  const Handle handle = peer.asked();
  peer.say(peer.reply_to(handle));
  peer.say(peer.reply_to(handle));
  const auto message = peer.hear<wire::CmMra>();
  EXPECT_EQ(message.answered, wire::CmAnswered::rep);
  EXPECT_EQ(message.service_timeout, 24);
}

TEST(CmActive, ends_on_each_kind_of_refusal) {
  for (const uint16_t reason : {wire::kRejInvalidServiceId, wire::kRejConsumer, wire::kRejInvalidGid}) {
    ScriptedPeer peer;
    const Handle handle = peer.asked();
    wire::CmRej refusal;
    refusal.remote_id = handle;
    refusal.reason = reason;
    peer.say(refusal);
    peer.one_event(Event::Kind::rejected, reason);
    EXPECT_EQ(peer.engine.state_of(handle), State::idle);
    peer.say(refusal);
    peer.told_nothing();
  }
}

TEST(CmActive, lingers_after_a_stale_connection) {
  ScriptedPeer peer;
  const Handle handle = peer.asked();
  wire::CmRej refusal;
  refusal.remote_id = handle;
  refusal.reason = wire::kRejStaleConnection;
  peer.say(refusal);
  peer.one_event(Event::Kind::rejected, wire::kRejStaleConnection);
  EXPECT_EQ(peer.engine.state_of(handle), State::timewait);
  peer.pass(2048 * kMs);
  peer.one_event(Event::Kind::timewait_exit);
}

TEST(CmActive, refuses_a_reply_from_a_queue_pair_that_is_connected_already) {
  ScriptedPeer peer;
  const Handle old = peer.connected_actively();
  const Handle handle = peer.asked();
  auto reply = peer.reply_to(handle);
  reply.local_id = kPeerId + 1;
  peer.say(reply);
  const auto heard = peer.heard();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(std::get<wire::CmDreq>(heard[0]).local_id, old);
  const auto& refusal = std::get<wire::CmRej>(heard[1]);
  EXPECT_EQ(refusal.reason, wire::kRejStaleConnection);
  EXPECT_EQ(refusal.answered, wire::CmAnswered::rep);
}

TEST(CmActive, destroying_tells_the_peer_what_it_must_know) {
  ScriptedPeer peer;
  peer.engine.destroy(peer.now, peer.asked());
  auto refusal = peer.hear<wire::CmRej>();
  EXPECT_EQ(refusal.reason, wire::kRejTimeout);
  EXPECT_EQ(refusal.info_length, 8);
  EXPECT_EQ(peer.engine.size(), 0U);

  const Handle replied = peer.asked();
  peer.say(peer.reply_to(replied));
  peer.engine.destroy(peer.now, replied);
  EXPECT_EQ(peer.hear<wire::CmRej>().reason, wire::kRejConsumer);

  ScriptedPeer other;
  const Handle connected = other.connected_actively();
  other.engine.destroy(other.now, connected);
  EXPECT_EQ(other.hear<wire::CmDreq>().remote_qpn, kPeerQpn);
  other.pass(2048 * kMs);
  other.hear_nothing();  // once, without tries
  other.told_nothing();
  EXPECT_EQ(other.engine.size(), 0U);
}

TEST(CmActive, disconnects_and_both_learn_of_it) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_actively();
  EXPECT_EQ(peer.engine.disconnect(peer.now, handle), 0);
  EXPECT_EQ(peer.hear<wire::CmDreq>().remote_id, kPeerId);
  peer.told_nothing();
  peer.say(wire::CmDrep{kPeerId, handle, {}});
  peer.one_event(Event::Kind::disconnected);
  EXPECT_EQ(peer.engine.disconnect(peer.now, handle), 0);  // a second time is harmless
  peer.hear_nothing();
  peer.pass(2047 * kMs);
  peer.told_nothing();
  peer.pass(1 * kMs);
  peer.one_event(Event::Kind::timewait_exit);
}

TEST(CmActive, disconnects_by_itself_when_nobody_agrees) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_actively();
  EXPECT_EQ(peer.engine.disconnect(peer.now, handle), 0);
  peer.heard();
  peer.pass_first_wait<wire::CmDreq>(6144 * kMs);
  peer.hear<wire::CmDreq>();
  for (int i = 0; i < 14; ++i) {
    peer.pass(6144 * kMs);
    peer.hear<wire::CmDreq>();
  }
  peer.pass(6144 * kMs);
  peer.one_event(Event::Kind::disconnected, -ETIMEDOUT);
  EXPECT_EQ(peer.engine.state_of(handle), State::timewait);
}

TEST(CmActive, a_refusal_after_connecting_ends_it) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_actively();
  wire::CmRej refusal;
  refusal.local_id = kPeerId;
  refusal.remote_id = handle;
  refusal.answered = wire::CmAnswered::other;
  refusal.reason = wire::kRejConsumer;
  peer.say(refusal);
  peer.one_event(Event::Kind::rejected, wire::kRejConsumer);
  EXPECT_EQ(peer.engine.state_of(handle), State::timewait);
}

TEST(CmActive, asks_again_at_once_when_a_process_of_the_host_ends) {
  ScriptedPeer peer;
  peer.asked();
  peer.engine.on_peer_gone(peer.now, 5);
  peer.engine.on_timer(peer.now);
  peer.hear<wire::CmReq>();
}

TEST(CmLookup, finds_a_service) {
  ScriptedPeer peer;
  wire::CmSidrReq question;
  question.service_id = wire::cm_service_id(wire::kPortSpaceUdp, 9004);
  const Handle handle = peer.engine.look_up(peer.now, peer.path(), question);
  EXPECT_EQ(peer.hear<wire::CmSidrReq>().request_id, handle);
  peer.pass(4096 * kMs);
  peer.hear<wire::CmSidrReq>();
  wire::CmSidrRep answer;
  answer.request_id = handle;
  answer.qpn = 0x13;
  peer.say(answer);
  const Event event = peer.one_event(Event::Kind::lookup_answer);
  EXPECT_EQ(std::get<wire::CmSidrRep>(event.message).qpn, 0x13U);
  peer.say(answer);
  peer.told_nothing();
}

TEST(CmLookup, gives_up_after_sixteen_questions) {
  ScriptedPeer peer;
  peer.engine.look_up(peer.now, peer.path(), {});
  peer.hear<wire::CmSidrReq>();
  peer.pass_first_wait<wire::CmSidrReq>(4096 * kMs);
  for (int i = 0; i < 14; ++i) {
    peer.pass(4096 * kMs);
  }
  EXPECT_EQ(peer.heard().size(), 15U);
  peer.told_nothing();
  peer.pass(4096 * kMs);
  peer.one_event(Event::Kind::unreachable, -ETIMEDOUT);
}

}  // namespace
}  // namespace ringbolt::cm
