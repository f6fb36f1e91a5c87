#pragma once

// For tests: an engine and a peer that says just what the test lets it say.

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "cm/engine.h"
#include "wire/cm_private.h"

namespace ringbolt::cm {

inline constexpr uint64_t kOwnGuid = 0x505400fffe770001;
inline constexpr uint64_t kPeerGuid = 0x505400fffe770002;
inline constexpr wire::Address kOwnAddress = wire::ipv4_address(10, 77, 0, 1);
inline constexpr wire::Address kPeerAddress = wire::ipv4_address(10, 77, 0, 2);
inline constexpr uint64_t kService = wire::cm_service_id(wire::kPortSpaceTcp, 9001);
inline constexpr uint64_t kMs = 1'000'000;
inline constexpr uint32_t kPeerId = 0xcf52bd02;
inline constexpr uint32_t kPeerQpn = 0x13;
inline constexpr uint32_t kOwnQpn = 0x12;

struct OneHost final : Host {
  uint64_t guid(uint32_t) const override { return kOwnGuid; }
  wire::Address first_gid(uint32_t) const override { return kOwnAddress; }
  bool owns_gid(uint32_t, const wire::Address& gid) const override { return gid == kOwnAddress; }
  bool is_local(uint32_t, const wire::Address& address) const override { return address == kOwnAddress; }
  bool routes_back(uint32_t, const wire::Address&, const wire::Address& remote) const override {
    return remote == kPeerAddress;
  }
};

inline constexpr Engine::Seed kSeed{3, 0x1234};

class ScriptedPeer {
 public:
  OneHost host;
  Engine engine{kSeed, host};
  uint64_t now = 1'000'000 * kMs;

  Path path() const { return {0, kOwnAddress, kPeerAddress, 0, 0, 64}; }

  template <class Message>
  void say(const Message& message, uint64_t tid = 7) {
    Arrival arrival{path(), kNoSlot, {}};
    wire::emit(wire::CmMad{tid, message}, arrival.bytes);
    engine.receive(now, arrival);
  }
  /// The messages sent since the last call.
  std::vector<wire::CmMessage> heard() {
    std::vector<wire::CmMessage> all;
    for (const Outgoing& out : engine.take_outgoing()) {
      EXPECT_EQ(out.path.remote, kPeerAddress);
      all.push_back(wire::parse_cm(out.bytes)->message);
    }
    return all;
  }
  /// The one message sent since the last call, which must be a Message.
  template <class Message>
  Message hear() {
    const auto all = heard();
    EXPECT_EQ(all.size(), 1U);
    const auto* message = all.empty() ? nullptr : std::get_if<Message>(&all.front());
    EXPECT_NE(message, nullptr) << "another message, index " << (all.empty() ? 99 : all.front().index());
    return message == nullptr ? Message{} : *message;
  }
  void hear_nothing() { EXPECT_TRUE(heard().empty()); }
  std::vector<Event> told() { return engine.take_events(); }
  Event one_event(Event::Kind kind, int status = 0) {
    const auto all = told();
    EXPECT_EQ(all.size(), 1U);
    const Event event = all.empty() ? Event{} : all.front();
    EXPECT_EQ(event.kind, kind);
    EXPECT_EQ(event.status, status);
    return event;
  }
  void told_nothing() { EXPECT_TRUE(told().empty()); }
  void pass(uint64_t duration_ns) {
    now += duration_ns;
    engine.on_timer(now);
  }

  /// The first wait for an answer, in which a Message comes again early: after 50, 150, 350 ms and so on.
  template <class Message>
  void pass_first_wait(uint64_t wait_ns) {
    uint64_t passed_ns = 0;
    for (uint64_t at_ns = 50 * kMs; at_ns < wait_ns; at_ns = 2 * at_ns + 50 * kMs) {
      pass(at_ns - passed_ns - 1);
      hear_nothing();
      pass(1);
      hear<Message>();
      passed_ns = at_ns;
    }
    pass(wait_ns - passed_ns - 1);
    hear_nothing();
    pass(1);
  }

  /// The active side has asked; its REQ was heard.
  Handle asked() {
    wire::CmReq request;
    request.service_id = kService;
    request.local_qpn = kOwnQpn;
    const Handle handle = engine.connect(now, path(), request);
    EXPECT_EQ(hear<wire::CmReq>().local_id, handle);
    return handle;
  }
  wire::CmRep reply_to(Handle handle) const {
    wire::CmRep reply;
    reply.local_id = kPeerId;
    reply.remote_id = handle;
    reply.local_qpn = kPeerQpn;
    reply.local_guid = kPeerGuid;
    return reply;
  }
  Handle connected_actively() {
    const Handle handle = asked();
    say(reply_to(handle));
    one_event(Event::Kind::response);
    EXPECT_EQ(engine.ready(now, handle), 0);
    hear<wire::CmRtu>();
    return handle;
  }

  void listen(uint32_t backlog = 1024) {
    Listener listener;
    listener.cookie = 1;
    listener.service_id = kService;
    listener.is_ipv4 = true;
    listener.backlog = backlog;
    engine.listen(listener);
  }
  wire::CmReq request(uint32_t id = kPeerId, uint32_t qpn = kPeerQpn) const {
    wire::CmReq message;
    message.local_id = id;
    message.service_id = kService;
    message.local_guid = kPeerGuid;
    message.local_qpn = qpn;
    message.local_cm_timeout = message.remote_cm_timeout = 20;
    message.max_cm_retries = 15;
    message.primary.local_gid = kPeerAddress;
    message.primary.remote_gid = kOwnAddress;
    message.primary.ack_timeout = 19;
    wire::emit(wire::CmIpHeader{36277, kPeerAddress, kOwnAddress},
               std::span(message.private_data).first<wire::kCmIpHeaderBytes>());
    return message;
  }
  /// The passive side has accepted; its REP was heard.
  Handle accepted(uint8_t tries = 15) {
    listen();
    wire::CmReq wanted = request();
    wanted.max_cm_retries = tries;
    say(wanted);
    const Handle handle = one_event(Event::Kind::request).handle;
    wire::CmRep reply;
    reply.local_qpn = kOwnQpn;
    reply.local_guid = kOwnGuid;
    EXPECT_EQ(engine.accept(now, handle, reply), 0);
    hear<wire::CmRep>();
    return handle;
  }
  Handle connected_passively() {
    const Handle handle = accepted();
    say(wire::CmRtu{kPeerId, handle, {}});
    one_event(Event::Kind::established);
    return handle;
  }
  wire::CmDreq end_of(Handle handle) const { return {kPeerId, handle, kOwnQpn, {}}; }
};

}  // namespace ringbolt::cm
