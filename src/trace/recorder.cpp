#include "trace/recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "base/calling_place.h"
#include "base/error.h"
#include "base/process_start.h"
#include "base/unique_fd.h"
#include "trace/tick_clock.h"
#include "trace/trace_file.h"
#include "trace/words.h"

namespace ringbolt::trace {

constinit std::atomic<Recorder*> active{nullptr};

namespace {

// Bounds each search of the hot path.
constexpr size_t kProbes = 8;  // places that a queue pair or an address may have

template <size_t kSize>
void put_text(std::array<char, kSize>& to, std::string_view text) {
  to = {};
  std::copy_n(text.begin(), std::min(text.size(), kSize - 1), to.begin());
}

/// [bytes], zeros, shared with whoever reads the file. The descriptor is closed: the mapping keeps the file.
void* map_file(const std::string& path, uint64_t bytes) {
  rlimit most{};
  if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && bytes > most.rlim_cur) {  // to ask for more would end the program
    throw base::Error(EFBIG, "allocate", path, "raise the limit (ulimit -f), or give RINGBOLT_RECORD a smaller size");
  }
  ::unlink(path.c_str());  // of a process that had our number
  const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) {
    throw base::Error(errno, "open", path, "give RINGBOLT_RECORD another folder, or off");
  }
  // All of it now: where there is no room, a record would end the program by SIGBUS.
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes))) {
    ::unlink(path.c_str());
    throw base::Error(error, "allocate", path, "make room there, or give RINGBOLT_RECORD a smaller size");
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::unlink(path.c_str());
    throw base::Error(error, "map", path, "give RINGBOLT_RECORD a smaller size");
  }
  return memory;
}

/// Other threads may write to it meanwhile, which its seal tells: no race for ThreadSanitizer to find.
__attribute__((noinline, no_sanitize("thread")))  // clang knows this word in this spelling only
std::array<uint64_t, sizeof(Record) / 8>
words_at(const Record& record) {
  std::array<uint64_t, sizeof(Record) / 8> words{};
  const auto* const from = reinterpret_cast<const volatile uint64_t*>(&record);
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = from[i];
  }
  return words;
}

}  // namespace

std::unique_ptr<Recorder> Recorder::open(const Options& options) {
  const uint64_t bytes = kHeadBytes + std::bit_floor(std::max(options.bytes, kLeastBytes));
  std::unique_ptr<Recorder> made(new Recorder(options.path, map_file(options.path, bytes), bytes));
  FileHead& head = *made->head_;
  const Moment opened = moment_now(made->has_counter_);
  head.file_bytes = bytes;
  head.ring_records = made->mask_ + 1;
  head.pid = static_cast<uint32_t>(::getpid());
  head.process_start = base::process_start(::getpid());
  head.boot = boot_number();
  head.has_counter = made->has_counter_ ? 1 : 0;
  head.opened = opened;
  head.begun = moment_now(made->has_counter_);
  put_text(head.program, ::program_invocation_short_name);
  put_text(head.cluster, options.cluster);
  put_text(head.node, options.node);
  // Last: who reads the file while this runs sees it whole or takes it for none.
  std::atomic_ref(head.magic).store(kMagic, std::memory_order_release);
  return made;
}

Recorder::Recorder(std::string path, void* memory, uint64_t bytes)
    : path_(std::move(path)),
      memory_(memory),
      bytes_(bytes),
      head_(static_cast<FileHead*>(memory)),
      tables_(reinterpret_cast<Tables*>(static_cast<std::byte*>(memory) + kPageBytes)),
      ring_(reinterpret_cast<Record*>(static_cast<std::byte*>(memory) + kHeadBytes)),
      mask_((bytes - kHeadBytes) / sizeof(Record) - 1),
      has_counter_(trace::has_counter()) {}

Recorder::~Recorder() { ::munmap(memory_, bytes_); }

// Relaxed throughout: the numbers are the thread's own, and the addition alone says whose they are.
uint64_t Recorder::take_numbers(Numbers& own, uint64_t thread) noexcept {
  uint64_t owner = own.thread.load(std::memory_order_relaxed);
  if (owner == 0 && own.thread.compare_exchange_strong(owner, thread, std::memory_order_relaxed)) {
    owner = thread;
  }
  if (owner != thread) {
    return head_->records.fetch_add(1, std::memory_order_relaxed);
  }
  const uint64_t end = own.end.load(std::memory_order_relaxed);
  const bool is_alone = head_->records.load(std::memory_order_relaxed) == end;
  const uint64_t count = is_alone ? own.most.load(std::memory_order_relaxed) : 1;
  const uint64_t first = head_->records.fetch_add(count, std::memory_order_relaxed);
  own.next.store(first + 1, std::memory_order_relaxed);
  own.end.store(first + count, std::memory_order_relaxed);
  own.most.store(std::min(2 * count, kMostNumbers), std::memory_order_relaxed);
  return first;
}

void Recorder::record(const Record& what) noexcept {
  const Slot slot = begin();
  slot.record.wr_id = what.wr_id;
  slot.record.place = what.place;
  slot.record.object = what.object;
  slot.record.bytes = what.bytes;
  slot.record.kind = what.kind;
  slot.record.code = what.code;
  slot.record.status = what.status;
  slot.record.flags = what.flags;
  slot.record.number = what.number;
  finish(slot, what.ticks);
}

QueuePairEntry* Recorder::find(uint32_t qpn) noexcept {
  for (size_t i = 0; i < kProbes; ++i) {
    QueuePairEntry& one = tables_->queue_pairs[(place_of(qpn) + i) % kQueuePairs];
    if (one.qpn.load(std::memory_order_relaxed) == qpn) {
      return &one;
    }
  }
  return nullptr;
}

QueuePairEntry* Recorder::add_queue_pair(const QueuePairEntry& made) noexcept {
  const uint32_t qpn = made.qpn.load(std::memory_order_relaxed);
  // Of a destroyed queue pair; whoever puts the mark back to 0 has the place.
  const auto has_claimed = [](QueuePairEntry& one) {
    const std::atomic_ref mark(one.is_gone);
    return mark.load(std::memory_order_relaxed) != 0 && mark.exchange(0, std::memory_order_acquire) != 0;
  };
  QueuePairEntry* target = find(qpn);
  if (target != nullptr && std::atomic_ref(target->is_gone).load(std::memory_order_relaxed) != 0 &&
      !has_claimed(*target)) {
    target = nullptr;  // one of another number was quicker
  }
  for (const bool takes_gone : {false, true}) {
    for (size_t i = 0; i < kProbes && target == nullptr; ++i) {
      QueuePairEntry& one = tables_->queue_pairs[(place_of(qpn) + i) % kQueuePairs];
      uint32_t before = 0;
      // Whoever wins has the place; the other one looks on.
      if (takes_gone && has_claimed(one)) {
        one.qpn.store(qpn, std::memory_order_relaxed);
        target = &one;
      } else if (one.qpn.load(std::memory_order_relaxed) == 0 && one.qpn.compare_exchange_strong(before, qpn)) {
        target = &one;
      }
    }
  }
  if (target != nullptr) {
    target->messages.store(0, std::memory_order_relaxed);
    target->arrivals.store(0, std::memory_order_relaxed);
    target->type = made.type;
    target->state = made.state;
    target->signals_all = made.signals_all;
    target->send_queue = made.send_queue;
    target->receive_queue = made.receive_queue;
    target->shared_queue = made.shared_queue;
    target->peer_qpn = 0;
    target->gid = {};
    target->peer_gid = {};
    std::atomic_ref(target->is_gone).store(0, std::memory_order_release);
  }
  return target;
}

namespace {

/// `may_be_wrapper`: of such a function the caller is known too.
PlaceKind kind_of(uint64_t address, bool is_of_library, bool may_be_wrapper) {
  return is_of_library || (may_be_wrapper && base::is_verbs_wrapper(address)) ? PlaceKind::wrapper : PlaceKind::own;
}

}  // namespace

uint64_t Recorder::place_of_new_call(uint64_t returns_to, const void* frame) noexcept try {
  const base::CallSite site = base::call_site_of(frame, reinterpret_cast<const void*>(returns_to));
  const bool is_of_library = site.returns[0] != returns_to;  // one of ours has called for the program
  const uint64_t caller = is_of_library ? site.returns[0] : site.returns[1];
  const PlaceEntry* const known = add_place(returns_to, is_of_library, caller != 0);
  if (known == nullptr || caller == 0) {
    return returns_to;
  }
  PlaceKind kind = known->kind.load(std::memory_order_relaxed);
  if (kind == PlaceKind::unknown) {
    kind = kind_of(returns_to, is_of_library, true);  // another thread is about to say the same
  }
  if (kind == PlaceKind::own) {
    return returns_to;
  }
  note_place(caller);
  return caller;
} catch (const std::bad_alloc&) {
  return returns_to;
}

/// Null: there is no room, or nothing is known of the address, or another address was quicker, just now.
PlaceEntry* Recorder::add_place(uint64_t address, bool is_of_library, bool may_be_wrapper) noexcept try {
  PlaceEntry* free = nullptr;
  for (size_t i = 0; i < kProbes; ++i) {
    PlaceEntry& one = tables_->places[(place_of_address(address) + i) % kPlaces];
    const uint64_t known = one.address.load(std::memory_order_relaxed);
    if (known == address) {
      return &one;
    }
    free = known == 0 && free == nullptr ? &one : free;
  }
  Dl_info found{};
  if (free == nullptr || ::dladdr(reinterpret_cast<const void*>(address), &found) == 0 || found.dli_fname == nullptr) {
    return nullptr;  // a program with so many places has its addresses told
  }
  const PlaceKind kind = kind_of(address, is_of_library, may_be_wrapper);
  uint64_t expected = 0;
  if (free->address.compare_exchange_strong(expected, address)) {
    free->kind.store(kind, std::memory_order_relaxed);
    free->offset = address - reinterpret_cast<uint64_t>(found.dli_fbase);
    std::array<char, 512> main{};
    // The program itself has the name that it was called by.
    const bool is_path = std::strchr(found.dli_fname, '/') != nullptr && found.dli_fname[0] == '/';
    const ssize_t length = is_path ? 0 : ::readlink("/proc/self/exe", main.data(), main.size() - 1);
    put_text(free->file, length > 0 ? main.data() : found.dli_fname);
  } else if (expected != address) {
    return nullptr;
  }
  return free;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void Recorder::note_words(uint32_t qpn, bool is_finding, std::string_view text) noexcept {
  const uint64_t number = head_->words.fetch_add(1, std::memory_order_relaxed);
  WordsEntry& entry = tables_->words[number % kWords];
  // Unsealed first, and the fence keeps what follows behind it: a reader takes neither half of two texts for one.
  std::atomic_ref(entry.seal).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  entry.number = number;
  entry.ticks = time();
  entry.qpn = qpn;
  entry.is_finding = is_finding ? 1 : 0;
  put_text(entry.text, text);
  const uint64_t seal = seal_of_text(number, entry.ticks, entry.text.data(), entry.text.size());
  std::atomic_ref(entry.seal).store(seal, std::memory_order_release);
  Record record;
  record.ticks = entry.ticks;
  record.object = qpn;
  record.kind = Kind::words;
  record.number = static_cast<uint32_t>(number);
  this->record(record);
}

std::vector<std::string> Recorder::recent(uint32_t qpn, size_t most) const {
  constexpr uint64_t kMost = 8192;  // the newest: a program that waits for this has done little since
  // Those that are begun and not finished by now have no seal.
  const uint64_t end = head_->records.load(std::memory_order_acquire);
  std::vector<Record> all;
  for (uint64_t i = end - std::min({end, mask_ + 1, kMost}); i < end; ++i) {
    const auto words = words_at(ring_[i & mask_]);
    read_record(reinterpret_cast<const std::byte*>(words.data()), i, all);
  }
  const QueuePairEntry* entry = const_cast<Recorder*>(this)->find(qpn);
  std::erase_if(all, [&](const Record& one) { return !concerns(one, qpn, entry); });
  std::ranges::stable_sort(all, {}, &Record::ticks);
  all.erase(all.begin(), all.end() - static_cast<ptrdiff_t>(std::min(most, all.size())));
  std::vector<std::string> words;
  std::ranges::transform(all, std::back_inserter(words), words_of);
  return words;
}

void Recorder::note_end() noexcept {
  // Read when the process is gone, mostly; a reader who comes at this moment may see half of it.
  head_->ended = moment_now(has_counter_);
  // What other threads still record there comes to lie in new pages.
  const uint64_t used = head_->records.load(std::memory_order_relaxed) * sizeof(Record) / kPageBytes + 8;
  const uint64_t pages = (mask_ + 1) * sizeof(Record) / kPageBytes;
  if (used < pages) {
    ::madvise(reinterpret_cast<std::byte*>(ring_) + used * kPageBytes, (pages - used) * kPageBytes, MADV_REMOVE);
  }
}

}  // namespace ringbolt::trace
