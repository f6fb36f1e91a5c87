#pragma once

#include <memory>
#include <string>

#include "verbs/cm_calls.h"
#include "verbs/library.h"

namespace ringbolt::verbs {

/// A library of connections by IP addresses (rdma_cm), chosen at run time with the verbs library that it works on. A
/// small value: copies mean the same library, which stays loaded for the life of the process. Thread-safe.
class ConnectionManager {
 public:
  /// The one that belongs to `verbs`: librdmacm.so.1 in the same folder if that was opened by a path, else what the
  /// loader finds under that name. Throws base::Error: it can't be loaded, lacks functions (all are named), or works on
  /// another verbs library than `verbs`, whose objects would mean nothing to it. Blocks while the loader reads files.
  static ConnectionManager open(const Library& verbs);

  /// Around functions of the caller's own, none of which may be null.
  ConnectionManager(std::string name, const CmCalls& calls, const Library& verbs);

  /// What was opened: a path, or the name that the loader looked up.
  const std::string& name() const { return loaded_->name; }
  const CmCalls& calls() const { return loaded_->calls; }
  const Library& verbs() const { return loaded_->verbs; }
  /// The calls, for who must outlive this value.
  std::shared_ptr<const CmCalls> shared_calls() const { return {loaded_, &loaded_->calls}; }

 private:
  struct Loaded {
    std::string name;
    CmCalls calls;
    Library verbs;
  };
  std::shared_ptr<const Loaded> loaded_;
};

}  // namespace ringbolt::verbs
