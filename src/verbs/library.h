#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verbs/calls.h"

namespace ringbolt::verbs {

/// A verbs library, chosen at run time. A small value: copies mean the same library, which stays loaded for the life of
/// the process. Thread-safe. Functions of different libraries must not be mixed: objects are given back through the
/// one that made them.
class Library {
 public:
  /// `choice`:
  ///   "system"  what the loader finds under the platform's name (libibverbs.so.1; librdma.dylib on macOS)
  ///   "soft"    Ringbolt's own, beside the object that this code is part of or in ../lib/ringbolt from there
  ///   "auto"    the system's if one of its devices has an active port, else Ringbolt's own; asks the devices, which
  ///             may hang: see errand.h
  ///   a path    with at least one slash
  /// Who reads RINGBOLT_VERBS passes its value here. Throws base::Error that names the library, and every function
  /// that it lacks. With "auto" the error tells of both libraries. Blocks while the loader reads files, and in "auto"
  /// for as long as a driver does.
  static Library open(std::string_view choice);

  /// Around functions of the caller's own. Those that Calls says are never null must be set.
  Library(std::string name, const Calls& calls);

  /// What was opened: a path, or the name that the loader looked up.
  const std::string& name() const { return library_->name; }
  const Calls& calls() const { return library_->calls; }
  /// The same, for who must outlive this value.
  std::shared_ptr<const Calls> shared_calls() const { return {library_, &library_->calls}; }

 private:
  struct Loaded {
    std::string name;
    Calls calls;
  };
  std::shared_ptr<const Loaded> library_;
};

/// Where Ringbolt's own library may lie, most likely first: what "soft" tries. Thread-safe.
std::vector<std::string> soft_library_paths();

/// Whether one port of one device of the library is active. Opens and closes each device, and asks a device how many
/// ports it has only where no first port is active: one that has fallen asleep would not answer. Never throws: a device
/// that does not open counts as having none. Blocks as a driver does.
bool has_active_port(const Library& library);

}  // namespace ringbolt::verbs
