#pragma once

#include <stdexcept>
#include <string>

namespace ringbolt::base {

/// What `errno_value` means. Where a limit was reached, with that limit and what raises it: EMFILE, "Too many open
/// files (this process may have 36: raise `ulimit -n`)". Thread-safe. Takes values that are no errno as well
/// ("Unknown error 4711").
std::string reason_of(int errno_value);

/// Set-up refused. `errno_value` is an errno, `call` the system call or step that refused, `object` what it was about.
/// what() reads "<object>: <call>: <reason>". Thrown only while objects are built, never on a data path. Its accessors'
/// references live as long as it: who keeps the words beyond the handler copies them.
class Error : public std::runtime_error {
 public:
  Error(int errno_value, std::string call, std::string object);
  /// With a remedy: what() ends in "; <remedy>".
  Error(int errno_value, std::string call, std::string object, const std::string& remedy);

  int errno_value() const { return errno_value_; }
  const std::string& call() const { return call_; }
  const std::string& object() const { return object_; }

 private:
  int errno_value_;
  std::string call_;
  std::string object_;
};

}  // namespace ringbolt::base
