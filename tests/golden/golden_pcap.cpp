// golden_pcap FILE
//
// Writes packets of ours into a capture file: the golden ones, taken apart and put together again, and one of every
// opcode over IPv4 and IPv6 with payloads of several lengths. For each it prints a line with what is in it, as
// "<number>\t<name>\t<field>=<value>\t...", by Wireshark's names, for golden_test.py to compare.

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "fields.h"
#include "pcap.h"
#include "wire/golden_support.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

namespace {

using namespace ringbolt;
using golden::Fields;
using wire::golden::Bytes;
using wire::golden::Datagram;

/// BTH to ICRC.
Bytes packet_of(const wire::PacketView& view, const wire::Flow& flow, uint16_t id) {
  Bytes packet(wire::kMaxHeaderBytes);
  packet.resize(wire::emit(view.headers, packet));
  packet.insert(packet.end(), view.payload.begin(), view.payload.end());
  packet.resize(packet.size() + view.headers.bth.pad_count + wire::kIcrcBytes);
  wire::put_icrc(flow, id, packet);
  return packet;
}

uint16_t ipv4_checksum(std::span<const std::byte> header) {
  uint32_t sum = 0;
  for (size_t at = 0; at < header.size(); at += 2) {
    sum += wire::get_be<uint16_t>(header, at);
  }
  return static_cast<uint16_t>(~(sum + (sum >> 16)));  // one carry is enough for ten words
}

Bytes ip_header(const wire::Flow& flow, uint16_t id, size_t udp_length) {
  if (!wire::is_ipv4(flow)) {
    Bytes header = wire::golden::from_hex("60000000 0000 11 40");
    wire::put_be(header, 4, static_cast<uint16_t>(udp_length));
    header.resize(40);
    wire::put_bytes(header, 8, flow.source);
    wire::put_bytes(header, 24, flow.destination);
    return header;
  }
  Bytes header = wire::golden::from_hex("4500 0000 0000 4000 4011 0000");
  wire::put_be(header, 2, static_cast<uint16_t>(20 + udp_length));
  wire::put_be(header, 4, id);
  header.resize(20);
  std::memcpy(header.data() + 12, flow.source.data() + 12, 4);
  std::memcpy(header.data() + 16, flow.destination.data() + 12, 4);
  wire::put_be(header, 10, ipv4_checksum(header));
  return header;
}

Bytes datagram_of(const wire::Flow& flow, uint16_t id, const Bytes& packet) {
  Bytes datagram = ip_header(flow, id, 8 + packet.size());
  const size_t udp = datagram.size();
  datagram.resize(udp + 8);
  wire::put_be(datagram, udp, flow.source_port);
  wire::put_be(datagram, udp + 2, flow.destination_port);
  wire::put_be(datagram, udp + 4, static_cast<uint16_t>(8 + packet.size()));
  datagram.insert(datagram.end(), packet.begin(), packet.end());
  return datagram;
}

class Capture {
 public:
  explicit Capture(const char* path) : writer_(path) {}

  void add(const std::string& name, std::span<const std::byte> datagram, const wire::PacketView& view) {
    writer_.add(datagram);
    Fields fields = golden::fields_of(view);
    if (view.headers.deth.qkey == wire::kGsiQkey && view.payload.size() == wire::kMadBytes) {
      if (const auto mad = wire::parse_cm(view.payload.first<wire::kMadBytes>())) {
        fields.merge(golden::fields_of(*mad));
      }
    }
    fmt::print("{}\t{}", ++count_, name);
    for (const auto& [field, value] : fields) {
      fmt::print("\t{}={}", field, value);
    }
    fmt::print("\n");
  }

  bool close() { return writer_.close() && std::fflush(stdout) == 0; }

 private:
  golden::PcapWriter writer_;
  int count_ = 0;
};

bool add_golden(Capture& capture) {
  for (const Datagram& datagram : wire::golden::all_datagrams()) {
    const auto view = wire::parse(datagram.packet);
    if (!view || packet_of(*view, datagram.flow, datagram.ipv4_id) != datagram.packet) {
      fmt::print(stderr, "golden packet {} does not come out as it went in\n", datagram.name);
      return false;
    }
    capture.add(std::string("golden: ") + datagram.name, datagram.bytes, *view);
  }
  return true;
}

wire::Headers distinct_headers(uint8_t opcode, size_t payload_bytes) {
  wire::Headers headers;
  headers.bth = {.opcode = opcode,
                 .is_solicited = wire::ends_message(opcode) && wire::is_send(opcode),
                 .pad_count = static_cast<uint8_t>(wire::pad_bytes(payload_bytes)),
                 .dest_qp = 0x123456,
                 .wants_ack = wire::ends_message(opcode) && wire::is_request(opcode),
                 .psn = 0x654321};
  headers.reth = {.address = 0x1122334455667788, .key = 0xa1a2a3a4, .length = static_cast<uint32_t>(payload_bytes)};
  headers.atomic = {.address = 0x2122334455667788,
                    .key = 0xb1b2b3b4,
                    .swap_or_add = 0x0102030405060708,
                    .compare = 0x1112131415161718};
  headers.aeth = {.syndrome = 0x1f, .msn = 0xabcdef};
  headers.atomic_ack = 0x3132333435363738;
  headers.deth = {.qkey = 0x11223344, .source_qp = 0x765432};
  headers.immediate = 0x04030201;
  headers.invalidate_key = 0xc1c2c3c4;
  return headers;
}

void add_every_opcode(Capture& capture) {
  const wire::Flow v4{wire::ipv4_address(10, 77, 3, 1), wire::ipv4_address(10, 77, 3, 2), 0xc234, wire::kRocePort};
  const wire::Flow v6{{0xfd, 0x77, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1},
                      {0xfd, 0x77, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2},
                      0xc234,
                      wire::kRocePort};
  for (unsigned value = 0; value < 256; ++value) {
    const auto opcode = static_cast<uint8_t>(value);
    if (!wire::is_known(opcode)) {
      continue;
    }
    for (const size_t size : {0U, 1U, 2U, 3U, 256U, 4096U}) {
      if (size != 0 && !wire::has_payload(opcode)) {
        break;
      }
      Bytes payload(size);
      for (size_t i = 0; i < size; ++i) {
        payload[i] = static_cast<std::byte>(i * 13 + i / 256 + 1);
      }
      const wire::PacketView view{distinct_headers(opcode, size), payload};
      uint16_t id = 0;
      for (const wire::Flow& flow : {v4, v4, v6}) {  // IPv4 with identification 0 and 1, as segments of one send
        const std::string name =
            fmt::format("opcode {:#04x}, {} bytes, {}", opcode, size, wire::is_ipv4(flow) ? "IPv4" : "IPv6");
        capture.add(name, datagram_of(flow, id, packet_of(view, flow, id)), view);
        ++id;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: golden_pcap FILE\n");
    return 2;
  }
  Capture capture(argv[1]);
  if (!add_golden(capture)) {
    return 1;
  }
  add_every_opcode(capture);
  if (!capture.close()) {
    fmt::print(stderr, "{}: cannot be written\n", argv[1]);
    return 1;
  }
  return 0;
}
