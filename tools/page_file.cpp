#include "page_file.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace ringbolt::tools {

PageFile::PageFile(const std::string& path, std::string option) : path_(path), option_(std::move(option)) {
  if (path.empty()) {
    return;
  }
  file_.reset(path == "-" ? ::fdopen(::dup(STDOUT_FILENO), "w") : std::fopen(path.c_str(), "w"));
  if (!file_) {
    if (path == "-") {
      throw base::Error(EBADF, "write", "standard output is closed", "open it, or give " + option_ + " a path");
    }
    throw base::Error(errno, "open for writing", path, "give " + option_ + " another path");
  }
}

void PageFile::write(const std::string& text) {
  if (file_ &&
      (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0)) {
    throw base::Error(errno, "write", path_, "make room there, or give " + option_ + " another path");
  }
}

}  // namespace ringbolt::tools
