// Any bytes as the control page that processes share: refused, or a page whose cables can be read and set without
// leaving it, however the file is scribbled over afterwards.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "base/assert.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "cluster/control_page.h"
#include "input.h"

namespace {

/// A file of the given bytes, private to this process; gone with it.
class ScratchFile {
 public:
  ScratchFile() {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder != nullptr ? folder : "/tmp") + "/rb-control-XXXXXX";
    fd_.reset(mkstemp(path_.data()));
    RINGBOLT_ASSERT(fd_.is_open());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  void fill(const uint8_t* data, size_t size) {
    RINGBOLT_ASSERT(ftruncate(fd_.get(), 0) == 0);
    RINGBOLT_ASSERT(size == 0 || pwrite(fd_.get(), data, size, 0) == static_cast<ssize_t>(size));
  }
  void scribble(size_t size) {
    const std::array<uint8_t, 64> ones = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const size_t length = size < ones.size() ? size : ones.size();
    RINGBOLT_ASSERT(pwrite(fd_.get(), ones.data(), length, 8) == static_cast<ssize_t>(length));
  }

 private:
  std::string path_;
  ringbolt::base::UniqueFd fd_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  static ScratchFile file;
  file.fill(data, size);
  try {
    auto page = cluster::ControlPage::open(file.path());
    const uint32_t last = page.n_cables() - 1;
    page.set_cable(last, false);
    RINGBOLT_ASSERT(!page.cable_up(last));
    file.scribble(size - 8);
    page.refresh();
    for (const uint32_t cable : {0U, last, page.n_cables(), page.n_cables() + 1, 0xffffffffU}) {
      RINGBOLT_ASSERT(!page.cable_up(cable));
    }
    page.set_cable(last, true);
    const bool is_refused = false;
    RINGBOLT_ASSERT(is_refused);
  } catch (const base::Error& refused) {
    RINGBOLT_ASSERT(refused.errno_value() != 0);
  }
  return 0;
}
