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

/// Hot path, where something is recorded: no allocation, lock or system call, but for a call from a place in the
/// program that was not seen before. Threads share one atomic count, from which each record has its number; a thread
/// beside which nobody records takes several at once.
namespace ringbolt::trace {

/// A timeline of what this process does with its queue pairs, in a mapped file: a ring that overwrites its oldest
/// records, and that outlives the process, however it ends. Thread-safe; threads wait for nobody.
/// Owns the mapping, not the file, which stays for whoever reads it. Functions that record never fail; what there is
/// no room for is left out.
class Recorder {
 public:
  struct Options {
    std::string path;
    uint64_t bytes = 0;  ///< of the ring, kLeastBytes at least, down to a power of two; all of it is taken at once
    std::string cluster{};
    std::string node{};
  };
  /// Throws base::Error. What was at the path is replaced.
  /// May block, while the filesystem allocates all of the file.
  static std::unique_ptr<Recorder> open(const Options& options);
  /// The file stays.
  /// Nobody may record any more.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Now, for records.
  uint64_t time() const { return has_counter_ ? read_counter() : base::now_ns(); }
  /// Whether time() is no call.
  bool has_counter() const { return has_counter_; }
  /// The place of a new record: all fields are to be written but its time, thread and seal, then finish().
  struct Slot {
    Record& record;
    uint64_t salt;
  };
  /// Relaxed: the count only has to give each record a number of its own; what it holds is published by finish(). A
  /// thread that is so slow that the ring comes round meanwhile shares its place with a later record, and leaves a
  /// mixture of both there.
  Slot begin() noexcept {
    const uint64_t thread = own_thread();
    Numbers& own = numbers_[place_of_thread(thread)];
    const uint64_t next = own.next.load(std::memory_order_relaxed);
    const uint64_t end = own.end.load(std::memory_order_relaxed);
    // Where others have recorded since, the rest of a thread's numbers would be older than what it records.
    const bool has_one = own.thread.load(std::memory_order_relaxed) == thread && next != end &&
                         head_->records.load(std::memory_order_relaxed) == end;
    if (!has_one) [[unlikely]] {
      const uint64_t index = take_numbers(own, thread);
      return {ring_[index & mask_], salt_of(index)};
    }
    own.next.store(next + 1, std::memory_order_relaxed);
    return {ring_[next & mask_], salt_of(next)};
  }
  /// Release: a reader who finds the right seal finds the fields written before it. Only threads that share one
  /// address space write, so the thread pointer tells them apart.
  static void finish(const Slot& slot, uint64_t ticks) noexcept {
    slot.record.ticks = ticks;
    slot.record.thread = own_thread();
    std::atomic_ref(slot.record.seal).store(seal_of(ticks, slot.salt), std::memory_order_release);
  }
  /// Adds a record; its seal is set here.
  void record(const Record& what) noexcept;
  /// The same, now.
  void note(Record what) noexcept {
    what.ticks = time();
    record(what);
  }

  /// The place of a queue pair that was just made; null: there is none left.
  /// Good for the life of this. Of a destroyed one that was overwritten it is another's.
  QueuePairEntry* add_queue_pair(const QueuePairEntry& made) noexcept;
  /// The place where it mostly is; null: it is elsewhere, or not known here.
  /// Relaxed: an entry that is half written costs words, no more.
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
  /// The place in the program of a call that returns to `address`, from the frame of the function that was called;
  /// noted.
  [[gnu::always_inline]] uint64_t place_of_call(const void* address, const void* frame) noexcept {
    const auto returns_to = reinterpret_cast<uint64_t>(address);
    const PlaceEntry& known = tables_->places[place_of_address(returns_to)];
    return is_own(known, returns_to) ? returns_to : place_of_new_call(returns_to, frame);
  }
  /// Whether the call that returns to `address` is known, and is the program's own: nobody wants to hear of its caller.
  bool is_own_place(const void* address) const noexcept {
    const auto returns_to = reinterpret_cast<uint64_t>(address);
    const PlaceEntry& known = tables_->places[place_of_address(returns_to)];
    return is_own(known, returns_to);
  }
  /// An explanation, or a finding, was told; what does not fit is cut.
  /// `qpn` 0: of none. Fits kWords texts of 991 bytes; older ones are overwritten.
  void note_words(uint32_t qpn, bool is_finding, std::string_view text) noexcept;
  /// What was recorded of the queue pair last, the newest `most` of it, in order, in words; also by other threads.
  /// Allocates, and goes through thousands of records: for explanations, not for the hot path. Throws std::bad_alloc.
  std::vector<std::string> recent(uint32_t qpn, size_t most) const;
  /// The process ends in its own good time. Gives back memory that nothing was written to.
  /// Others may record meanwhile and after.
  void note_end() noexcept;
  /// It has not ended after all.
  void note_going_on() noexcept { head_->ended = {}; }

  const std::string& path() const { return path_; }

 private:
  /// Numbers that one thread has taken and not used: an atomic addition costs as much as all else of a record. Written
  /// by that thread alone; when it has ended, by one that has its address.
  struct alignas(64) Numbers {
    std::atomic<uint64_t> thread{0};  ///< 0: nobody's. Never another's
    std::atomic<uint64_t> next{0};
    std::atomic<uint64_t> end{0};
    std::atomic<uint64_t> most{1};  ///< to be taken at once the next time
  };
  static constexpr uint64_t kMostNumbers = 16;
  static constexpr unsigned kThreadBits = 5;

  Recorder(std::string path, void* memory, uint64_t bytes);

  static uint64_t own_thread() { return reinterpret_cast<uint64_t>(__builtin_thread_pointer()); }
  static size_t place_of_thread(uint64_t thread) { return thread * 0x9e3779b97f4a7c15U >> (64U - kThreadBits); }
  /// One number, and others for the next records of the thread, if `own` is its own or nobody's.
  [[gnu::noinline]] uint64_t take_numbers(Numbers& own, uint64_t thread) noexcept;

  // Where probing begins (kProbes).
  static size_t place_of(uint32_t qpn) { return (qpn ^ qpn >> 10U) % kQueuePairs; }
  // Of a place that another thread is just adding: not yet, and then add_place() decides.
  static bool is_own(const PlaceEntry& known, uint64_t address) {
    return known.address.load(std::memory_order_relaxed) == address &&
           known.kind.load(std::memory_order_relaxed) == PlaceKind::own;
  }
  static size_t place_of_address(uint64_t address) { return (address ^ address >> 8U) % kPlaces; }
  [[gnu::cold, gnu::noinline]] PlaceEntry* add_place(uint64_t address, bool is_of_library = false,
                                                     bool may_be_wrapper = false) noexcept;
  [[gnu::cold, gnu::noinline]] uint64_t place_of_new_call(uint64_t returns_to, const void* frame) noexcept;

  const std::string path_;
  void* const memory_;
  const uint64_t bytes_;
  FileHead* const head_;
  Tables* const tables_;
  Record* const ring_;
  const uint64_t mask_;
  const bool has_counter_;
  std::array<Numbers, size_t{1} << kThreadBits> numbers_{};
};

/// The process' own; null: nothing is recorded.
extern constinit std::atomic<Recorder*> active;
/// Relaxed, for the hot path: all that is read then is read through the pointer, which orders it on every processor
/// that we run on (an address dependency), and was written before the release in begin(). The pointer is good for the
/// life of the process.
inline Recorder* recorder() { return active.load(std::memory_order_relaxed); }

/// Adds a record of now if there is somebody to.
inline void note(const Record& what) noexcept {
  if (Recorder* const to = recorder(); to != nullptr) [[unlikely]] {
    to->note(what);
  }
}

/// An id of what has no number: of its address.
/// Two objects may share one, as 32 bits are kept of an address without its four lowest; and one that is made later
/// may have that of one destroyed.
inline uint32_t id_of(const void* object) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(object) >> 4U); }

}  // namespace ringbolt::trace
