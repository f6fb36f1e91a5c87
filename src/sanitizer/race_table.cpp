#include "sanitizer/race_table.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace ringbolt::sanitizer {

/// Where the mutex is made zeros mean nothing: the file is as long as this from the beginning, whoever makes it.
/// Read and written under its mutex, but `made` under flock(2) on the file.
struct RaceTable::Page {
  struct Place {
    Entry entry;
    Entry met;  ///< who raced with it; peer 0: nobody
  };
  uint32_t made;  ///< the mutex is: kMade
  pthread_mutex_t mutex;
  uint32_t used;  ///< places behind it are free
  std::array<Place, kPlaces> places;
};

namespace {

constexpr uint32_t kMade = 0x72616365;

/// For as long as the table is looked at. A process that dies with it has left at most an entry half written, which is
/// then told of or not.
class Turn {
 public:
  explicit Turn(pthread_mutex_t& mutex) : mutex_(mutex) {
    // EOWNERDEAD: its holder has died, and we have it (pthread_mutex_consistent(3)); any other error leaves the table
    // alone.
    const int error = ::pthread_mutex_lock(&mutex_);
    is_mine_ = error == 0 || (error == EOWNERDEAD && ::pthread_mutex_consistent(&mutex_) == 0);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (is_mine_) {
      ::pthread_mutex_unlock(&mutex_);
    }
  }
  explicit operator bool() const { return is_mine_; }

 private:
  pthread_mutex_t& mutex_;
  bool is_mine_ = false;
};

bool make_shared(pthread_mutex_t& mutex) {
  pthread_mutexattr_t wanted;
  const bool is_made =
      ::pthread_mutexattr_init(&wanted) == 0 && ::pthread_mutexattr_setpshared(&wanted, PTHREAD_PROCESS_SHARED) == 0 &&
      ::pthread_mutexattr_setrobust(&wanted, PTHREAD_MUTEX_ROBUST) == 0 && ::pthread_mutex_init(&mutex, &wanted) == 0;
  ::pthread_mutexattr_destroy(&wanted);
  return is_made;
}

bool overlap(const RaceTable::Entry& one, const RaceTable::Entry& other) {
  return one.peer == other.peer && one.rkey == other.rkey &&
         (one.first - other.first < other.length || other.first - one.first < one.length);
}

/// A number that was given again counts as alive: its entry stays.
bool is_alive(int32_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; }

}  // namespace

RaceTable::RaceTable(const std::string& path, uint64_t (*clock)()) : clock_(clock) {
  const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // One of those who come at once makes the mutex. The lock is given back by name: a mapping would keep it.
  if (!file.is_open() || ::flock(file.get(), LOCK_EX) != 0 || ::ftruncate(file.get(), sizeof(Page)) != 0) {
    return;
  }
  const struct Unlock {
    int fd;
    ~Unlock() { ::flock(fd, LOCK_UN); }
  } unlock{file.get()};
  void* const memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) {
    return;
  }
  page_ = static_cast<Page*>(memory);
  if (page_->made != kMade && make_shared(page_->mutex)) {
    page_->made = kMade;
  }
  if (page_->made != kMade) {
    ::munmap(page_, sizeof(Page));
    page_ = nullptr;
  }
}

RaceTable::~RaceTable() {
  if (page_ != nullptr) {
    ::munmap(page_, sizeof(Page));
  }
}

/// Under the mutex, of a full table. Processes are asked for by a system call: once for entries of one that lie side by
/// side, as mostly.
std::optional<uint32_t> RaceTable::sweep(int32_t own_pid) {
  const uint64_t now_ns = clock_();
  if (now_ns < next_sweep_ns_) {
    return std::nullopt;
  }
  next_sweep_ns_ = now_ns + kSweepPauseNs;
  std::optional<uint32_t> free;
  int32_t living = own_pid;
  for (uint32_t i = 0; i < kPlaces; ++i) {
    Entry& one = page_->places[i].entry;
    if (one.pid == living || is_alive(one.pid)) {
      living = one.pid;
    } else {
      one.peer = 0;
      free = free ? free : i;
    }
  }
  return free;
}

std::optional<uint32_t> RaceTable::enter(const Entry& entry, std::optional<Entry>& other) {
  if (page_ == nullptr || entry.length == 0) {
    return std::nullopt;
  }
  const Turn turn(page_->mutex);
  if (!turn) {
    return std::nullopt;
  }
  std::optional<uint32_t> free;
  // Another process has written it.
  const uint32_t used = std::min(page_->used, kPlaces);
  for (uint32_t i = 0; i < used; ++i) {
    Page::Place& one = page_->places[i];
    const bool races = one.entry.peer != 0 && one.entry.pid != entry.pid && overlap(one.entry, entry) &&
                       !are_compatible(one.entry.access, entry.access);
    // Asked of those alone that matter: it is a system call.
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
  if (!free) {
    free = sweep(entry.pid);
  }
  if (free) {
    page_->places[*free] = {entry, {}};
  }
  return free;
}

std::optional<RaceTable::Entry> RaceTable::leave(uint32_t place) {
  if (page_ == nullptr || place >= kPlaces) {
    return std::nullopt;
  }
  const Turn turn(page_->mutex);
  if (!turn) {
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
