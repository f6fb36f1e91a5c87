#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

/// What lies in a recorder's file (docs/formats/trace.md): a page that says whose it is, tables, and a ring of records.
/// Whatever is cut off or overwritten has a wrong seal, so that a reader passes over it.
namespace ringbolt::trace {

/// Read as text on a little-endian machine. All numbers are in the byte order of the machine that wrote them.
inline constexpr uint64_t kMagic = 0x3145434152544252;  ///< "RBTRACE1"
inline constexpr size_t kPageBytes = 4096;
/// Sizes of the tables. What finds no room is recorded without a name: nothing fails for it.
inline constexpr size_t kQueuePairs = 512;
inline constexpr size_t kPlaces = 256;
inline constexpr size_t kWords = 128;

/// Values lie in files: new ones go to the end, and none is taken back.
enum class Kind : uint8_t {
  none,
  post_send,           ///< `code`: ibv_wr_opcode; `number`: which one that takes a receive at the peer, from 1
  post_receive,        ///< to a queue pair
  post_shared,         ///< to a shared receive queue: `object` is the queue's id
  refused,             ///< a post: `number` is the error; `code` 0: of a send, 1: a receive, 2: to a shared queue
  completion_made,     ///< and nobody polls just now: it waits in the completion queue
  completion_polled,   ///< `code`: ibv_wc_opcode; `status`; `number`: which receive, from 1
  armed,               ///< a completion queue: `object` is its id, `flags` 1: for solicited ones
  event_raised,        ///< likewise
  event_taken,         ///< likewise, by ibv_get_cq_event
  event_acknowledged,  ///< likewise, `number` of them
  state,               ///< of a queue pair: `code` is the new one
  packet_sent,         ///< `code`: BTH opcode, `number`: PSN
  packet_came,         ///< likewise
  packet_dropped,      ///< likewise; `status`: why, as device::Drop numbers it
  starved,             ///< a message finds no receive here, and the peer is told
  not_ready,           ///< the peer has said so: RNR
  resent,              ///< `number` packets
  timed_out,           ///< the peer has not answered in time; `number` times
  sequence_error,      ///< the peer has missed a packet
  duplicate,           ///< packets came that had come before; `number`
  fault,               ///< struck: `code` says whom, `flags` what (Struck)
  async_event,         ///< `code`: ibv_event_type
  words,               ///< an explanation or a finding was told: `number` is its place among the words
};
inline constexpr uint8_t kKinds = static_cast<uint8_t>(Kind::words) + 1;

// Of a post: as ibv_send_flags numbers them.
inline constexpr uint8_t kFenced = 1;
inline constexpr uint8_t kSignaled = 2;
inline constexpr uint8_t kSolicited = 4;
inline constexpr uint8_t kInline = 8;

/// What a fault has done, as bits of `flags`.
/// Several at once are possible.
enum Struck : uint8_t { kLost = 1, kHeld = 2, kChanged = 4, kRefused = 8, kNotReady = 16, kStatus = 32, kCopied = 64 };

// Whom a fault struck, as its `code`.
inline constexpr uint8_t kFaultOfMessage = 0;  ///< or a completion: `object` is ours
inline constexpr uint8_t kFaultOfPeers = 1;    ///< a packet to the peer: `object` is its queue pair; `number`: PSN
inline constexpr uint8_t kFaultOfOwn = 2;      ///< a packet to us; likewise

/// Something that happened. Its seal is written last, and fits its time and its number among all records alone: one
/// that is not whole, or was there before, has none.
struct Record {
  uint64_t ticks = 0;  ///< the counter's, or nanoseconds: see FileHead
  uint64_t wr_id = 0;
  uint64_t place = 0;   ///< where the program called: a return address
  uint32_t object = 0;  ///< number of the queue pair; id of what has no number
  uint32_t bytes = 0;
  Kind kind = Kind::none;
  uint8_t code = 0;
  uint8_t status = 0;  ///< ibv_wc_status
  uint8_t flags = 0;
  uint32_t number = 0;
  uint64_t thread = 0;  ///< another one for each thread that lives; else nothing is said of it
  uint64_t unused = 0;
  uint64_t seal = 0;
};
static_assert(sizeof(Record) == 64);

/// Which record it is, in a number that no seal has by chance.
/// An odd factor (of the golden ratio): no two indices have one salt, and index 0 has one that is not 0.
constexpr uint64_t salt_of(uint64_t index) { return (index + 1) * 0x9e3779b97f4a7c15U; }
/// Against accidents, not against forgery.
constexpr uint64_t seal_of(uint64_t ticks, uint64_t salt) { return salt ^ ticks; }

/// One moment by both clocks.
struct Moment {
  uint64_t ticks = 0;
  uint64_t ns = 0;  ///< CLOCK_MONOTONIC
};

/// A queue pair of the process. What is destroyed stays until another one needs the place.
/// Written by the threads that use the queue pair, read by anybody: what is not atomic may be seen torn, and nothing
/// but words for people depends on it.
struct alignas(64) QueuePairEntry {
  // Taken by compare-and-swap, of a destroyed queue pair by its `is_gone`; the rest follows, so a reader may see a new
  // number beside old values for a moment.
  std::atomic<uint32_t> qpn;       ///< 0: a free place
  std::atomic<uint32_t> messages;  ///< posted since it was reset that take a receive at the peer
  std::atomic<uint32_t> arrivals;  ///< polled of those of the peer
  uint8_t type;                    ///< ibv_qp_type
  uint8_t state;                   ///< ibv_qp_state
  uint8_t signals_all;
  uint8_t is_gone;
  uint32_t send_queue;  ///< ids of its completion queues
  uint32_t receive_queue;
  uint32_t shared_queue;  ///< of its shared receive queue; 0: it has none
  uint32_t peer_qpn;      ///< 0: not connected yet
  std::array<uint8_t, 16> gid;
  std::array<uint8_t, 16> peer_gid;
};
static_assert(sizeof(QueuePairEntry) == 64);

/// Whose the call is that returns to an address.
enum class PlaceKind : uint8_t {
  unknown,  ///< the thread that took the place has yet to say
  wrapper,  ///< that of one of the verbs' own functions, not inlined, or of our libraries: its caller is wanted
  own,      ///< the program's, as far as is known
};

/// Where a return address lies: the file that was loaded there, and the address in it.
struct PlaceEntry {
  // Taken by compare-and-swap, for good; what else there is follows. `file` is empty until then, and only readers of
  // the file look at it and at `offset`. `kind` says all by itself, so that loads and stores of it may be relaxed.
  std::atomic<uint64_t> address;  ///< 0: a free place
  uint64_t offset;
  std::atomic<PlaceKind> kind;
  std::array<char, 239> file;
};
static_assert(sizeof(PlaceEntry) == 256);

/// What an explanation or a finding said.
struct WordsEntry {
  uint64_t number;
  uint64_t ticks;
  uint32_t qpn;  ///< 0: of none
  uint32_t is_finding;
  uint64_t seal;
  std::array<char, 992> text;  ///< ends in a 0
};
static_assert(sizeof(WordsEntry) == 1024);

/// `magic` is written last: a file without it is no timeline yet.
struct FileHead {
  uint64_t magic;
  uint64_t file_bytes;
  uint64_t ring_records;  ///< a power of two
  uint32_t pid;
  uint32_t has_counter;  ///< 0: ticks are nanoseconds
  uint64_t process_start;
  uint64_t boot;  ///< another one each time the machine starts
  Moment opened;
  Moment begun;  ///< a little later: how fast the counter runs, for who can't ask it
  Moment ended;  ///< 0: the process still runs, or was killed
  std::array<char, 64> program;
  std::array<char, 64> cluster;
  std::array<char, 16> node;
  // A cache line of its own: all threads that record write it.
  alignas(64) std::atomic<uint64_t> records;  ///< numbers taken, ever
  alignas(64) std::atomic<uint64_t> words;    ///< likewise
};

struct Tables {
  std::array<QueuePairEntry, kQueuePairs> queue_pairs;
  std::array<PlaceEntry, kPlaces> places;
  std::array<WordsEntry, kWords> words;
};
inline constexpr size_t kTablesBytes = sizeof(Tables);
static_assert(offsetof(FileHead, records) == 256);
static_assert(sizeof(FileHead) <= kPageBytes && kTablesBytes % kPageBytes == 0);
inline constexpr size_t kHeadBytes = kPageBytes + kTablesBytes;
// 1024 records.
inline constexpr uint64_t kLeastBytes = 16 * kPageBytes;  ///< of the ring

constexpr uint64_t seal_of_text(uint64_t number, uint64_t ticks, const char* text, size_t length) {
  uint64_t sum = salt_of(number) ^ ticks;  // FNV-1a
  for (size_t i = 0; i < length; ++i) {
    sum = (sum ^ static_cast<uint8_t>(text[i])) * 0x100000001b3U;
  }
  return sum;
}

}  // namespace ringbolt::trace
