#include "cluster/control_page.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "cluster/limits.h"
#include "cluster/read_file.h"

namespace ringbolt::cluster {
namespace {

constexpr std::array<char, 8> kMagic = {'R', 'B', 'C', 'T', 'L', '1', '\0', '\0'};
constexpr uint32_t kVersion = 1;
// Words of 4 bytes in the machine's order: the page never leaves the machine.
constexpr size_t kVersionWord = 2;
constexpr size_t kCountWord = 3;
constexpr size_t kGenerationWord = 4;
constexpr size_t kFirstCableWord = 5;

constexpr size_t size_bytes(uint32_t n_cables) { return (kFirstCableWord + n_cables) * sizeof(uint32_t); }

/// The words of a page with `n_cables`; fewer when the file ends before. One read, so that a word is never half of two.
std::vector<uint32_t> read_words(int fd, uint32_t n_cables) {
  std::vector<uint32_t> words(kFirstCableWord + n_cables);
  const ssize_t bytes = ::pread(fd, words.data(), words.size() * sizeof(uint32_t), 0);
  words.resize(bytes > 0 ? static_cast<size_t>(bytes) / sizeof(uint32_t) : 0);
  return words;
}

/// Also false where another page of another size has been written over it: readers then see every cable cut.
bool is_page(const std::vector<uint32_t>& words, uint32_t n_cables) {
  return words.size() >= kFirstCableWord && std::memcmp(words.data(), kMagic.data(), kMagic.size()) == 0 &&
         words[kVersionWord] == kVersion && words[kCountWord] == n_cables;
}

[[noreturn]] void refuse_page(const std::string& path, const std::string& reason) {
  throw base::Error(EINVAL, "not a control page: " + reason, path,
                    "make the cluster anew: ringbolt down, then ringbolt up");
}

}  // namespace

struct ControlPage::Content {
  explicit Content(size_t n_cables) : cables(n_cables) {}

  std::string path;
  base::UniqueFd fd;
  base::Mutex mutex;  // one refresh at a time, or an older one could overwrite a newer one
  std::vector<std::atomic<bool>> cables;
  std::atomic<uint32_t> generation{0};

  void take(const std::vector<uint32_t>& words) RINGBOLT_REQUIRES(mutex) {
    // Cables before the count, and both with release: who acquires the new count sees the cables that it stands for.
    // Who reads in between sees new cables with the old count, and looks again when told.
    const bool is_whole = is_page(words, static_cast<uint32_t>(cables.size()));
    for (size_t i = 0; i < cables.size(); ++i) {
      const size_t at = kFirstCableWord + i;
      cables[i].store(is_whole && at < words.size() && words[at] == 1, std::memory_order_release);
    }
    if (is_whole) {
      generation.store(words[kGenerationWord], std::memory_order_release);
    }
  }

  /// The file once more, for writing: nobody holds a descriptor by which a stray write could reach the page. Throws if
  /// another file has its name by now.
  // O_NOFOLLOW and the comparison of inodes: between open() and now the cluster may have been taken down and made
  // anew, and its new page is not ours to change. ESTALE tells the two apart.
  base::UniqueFd open_to_write() const {
    base::UniqueFd writable(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat ours {};
    struct stat theirs {};
    if (!writable.is_open() || ::fstat(fd.get(), &ours) != 0 || ::fstat(writable.get(), &theirs) != 0) {
      throw base::Error(errno, "open for writing", path, "is the cluster still up? see: ringbolt status");
    }
    if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) {
      throw base::Error(ESTALE, "open for writing", path, "the cluster was made anew meanwhile: try again");
    }
    return writable;
  }

  void write_word(const base::UniqueFd& writable, size_t index, uint32_t value) const {
    const auto at = static_cast<off_t>(index * sizeof value);
    // Four bytes at a multiple of four lie in one page of the cache: readers get the old word or the new one.
    const ssize_t written = ::pwrite(writable.get(), &value, sizeof value, at);
    if (written != static_cast<ssize_t>(sizeof value)) {
      throw base::Error(written < 0 ? errno : EIO, "write", path);  // errno says nothing of fewer bytes
    }
  }
};

ControlPage::ControlPage() = default;
ControlPage::ControlPage(std::unique_ptr<Content> content)
    : content_(std::move(content)), n_cables_(static_cast<uint32_t>(content_->cables.size())) {}
ControlPage::ControlPage(ControlPage&&) noexcept = default;
ControlPage& ControlPage::operator=(ControlPage&&) noexcept = default;
ControlPage::~ControlPage() = default;

ControlPage ControlPage::create(const std::string& path, uint32_t n_cables) {
  RINGBOLT_ASSERT(n_cables >= 1 && n_cables <= kMaxCables);
  // 1 for every cable: up. The five words before are set below.
  std::vector<uint32_t> image(kFirstCableWord + n_cables, 1);
  std::memcpy(image.data(), kMagic.data(), kMagic.size());
  image[kVersionWord] = kVersion;
  image[kCountWord] = n_cables;
  image[kGenerationWord] = 0;
  write_new_file(path, {reinterpret_cast<const char*>(image.data()), image.size() * sizeof(uint32_t)});
  return open(path);
}

ControlPage ControlPage::open(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_open()) {
    throw base::Error(errno, "open", path, "is the cluster up? see: ringbolt status");
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    throw base::Error(errno, "fstat", path);
  }
  // Bounded before anything is allocated: the file's length decides how much.
  if (!S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(size_bytes(1)) ||
      status.st_size > static_cast<off_t>(size_bytes(kMaxCables))) {
    refuse_page(path, fmt::format("{} bytes", status.st_size));
  }
  const auto length = static_cast<size_t>(status.st_size);
  const auto n_cables = static_cast<uint32_t>(length / sizeof(uint32_t) - kFirstCableWord);
  const std::vector<uint32_t> words = read_words(fd.get(), n_cables);
  // The count is that of the length and of the file's own word, or the page was cut short or added to.
  if (!is_page(words, n_cables) || length != size_bytes(n_cables) || words.size() != kFirstCableWord + n_cables) {
    refuse_page(path, fmt::format("it is damaged, or of another version: {} bytes", length));
  }
  auto content = std::make_unique<Content>(n_cables);
  content->path = path;
  content->fd = std::move(fd);
  {
    const base::LockGuard guard(content->mutex);
    // Nobody else has it yet; the lock is for the compiler's analysis.
    content->take(words);
  }
  return ControlPage(std::move(content));
}

bool ControlPage::cable_up(uint32_t cable) const {
  return cable < n_cables_ && content_->cables[cable].load(std::memory_order_acquire);
}

uint32_t ControlPage::generation() const {
  return content_ == nullptr ? 0 : content_->generation.load(std::memory_order_acquire);
}

void ControlPage::refresh() const {
  if (content_ != nullptr) {
    const base::LockGuard guard(content_->mutex);
    content_->take(read_words(content_->fd.get(), n_cables_));
  }
}

void ControlPage::announce() {
  const base::LockGuard guard(content_->mutex);
  const std::vector<uint32_t> before = read_whole();
  // Read, then written: the caller holds the lock of the clusters' folder (tools/cluster_state.h), or two changes
  // could count as one.
  content_->write_word(content_->open_to_write(), kGenerationWord, before[kGenerationWord] + 1);
  // This process' own view follows at once; others look when they are told.
  content_->take(read_words(content_->fd.get(), n_cables_));
}

bool ControlPage::set_cable(uint32_t cable, bool is_up) {
  RINGBOLT_ASSERT(cable < n_cables_);
  const base::LockGuard guard(content_->mutex);
  const std::vector<uint32_t> before = read_whole();
  const uint32_t wanted = is_up ? 1 : 0;
  const bool changed = before[kFirstCableWord + cable] != wanted;
  if (changed) {
    const base::UniqueFd writable = content_->open_to_write();
    content_->write_word(writable, kFirstCableWord + cable, wanted);
    // After the cable: who sees the new count sees the new cable.
    content_->write_word(writable, kGenerationWord, before[kGenerationWord] + 1);
  }
  content_->take(read_words(content_->fd.get(), n_cables_));
  return changed;
}

std::vector<uint32_t> ControlPage::read_whole() const {
  std::vector<uint32_t> words = read_words(content_->fd.get(), n_cables_);
  if (!is_page(words, n_cables_) || words.size() != kFirstCableWord + n_cables_) {
    refuse_page(content_->path, "it was changed since it was opened");
  }
  return words;
}

}  // namespace ringbolt::cluster
