#include "sanitizer/race_table.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ringbolt::sanitizer {

/// Zeros mean nothing: the file is as long as this from the beginning, whoever makes it.
struct RaceTable::Page {
  struct Place {
    Entry entry;
    Entry met;  ///< who raced with it; peer 0: nobody
  };
  uint32_t used;  ///< places behind it are free
  std::array<Place, kPlaces> places;
};

namespace {

/// For as long as the file is looked at. Where it can't be had (no memory in the kernel) nothing is looked at.
class Turn {
 public:
  explicit Turn(int fd) : fd_(fd) {
    do {
      is_mine_ = ::flock(fd_, LOCK_EX) == 0;
    } while (!is_mine_ && errno == EINTR);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (is_mine_) {
      ::flock(fd_, LOCK_UN);
    }
  }
  explicit operator bool() const { return is_mine_; }

 private:
  int fd_;
  bool is_mine_ = false;
};

bool overlap(const RaceTable::Entry& one, const RaceTable::Entry& other) {
  return one.peer == other.peer && one.rkey == other.rkey &&
         (one.first - other.first < other.length || other.first - one.first < one.length);
}

bool is_alive(int32_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; }

}  // namespace

RaceTable::RaceTable(const std::string& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (!file_.is_open() || ::ftruncate(file_.get(), sizeof(Page)) != 0) {
    return;
  }
  void* const memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  page_ = memory == MAP_FAILED ? nullptr : static_cast<Page*>(memory);
}

RaceTable::~RaceTable() {
  if (page_ != nullptr) {
    ::munmap(page_, sizeof(Page));
  }
}

std::optional<uint32_t> RaceTable::enter(const Entry& entry, std::optional<Entry>& other) {
  if (page_ == nullptr || entry.length == 0) {
    return std::nullopt;
  }
  const Turn turn(file_.get());
  if (!turn) {
    return std::nullopt;
  }
  std::optional<uint32_t> free;
  const uint32_t used = std::min(page_->used, kPlaces);
  for (uint32_t i = 0; i < used; ++i) {
    Page::Place& one = page_->places[i];
    const bool races = one.entry.peer != 0 && one.entry.pid != entry.pid && overlap(one.entry, entry) &&
                       !are_compatible(one.entry.access, entry.access);
    if (races && !is_alive(one.entry.pid)) {
      one.entry.peer = 0;
    } else if (races) {
      one.met = entry;
      other = one.entry;
    }
    if (one.entry.peer == 0 && !free) {
      free = i;
    }
  }
  if (!free && used < kPlaces) {
    free = used;
    page_->used = used + 1;
  }
  if (free) {
    page_->places[*free] = {entry, {}};
  }
  return free;
}

std::optional<RaceTable::Entry> RaceTable::leave(uint32_t place) {
  const Turn turn(file_.get());
  if (page_ == nullptr || place >= kPlaces || !turn) {
    return std::nullopt;
  }
  Page::Place& one = page_->places[place];
  const Entry met = one.met;
  one = {};
  while (page_->used != 0 && page_->used <= kPlaces && page_->places[page_->used - 1].entry.peer == 0) {
    --page_->used;
  }
  return met.peer == 0 ? std::nullopt : std::optional(met);
}

}  // namespace ringbolt::sanitizer
