#include "cluster/counter_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/process_counts.h"

namespace ringbolt::cluster {
namespace {

constexpr size_t kBlockBytes = RINGBOLT_COUNTER_BLOCK_BYTES;
constexpr const char* kRemedy = "remove it: what it counted is lost, nothing else";

// The layout is that of docs/formats/counters.md: these hold the C header and the C++ structs together.
static_assert(kSharedWords <= RINGBOLT_COUNTER_SHARED_WORDS);
static_assert(RINGBOLT_COUNTER_SHARED_AT + RINGBOLT_COUNTER_SHARED_WORDS == RINGBOLT_COUNTER_CELLS_AT);
static_assert(RINGBOLT_COUNTER_CELLS_AT * sizeof(uint64_t) + RINGBOLT_COUNTER_CELLS * sizeof(CounterCell) ==
              kBlockBytes);
static_assert(sizeof(CounterLane) == RINGBOLT_COUNTER_LANE_WORDS * sizeof(uint64_t));
static_assert(std::atomic<uint64_t>::is_always_lock_free);

using Block = std::array<uint64_t, kBlockBytes / sizeof(uint64_t)>;

bool is_ours(const Block& head) {
  return std::memcmp(head.data(), RINGBOLT_COUNTER_MAGIC, sizeof RINGBOLT_COUNTER_MAGIC) == 0;
}

// A bound on what is read for a file that somebody else may have put there.
bool has_sane_size(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_size <= static_cast<off_t>(kBlockBytes * RINGBOLT_COUNTER_MAX_BLOCKS);
}

/// Bytes read, fewer at the end of the file only; -1 with errno.
ssize_t read_block(int fd, uint64_t index, Block& block) {
  size_t got = 0;
  while (got < kBlockBytes) {
    const ssize_t bytes = ::pread(fd, reinterpret_cast<std::byte*>(block.data()) + got, kBlockBytes - got,
                                  static_cast<off_t>(index * kBlockBytes + got));
    // A regular file gives less than asked for at its end only; a loop all the same, as read(2) promises nothing.
    if (bytes < 0 && errno != EINTR) {
      return -1;
    }
    if (bytes == 0) {
      break;
    }
    got += bytes > 0 ? static_cast<size_t>(bytes) : 0;
  }
  return static_cast<ssize_t>(got);
}

/// Hands every block but the first to `visit`. 0, or an errno as read_counters() has them.
template <typename Visit>
int read_blocks(const std::string& path, const Visit& visit) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) {
    return errno;
  }
  if (!has_sane_size(status)) {
    return EINVAL;
  }
  Block block{};
  for (uint64_t index = 0; index < RINGBOLT_COUNTER_MAX_BLOCKS; ++index) {
    const ssize_t got = read_block(file.get(), index, block);
    if (got < 0) {
      return errno;
    }
    if (index == 0 && got == 0) {
      break;  // about to be made
    }
    if (index == 0 && (got != static_cast<ssize_t>(kBlockBytes) || !is_ours(block))) {
      return EINVAL;
    }
    // The end of the file, which other processes may be moving on.
    if (got != static_cast<ssize_t>(kBlockBytes)) {
      break;
    }
    if (index != 0) {
      visit(block);
    }
  }
  return 0;
}

/// Several may write the head of a new file at once: they write the same.
void check_head(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    throw base::Error(errno, "fstat", path);
  }
  if (!has_sane_size(status)) {
    throw base::Error(EINVAL, "not a file of counters", path, kRemedy);
  }
  Block head{};
  const ssize_t got = read_block(fd, 0, head);
  if (got < 0) {
    throw base::Error(errno, "read", path);
  }
  // An empty file: we or another process have just made it.
  if (got == 0) {
    std::memcpy(head.data(), RINGBOLT_COUNTER_MAGIC, sizeof RINGBOLT_COUNTER_MAGIC);
    // A short write sets no errno.
    errno = ENOSPC;
    if (::pwrite(fd, head.data(), kBlockBytes, 0) != static_cast<ssize_t>(kBlockBytes)) {
      throw base::Error(errno, "write", path, "free space there");
    }
  } else if (got != static_cast<ssize_t>(kBlockBytes) || !is_ours(head)) {
    throw base::Error(EINVAL, "not a file of counters, or of another version", path, kRemedy);
  }
}

/// False with errno: another process has the block (EAGAIN, EACCES), or locks don't work there. A lock of the open
/// file description (fcntl(2), F_OFD_SETLK): unlike a POSIX lock it is not lost when another descriptor of the file
/// is closed in this process, and two pages of one process exclude each other too. A forked child shares it.
bool lock_block(int fd, uint64_t index) {
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = static_cast<off_t>(index * kBlockBytes);
  wanted.l_len = static_cast<off_t>(kBlockBytes);
  return ::fcntl(fd, F_OFD_SETLK, &wanted) == 0;
}

/// A block of the file in memory. What is mapped are whole pages, of 4 KiB or more, whatever a block has.
CounterPage::MappedBlock map_shared(int fd, uint64_t index, size_t page_bytes) {
  const size_t at = index * kBlockBytes;
  // Space is set aside now: a full disk must not show at the first count, as a signal.
  if (const int error = ::posix_fallocate(fd, static_cast<off_t>(at), static_cast<off_t>(kBlockBytes)); error != 0) {
    errno = error;
    return {};
  }
  // mmap() wants an offset of whole pages (16 or 64 KiB on some ARM machines); the mapping then covers neighbours'
  // blocks as well, which we never touch.
  const size_t first = at / page_bytes * page_bytes;
  const size_t length = at - first + kBlockBytes;
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(first));
  if (memory == MAP_FAILED) {
    return {};
  }
  return {memory, length, static_cast<std::byte*>(memory) + (at - first)};
}

CounterPage::MappedBlock map_own() {
  // Not new: a zeroed page with the alignment that the cells want.
  void* memory = ::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return {memory, kBlockBytes, static_cast<std::byte*>(memory)};
}

}  // namespace

std::shared_ptr<CounterPage> CounterPage::open(const std::string& path, Port port, size_t page_bytes) {
  std::shared_ptr<CounterPage> page(new CounterPage);
  page->port_ = port;
  page->page_bytes_ = page_bytes != 0 ? page_bytes : static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  // O_NONBLOCK and O_NOFOLLOW: a FIFO or a link in its place must neither hang us nor lead elsewhere.
  page->file_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!page->file_.is_open()) {
    throw base::Error(errno, "open", path);
  }
  check_head(page->file_.get(), path);
  // Nobody else has the page yet; the lock is for the compiler's analysis.
  const base::LockGuard guard(page->mutex_);
  const MappedBlock block = page->map_block();
  if (block.words == nullptr) {
    throw base::Error(errno, "take a block of counters", path, "free space there, and see that it has file locks");
  }
  page->adopt(block);
  return page;
}

std::shared_ptr<CounterPage> CounterPage::in_own_memory() {
  std::shared_ptr<CounterPage> page(new CounterPage);
  const base::LockGuard guard(page->mutex_);
  page->adopt(map_own());
  return page;
}

// All cells must have come back. Closing file_ then frees the locks: the next process goes on from these numbers.
CounterPage::~CounterPage() {
  for (const MappedBlock& block : blocks_) {
    ::munmap(block.memory, block.length_bytes);
  }
}

/// The next block that nobody has; none with errno.
CounterPage::MappedBlock CounterPage::map_block() {
  for (; next_block_ < RINGBOLT_COUNTER_MAX_BLOCKS; ++next_block_) {
    if (lock_block(file_.get(), next_block_)) {
      const MappedBlock block = map_shared(file_.get(), next_block_, page_bytes_);
      if (block.words != nullptr) {
        ++next_block_;  // our own lock would not stop us
      }
      // Also without memory: posix_fallocate() or mmap() failed, errno says why, and the block stays locked but may
      // be tried again.
      return block;
    }
    // fcntl(2) names either for a lock that is held; anything else (ENOLCK, EINVAL) would be so for each block.
    if (errno != EAGAIN && errno != EACCES) {
      return {};
    }
  }
  errno = ENOSPC;
  return {};
}

void CounterPage::adopt(const MappedBlock& block) {
  blocks_.push_back(block);
  // Atomic and plain words lie side by side in shared memory: each word is only ever used as one of the two.
  auto* words = reinterpret_cast<std::atomic<uint64_t>*>(block.words);
  // For people who look.
  words[0].store(static_cast<uint64_t>(::getpid()), std::memory_order_relaxed);
  words[RINGBOLT_COUNTER_PEERS_AT].store(port_ == Port::peers ? 1 : 0, std::memory_order_relaxed);
  // Of the first block only: later ones have words of this kind too, which stay as they were.
  if (shared_ == nullptr) {
    shared_ = words + RINGBOLT_COUNTER_SHARED_AT;
  }
  auto* cells = reinterpret_cast<CounterCell*>(words + RINGBOLT_COUNTER_CELLS_AT);
  // From the last on, so that the first cell is handed out first: few queue pairs touch few lines.
  for (size_t i = RINGBOLT_COUNTER_CELLS; i-- > 0;) {
    free_.push_back(cells + i);
  }
}

CounterCell& CounterPage::take() {
  const base::LockGuard guard(mutex_);
  if (free_.empty()) {
    free_.reserve(RINGBOLT_COUNTER_CELLS * (blocks_.size() + 1));  // give_back() must not throw
    blocks_.reserve(blocks_.size() + 1);
    const MappedBlock block = file_.is_open() ? map_block() : MappedBlock();
    // Without space a queue pair must work all the same; what it counts is then seen by nobody.
    adopt(block.words != nullptr ? block : map_own());
  }
  CounterCell* cell = free_.back();
  free_.pop_back();
  return *cell;
}

void CounterPage::give_back(CounterCell& cell) {
  const base::LockGuard guard(mutex_);
  free_.push_back(&cell);
}

base::Result<RingboltCounterSum> read_counters(const std::string& path) {
  RingboltCounterSum sum{};
  if (const int error = read_blocks(path, [&](const Block& block) { ringbolt_add_block(block.data(), &sum); });
      error != 0) {
    return base::fail(error);
  }
  return sum;
}

base::Result<std::vector<ProcessCount>> read_counters_by_process(const std::string& path) {
  std::vector<ProcessCount> counts;
  const auto add = [&](const Block& block) {
    if (block[RINGBOLT_COUNTER_PEERS_AT] != 0) {
      return;
    }
    const auto pid = static_cast<pid_t>(block[0]);
    const auto known = std::ranges::find(counts, pid, &ProcessCount::pid);
    ProcessCount& count = known == counts.end() ? counts.emplace_back(ProcessCount{pid, {}}) : *known;
    ringbolt_add_block(block.data(), &count.sum);
  };
  if (const int error = read_blocks(path, add); error != 0) {
    return base::fail(error);
  }
  return counts;
}

}  // namespace ringbolt::cluster
