#include "device/peer_notes.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>

#include "base/clock.h"

namespace ringbolt::device {
namespace {

// "RINGBYN2" as it lies in the file.
constexpr uint64_t kMagic = 0x324e5942474e4952U;  // of this layout

/// A note as it lies in the file: words, which are written and read one by one, so that a note that is changed
/// meanwhile has the wrong sum.
struct Record {
  uint64_t kind_and_pid;
  uint64_t numbers;
  std::array<uint8_t, 16> gid;
  uint64_t time_ns;
  std::array<char, PeerNotes::kTextBytes> text;
  uint64_t sum;
};
constexpr size_t kWords = sizeof(Record) / sizeof(uint64_t);
static_assert(sizeof(Record) == kWords * sizeof(uint64_t));
using Words = std::array<uint64_t, kWords>;

struct Layout {
  uint64_t magic;
  uint64_t written;
  std::array<Words, PeerNotes::kNotes> notes;
};

uint64_t sum_of(const Words& words) {
  uint64_t sum = kMagic;  // FNV-1a by words
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    sum = (sum ^ words[i]) * 0x100000001b3U;
  }
  return sum;
}

void* map_notes(int file) {
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, flags, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Under a shared lock that says that somebody uses it; not open where that can't be had.
base::UniqueFd open_file(const std::string& path) {
  constexpr int kTries = 10;  // each time somebody has removed it meanwhile
  for (int i = 0; i < kTries; ++i) {
    base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    struct stat status {};
    if (!file.is_open() || ::flock(file.get(), LOCK_SH) != 0 || ::fstat(file.get(), &status) != 0 ||
        !S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
      return {};
    }
    if (status.st_nlink != 0) {
      const bool has_size = static_cast<size_t>(status.st_size) >= sizeof(Layout) ||
                            ::ftruncate(file.get(), static_cast<off_t>(sizeof(Layout))) == 0;
      return has_size ? std::move(file) : base::UniqueFd();
    }
  }
  return {};
}

}  // namespace

std::unique_ptr<PeerNotes> PeerNotes::open(const std::string& folder) {
  std::string path = folder + "/explanations";
  base::UniqueFd file = folder.empty() ? base::UniqueFd() : open_file(path);
  void* memory = map_notes(file.get());
  if (memory == nullptr && file.is_open()) {
    file.reset();
    memory = map_notes(-1);
  }
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  auto& layout = *static_cast<Layout*>(memory);
  uint64_t expected = 0;
  std::atomic_ref<uint64_t>(layout.magic).compare_exchange_strong(expected, kMagic);
  if (expected != 0 && expected != kMagic) {  // of another release, which may be at it
    ::munmap(memory, sizeof(Layout));
    return open("");
  }
  return std::unique_ptr<PeerNotes>(new PeerNotes(std::move(path), std::move(file), memory));
}

PeerNotes::PeerNotes(std::string path, base::UniqueFd file, void* memory)
    : path_(std::move(path)),
      file_(std::move(file)),
      memory_(memory),
      written_(&static_cast<Layout*>(memory)->written) {}

PeerNotes::~PeerNotes() {
  leave();
  ::munmap(memory_, sizeof(Layout));
}

void PeerNotes::leave() {
  // Nobody else holds it: who opens it now sees by its links that it is gone.
  if (file_.is_open() && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
    ::unlink(path_.c_str());
  }
  file_.reset();
}

void PeerNotes::write(const Note& note) {
  Record record{};
  record.kind_and_pid = uint64_t{static_cast<uint32_t>(note.kind) + 1} << 32U | static_cast<uint32_t>(::getpid());
  record.numbers = uint64_t{note.number} << 32U | note.peer_number;
  std::copy_n(note.peer_gid.raw, record.gid.size(), record.gid.begin());
  record.time_ns = base::now_ns();
  std::copy_n(note.text.begin(), std::min(note.text.size(), record.text.size() - 1), record.text.begin());
  Words words{};
  std::memcpy(words.data(), &record, sizeof record);
  words.back() = sum_of(words);
  auto& layout = *static_cast<Layout*>(memory_);
  Words& place = layout.notes[std::atomic_ref<uint64_t>(layout.written).fetch_add(1) % kNotes];
  for (size_t i = 0; i < words.size(); ++i) {
    std::atomic_ref<uint64_t>(place[i]).store(words[i], std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_release);
}

std::optional<PeerNotes::Note> PeerNotes::find(const std::function<bool(const Note&)>& is_wanted,
                                               uint64_t first) const {
  auto& layout = *static_cast<Layout*>(memory_);
  const uint64_t end = std::atomic_ref<uint64_t>(layout.written).load(std::memory_order_acquire);
  for (uint64_t i = end; i > std::max(first, end - std::min<uint64_t>(end, kNotes)); --i) {
    Words& place = layout.notes[(i - 1) % kNotes];
    Words words{};
    for (size_t word = 0; word < words.size(); ++word) {
      words[word] = std::atomic_ref<uint64_t>(place[word]).load(std::memory_order_relaxed);
    }
    if (words.back() != sum_of(words) || words[0] == 0) {
      continue;  // being written, or two were at once
    }
    Record record{};
    std::memcpy(&record, words.data(), sizeof record);
    Note note;
    note.kind = static_cast<Kind>((record.kind_and_pid >> 32U) - 1);
    note.pid = static_cast<pid_t>(record.kind_and_pid & UINT32_MAX);
    note.number = static_cast<uint32_t>(record.numbers >> 32U);
    note.peer_number = static_cast<uint32_t>(record.numbers & UINT32_MAX);
    std::ranges::copy(record.gid, note.peer_gid.raw);
    note.time_ns = record.time_ns;
    note.text.assign(record.text.data(), ::strnlen(record.text.data(), record.text.size()));
    if (is_wanted(note)) {
      return note;
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::device
