// What comes from another rank, or from a stranger, at the rendezvous: frames in any pieces, the payloads of the
// handshake, MLX's files and lists of hosts. What parses is written back the same.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "bootstrap/environment.h"
#include "bootstrap/frame.h"
#include "bootstrap/handshake.h"
#include "bootstrap/mlx_hostfile.h"
#include "input.h"

namespace {

using namespace ringbolt::bootstrap;

void feed(FrameReader& reader, std::span<const std::byte> bytes, size_t piece) {
  while (!bytes.empty()) {
    const auto space = reader.space();
    RINGBOLT_ASSERT(!space.empty());
    const size_t n = std::min({space.size(), bytes.size(), piece});
    std::copy_n(bytes.begin(), n, space.begin());
    reader.filled(n);
    bytes = bytes.subspan(n);
    for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
      RINGBOLT_ASSERT((*frame)->payload.size() == (*frame)->header.length);
    }
  }
}

void check_payloads(std::span<const std::byte> in) {
  if (const auto hello = parse_hello(in);
      hello && hello->first_version <= kVersion && hello->last_version >= kVersion) {
    const auto out = emit(*hello);
    RINGBOLT_ASSERT(std::equal(out.begin(), out.end(), in.begin(), in.end()));
  }
  if (const auto challenge = parse_challenge(in)) {
    const auto out = emit(*challenge);
    RINGBOLT_ASSERT(std::equal(out.begin(), out.end(), in.begin(), in.end()));
  }
  if (const auto header = parse_header(in, kMaxFromRootBytes)) {
    const auto out = emit(*header);
    RINGBOLT_ASSERT(std::equal(out.begin(), out.end(), in.begin()));
  }
}

void check_handshakes(std::span<const std::byte> in) {
  static const Config config{.n_ranks = 4, .secret = "s"};
  static const Key key = key_of("s");
  Connection nowhere;
  AnsweringHandshake answering(config, key);
  CallingHandshake calling(config, key, 1);
  const uint8_t first = in.empty() ? 0 : static_cast<uint8_t>(in[0]);
  for (int step = 0; step < 3; ++step) {
    const Frame frame{{static_cast<FrameType>(1 + (first >> (2 * step)) % 5), 0, 0, 0, 0}, {in.begin(), in.end()}};
    answering.take(frame, nowhere);
    calling.take(frame, nowhere);
    RINGBOLT_ASSERT(!answering.is_proven());
  }
}

void check_texts(std::string_view text) {
  if (const auto devices = parse_jaccl_devices(text)) {
    RINGBOLT_ASSERT(parse_jaccl_devices(to_text(*devices)).value() == *devices);
    warnings(*devices);
  }
  if (const auto file = parse_mlx_hostfile(text)) {
    RINGBOLT_ASSERT(parse_mlx_hostfile(to_text(*file)).value() == *file);
  }
  if (const auto file = parse_mlx_ringfile(text)) {
    RINGBOLT_ASSERT(parse_mlx_ringfile(to_text(*file)).value() == *file);
  }
  if (const auto at = parse_host_port(text)) {
    RINGBOLT_ASSERT(parse_host_port(to_text(*at)).value() == *at);
  }
  static_cast<void>(first_host_of(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  prepare_cryptography();
  const auto in = std::as_bytes(std::span(data, size));
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1} << 20}) {
    FrameReader stranger;
    feed(stranger, in, piece);
    FrameReader member;
    member.authenticate(key_of("s"), kMaxFromRootBytes);
    feed(member, in, piece);
  }
  check_payloads(in);
  check_handshakes(in);
  check_texts(ringbolt::fuzz::as_text(data, size));
  return 0;
}
