#include "base/companion.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/say.h"

namespace ringbolt::base {
namespace {

/// No allocation: this is said where nothing may be thrown.
void say_strange(const char* soname, const char* strange_path) noexcept {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&say_strange), &self) == 0 || self.dli_fname == nullptr) {
    return;
  }
  const char* slash = std::strrchr(self.dli_fname, '/');
  const int folder_length = slash == nullptr ? 0 : static_cast<int>(slash - self.dli_fname);
  std::array<char, PATH_MAX> companion{};
  std::snprintf(companion.data(), companion.size(), "%.*s/%s", folder_length, self.dli_fname, soname);
  const bool is_there = ::access(companion.data(), R_OK) == 0;
  std::array<char, 3 * PATH_MAX> line{};
  std::snprintf(
      line.data(), line.size(),
      "ringbolt: %s is loaded together with %s, which is not Ringbolt's: the two do not understand each other; "
      "%s%.*s%s\n",
      self.dli_fname, strange_path, is_there ? "put " : "", folder_length, self.dli_fname,
      is_there ? " first on LD_LIBRARY_PATH"
               : " holds only one of them: build everything (cmake --build), or install ringbolt anew");
  say(line.data());
}

}  // namespace

bool is_companion_ours(const char* soname, const char* mark) noexcept {
  // RTLD_NOLOAD: asks, and never loads one. It counts a reference, which dlclose() below gives back.
  void* const library = ::dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    return true;
  }
  const bool is_ours = ::dlsym(library, mark) != nullptr;
  // Once, as every call of the library comes by here.
  static std::atomic<bool> is_said{false};
  if (!is_ours && !is_said.exchange(true)) {
    const link_map* map = nullptr;
    const bool has_name = ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0';
    say_strange(soname, has_name ? map->l_name : soname);
  }
  ::dlclose(library);
  return is_ours;
}

}  // namespace ringbolt::base
