// Any bytes as what an rsocket is told by its peer: connection data, both datagram headers, and a table of targets.
// What parses is written back the same; what the table says never leads out of what the peer offered.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "input.h"
#include "rsocket/connection_data.h"
#include "rsocket/datagram_headers.h"
#include "rsocket/target_table.h"

namespace {

using namespace ringbolt;
using namespace ringbolt::rsocket;

void check_connection_data(std::span<const std::byte> in) {
  if (const auto parsed = ConnectionData::parse(in)) {
    const auto again = ConnectionData::parse(parsed->emit());
    RINGBOLT_ASSERT(again && *again == *parsed);
    RINGBOLT_ASSERT(round_iomap_entries(parsed->iomap_entries) == parsed->iomap_entries);
  }
}

template <class Header>
void check_header(std::span<const std::byte> in) {
  const auto parsed = Header::parse(in);
  if (!parsed) {
    return;
  }
  RINGBOLT_ASSERT(parsed->bytes() <= Header::kMaxBytes && parsed->bytes() <= in.size());
  std::vector<std::byte> out(parsed->bytes());
  parsed->emit(out);
  const auto again = Header::parse(out);
  RINGBOLT_ASSERT(again);
  std::vector<std::byte> twice(again->bytes());
  again->emit(twice);
  RINGBOLT_ASSERT(twice == out);
}

/// The peer writes whatever it likes into the table while the stream goes on.
void check_table(fuzz::Input input) {
  constexpr uint32_t kIomapEntries = 3;
  alignas(8) std::array<std::byte, kTargets * kTargetBytes + kIomapEntries * kIomapBytes> memory{};
  TargetTable table(memory, kIomapEntries);
  table.begin({input.take<uint64_t>(), input.take<uint32_t>(), input.take<uint32_t>()});
  for (int step = 0; step < 256 && !input.is_empty(); ++step) {
    const auto what = input.take<uint8_t>();
    if (what < 128) {
      const size_t at = what % (memory.size() / 4) * 4;
      const auto word = input.take<uint32_t>();
      std::memcpy(memory.data() + at, &word, sizeof word);
      continue;
    }
    table.take_written();
    if (const RemoteBlock* target = table.current()) {
      RINGBOLT_ASSERT(target->length > 0);
      table.advance(std::min(target->length, 1 + input.take<uint32_t>() % target->length));
    }
    const auto offset = input.take<uint64_t>();
    if (const auto found = table.find(offset)) {
      RINGBOLT_ASSERT(found->length > 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto in = std::as_bytes(std::span(data, size));
  check_connection_data(in);
  check_header<DatagramHeader>(in);
  check_header<GreetingHeader>(in);
  check_table(fuzz::Input(data, size));
  return 0;
}
