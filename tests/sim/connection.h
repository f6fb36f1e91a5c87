#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory_host.h"
#include "network.h"
#include "transport/rc_requester.h"
#include "transport/rc_responder.h"
#include "transport/seal.h"
#include "transport/uc_requester.h"
#include "transport/uc_responder.h"
#include "wire/packet.h"

namespace ringbolt::sim {

/// How one end of a connection keeps strangers out, and greets until all is agreed.
class Gate {
 public:
  explicit Gate(uint64_t token) { seal_.begin(token); }

  transport::Seal& seal() { return seal_; }
  /// Whether the packet may come from the peer, as QueuePair::arrive() has it. A greeting may, and is taken in here.
  bool lets_in(const wire::PacketView& packet) {
    if (packet.headers.bth.opcode != wire::kGreeting) {
      const bool is_admitted = seal_.admits(packet);
      knows_sender_ |= is_admitted && packet.headers.bth.is_sealed;
      return is_admitted;
    }
    if (const auto greeting = wire::parse_greeting(packet.payload)) {
      seal_.hear(*greeting);
      if (const auto answer = seal_.take(*greeting)) {
        due_.push_back(*answer);
      }
    }
    return true;
  }
  /// The next greeting to send.
  bool next_packet(transport::OutPacket& out) {
    if (due_.empty()) {
      return false;
    }
    out = {};
    out.headers.bth.opcode = wire::kGreeting;
    out.payload = transport::OutPacket::Payload::bytes;
    out.length = wire::kGreetingBytes;
    wire::emit(due_.back(), out.bytes);
    due_.pop_back();
    return true;
  }
  uint64_t next_deadline_ns() const { return seal_.is_agreed() ? UINT64_MAX : next_greeting_ns_; }
  void on_timer(uint64_t now_ns) {
    if (now_ns >= next_deadline_ns()) {
      due_.push_back(seal_.greeting());
      next_greeting_ns_ = now_ns + kPauseNs;
    }
  }
  bool knows_sender() const { return knows_sender_; }

 private:
  static constexpr uint64_t kPauseNs = 500'000;
  transport::Seal seal_;
  std::vector<wire::Greeting> due_;
  uint64_t next_greeting_ns_ = 0;
  bool knows_sender_ = false;
};

/// The engines of one end of an RC connection.
struct RcEngines {
  transport::RcRequester requester;
  transport::RcResponder responder;
  std::unique_ptr<Gate> gate{};  ///< null: anybody may send, and both ends know what they need

  void on_packet(uint64_t now_ns, const wire::PacketView& packet, MemoryHost& host) {
    if (gate && !gate->lets_in(packet)) {
      return;
    }
    if (gate && gate->knows_sender()) {
      responder.enable_selective();
    }
    if (gate && transport::Seal::admits_carried(packet)) {
      requester.on_packet(now_ns, {wire::carried_acknowledgement(packet.headers), {}}, host);
    }
    if (packet.headers.bth.opcode == wire::kGreeting) {
      return;
    }
    if (wire::is_response(packet.headers.bth.opcode)) {
      requester.on_packet(now_ns, packet, host);
    } else {
      responder.on_packet(now_ns, packet, host);
    }
  }
  bool next_packet(uint64_t now_ns, transport::OutPacket& out) {
    if (!gate) {
      return responder.next_packet(now_ns, out) || requester.next_packet(now_ns, out);
    }
    const uint64_t peer_token = gate->seal().peer_token();
    if (peer_token != 0) {
      requester.enable_selective();
    }
    if (gate->next_packet(out)) {
      return true;
    }
    // As WireResponder::note_answer() has it: an acknowledgement leaves with a request that is about to.
    const bool is_acknowledgement = responder.has_acknowledgement();
    const bool has_packet = responder.next_packet(now_ns, out) || requester.next_packet(now_ns, out);
    transport::OutPacket request;
    if (is_acknowledgement && peer_token != 0 && requester.next_packet(now_ns, request)) {
      request.headers.bth.carries_ack = true;
      request.headers.carried_ack = {out.headers.bth.psn, out.headers.aeth};
      out = request;
    }
    transport::seal(out.headers, peer_token);
    return has_packet;
  }
  uint64_t next_deadline_ns() const {
    return std::min(requester.next_deadline_ns(), gate ? gate->next_deadline_ns() : UINT64_MAX);
  }
  void on_timer(uint64_t now_ns) {
    requester.on_timer(now_ns);
    if (gate) {
      gate->on_timer(now_ns);
    }
  }
  bool has_failed() const { return requester.failure().has_value(); }
};

/// The engines of one end of a UC connection.
struct UcEngines {
  transport::UcRequester requester;
  transport::UcResponder responder;

  void on_packet(uint64_t now_ns, const wire::PacketView& packet, MemoryHost& host) {
    responder.on_packet(now_ns, packet, host);
  }
  bool next_packet(uint64_t now_ns, transport::OutPacket& out) { return requester.next_packet(now_ns, out); }
  uint64_t next_deadline_ns() const { return UINT64_MAX; }
  void on_timer(uint64_t) {}
  bool has_failed() const { return false; }
};

/// One end: engines, memory and the list of what is to be done.
template <class Engines>
struct End {
  Engines engines;
  MemoryHost host;
  const Workload& outbound;
  uint32_t queue_depth;
  size_t submitted = 0;
  uint32_t checked = 0;        ///< operations whose completion was looked at
  uint64_t post_every_ns = 0;  ///< receives are posted one at a time; 0: all at once, at the beginning
  uint64_t next_post_ns = UINT64_MAX;

  void submit_some() {
    while (submitted < outbound.operations.size() && engines.requester.can_submit()) {
      engines.requester.submit(outbound.operations[submitted++]);
    }
  }
  bool is_done() const { return submitted == outbound.operations.size() && engines.requester.is_idle(); }
};

/// Runs both ends over the network until both are done, one has failed, or `deadline_ns`. Returns the time.
/// `disturb(now_ns)` is called whenever something happens.
template <class Engines, class Disturb>
uint64_t run(End<Engines> (&ends)[2], Network& network, uint64_t deadline_ns, Disturb&& disturb) {
  uint64_t now_ns = 0;
  transport::OutPacket out;
  const auto pump = [&](uint32_t side) {
    End<Engines>& end = ends[side];
    do {
      end.submit_some();
      while (end.engines.next_packet(now_ns, out)) {
        network.send(now_ns, side, out, end.host.payload(out));
      }
      while (end.checked != end.engines.requester.completed()) {
        end.host.check_complete(end.checked++, ends[1 - side].host);
      }
    } while (end.submitted < end.outbound.operations.size() && end.engines.requester.can_submit());
  };
  while (now_ns < deadline_ns && !(ends[0].engines.has_failed() || ends[1].engines.has_failed())) {
    pump(0);
    pump(1);
    const bool is_over = ends[0].is_done() && ends[1].is_done() && network.next_arrival_ns() == UINT64_MAX;
    if (is_over || !ends[0].host.complaint().empty() || !ends[1].host.complaint().empty()) {
      break;
    }
    uint64_t next_ns = network.next_arrival_ns();
    for (const End<Engines>& end : ends) {
      next_ns = std::min({next_ns, end.engines.next_deadline_ns(), end.next_post_ns});
    }
    now_ns = std::max(now_ns, next_ns);
    if (now_ns >= deadline_ns) {
      break;
    }
    while (auto arrived = network.receive(now_ns)) {
      if (const auto packet = wire::parse(arrived->bytes)) {
        ends[arrived->to_side].engines.on_packet(now_ns, *packet, ends[arrived->to_side].host);
      }
    }
    disturb(now_ns);
    for (End<Engines>& end : ends) {
      if (end.engines.next_deadline_ns() <= now_ns) {
        end.engines.on_timer(now_ns);
      }
      if (end.next_post_ns <= now_ns) {
        end.host.post_receives(end.host.posted() + 1);
        end.next_post_ns = end.host.has_all_posted() ? UINT64_MAX : now_ns + end.post_every_ns;
      }
    }
  }
  return now_ns;
}

template <class Engines>
uint64_t run(End<Engines> (&ends)[2], Network& network, uint64_t deadline_ns) {
  return run(ends, network, deadline_ns, [](uint64_t) {});
}

}  // namespace ringbolt::sim
