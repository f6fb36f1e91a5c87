#include "trace/trace_file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable.h"

namespace ringbolt::trace {
namespace {

/// Above those of ibv_qp_type that are queue pairs of the specification.
constexpr uint8_t kMostTypes = 16;

template <size_t kSize>
std::string text_of(const std::array<char, kSize>& text) {
  constexpr bool kKeepsLines = true;
  return base::printable({text.data(), ::strnlen(text.data(), kSize)}, '?', kKeepsLines);  // anybody may have made it
}

/// A copy, word by word: the file may be written to meanwhile.
template <class What>
What copy_at(std::span<const std::byte> bytes, size_t at) {
  What copy;
  std::memcpy(static_cast<void*>(&copy), bytes.data() + at, sizeof copy);
  return copy;
}

void read_queue_pairs(std::span<const std::byte> bytes, TraceFile& file) {
  for (size_t i = 0; i < kQueuePairs; ++i) {
    QueuePairEntry entry;
    std::memcpy(static_cast<void*>(&entry),
                bytes.data() + kPageBytes + offsetof(Tables, queue_pairs) + i * sizeof entry, sizeof entry);
    // Relaxed: of a copy, which nobody else has.
    if (const uint32_t qpn = entry.qpn.load(std::memory_order_relaxed); qpn != 0 && entry.type < kMostTypes) {
      file.queue_pairs.push_back({qpn, entry.peer_qpn, entry.type, entry.state, entry.is_gone != 0,
                                  entry.signals_all != 0, entry.send_queue, entry.receive_queue, entry.shared_queue,
                                  entry.gid, entry.peer_gid});
    }
  }
  std::ranges::sort(file.queue_pairs, {}, &QueuePair::qpn);
}

void read_tables(std::span<const std::byte> bytes, TraceFile& file) {
  read_queue_pairs(bytes, file);
  for (size_t i = 0; i < kPlaces; ++i) {
    PlaceEntry entry;
    std::memcpy(static_cast<void*>(&entry), bytes.data() + kPageBytes + offsetof(Tables, places) + i * sizeof entry,
                sizeof entry);
    if (const uint64_t address = entry.address.load(std::memory_order_relaxed); address != 0 && entry.file[0] != 0) {
      file.places[address] = {text_of(entry.file), entry.offset};
    }
  }
  for (size_t i = 0; i < kWords; ++i) {
    const auto entry = copy_at<WordsEntry>(bytes, kPageBytes + offsetof(Tables, words) + i * sizeof(WordsEntry));
    if (entry.seal == seal_of_text(entry.number, entry.ticks, entry.text.data(), entry.text.size())) {
      file.words.push_back(
          {static_cast<uint32_t>(entry.number), entry.ticks, entry.qpn, entry.is_finding != 0, text_of(entry.text)});
    }
  }
  std::ranges::stable_sort(file.words, {}, &Words::ticks);
}

/// The newest of the ring that are there, up to number `end`: where the file was cut off, or its head lies, there are
/// fewer than `ring_records`, a power of two. Takes as many steps as `ring` has records, whatever the head says.
void read_ring(std::span<const std::byte> ring, uint64_t ring_records, uint64_t end, std::vector<Record>& events) {
  const uint64_t room = ring.size() / sizeof(Record);
  for (uint64_t i = end - std::min(end, ring_records); i < end;) {
    const uint64_t at = i & (ring_records - 1);
    if (at < room) {
      read_record(ring.data() + at * sizeof(Record), i++, events);
    } else {
      i += std::min(ring_records - at, end - i);  // to where the ring comes round: once, of so few
    }
  }
}

}  // namespace

void read_record(const std::byte* at, uint64_t index, std::vector<Record>& events) {
  Record one;
  std::memcpy(&one, at, sizeof one);
  const auto kind = static_cast<uint8_t>(one.kind);
  if (one.seal == seal_of(one.ticks, salt_of(index)) && kind != 0 && kind < kKinds) {
    events.push_back(one);
  }
}

TraceFile parse_trace(std::span<const std::byte> bytes, const std::string& path) {
  constexpr const char* kRemedy = "give a file that a program has recorded (ringbolt run --record)";
  if (bytes.size() < kHeadBytes || copy_at<uint64_t>(bytes, 0) != kMagic) {
    throw base::Error(EINVAL, "read the timeline", path, kRemedy);
  }
  FileHead head{};
  std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
  // What the head says, but no more than there is.
  const uint64_t room = std::min<uint64_t>(head.ring_records, (bytes.size() - kHeadBytes) / sizeof(Record));
  TraceFile file;
  file.program = text_of(head.program);
  file.cluster = text_of(head.cluster);
  file.node = text_of(head.node);
  file.pid = head.pid;
  file.process_start = head.process_start;
  file.boot = head.boot;
  file.has_counter = head.has_counter != 0;
  file.has_ended = head.ended.ns != 0;
  file.moments = {head.opened, head.begun};
  if (file.has_ended) {
    file.moments.push_back(head.ended);
  }
  read_tables(bytes, file);
  const uint64_t end = head.records.load(std::memory_order_relaxed);
  if (std::has_single_bit(head.ring_records)) {
    read_ring(bytes.subspan(kHeadBytes, room * sizeof(Record)), head.ring_records, end, file.events);
  }
  file.overwritten = end - std::min(end, head.ring_records);
  std::ranges::stable_sort(file.events, {}, &Record::ticks);
  return file;
}

uint64_t boot_number() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return seal_of_text(0, 0, text.data(), text.size());
}

}  // namespace ringbolt::trace
