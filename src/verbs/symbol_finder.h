#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"

namespace ringbolt::verbs {

/// One shared library that was opened by its name, and the functions in it. It is never closed: objects of a library
/// outlive every scope. Remembers which functions were missing, so that an error can name them all. Not thread-safe.
class SymbolFinder {
 public:
  /// `name`: a path, or what the loader looks up. Throws base::Error with ELIBACC and the loader's reason.
  /// RTLD_LOCAL: its symbols must not stand in for those of another verbs library in this process. RTLD_NOW: what is
  /// missing is told here.
  explicit SymbolFinder(const std::string& name) : library_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      const char* reason = ::dlerror();
      throw base::Error(ELIBACC, "dlopen", name, reason == nullptr ? "the loader gives no reason" : reason);
    }
  }

  /// Whether it is there, in the library itself or in one that it is linked to. Null otherwise.
  template <class Function>
  bool find(const char* name, Function& function) {
    void* found = ::dlsym(library_, name);
    static_assert(sizeof found == sizeof function);
    // POSIX lets a pointer to a function go through void* (dlsym(3)); C++ has no cast for it without a warning.
    std::memcpy(&function, &found, sizeof function);
    return found != nullptr;
  }
  /// As find(), and what is not there is missing().
  template <class Function>
  void need(const char* name, Function& function) {
    if (!find(name, function)) {
      missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
    }
  }
  /// Names of all that was needed and not found; empty if nothing was.
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace ringbolt::verbs
