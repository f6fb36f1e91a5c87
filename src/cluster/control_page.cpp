#include "cluster/control_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "cluster/limits.h"
#include "cluster/read_file.h"

namespace ringbolt::cluster {
namespace {

constexpr std::array<char, 8> kMagic = {'R', 'B', 'C', 'T', 'L', '1', '\0', '\0'};
constexpr uint32_t kVersion = 1;
constexpr size_t kVersionWord = 2;
constexpr size_t kCountWord = 3;
constexpr size_t kGenerationWord = 4;
constexpr size_t kFirstCableWord = 5;

constexpr size_t size_bytes(uint32_t n_cables) { return (kFirstCableWord + n_cables) * sizeof(uint32_t); }

static_assert(std::atomic_ref<uint32_t>::is_always_lock_free, "the page is shared between processes");

std::atomic_ref<uint32_t> word(uint32_t* words, size_t index) { return std::atomic_ref<uint32_t>(words[index]); }

[[noreturn]] void refuse_page(const std::string& path, const std::string& reason) {
  throw base::Error(EINVAL, "not a control page: " + reason, path,
                    "make the cluster anew: ringbolt down, then ringbolt up");
}

}  // namespace

ControlPage ControlPage::create(const std::string& path, uint32_t n_cables) {
  RINGBOLT_ASSERT(n_cables >= 1 && n_cables <= kMaxCables);
  std::vector<uint32_t> image(kFirstCableWord + n_cables, 1);
  std::memcpy(image.data(), kMagic.data(), kMagic.size());
  image[kVersionWord] = kVersion;
  image[kCountWord] = n_cables;
  image[kGenerationWord] = 0;
  // Written, not truncated to size: a full file system refuses here instead of by SIGBUS later.
  write_new_file(path, {reinterpret_cast<const char*>(image.data()), image.size() * sizeof(uint32_t)});
  return open(path);
}

ControlPage ControlPage::open(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_open()) {
    throw base::Error(errno, "open", path, "is the cluster up? see: ringbolt status");
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    throw base::Error(errno, "fstat", path);
  }
  if (!S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(size_bytes(1)) ||
      status.st_size > static_cast<off_t>(size_bytes(kMaxCables))) {
    refuse_page(path, fmt::format("{} bytes", status.st_size));
  }
  const auto length = static_cast<size_t>(status.st_size);
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    throw base::Error(errno, "mmap", path);
  }
  auto* words = static_cast<uint32_t*>(memory);
  const uint32_t version = word(words, kVersionWord).load();
  const uint32_t n_cables = word(words, kCountWord).load();
  if (std::memcmp(words, kMagic.data(), kMagic.size()) != 0 || version != kVersion || n_cables > kMaxCables ||
      length != size_bytes(n_cables)) {
    ::munmap(memory, length);
    refuse_page(path, fmt::format("version {}, {} cables in {} bytes", version, n_cables, length));
  }
  return {words, n_cables};
}

ControlPage& ControlPage::operator=(ControlPage&& other) noexcept {
  std::swap(words_, other.words_);
  std::swap(n_cables_, other.n_cables_);
  return *this;
}

ControlPage::~ControlPage() {
  if (words_ != nullptr) {
    ::munmap(words_, size_bytes(n_cables_));
  }
}

bool ControlPage::cable_up(uint32_t cable) const {
  return cable < n_cables_ && word(words_, kFirstCableWord + cable).load(std::memory_order_acquire) == 1;
}

uint32_t ControlPage::generation() const { return word(words_, kGenerationWord).load(std::memory_order_acquire); }

bool ControlPage::set_cable(uint32_t cable, bool is_up) {
  RINGBOLT_ASSERT(cable < n_cables_);
  const uint32_t wanted = is_up ? 1 : 0;
  const bool changed = word(words_, kFirstCableWord + cable).exchange(wanted) != wanted;
  if (changed) {
    // Pairs with generation(): who sees the new count sees the new cable.
    word(words_, kGenerationWord).fetch_add(1, std::memory_order_acq_rel);
  }
  return changed;
}

}  // namespace ringbolt::cluster
