#pragma once

// Hot path: no allocation, lock, clock, virtual call or I/O per packet.

#include <atomic>
#include <cstdint>
#include <optional>

#include "wire/greeting.h"
#include "wire/packet.h"

namespace ringbolt::transport {

/// What keeps strangers out of a connection between two own peers, of RC or UC: every packet carries a token that its
/// receiver has made up, and given out in greetings to the peer's address alone. Who cannot read what goes there does
/// not know it, whatever source address he writes into his packets; a greeting too is believed only when it repeats the
/// token of whom it greets. With everybody else, and until the greetings have passed, packets go as the standard has
/// them.
///
/// begin() before any other call. admits() and hear() are for whoever takes packets in, in the order of their arrival;
/// take() and greeting() for the requesting half, which must have sent all its earlier packets; peer_token() for both
/// halves. Each of the three may be a thread of its own.
/// Relaxed throughout: each word decides by itself, and whoever goes by an old one lets a packet pass, or be asked for
/// again, that came at that very moment.
class Seal {
 public:
  /// A connection begins. Packets to us are to carry `own_token`, a number that nobody can guess; 0: nobody else can
  /// send here, and nothing is sealed.
  void begin(uint64_t own_token);

  /// Whether a packet, which is no greeting, may come from the peer.
  bool admits(const wire::PacketView& packet) {
    const wire::Bth& bth = packet.headers.bth;
    if (!bth.is_sealed) {
      return !is_required_.load(std::memory_order_relaxed);
    }
    const uint64_t own_token = own_token_.load(std::memory_order_relaxed);
    if (packet.headers.seal != own_token || own_token == 0) {
      return false;
    }
    if (!is_required_.load(std::memory_order_relaxed)) {
      is_required_.store(true, std::memory_order_relaxed);
    }
    return true;
  }
  /// Whether the acknowledgement that an admitted packet carries may come from the peer: behind its seal alone. A
  /// greeting has none, whatever its bits say, and is let in without.
  static bool admits_carried(const wire::PacketView& admitted) {
    const wire::Bth& bth = admitted.headers.bth;
    return bth.carries_ack && bth.is_sealed && bth.opcode != wire::kGreeting;
  }
  void hear(const wire::Greeting& greeting);

  /// The same greeting, later: what is to be answered.
  std::optional<wire::Greeting> take(const wire::Greeting& greeting);
  /// Of our own accord.
  wire::Greeting greeting() const;
  /// What our packets to the peer are to be sealed with; 0: it is none of ours, as far as we know.
  uint64_t peer_token() const { return peer_token_.load(std::memory_order_relaxed); }
  /// It has said that it seals what it sends: there is nothing more to agree upon.
  bool is_agreed() const { return is_required_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> own_token_{0};
  std::atomic<uint64_t> peer_token_{0};
  /// Of answers, too: those that the peer's other half sent at that very moment are asked for again, or made up for by
  /// the next; the one after which there is no next, a refusal, goes out twice (WireResponder::send_answers).
  std::atomic<bool> is_required_{false};
};

/// Before a packet is written: how it is to be sealed.
inline void seal(wire::Headers& headers, uint64_t peer_token) {
  headers.bth.is_sealed = peer_token != 0;
  headers.seal = peer_token;
}

}  // namespace ringbolt::transport
