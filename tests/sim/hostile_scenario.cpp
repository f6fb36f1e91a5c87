#include <fmt/format.h>

#include <array>

#include "connection.h"
#include "scenario.h"

namespace ringbolt::sim {
namespace {

constexpr uint32_t kMtuBytes = 256;
constexpr uint32_t kOperations = 30;

/// A packet of any opcode with random fields; its PSN lies `distance` from `psn`.
wire::PacketView forge(Random& random, uint32_t psn, std::span<const std::byte> bytes) {
  constexpr std::array<uint8_t, 27> kOpcodes{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                             0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
                                             0x12, 0x13, 0x14, 0x16, 0x17, 0x24, 0x2a, 0xc1, wire::kSelectiveAck};
  constexpr std::array<uint8_t, 6> kSyndromes{0x1f, 0x2a, 0x60, 0x61, 0x62, 0x63};
  constexpr std::array<size_t, 6> kLengths{0, 1, 32, kMtuBytes - 1, kMtuBytes, 2 * kMtuBytes};
  wire::PacketView packet;
  wire::Headers& headers = packet.headers;
  headers.bth.opcode = kOpcodes[random.below(kOpcodes.size())];
  headers.bth.psn = psn & wire::kPsnMask;
  headers.bth.wants_ack = random.one_in(2);
  headers.aeth = {kSyndromes[random.below(kSyndromes.size())], static_cast<uint32_t>(random.below(1U << 24))};
  const uint64_t address = random.one_in(4) ? random.next() : kRegionAddress + random.below(1U << 16);
  const uint32_t key = random.one_in(4) ? kForeignKey : kRegionKey;
  headers.reth = {address, key, static_cast<uint32_t>(random.one_in(4) ? random.next() : random.below(1U << 16))};
  headers.atomic = {address, key, random.next(), random.next()};
  headers.invalidate_key = kWindowKey;
  packet.payload = bytes.first(wire::has_payload(headers.bth.opcode) ? kLengths[random.below(kLengths.size())] : 0);
  return packet;
}

struct Setup {
  uint32_t psns[2];
  bool is_selective;
  uint64_t tokens[2];  ///< 0: the ends seal nothing
};

RcEngines make_engines(const Setup& setup, uint32_t side) {
  transport::RequesterAttributes requester;
  requester.first_psn = setup.psns[side];
  requester.mtu_bytes = kMtuBytes;
  requester.queue_depth = 16;
  requester.timeout_code = 10;
  requester.max_rd_atomic = 4;
  transport::ResponderAttributes responder;
  responder.first_psn = setup.psns[1 - side];
  responder.mtu_bytes = kMtuBytes;
  responder.max_dest_rd_atomic = 4;
  RcEngines engines{transport::RcRequester(requester), transport::RcResponder(responder)};
  if (setup.tokens[side] != 0) {
    engines.gate = std::make_unique<Gate>(setup.tokens[side]);
  } else if (setup.is_selective) {
    engines.requester.enable_selective();
    engines.responder.enable_selective();
  }
  return engines;
}

/// A greeting with a token, an echo, or both, that are not those of the ends.
wire::Greeting forge_greeting(Random& random, const Setup& setup, uint32_t side) {
  const uint64_t token = random.one_in(2) ? setup.tokens[random.below(2)] ^ (1ULL << random.below(64)) : random.next();
  const uint64_t echo = random.one_in(2) ? setup.tokens[side] ^ (1ULL << random.below(64)) : random.below(2);
  return {random.one_in(2), random.one_in(2), token | 1U, echo};
}

/// What somebody sends who knows addresses, queue pairs and packet numbers, but not what travels between the ends.
void forge_blindly(Random& random, const Setup& setup, uint64_t now_ns, End<RcEngines> (&ends)[2]) {
  const bool is_agreed = ends[0].engines.gate->seal().is_agreed() && ends[1].engines.gate->seal().is_agreed();
  for (uint32_t side = 0; side < 2; ++side) {
    RcEngines& engines = ends[side].engines;
    std::vector<std::byte> bytes(2 * kMtuBytes, static_cast<std::byte>(random.next()));
    // The next number that it expects, those around it, or one that its own requests may have.
    const uint32_t base = random.one_in(2) ? engines.responder.expected_psn() : setup.psns[side];
    wire::PacketView packet = forge(random, base + static_cast<uint32_t>(random.below(300)) - 20, bytes);
    packet.headers.bth.carries_ack = random.one_in(2);
    packet.headers.carried_ack = {(setup.psns[side] + static_cast<uint32_t>(random.below(300)) - 20) & wire::kPsnMask,
                                  {0x1f, static_cast<uint32_t>(random.below(1U << 24))}};
    if (random.one_in(4)) {
      packet.headers.bth.opcode = wire::kGreeting;
      packet.headers.bth.is_sealed = random.one_in(2);  // an acknowledgement in it is none, whatever its bits say
      packet.payload = std::span(bytes).first(wire::kGreetingBytes);
      wire::emit(forge_greeting(random, setup, side), std::span(bytes).first<wire::kGreetingBytes>());
    } else if (random.one_in(2)) {
      transport::seal(packet.headers, setup.tokens[side] ^ (1ULL << random.below(64)));
    } else if (!is_agreed) {
      continue;  // until then anybody who hits the number can send
    }
    engines.on_packet(now_ns, packet, ends[side].host);
  }
}

}  // namespace

Outcome run_hostile(uint64_t seed, bool is_tracing) {
  Random random(seed);
  // Who guesses numbers far from the true ones must not be able to do anything; who knows them can break the
  // connection, as on any wire, but nothing else.
  const bool knows_numbers = random.one_in(2);
  // Between ends that seal what they send, knowing them is not enough.
  const bool is_sealed = knows_numbers && random.one_in(2);
  // Close together, so that what is far from one is far from the other.
  const auto first = static_cast<uint32_t>(random.below(1U << 24));
  const auto second = static_cast<uint32_t>(first + random.below(1024)) & wire::kPsnMask;
  const Setup setup{{first, second}, random.one_in(2), {is_sealed ? random.next() : 0, is_sealed ? random.next() : 0}};
  const Workload work[2] = {make_workload(random, kOperations, kMtuBytes, Kinds::all),
                            make_workload(random, kOperations, kMtuBytes, Kinds::all)};
  End<RcEngines> ends[2] = {{make_engines(setup, 0), MemoryHost(0, work[0], work[1]), work[0], 16},
                            {make_engines(setup, 1), MemoryHost(1, work[1], work[0]), work[1], 16}};
  ends[0].host.post_receives(SIZE_MAX);
  ends[1].host.post_receives(SIZE_MAX);
  Weather weather;
  weather.loss = random.one_in(2) ? 10'000 : 0;
  weather.delay_ns = 20'000;
  Network network(random.next(), weather);
  network.trace(is_tracing);
  std::vector<std::byte> bytes(2 * kMtuBytes);
  const auto attack = [&](uint64_t now_ns) {
    if (is_sealed) {
      forge_blindly(random, setup, now_ns, ends);
      return;
    }
    for (uint32_t side = 0; side < 2; ++side) {
      for (uint64_t i = random.below(8); i > 0; --i) {
        const uint32_t base = random.one_in(2) ? setup.psns[side] : setup.psns[1 - side];
        // All work takes fewer than 2^15 packets.
        const uint64_t distance =
            knows_numbers ? random.below(1024) - 64 : random.between(1U << 16, (1U << 24) - (1U << 16));
        for (std::byte& byte : bytes) {
          byte = static_cast<std::byte>(random.next());
        }
        ends[side].engines.on_packet(now_ns, forge(random, base + static_cast<uint32_t>(distance), bytes),
                                     ends[side].host);
      }
    }
  };
  Outcome outcome;
  outcome.description = fmt::format("hostile, {} the numbers, sealed {}, selective {}, loss {} ppm",
                                    knows_numbers ? "knows" : "guesses", is_sealed, setup.is_selective, weather.loss);
  outcome.virtual_ns = run(ends, network, 5'000'000'000, attack);
  outcome.packets = network.counters().sent;
  for (End<RcEngines>& end : ends) {
    if (knows_numbers && !is_sealed) {
      continue;  // that it got here, without touching what it may not, is all there is to ask
    }
    if (!end.is_done()) {
      outcome.complaint =
          fmt::format("the connection is disturbed: {} of {} operations complete", end.checked, kOperations);
    } else {
      end.host.check_all_executed();
    }
    if (!end.host.complaint().empty()) {
      outcome.complaint = end.host.complaint();
    }
  }
  return outcome;
}

}  // namespace ringbolt::sim
