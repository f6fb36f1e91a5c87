#pragma once

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace ringbolt::base {

/// Calls `use` with the name of each thing in `folder`, unordered. 0, or an errno when it can't be read to its end. The
/// standard library's iterator ends the program where memory is short: its functions that allocate are `noexcept`.
/// The name is valid during the call alone. What `use` throws is passed on, and the folder closed. Names that come or
/// go meanwhile may be told or not (readdir(3)).
template <class Use>
int each_name_in(const char* folder, Use use) {
  struct Close {
    void operator()(DIR* opened) const { ::closedir(opened); }
  };
  const std::unique_ptr<DIR, Close> opened(::opendir(folder));
  if (opened == nullptr) {
    return errno;
  }
  // A null from readdir() is the end or an error: only errno tells them apart.
  errno = 0;
  while (const dirent* entry = ::readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      use(name);
    }
    errno = 0;
  }
  return errno;
}

}  // namespace ringbolt::base
