// A hostile peer at the other end of a stream. First any bytes at all: nothing may come of them but what a checksum
// vouches for. Then frames with good checksums whose fields the fuzzer chooses, after a handshake as it should be: what is
// delivered was sent, once and in order, and what our end keeps and says stays bounded.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "input.h"
#include "link/stream_link.h"
#include "wire/bytes.h"
#include "wire/stream_frame.h"
#include "wire/stream_hello.h"

namespace {

using namespace ringbolt;

constexpr uint32_t kWindow = 8;
constexpr size_t kOutputBytes = 64 * 1024;

link::StreamLink make_link() {
  link::StreamLink::Options options;
  options.rails = 2;
  options.incarnation = 7;
  options.window_packets = kWindow;
  options.window_frames = 8;
  options.output_bytes = kOutputBytes;
  return link::StreamLink(options);
}

/// Our end, and what the peer knows of it.
class Victim {
 public:
  explicit Victim() : link_(make_link()) {
    link_.open(0, now_);
    link_.open(1, now_);
  }

  /// Packets that came of it.
  size_t hear(size_t rail, std::span<const std::byte> bytes) {
    size_t packets = 0;
    while (!bytes.empty()) {
      const auto room = link_.input(rail);
      RINGBOLT_ASSERT(!room.empty());
      const size_t count = std::min(room.size(), bytes.size());
      std::copy_n(bytes.begin(), count, room.begin());
      link_.received(rail, count);
      bytes = bytes.subspan(count);
      while (const auto packet = link_.next_packet(rail, now_)) {
        RINGBOLT_ASSERT(packet->size() <= link::kMaxStreamPacketBytes);
        ++packets;
      }
    }
    RINGBOLT_ASSERT(link_.counters().kept_packets <= kWindow && link_.output(rail).size() <= kOutputBytes);
    return packets;
  }

  /// Reads what our end says; remembers its newest epoch, and how far it may be sent to.
  void listen(size_t rail) {
    while (!link_.output(rail).empty()) {
      const auto bytes = link_.output(rail);
      const auto header = wire::parse_stream_header(bytes);
      RINGBOLT_ASSERT(header && link_.output_frame_bytes(rail) == wire::kStreamHeaderBytes + header->length);
      heard[rail] = *header;
      link_.written(rail, wire::kStreamHeaderBytes + header->length);
    }
  }
  void wait(uint64_t time_ns) { link_.tick(now_ += time_ns); }
  link::StreamLink& link() { return link_; }

  std::array<wire::StreamHeader, 2> heard;

 private:
  uint64_t now_ = 1;
  link::StreamLink link_;
};

void say(Victim& victim, size_t rail, const wire::StreamHeader& header, std::span<const std::byte> payload,
         size_t& packets) {
  std::array<std::byte, wire::kStreamFrameBytes> frame;
  packets += victim.hear(rail, std::span(frame).first(wire::emit(header, payload, frame)));
  victim.listen(rail);
}

wire::StreamHeader greet(Victim& victim, size_t rail, uint32_t epoch) {
  size_t packets = 0;
  victim.listen(rail);
  wire::StreamHeader header;
  header.epoch = epoch;
  header.credit = 4;
  header.type = wire::StreamType::hello;
  std::array<std::byte, wire::kStreamHelloBytes> hello;
  wire::StreamHello content;
  content.incarnation = 1;
  wire::emit(content, hello);
  say(victim, rail, header, hello, packets);
  header.type = wire::StreamType::hello_ack;
  std::array<std::byte, wire::kStreamHelloAckBytes> echo;
  wire::put_le(std::span<std::byte>(echo), 0, victim.heard[rail].epoch);
  say(victim, rail, header, echo, packets);
  header.type = wire::StreamType::ready;
  say(victim, rail, header, {}, packets);
  RINGBOLT_ASSERT(packets == 0 && victim.link().state(rail) == link::StreamSession::State::ready);
  return header;
}

/// Each command: what to say, on which rail, how far from what is right.
void converse(fuzz::Input& input) {
  Victim victim;
  std::array<wire::StreamHeader, 2> next{greet(victim, 0, 100), greet(victim, 1, 200)};
  std::vector<std::byte> payload(wire::kStreamPayloadBytes);
  uint64_t number = 0;
  size_t sent = 0;
  size_t packets = 0;
  for (int i = 0; i < 400 && !input.is_empty(); ++i) {
    const auto what = input.take<uint8_t>();
    const size_t rail = what & 1U;
    wire::StreamHeader& header = next[rail];
    if (what % 16 == 15) {
      victim.wait(uint64_t{input.take<uint16_t>()} * 100'000);
      victim.listen(0);
      victim.listen(1);
      continue;
    }
    header.type = static_cast<wire::StreamType>(1 + (what >> 1U) % 7);
    header.is_last = (what & 0x10U) != 0;
    header.sequence += static_cast<uint32_t>(input.take<int8_t>() / 64);
    header.expected += static_cast<uint32_t>(input.take<int8_t>() / 64);
    header.credit += static_cast<uint32_t>(input.take<int8_t>() / 16);
    number += static_cast<uint64_t>(int64_t{input.take<int8_t>() / 32});
    wire::put_le(std::span(payload), 0, number);
    const size_t length = std::min<size_t>(input.take<uint16_t>() % 5000, payload.size());
    ++sent;
    say(victim, rail, header, std::span(payload).first(length), packets);
    header.sequence += header.type == wire::StreamType::data ? 1U : 0U;
    number += header.type == wire::StreamType::data && header.is_last ? 1U : 0U;
    if (victim.link().state(rail) != link::StreamSession::State::ready && (what & 0x20U) != 0) {
      header = greet(victim, rail, header.epoch + 1);
    }
  }
  RINGBOLT_ASSERT(packets <= sent);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Victim raw;
  RINGBOLT_ASSERT(raw.hear(0, std::as_bytes(std::span(data, size))) == 0 && !raw.link().is_up());
  Victim ready;
  greet(ready, 0, 100);
  static_cast<void>(ready.hear(0, std::as_bytes(std::span(data, size))));
  fuzz::Input input(data, size);
  converse(input);
  return 0;
}
