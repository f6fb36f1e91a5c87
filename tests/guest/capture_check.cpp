// Reads captured frames with the codecs of src/wire and writes them again: every frame must come out byte for byte.
//
//   capture_check FILE...      captures as text (referee/capture.py); "-" stands for stdin
//
// Prints a line per frame that does not, and a count. Exit status 0: all do; 1: some don't; 2: nothing to check.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "wire/cm_message.h"
#include "wire/golden_support.h"
#include "wire/icrc.h"
#include "wire/lifeline.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace ringbolt::guest {
namespace {

using wire::golden::Bytes;

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpv4AndUdpBytes = 28;
constexpr size_t kIpv6AndUdpBytes = 48;

/// A QP 1 packet's management datagram, parsed and emitted anew; empty when that fails.
Bytes rewrite_mad(std::span<const std::byte> payload) {
  if (payload.size() != wire::kMadBytes) return {};
  const auto mad = payload.first<wire::kMadBytes>();
  Bytes out(wire::kMadBytes);
  if (const auto offer = wire::parse_lifeline_offer(mad)) {  // which the kernel drops
    emit(*offer, wire::MadOut(out.data(), wire::kMadBytes));
    return out;
  }
  const auto message = wire::parse_cm(mad);
  if (!message) return {};
  emit(*message, wire::MadOut(out.data(), wire::kMadBytes));
  return out;
}

/// The packet (BTH to ICRC), put together anew from what the codecs read.
Bytes rewrite(const wire::PacketView& view, const wire::golden::Datagram& datagram, std::string& problem) {
  const wire::Bth& bth = view.headers.bth;
  Bytes out(wire::header_bytes(bth.opcode));
  out.resize(emit(view.headers, out));
  Bytes payload(view.payload.begin(), view.payload.end());
  if (wire::has_deth(bth.opcode) && bth.dest_qp == wire::kGsiQpn) {
    payload = rewrite_mad(view.payload);
    if (payload.empty()) problem = "is no CM message nor offer of a lifeline that we can read";
  }
  out.insert(out.end(), payload.begin(), payload.end());
  out.resize(out.size() + bth.pad_count + wire::kIcrcBytes);
  put_icrc(datagram.flow, datagram.ipv4_id, out);
  return out;
}

/// What is wrong with a frame; empty when nothing is.
std::string problem_of(const Bytes& frame) {
  if (frame.size() < kEthernetBytes + kIpv4AndUdpBytes) return "is too short";
  const bool is_ipv6 = std::to_integer<unsigned>(frame[kEthernetBytes]) >> 4 == 6;
  if (is_ipv6 && frame.size() < kEthernetBytes + kIpv6AndUdpBytes) return "is too short";
  const auto datagram = wire::golden::split("", Bytes(frame.begin() + kEthernetBytes, frame.end()));
  const auto view = wire::parse(datagram.packet);
  if (!view) return "is refused by the parser";
  if (!check_icrc(datagram.flow, datagram.packet)) return "has an ICRC that we find wrong";
  std::string problem;
  const Bytes again = rewrite(*view, datagram, problem);
  if (!problem.empty()) return problem;
  if (again.size() != datagram.packet.size()) return "changes its length when written again";
  const auto [ours, theirs] = std::mismatch(again.begin(), again.end(), datagram.packet.begin());
  return ours == again.end() ? "" : "differs from byte " + std::to_string(ours - again.begin()) + " of its BTH on";
}

struct Counts {
  size_t frames = 0;
  size_t problems = 0;
};

void check(std::istream& in, const std::string& name, Counts& counts) {
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const size_t gap = line.find(' ');
    if (line.starts_with('#') || gap == std::string::npos) continue;
    ++counts.frames;
    const std::string problem = problem_of(wire::golden::from_hex(std::string_view(line).substr(gap + 1)));
    if (problem.empty()) continue;
    ++counts.problems;
    std::printf("%s:%zu: the frame %s\n", name.c_str(), number, problem.c_str());
  }
}

}  // namespace
}  // namespace ringbolt::guest

int main(int argc, char** argv) {
  ringbolt::guest::Counts counts;
  for (int index = 1; index < argc; ++index) {
    const std::string name = argv[index];
    if (name == "-") {
      ringbolt::guest::check(std::cin, "stdin", counts);
      continue;
    }
    std::ifstream file(name);
    if (!file) std::printf("%s: can't be read\n", name.c_str());
    ringbolt::guest::check(file, name, counts);
  }
  std::printf("%zu of %zu frames are read and written again byte for byte\n", counts.frames - counts.problems,
              counts.frames);
  return counts.frames == 0 ? 2 : counts.problems == 0 ? 0 : 1;
}
