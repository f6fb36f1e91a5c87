// The passive side against a scripted peer.

#include <cerrno>

#include "cm/scripted_peer.h"
#include "wire/bytes.h"

namespace ringbolt::cm {
namespace {

TEST(CmPassive, accepts_and_hears_that_the_peer_is_ready) {
  ScriptedPeer peer;
  const Handle handle = peer.accepted();
  peer.told_nothing();
  peer.say(wire::CmRtu{kPeerId, handle, {}});
  peer.one_event(Event::Kind::established);
  peer.say(wire::CmRtu{kPeerId, handle, {}});
  peer.told_nothing();
}

TEST(CmPassive, repeats_its_reply_and_gives_up) {
  ScriptedPeer peer;
  peer.accepted();
  peer.pass_first_wait<wire::CmRep>(4096 * kMs);
  peer.hear<wire::CmRep>();
  for (int i = 0; i < 14; ++i) {
    peer.pass(4096 * kMs);
    peer.hear<wire::CmRep>();
  }
  peer.pass(4096 * kMs);
  peer.hear_nothing();
  peer.one_event(Event::Kind::unreachable, -ETIMEDOUT);
}

TEST(CmPassive, repeats_nothing_for_a_peer_that_wants_no_repetitions) {
  ScriptedPeer peer;
  peer.accepted(0);
  peer.pass(4095 * kMs);
  peer.hear_nothing();
  peer.told_nothing();
  peer.pass(1 * kMs);
  peer.hear_nothing();
  peer.one_event(Event::Kind::unreachable, -ETIMEDOUT);
}

TEST(CmPassive, takes_data_for_readiness) {
  ScriptedPeer peer;
  const Handle handle = peer.accepted();
  EXPECT_EQ(peer.engine.note_data(peer.now, handle), 0);
  peer.one_event(Event::Kind::established);
  EXPECT_EQ(peer.engine.note_data(peer.now, handle), EISCONN);
}

TEST(CmPassive, answers_a_repeated_request_by_its_state) {
  ScriptedPeer peer;
  peer.listen();
  peer.say(peer.request());
  const Handle handle = peer.one_event(Event::Kind::request).handle;
  peer.say(peer.request());
  EXPECT_EQ(peer.hear<wire::CmMra>().answered, wire::CmAnswered::req);
  EXPECT_EQ(peer.engine.accept(peer.now, handle, {}), 0);
  peer.heard();
  peer.say(peer.request());
  peer.hear_nothing();
  peer.say(wire::CmRtu{kPeerId, handle, {}});
  peer.told();
  peer.say(peer.request());
  peer.hear_nothing();
  peer.told_nothing();
}

TEST(CmPassive, a_new_request_of_a_connected_queue_pair_ends_the_old_connection) {
  ScriptedPeer peer;
  const Handle old = peer.connected_passively();
  peer.say(peer.request(kPeerId + 1));
  const auto heard = peer.heard();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(std::get<wire::CmDreq>(heard[0]).local_id, old);
  EXPECT_EQ(std::get<wire::CmRej>(heard[1]).reason, wire::kRejStaleConnection);
  peer.say(wire::CmDrep{kPeerId, old, {}});
  peer.one_event(Event::Kind::disconnected);
}

TEST(CmPassive, takes_ids_again_that_are_in_timewait) {
  ScriptedPeer peer;
  const Handle old = peer.connected_passively();
  peer.say(peer.end_of(old));
  EXPECT_EQ(peer.engine.disconnect(peer.now, old), 0);
  peer.heard();
  peer.told();
  peer.say(peer.request());
  peer.one_event(Event::Kind::request);
}

TEST(CmPassive, agrees_to_the_end_only_when_its_user_does) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_passively();
  peer.say(peer.end_of(handle), 55);
  peer.one_event(Event::Kind::disconnected);
  peer.hear_nothing();
  peer.say(peer.end_of(handle), 55);  // a repetition meanwhile is dropped
  peer.hear_nothing();
  EXPECT_EQ(peer.engine.disconnect(peer.now, handle), 0);
  EXPECT_EQ(peer.hear<wire::CmDrep>().remote_id, kPeerId);
  peer.say(peer.end_of(handle), 55);  // afterwards it is answered again
  peer.hear<wire::CmDrep>();
  peer.told_nothing();
  peer.pass(2048 * kMs);
  peer.one_event(Event::Kind::timewait_exit);
}

TEST(CmPassive, tells_the_end_once_when_both_ask_for_it) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_passively();
  EXPECT_EQ(peer.engine.disconnect(peer.now, handle), 0);
  peer.hear<wire::CmDreq>();
  peer.say(peer.end_of(handle));
  peer.one_event(Event::Kind::disconnected);
  peer.hear<wire::CmDrep>();
  peer.say(wire::CmDrep{kPeerId, handle, {}});
  peer.told_nothing();
}

TEST(CmPassive, ends_before_readiness_was_heard) {
  ScriptedPeer peer;
  const Handle handle = peer.accepted();
  peer.say(peer.end_of(handle));
  peer.one_event(Event::Kind::disconnected);
}

TEST(CmPassive, drops_an_end_for_another_queue_pair_and_answers_for_strangers) {
  ScriptedPeer peer;
  const Handle handle = peer.connected_passively();
  auto end = peer.end_of(handle);
  end.remote_qpn = kOwnQpn + 1;
  peer.say(end);
  peer.hear_nothing();
  peer.told_nothing();
  peer.say(wire::CmDreq{0x111, 0x222, 5, {}});
  const auto answer = peer.hear<wire::CmDrep>();
  EXPECT_EQ(answer.local_id, 0x222U);
  EXPECT_EQ(answer.remote_id, 0x111U);
}

TEST(CmPassive, a_request_taken_back_makes_accepting_fail_without_an_event) {
  ScriptedPeer peer;
  peer.listen();
  peer.say(peer.request());
  const Handle handle = peer.one_event(Event::Kind::request).handle;
  wire::CmRej refusal;
  refusal.local_id = kPeerId;
  refusal.reason = wire::kRejTimeout;
  refusal.info_length = 8;
  wire::put_be<uint64_t>(refusal.info, 0, kPeerGuid);
  peer.say(refusal);
  peer.told_nothing();
  EXPECT_EQ(peer.engine.accept(peer.now, handle, {}), EINVAL);
}

TEST(CmPassive, rejects_with_the_users_data) {
  ScriptedPeer peer;
  peer.listen();
  peer.say(peer.request());
  const Handle handle = peer.one_event(Event::Kind::request).handle;
  const std::byte data[] = {std::byte{'n'}, std::byte{'o'}};
  EXPECT_EQ(peer.engine.reject(peer.now, handle, wire::kRejConsumer, data), 0);
  const auto refusal = peer.hear<wire::CmRej>();
  EXPECT_EQ(refusal.reason, wire::kRejConsumer);
  EXPECT_EQ(refusal.local_id, handle);
  EXPECT_EQ(refusal.private_data[1], std::byte{'o'});
  EXPECT_EQ(peer.engine.reject(peer.now, handle, wire::kRejConsumer, data), EINVAL);
}

TEST(CmPassive, refuses_what_the_kernel_refuses) {
  const auto reason_of = [](auto change, bool is_listening) {
    ScriptedPeer peer;
    if (is_listening) {
      peer.listen();
    }
    wire::CmReq request = peer.request();
    change(request);
    peer.say(request);
    peer.told_nothing();
    const auto refusal = peer.hear<wire::CmRej>();
    EXPECT_EQ(refusal.local_id, 0U);
    EXPECT_EQ(refusal.remote_id, kPeerId);
    return refusal.reason;
  };
  EXPECT_EQ(reason_of([](wire::CmReq&) {}, false), wire::kRejInvalidServiceId);
  EXPECT_EQ(reason_of([](wire::CmReq& one) { one.private_data[0] = std::byte{1}; }, true), wire::kRejConsumer);
  EXPECT_EQ(reason_of([](wire::CmReq& one) { one.private_data[1] = std::byte{0x50}; }, true), wire::kRejConsumer);
  EXPECT_EQ(reason_of([](wire::CmReq& one) { one.private_data[35] = std::byte{9}; }, true), wire::kRejConsumer);
  EXPECT_EQ(reason_of([](wire::CmReq& one) { one.private_data[19] = std::byte{9}; }, true), wire::kRejConsumer);
  EXPECT_EQ(reason_of([](wire::CmReq& one) { one.primary.remote_gid[15] = 9; }, true), wire::kRejInvalidGid);
  EXPECT_EQ(reason_of([](wire::CmReq& one) { one.pkey = 0x1234; }, true), wire::kRejInvalidGid);
  EXPECT_EQ(reason_of([](wire::CmReq& one) { one.transport = wire::CmTransport::uc; }, true), wire::kRejConsumer);
}

TEST(CmPassive, drops_requests_beyond_the_backlog_until_one_is_fetched) {
  ScriptedPeer peer;
  peer.listen(1);
  peer.say(peer.request(1, 101));
  const Handle first = peer.one_event(Event::Kind::request).handle;
  peer.say(peer.request(2, 102));
  peer.told_nothing();
  peer.hear_nothing();
  peer.engine.note_fetched(first);
  peer.say(peer.request(2, 102));
  peer.one_event(Event::Kind::request);
}

TEST(CmPassive, destroying_tells_the_peer_what_it_must_know) {
  ScriptedPeer peer;
  peer.listen();
  peer.say(peer.request());
  peer.engine.destroy(peer.now, peer.one_event(Event::Kind::request).handle);
  EXPECT_EQ(peer.hear<wire::CmRej>().reason, wire::kRejConsumer);
  EXPECT_EQ(peer.engine.size(), 0U);

  ScriptedPeer other;
  other.engine.destroy(other.now, other.accepted());
  EXPECT_EQ(other.hear<wire::CmRej>().reason, wire::kRejConsumer);

  ScriptedPeer third;
  const Handle ending = third.connected_passively();
  third.say(third.end_of(ending));
  third.engine.destroy(third.now, ending);
  third.hear<wire::CmDrep>();
}

TEST(CmPassive, prefers_the_listener_of_the_address_to_the_wildcard) {
  ScriptedPeer peer;
  peer.listen();
  Listener particular;
  particular.cookie = 2;
  particular.service_id = kService;
  particular.is_any = false;
  particular.address = kOwnAddress;
  peer.engine.listen(particular);
  peer.say(peer.request());
  EXPECT_EQ(peer.one_event(Event::Kind::request).listener, 2U);
}

TEST(CmPassive, an_ipv6_wildcard_takes_ipv4_unless_told_not_to) {
  for (const bool is_family_only : {false, true}) {
    ScriptedPeer peer;
    Listener listener;
    listener.cookie = 1;
    listener.service_id = kService;
    listener.is_family_only = is_family_only;
    peer.engine.listen(listener);
    peer.say(peer.request());
    EXPECT_EQ(peer.told().size(), is_family_only ? 0U : 1U);
  }
}

TEST(CmPassive, a_killed_peer_is_a_disconnected_one) {
  ScriptedPeer peer;
  peer.listen();
  Arrival arrival{peer.path(), 5, {}};
  wire::emit(wire::CmMad{7, peer.request()}, arrival.bytes);
  peer.engine.receive(peer.now, arrival);
  const Handle handle = peer.one_event(Event::Kind::request).handle;
  EXPECT_EQ(peer.engine.accept(peer.now, handle, {}), 0);
  wire::emit(wire::CmMad{7, wire::CmRtu{kPeerId, handle, {}}}, arrival.bytes);
  peer.engine.receive(peer.now, arrival);
  peer.told();
  peer.engine.on_peer_gone(peer.now, 6);
  peer.told_nothing();
  peer.engine.on_peer_gone(peer.now, 5);
  peer.one_event(Event::Kind::disconnected);
  peer.engine.on_peer_gone(peer.now, 5);
  peer.told_nothing();
}

TEST(CmLookup, answers_once_and_repeats_the_answer) {
  ScriptedPeer peer;
  peer.listen();
  wire::CmSidrReq question;
  question.request_id = 77;
  question.service_id = kService;
  wire::emit(wire::CmIpHeader{1, kPeerAddress, kOwnAddress},
             std::span(question.private_data).first<wire::kCmIpHeaderBytes>());
  peer.say(question);
  const Handle handle = peer.one_event(Event::Kind::lookup).handle;
  peer.say(question);
  peer.told_nothing();
  peer.hear_nothing();
  wire::CmSidrRep answer;
  answer.qpn = kOwnQpn;
  EXPECT_EQ(peer.engine.answer(peer.now, handle, answer), 0);
  EXPECT_EQ(peer.hear<wire::CmSidrRep>().request_id, 77U);
  peer.say(question);
  EXPECT_EQ(peer.hear<wire::CmSidrRep>().qpn, kOwnQpn);
  question.request_id = 78;
  question.service_id += 1;
  peer.say(question);
  EXPECT_EQ(peer.hear<wire::CmSidrRep>().status, wire::kSidrUnsupported);
}

TEST(CmEngine, survives_any_bytes) {
  ScriptedPeer peer;
  peer.connected_passively();
  Arrival arrival{peer.path(), kNoSlot, {}};
  uint32_t state = 1;
  for (int round = 0; round < 20000; ++round) {
    wire::emit(wire::MadHeader{}, arrival.bytes);
    for (size_t i = 16; i < arrival.bytes.size(); ++i) {
      state = state * 1664525 + 1013904223;
      arrival.bytes[i] = static_cast<std::byte>(state >> 24);
    }
    arrival.bytes[16] = std::byte{0};
    arrival.bytes[17] = static_cast<std::byte>(0x10 + round % 9);
    peer.engine.receive(peer.now, arrival);
    peer.pass(kMs);
    peer.engine.take_outgoing();
    peer.told();
  }
}

}  // namespace
}  // namespace ringbolt::cm
