#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/counter.h"
#include "trace/layout.h"

/// Hot path, where something is recorded: no allocation, lock or system call, but for a thread's first record, one in
/// 84, and one from a place in the program that was not seen before.
namespace ringbolt::trace {

class Recorder;

/// The chunk that a thread fills, of the process' recorder; threads of tests have one recorder in their lives.
struct Cursor {
  Record* next = nullptr;
  Record* end = nullptr;
  uint64_t last = 0;  ///< once so many chunks were begun, it is about to be another thread's
  uint64_t salt = 0;
  /// Places from which this thread called last: those that need no look into the table.
  enum Call { kSend, kReceive, kPoll, kCalls };
  std::array<uint64_t, kCalls> places{};
};
// Of the initial block of thread-local storage: the address is one addition, and not a call.
extern thread_local constinit Cursor cursor __attribute__((tls_model("initial-exec")));

/// A timeline of what this process does with its queue pairs, in a mapped file: a ring that overwrites its oldest
/// records, and that outlives the process, however it ends. Thread-safe; threads wait for nobody.
class Recorder {
 public:
  struct Options {
    std::string path;
    uint64_t bytes = 0;  ///< of the file, kLeastBytes at least: all of it is taken at once
    std::string cluster{};
    std::string node{};
  };
  /// Throws base::Error. What was at the path is replaced.
  static std::unique_ptr<Recorder> open(const Options& options);
  /// The file stays.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Now, for records.
  uint64_t time() const { return has_counter_ ? read_counter() : base::now_ns(); }
  /// Whether time() is no call.
  bool has_counter() const { return has_counter_; }
  /// Whether this thread has room for a record, which begin() gives; else make_room(). A thread that was
  /// away while others filled half the ring leaves its chunk.
  bool has_room(const Cursor& at) const noexcept {
    return at.next != at.end && head_->claimed.load(std::memory_order_relaxed) <= at.last;
  }
  /// For one record.
  [[gnu::cold, gnu::noinline]] void make_room() noexcept;
  /// The next record: all fields are to be written but its time and its seal, then finish().
  static Record& begin(Cursor& at) noexcept { return *at.next++; }
  static void finish(const Cursor& at, Record& record, uint64_t ticks) noexcept {
    record.ticks = ticks;
    std::atomic_ref(record.seal).store(seal_of(ticks, at.salt), std::memory_order_release);
  }
  /// Adds a record; its seal is set here.
  void record(const Record& what) noexcept;
  /// The same, now.
  void note(Record what) noexcept {
    what.ticks = time();
    record(what);
  }

  /// The place of a queue pair that was just made; null: there is none left.
  QueuePairEntry* add_queue_pair(const QueuePairEntry& made) noexcept;
  /// The place where it mostly is; null: it is elsewhere, or not known here.
  QueuePairEntry* find_first(uint32_t qpn) noexcept {
    QueuePairEntry& first = tables_->queue_pairs[place_of(qpn)];
    return first.qpn.load(std::memory_order_relaxed) == qpn ? &first : nullptr;
  }
  /// Null: not known here.
  QueuePairEntry* find(uint32_t qpn) noexcept;
  /// Has the file say what lies at that address, if it does not yet.
  void note_place(uint64_t address) noexcept {
    if (address != 0 && tables_->places[place_of_address(address)].address.load(std::memory_order_relaxed) != address) {
      add_place(address);
    }
  }
  /// The place of a call that returns to `address`, from the frame of the function that was called; noted.
  [[gnu::always_inline]] uint64_t place_of_call(Cursor::Call call, const void* address, const void* frame) noexcept {
    const auto returns_to = reinterpret_cast<uint64_t>(address);
    return cursor.places[call] == returns_to ? returns_to : place_of_new_call(call, returns_to, frame);
  }
  /// An explanation, or a finding, was told; what does not fit is cut.
  void note_words(uint32_t qpn, bool is_finding, std::string_view text) noexcept;
  /// What was recorded of the queue pair last, the newest `most` of it, in order, in words; also by other threads.
  std::vector<std::string> recent(uint32_t qpn, size_t most) const;
  /// The process ends in its own good time. Gives back memory that nothing was written to.
  void note_end() noexcept;
  /// It has not ended after all.
  void note_going_on() noexcept { head_->ended = {}; }

  const std::string& path() const { return path_; }

 private:
  Recorder(std::string path, void* memory, uint64_t bytes);

  static size_t place_of(uint32_t qpn) { return (qpn ^ qpn >> 10U) % kQueuePairs; }
  static size_t place_of_address(uint64_t address) { return (address ^ address >> 8U) % kPlaces; }
  [[gnu::cold, gnu::noinline]] PlaceEntry* add_place(uint64_t address, bool may_be_wrapper = false) noexcept;
  [[gnu::cold, gnu::noinline]] uint64_t place_of_new_call(Cursor::Call call, uint64_t returns_to,
                                                          const void* frame) noexcept;
  Moment moment() const noexcept;

  const std::string path_;
  void* const memory_;
  const uint64_t bytes_;
  FileHead* const head_;
  Tables* const tables_;
  Chunk* const chunks_;
  const uint64_t n_chunks_;
  const uint64_t patience_;
  const bool has_counter_;
};

/// The process' own; null: nothing is recorded.
extern constinit std::atomic<Recorder*> active;
inline Recorder* recorder() { return active.load(std::memory_order_relaxed); }

/// Adds a record of now if there is somebody to.
inline void note(const Record& what) noexcept {
  if (Recorder* const to = recorder(); to != nullptr) [[unlikely]] {
    to->note(what);
  }
}

/// An id of what has no number: of its address.
inline uint32_t id_of(const void* object) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(object) >> 4U); }

}  // namespace ringbolt::trace
